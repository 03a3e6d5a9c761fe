import { Socket } from 'node:net';

// From then on the kernel asks a connection on which nothing comes whether it is still there.
const KEEP_ALIVE_MS = 10_000;

/** The sockets under all connections to a server, those that are just being made included, so that none can be waited for in vain. */
export class Sockets {
  readonly #open = new Set<Socket>();

  /** One that is to be connected. */
  create(): Socket {
    const socket = new Socket().setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
    this.#open.add(socket);
    return socket.once('close', () => this.#open.delete(socket));
  }

  /** Whoever waits for an answer on one of them is told that none will come. */
  abandon(why: string): void {
    for (const socket of this.#open) socket.destroy(Object.assign(new Error(why), { code: 'ECONNRESET' }));
  }
}
