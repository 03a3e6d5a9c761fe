/**
 * The `fetch` of the command line, made from node:http. The global fetch would double the time of a short command: Node.js compiles it
 * when it is first used, which takes about 50 ms, and so do the globals `Request`, `Response` and `Headers`.
 */
import { Agent, globalAgent, type IncomingMessage, request as httpRequest, type RequestOptions } from 'node:http';
import { Readable } from 'node:stream';
import type { Fetch, FetchInit, FetchResponse } from '../../daemon/api/client.js';

/** A page of the largest list has about 1 MB. */
const MAX_JSON_BYTES = 64 * 1024 * 1024;
/** A connection that was idle for longer is not used again: the server may be about to close it. */
const MAX_IDLE_SECONDS = 1;

/** @param socketPath the path of a Unix socket. By default, requests are sent to the host of their URL. */
export function fetchWithHttp(socketPath?: string): Fetch {
  const unixAgent = socketPath === undefined ? undefined : new Agent({ keepAlive: true });
  let lastUsed = 0; // The global `performance` would load another module of Node.js.
  return async (url, init) => {
    const { signal } = init;
    const isTls = url.protocol === 'https:';
    const { request, agent } = isTls
      ? await import('node:https').then((https) => ({ request: https.request, agent: https.globalAgent }))
      : { request: httpRequest, agent: unixAgent ?? globalAgent };
    if (process.uptime() - lastUsed > MAX_IDLE_SECONDS) closeIdle(agent);
    lastUsed = process.uptime();
    try {
      const response = await sent(url, { agent, ...(socketPath !== undefined && { socketPath }) }, request, init);
      const { statusCode: status = 0 } = response;
      if (status >= 300 && status < 400 && response.headers.location !== undefined) {
        response.destroy();
        throw new Error('unexpected redirect');
      }
      return responseOf(response, signal);
    } catch (error) {
      throw failureOf(error, signal);
    } finally {
      lastUsed = process.uptime();
    }
  };
}

function closeIdle(agent: Agent): void {
  for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
}

function sent(
  url: URL,
  connection: Pick<RequestOptions, 'agent' | 'socketPath'>,
  request: typeof httpRequest,
  { method = 'GET', headers = {}, body, signal }: FetchInit,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    let response: IncomingMessage | undefined;
    const outgoing = request(url, { ...connection, method, headers: { ...headers, ...length } }, (received) => {
      response = received;
      resolve(received);
    });
    outgoing.on('error', reject);
    // The option `signal` of the request does the same, in a millisecond of a short command. Each caller aborts its signal at the end: a
    // response that was read has nothing left to destroy.
    const abort = () => {
      if (!response?.readableEnded) outgoing.destroy(new Error('aborted'));
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    outgoing.once('close', () => {
      signal.removeEventListener('abort', abort);
    });
    outgoing.end(body);
  });
}

function responseOf(response: IncomingMessage, signal: AbortSignal): FetchResponse {
  const { statusCode: status = 0, headers } = response;
  // An error without a reader, for example after the caller gave up, must not end the process.
  response.on('error', () => undefined);
  return {
    ok: status >= 200 && status < 300,
    status,
    headers: {
      get(name) {
        const given = headers[name.toLowerCase()];
        return Array.isArray(given) ? given.join(', ') : (given ?? null);
      },
    },
    async json() {
      let text: string;
      try {
        text = await textOf(response);
      } catch (error) {
        throw failureOf(error, signal);
      }
      return JSON.parse(text) as unknown;
    },
    get body() {
      return Readable.toWeb(response) as unknown as ReadableStream<Uint8Array>;
    },
  };
}

async function textOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > MAX_JSON_BYTES) throw new Error('the response is too long');
    pieces.push(piece);
  }
  // As fetch does, ignores a byte order mark.
  return Buffer.concat(pieces)
    .toString('utf8')
    .replace(/^\uFEFF/, '');
}

/** As fetch does: the reason of an abort, or an error with the connection's error as its cause. */
function failureOf(error: unknown, signal: AbortSignal): unknown {
  return signal.aborted ? signal.reason : new TypeError('request failed', { cause: error });
}
