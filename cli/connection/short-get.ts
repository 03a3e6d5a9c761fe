/**
 * One GET request without node:http, whose modules and first use take a fifth of the time of a short command. It knows only the response
 * that the daemon sends: complete, with its length. For any other response, and without one, the caller asks node:http.
 */
import { connect, type NetConnectOpts } from 'node:net';
import type { FetchInit, FetchResponse } from '../../daemon/api/client.js';

const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
const MAX_HEAD_BYTES = 16 * 1024;

/**
 * @returns undefined if node:http has to ask again.
 * @throws the error of the connection if there was none: node:http would meet it as well.
 */
export async function shortGet(url: URL, init: FetchInit, socketPath?: string): Promise<FetchResponse | undefined> {
  const { headers = {}, signal } = init;
  const fields = Object.entries({ ...headers, host: url.host, connection: 'close' });
  const lines = [`GET ${url.pathname}${url.search} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`)];
  // A value with another character could add a line.
  if (!lines.every((line) => /^[ -~]*$/.test(line))) return undefined;
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const to = socketPath === undefined ? { host, port: Number(url.port || 80) } : { path: socketPath };
  return responseIn(await sent(`${lines.join('\r\n')}\r\n\r\n`, to, signal));
}

/** @returns the response, or what there is of it after an error, an abort, or too many bytes. @throws as `shortGet`. */
function sent(request: string, to: NetConnectOpts, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let pieces: Buffer[] = [];
    let length = 0;
    let expected: number | undefined;
    let isConnected = false;
    const socket = connect(to);
    const end = () => {
      signal.removeEventListener('abort', end);
      socket.destroy();
      resolve(Buffer.concat(pieces));
    };
    socket.once('connect', () => {
      isConnected = true;
    });
    socket.on('error', (error) => {
      if (!isConnected) reject(error);
      end();
    });
    socket.on('end', end);
    socket.on('data', (piece) => {
      pieces.push(piece);
      length += piece.length;
      if (expected === undefined) {
        pieces = [Buffer.concat(pieces)];
        expected = lengthOf(pieces[0] ?? piece);
      }
      // The server may ignore that the connection should be closed.
      if (expected === undefined ? length > MAX_HEAD_BYTES : length >= expected) end();
    });
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
    else socket.write(request);
  });
}

const endOfHeadIn = (received: Buffer) => received.subarray(0, MAX_HEAD_BYTES).indexOf('\r\n\r\n');

/** @returns the number of bytes of the response; 0 if it does not say so, or has too many; undefined if its head is incomplete. */
function lengthOf(received: Buffer): number | undefined {
  const end = endOfHeadIn(received);
  if (end === -1) return undefined;
  const bodyLength = /\r\ncontent-length: *(\d{1,9})(?:\r\n|$)/i.exec(received.toString('latin1', 0, end))?.[1];
  const length = end + 4 + Number(bodyLength);
  return bodyLength === undefined || length > MAX_RESPONSE_BYTES ? 0 : length;
}

function responseIn(received: Buffer): FetchResponse | undefined {
  const endOfHead = endOfHeadIn(received);
  if (endOfHead === -1) return undefined;
  const [first = '', ...lines] = received.toString('latin1', 0, endOfHead).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (2\d\d|[45]\d\d) /.exec(first)?.[1]);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name = '', value = ''] = /^([\w-]+):[\t ]*([\t -~]*)$/.exec(line) ?? [];
    if (name === '' || headers.has(name.toLowerCase())) return undefined;
    headers.set(name.toLowerCase(), value.trim());
  }
  const body = received.subarray(endOfHead + 4);
  const isKnown = headers.get('content-length') === String(body.length) && !headers.has('transfer-encoding');
  if (Number.isNaN(status) || !isKnown || headers.has('content-encoding')) return undefined;
  return {
    ok: status < 300,
    status,
    headers: { get: (name) => headers.get(name.toLowerCase()) ?? null },
    // As fetch does, it ignores a byte order mark.
    json: () =>
      Promise.resolve(body.toString('utf8').replace(/^\uFEFF/, '')).then((text) => JSON.parse(text) as unknown),
    body: null,
  };
}
