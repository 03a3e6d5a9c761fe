import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Serves a request as if it had not asked for another protocol, as any server may (RFC 9110, 7.8). Some clients, such as Java's, request
 * h2c with every first request, and continue in HTTP/1.1 when it is declined.
 *
 * Node passes on either all upgrades or none; if it ignored this one itself, it would lose the bytes that arrived with it. So Node gets
 * the connection back as a new one, with the request in front of those bytes and without `Upgrade`.
 *
 * @param rest the bytes that arrived after the head.
 */
export function serveWithoutUpgrade(server: Server, req: IncomingMessage, socket: Socket, rest: Buffer): void {
  const { method = '', url = '', httpVersion, rawHeaders } = req;
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.toLowerCase() !== 'upgrade') head += `${name}: ${rawHeaders[i + 1] ?? ''}\r\n`;
  }
  socket.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), rest]));
  server.emit('connection', socket);
}
