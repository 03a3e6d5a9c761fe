/** Commands to copy from the terminal UI: the one that lists what a screen shows, and a request as a curl command. */
import { shellWord, visible, visibleJson } from '../escape.js';
import type { TopDimension, TopWindow } from '../../daemon/api/vocabulary.js';
import type { FilteredScreen } from './types.js';
import type { WireRequestEvent } from '../../daemon/api/contract.js';

const COMMANDS: Record<FilteredScreen, string> = {
  tokens: 'token list',
  projects: 'project list',
  audit: 'audit list',
  events: 'events tail',
  top: 'top',
};

export interface ListCommand {
  screen: FilteredScreen;
  /** The text of the filter line. */
  filter: string;
  /** The sort order, in the syntax of the API; null for the command's own order. */
  sort?: string | null;
  /** What a row of Top stands for, and how far back it reaches. */
  top?: { by: TopDimension; window: TopWindow };
  /** The name of the context; null if the daemon's address comes from the environment. */
  context?: string | null;
}

/** @returns for example `llmp token list 'project:web expires:<2h' --sort live -c prod`, quoted for a POSIX shell. */
export function listCommand({ screen, filter, sort = null, top, context = null }: ListCommand): string {
  const query = filter.trim();
  const words = ['llmp', COMMANDS[screen]];
  if (top) words.push(top.by);
  if (query !== '') words.push(shellWord(query));
  if (top) words.push('--window', top.window);
  if (sort !== null) words.push('--sort', sort);
  if (context !== null) words.push('-c', shellWord(context));
  return words.join(' ');
}

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
