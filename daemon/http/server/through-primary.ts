/**
 * Requests that a worker does not serve, such as /manage: it passes them on to its primary, over a connection that only these two have. The primary
 * sees the ends of the client's connection, so that addresses mean the same in both.
 */
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { HeldMemory, type MemoryLimit } from '../../core/memory-limit.js';
import { Refusal } from '../../core/refusal.js';
import { requestIdOf } from '../client-identity.js';
import { HOP_BY_HOP, MAX_HEADER_BYTES, MAX_HEADERS, MAX_TARGET_LENGTH } from '../request-head.js';
import { Outlet } from '../outlet.js';
import { sendProblem } from '../problems.js';
import type { MemoryBounds } from './memory-bounds.js';
import { type HttpServer, isProbe } from './server.js';

/** Opens a connection to the primary that stands for the client's; null if the primary takes no more. */
export type Connect = (client: Pick<Socket, 'remoteAddress' | 'localAddress'>) => Duplex | null;

export interface PrimaryOptions {
  connect: Connect;
  memory: MemoryLimit;
}

export interface ThroughPrimaryOptions extends PrimaryOptions {
  /** Serves health checks. */
  app: RequestListener;
}

/** What a request without a body takes until it has its response, in both processes together. The primary holds its body besides. */
const PASSED_ON_BYTES = 32 * 1024;

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

export function throughPrimary(options: ThroughPrimaryOptions): RequestListener {
  return (req, res) => {
    if (isProbe(req.url ?? '')) options.app(req, res);
    else passOn(options, req, res);
  };
}

/** Passes every request to the primary. */
export const toPrimary =
  (options: PrimaryOptions): RequestListener =>
  (req, res) => {
    passOn(options, req, res);
  };

function passOn({ connect, memory }: PrimaryOptions, req: IncomingMessage, res: ServerResponse): void {
  const refuse = (cause?: unknown) => {
    const refusal = new Refusal('unavailable', 'this part of the daemon is not available now', { cause });
    sendProblem(res, refusal, requestIdOf(req.headers['x-request-id']), {});
  };
  const tunnel = connect(req.socket);
  if (tunnel === null) {
    refuse();
    return;
  }
  // A client can hold a request in the primary for a while: by a body that it does not complete.
  const held = new HeldMemory(memory, () => res.destroy());
  held.hold(PASSED_ON_BYTES);
  const isChunked = req.headers['transfer-encoding'] !== undefined;
  const expectsContinue = req.headers.expect !== undefined && req.httpVersion === '1.1';
  const outgoing = request({
    createConnection: () => tunnel,
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
    held.release(); // From now on it counts as a response, as those of this process do.
    res.writeHead(response.statusCode ?? 502, response.statusMessage, endToEnd(response.rawHeaders));
    res.flushHeaders();
    response.pipe(res);
    // It has been cut off: the client must not take what it has for the complete response.
    response.once('aborted', () => res.destroy());
    response.on('error', () => res.destroy());
  });
  outgoing.on('error', (cause) => {
    if (res.headersSent) res.destroy();
    else if (!res.destroyed) refuse(cause);
  });
  res.once('close', () => {
    held.release();
    outgoing.destroy();
  });
  passBodyOn(req, outgoing, new HeldMemory(memory, () => res.destroy()), (bytes) => {
    if (!res.headersSent && !res.destroyed) held.hold(held.bytes + bytes);
  });
}

/** @param memory what waits in this process counts here. @param onPassed called with the bytes that are passed on. */
function passBodyOn(
  req: IncomingMessage,
  outgoing: ClientRequest,
  memory: HeldMemory,
  onPassed: (bytes: number) => void,
): void {
  const outlet = new Outlet({
    write(bytes, written) {
      onPassed(bytes.length);
      return outgoing.write(bytes, written);
    },
    onReady: () => req.resume(),
    memory,
  });
  const onData = (chunk: Buffer) => {
    if (!outlet.send(chunk)) req.pause();
  };
  const onEnd = () => {
    outlet.flush();
    outgoing.end();
  };
  // The rest of the body is read and dropped, as after any early response.
  outgoing.once('close', () => {
    req.off('data', onData).off('end', onEnd);
    memory.release();
  });
  req.on('data', onData).on('end', onEnd);
}

/** The primary's server for these connections. It does not listen. The limits of responses apply to those that go to workers too. */
export function serverForWorkers(
  app: RequestListener,
  { unreadResponses }: Pick<MemoryBounds, 'unreadResponses'>,
): HttpServer {
  // The worker has checked the shape, with these limits.
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES + MAX_TARGET_LENGTH + 4096,
    requestTimeout: 0,
    requireHostHeader: false,
  });
  server.maxHeadersCount = 2 * MAX_HEADERS;
  // Without a listener for the second, Node would send `100 Continue` before the request is authenticated.
  for (const event of ['request', 'checkContinue']) {
    server.on(event, (req: IncomingMessage, res: ServerResponse) => {
      unreadResponses.watchAll(res);
      app(req, res);
    });
  }
  return Object.assign(server, { stopKeepAlive: () => undefined });
}
