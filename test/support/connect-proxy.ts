/** An HTTP proxy that only knows CONNECT, as companies have at the edge of their network. It resolves every name to this machine. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';

interface AskedTunnel {
  /** The host and port that the client wanted. */
  authority: string;
  credentials: string | undefined;
  /** The client's connection. */
  socket: Socket;
}

export class ConnectProxy {
  readonly #server = createServer((_req, res) => res.writeHead(405).end());
  readonly asked: AskedTunnel[] = [];
  /** The response in place of a tunnel; null: none at all; undefined: a tunnel. */
  response: string | null | undefined;
  /** What the proxy sends at the beginning of a tunnel by itself. */
  early = '';
  /** host:port */
  address = '';

  static async start(): Promise<ConnectProxy> {
    const proxy = new ConnectProxy();
    proxy.#server.on('connect', (req: IncomingMessage, socket: Socket) => {
      proxy.#connected(req, socket);
    });
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    proxy.address = `127.0.0.1:${(proxy.#server.address() as AddressInfo).port}`;
    return proxy;
  }

  #connected(req: IncomingMessage, socket: Socket): void {
    const authority = req.url ?? '';
    this.asked.push({ authority, credentials: req.headers['proxy-authorization'], socket });
    socket.on('error', () => undefined);
    if (this.response !== undefined) {
      // Otherwise it does not notice that the client has left.
      socket.resume().on('end', () => socket.destroy());
      if (this.response !== null) socket.end(this.response);
      return;
    }
    const upstream = connect(Number(/:(\d+)$/.exec(authority)?.[1]), '127.0.0.1', () => {
      socket.write(`HTTP/1.1 200 Connection established\r\n\r\n${this.early}`);
      socket.pipe(upstream).pipe(socket);
    });
    upstream.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
  }

  begin(): void {
    this.asked.length = 0;
    this.response = undefined;
    this.early = '';
  }

  stop(): void {
    for (const { socket } of this.asked) socket.destroy();
    this.#server.close().closeAllConnections();
  }
}
