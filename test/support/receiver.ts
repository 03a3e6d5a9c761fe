/** The server that a webhook posts to: it notes what it receives, and responds as the test decides. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  ids: string[];
  /** By `performance.now()`. */
  atMs: number;
}

export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  body?: string;
  /** Resets the connection instead. */
  reset?: true;
}

export class Receiver {
  /** All posts so far, whatever the response was. */
  readonly posts: Received[] = [];
  /** How often each event was accepted, in the order of the first time. */
  readonly accepted = new Map<string, number>();
  /** The response to a post; 200 by default. */
  answer: (post: Received) => Answer | Promise<Answer> = () => ({});
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((req, res) => {
      const pieces: Buffer[] = [];
      req.on('data', (piece: Buffer) => pieces.push(piece));
      req.on('end', () => {
        const body = Buffer.concat(pieces).toString();
        const { events } = JSON.parse(body) as { events: { id: string }[] };
        const post = { headers: req.headers, body, ids: events.map(({ id }) => id), atMs: performance.now() };
        this.posts.push(post);
        void Promise.resolve(this.answer(post)).then(({ status = 200, headers = {}, body: text = '', reset }) => {
          if (reset) return req.socket.resetAndDestroy();
          if (status < 300) for (const id of post.ids) this.accepted.set(id, (this.accepted.get(id) ?? 0) + 1);
          return res.writeHead(status, headers).end(text);
        });
      });
    });
  }

  static async start(port = 0): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.listen(port, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/events`;
  }

  /** Whether all of these were accepted. */
  hasAll(ids: readonly string[]): boolean {
    return ids.every((id) => this.accepted.has(id));
  }

  /** How often an event was posted. */
  triesOf(id: string): number {
    return this.posts.filter(({ ids }) => ids.includes(id)).length;
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
