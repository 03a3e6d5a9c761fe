import { Socket } from 'node:net';

// TCP keep-alive: after this idle time the kernel checks whether the peer is still there.
const KEEP_ALIVE_MS = 10_000;

/** All sockets to a database server, including those of connections that are still being opened, so that no wait for one is endless. */
export class Sockets {
  readonly #open = new Set<Socket>();

  /** Creates a socket that is not connected yet. */
  create(): Socket {
    const socket = new Socket().setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
    this.#open.add(socket);
    return socket.once('close', () => this.#open.delete(socket));
  }

  /** Destroys all sockets, so that pending statements fail. */
  destroyAll(why: string): void {
    for (const socket of this.#open) socket.destroy(Object.assign(new Error(why), { code: 'ECONNRESET' }));
  }
}
