/** How connections to clients end when it is not by itself. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Clock } from '../core/ports.js';

/** With the response that goes out on it, or will. */
export type AnsweredSocket = Socket & { _httpMessage?: ServerResponse | null };

/** How long a client that was answered early may go on sending. */
export const LINGER_MS = 2_000;

const lingering = new WeakSet<Socket>();

/** Whether the connection is in the middle of a request that was answered already. */
export const isLingering = (socket: Socket) => lingering.has(socket);

/**
 * After an answer that came before the request's end: reads and forgets what the client still sends, for a
 * while, because closing at once would reset the connection and take the answer with it.
 */
export function linger(req: IncomingMessage, clock: Clock): void {
  const { socket } = req;
  if (req.complete || req.destroyed || lingering.has(socket)) return;
  const cancel = clock.after(LINGER_MS, () => socket.destroy());
  const stop = () => {
    cancel();
    lingering.delete(socket);
    socket.off('close', stop);
    // Our side was closed behind the answer.
    if (socket.writableEnded) socket.destroy();
  };
  lingering.add(socket);
  req.on('error', () => undefined);
  req.once('end', stop);
  // Not the request's own `close`: after its answer Node forgets the request when the connection ends.
  socket.once('close', stop);
  // Whoever read it piece by piece reads no more, and would hold up what flows. Only if there is somebody: to remove
  // nobody stops what flows already, and its end would never come.
  if (req.listenerCount('readable') > 0) req.removeAllListeners('readable');
  req.resume();
}

/**
 * Before an answer that may come before the request's end and be the connection's last: only our side is closed
 * behind it, and `linger` does the rest. Node would close both sides.
 */
export function closeGently(req: IncomingMessage): void {
  const { socket } = req;
  socket.destroySoon = () => {
    if (req.complete) Socket.prototype.destroySoon.call(socket);
    else socket.end();
  };
}

/**
 * Says that nothing more will come, and reads on for a while, as `linger` does. For a connection that Node has let go
 * of, or whose bytes are no request's.
 */
export function endGently(socket: Socket, clock: Clock): void {
  socket.resume();
  socket.end(() => {
    if (socket.destroyed) return;
    socket.once(
      'close',
      clock.after(LINGER_MS, () => socket.destroy()),
    );
  });
}

/** Ends the connection in the middle of an answer, so that nobody takes the cut answer for a whole one. */
export function cut(res: ServerResponse): void {
  const { socket } = res;
  // In HTTP/1.0 the end of the connection may be the end of the answer, so this end must not be an orderly one.
  // A Unix socket, which has no address, knows no other.
  if (res.req.httpVersion === '1.0' && socket?.remoteAddress !== undefined) socket.resetAndDestroy();
  res.destroy();
}

// To look for idle connections costs a glance at each, in vain while all are busy.
const LOOK_AGAIN_AFTER_MS = 100;
// Browsers and clients with a pool open connections in advance. Who has said nothing for so long had nothing to say.
const SILENT_MS = 1_000;

/** The connections of a server. */
export interface OpenConnections {
  /** No answer that has not begun promises to keep its connection: the client would lose the request that it sends just as it is closed. */
  promiseNoMore: () => void;
}

/**
 * Keeps a server's connections to those it can have: when the last place is taken, the idle ones are closed, so that
 * whoever only holds connections keeps nobody out. Idle are those between two requests, and those without a word so far.
 *
 * @param isSlow whether a connection is in the middle of a head for too long: it makes room as well.
 */
export function boundConnections(
  server: Server,
  most: number,
  clock: Clock,
  isSlow: (socket: Socket) => boolean,
): OpenConnections {
  /** Each with when it came. */
  const sockets = new Map<Socket, number>();
  const close = (isUnused: (socket: Socket, hadTime: boolean) => boolean) => {
    const cameBeforeMs = clock.monotonic() - SILENT_MS;
    const unused = [...sockets].filter(([socket, cameAtMs]) => isUnused(socket, cameAtMs < cameBeforeMs));
    for (const [socket] of unused) socket.destroy();
    return unused.length;
  };
  const isUnused = (socket: Socket, hadTime: boolean) => isIdle(socket) || isSilent(socket, hadTime);
  let looksAgainAtMs = -Infinity;
  const makeRoom = () => {
    const now = clock.monotonic();
    if (now < looksAgainAtMs) return;
    const closed = close((socket, hadTime) => isUnused(socket, hadTime) || isSlow(socket));
    if (closed < most / 10) looksAgainAtMs = now + LOOK_AGAIN_AFTER_MS;
  };
  server.maxConnections = most;
  server.on('connection', (socket: Socket) => {
    if (sockets.has(socket)) return; // It came before: its request asked for another protocol and did not get it.
    sockets.set(socket, clock.monotonic());
    socket.once('close', () => sockets.delete(socket));
    if (sockets.size >= most) makeRoom();
  });
  server.on('drop', makeRoom);
  // Node's own takes an answer that has not all gone out for one that is over, and the rest of it is lost.
  server.closeIdleConnections = () => {
    close(isUnused);
  };
  return {
    promiseNoMore() {
      for (const socket of sockets.keys()) {
        const { _httpMessage: current } = socket as AnsweredSocket;
        if (current && !current.headersSent) current.shouldKeepAlive = false;
      }
    },
  };
}

/** Nothing came on it, for which Node has it as busy. */
const isSilent = (socket: Socket, hadTime: boolean) => hadTime && socket.bytesRead === 0;

/** Between two requests: Node sets a time-out behind an answer and takes it away with the next request's head. */
const isIdle = (socket: Socket) => (socket.timeout ?? 0) > 0 && !isLingering(socket);
