import type { ServerResponse } from 'node:http';

/** Ends a connection in the middle of an answer, so that nobody takes the cut answer for a whole one. */
export function cut(res: ServerResponse): void {
  const { socket } = res;
  // In HTTP/1.0 the end of the connection may be the end of the answer, so this end must not be an orderly one.
  // A Unix socket, which has no address, knows no other.
  if (res.req.httpVersion === '1.0' && socket?.remoteAddress !== undefined) socket.resetAndDestroy();
  res.destroy();
}
