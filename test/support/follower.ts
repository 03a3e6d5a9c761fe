import { ManagementClient, type StreamOptions } from '../../daemon/api/client.js';
import { MANAGEMENT_TOKEN } from './daemon.js';

type Open<T> = (client: ManagementClient, options: StreamOptions) => AsyncIterable<{ id: string; item: T }>;

/** Follows one of a daemon's event streams as a UI does. */
export class Follower<T> {
  readonly items: T[] = [];
  readonly positions: string[] = [];
  readonly #leaving = new AbortController();
  readonly #done: Promise<void>;
  /** Resolves when the response has begun: from then on it receives events. Rejects if the stream fails before. */
  readonly opened: Promise<void>;

  /** @param secret of an operator, in place of the management token. */
  constructor(server: string, open: Open<T>, lastEventId?: string, secret = MANAGEMENT_TOKEN) {
    const client = new ManagementClient({
      server,
      managementToken: secret,
      frontEnd: 'tui',
      timeoutMs: 10_000,
      fetch,
    });
    let opened: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (opened = resolve));
    const read = async () => {
      for await (const { id, item } of open(client, { lastEventId, onOpen: opened, signal: this.#leaving.signal })) {
        this.positions.push(id);
        this.items.push(item);
      }
    };
    this.#done = read();
    this.opened = Promise.race([begun, this.#done]);
    this.opened.catch(() => undefined); // The caller of `ended` is notified.
  }

  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#done;
  }

  /** Resolves when the daemon has ended the stream. */
  ended(): Promise<void> {
    return this.#done;
  }
}
