/**
 * Requests that a worker does not serve, such as /manage: it passes them on to its primary, over a connection that only these two have. The primary
 * sees the ends of the client's connection, so that addresses mean the same in both.
 */
import { createServer, type IncomingMessage, request, type RequestListener, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Refusal } from '../../core/refusal.js';
import { requestIdOf } from '../credentials.js';
import { HOP_BY_HOP } from '../fields.js';
import { sendProblem } from '../problems.js';
import { MAX_HEADER_BYTES, MAX_HEADERS, MAX_TARGET_LENGTH } from '../shape.js';
import { type HttpServer, isProbe } from './server.js';

/** Opens a connection to the primary that stands for the client's. */
export type Connect = (client: Pick<Socket, 'remoteAddress' | 'localAddress'>) => Duplex;

/** These are about one connection, not about the request. `Expect` is passed on separately, for the version of HTTP that has it. */
const OF_CONNECTION: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'expect']);

/** @returns names and values in turn, without those about the connection. */
function endToEnd(rawHeaders: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (!OF_CONNECTION.has(name.toLowerCase())) kept.push(name, rawHeaders[at + 1] ?? '');
  }
  return kept;
}

/** @param app serves health checks. */
export function throughPrimary(connect: Connect, app: RequestListener): RequestListener {
  return (req, res) => {
    if (isProbe(req.url ?? '')) app(req, res);
    else passOn(connect, req, res);
  };
}

function passOn(connect: Connect, req: IncomingMessage, res: ServerResponse): void {
  const isChunked = req.headers['transfer-encoding'] !== undefined;
  const expectsContinue = req.headers.expect !== undefined && req.httpVersion === '1.1';
  const outgoing = request({
    createConnection: () => connect(req.socket),
    method: req.method,
    path: req.url,
    headers: [
      ...endToEnd(req.rawHeaders),
      ...(isChunked ? ['Transfer-Encoding', 'chunked'] : []),
      ...(expectsContinue ? ['Expect', '100-continue'] : []),
      'Connection',
      'close',
    ],
  });
  // The primary asks for the body after it has authenticated the request.
  outgoing.once('continue', () => {
    if (!res.headersSent) res.writeContinue();
  });
  outgoing.once('response', (response) => {
    res.writeHead(response.statusCode ?? 502, response.statusMessage, endToEnd(response.rawHeaders));
    res.flushHeaders();
    response.pipe(res);
    // It has been cut off: the client must not take what it has for the complete response.
    response.once('aborted', () => res.destroy());
    response.on('error', () => res.destroy());
  });
  outgoing.on('error', (cause) => {
    if (res.headersSent) res.destroy();
    else if (!res.destroyed) {
      const refusal = new Refusal('unavailable', 'the management API is not available', { cause });
      sendProblem(res, refusal, requestIdOf(req.headers['x-request-id']), {});
    }
  });
  res.once('close', () => outgoing.destroy());
  req.pipe(outgoing);
}

/** The primary's server for these connections. It does not listen. */
export function serverForWorkers(app: RequestListener): HttpServer {
  const server = createServer(
    // The worker has checked the shape, with these limits.
    { maxHeaderSize: MAX_HEADER_BYTES + MAX_TARGET_LENGTH + 4096, requestTimeout: 0, requireHostHeader: false },
    app,
  );
  server.maxHeadersCount = 2 * MAX_HEADERS;
  // Without a listener Node would send `100 Continue` before the request is authenticated.
  server.on('checkContinue', app);
  return Object.assign(server, { stopKeepAlive: () => undefined });
}
