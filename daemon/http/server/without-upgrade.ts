import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Serves a request as if it did not ask for another protocol, as any server may (RFC 9110, 7.8). Some clients, Java's
 * among them, ask for h2c with every first request, and go on in HTTP/1.1 when they get it.
 *
 * Node hands each upgrade over, or none. Told to pass this one over itself, it would lose what arrived together with it.
 * So it gets the connection back as a new one, with the request put back in front, `Upgrade` left out.
 *
 * @param rest what has arrived behind the head.
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
