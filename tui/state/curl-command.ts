/** A request as a curl command. */
import type { WireRequestEvent } from '../../daemon/api/contract.js';
import { shellWord, visible, visibleJson } from '../../console/escape.js';

type Sent = Pick<WireRequestEvent, 'method' | 'path' | 'request_body' | 'bytes_in'>;

/** No event contains the token: the command reads it from this variable. */
const TOKEN = '"Authorization: Bearer $LLMP_TOKEN"';

/**
 * The command that sends the request again, without its query, which events do not contain. A JSON body is part of it if the daemon
 * captures bodies and this one is complete; any other body is read from a file.
 *
 * @param server the address of the daemon: a URL, or `unix:PATH`.
 */
export function curlCommand({ method, path, request_body: body, bytes_in: size }: Sent, server: string): string {
  const socket = /^unix:(.+)$/.exec(server)?.[1];
  const url = socket === undefined ? server + path : `http://localhost${path}`;
  return [
    'curl -sS -i',
    ...(socket === undefined ? [] : [`--unix-socket ${shellWord(visible(socket))}`]),
    ...(method === 'GET' ? [] : [`-X ${shellWord(visible(method))}`]),
    shellWord(visible(url)),
    `-H ${TOKEN}`,
    ...(size === 0 ? [] : [`-H 'Content-Type: application/json' --data-binary ${dataOf(body)}`]),
  ].join(' ');
}

/** JSON on one line: raw control characters would end the quotes of a command that is pasted into a terminal. */
function dataOf(body: string | null): string {
  try {
    return shellWord(visibleJson(JSON.parse(body ?? '')));
  } catch {
    return '@request.json';
  }
}
