import { ManagementClient, type StreamOptions } from '../../daemon/api/client.js';
import { MANAGEMENT_TOKEN } from './daemon.js';

type Open<T> = (client: ManagementClient, options: StreamOptions) => AsyncIterable<{ id: string; item: T }>;

/** Follows one of a daemon's streams as a front end does. */
export class Follower<T> {
  readonly items: T[] = [];
  readonly places: string[] = [];
  readonly #leaving = new AbortController();
  readonly #done: Promise<void>;
  /** Resolves when the daemon has begun to answer: it sends what happens from now on. Rejects when the stream fails before. */
  readonly opened: Promise<void>;

  constructor(server: string, open: Open<T>, lastEventId?: string) {
    const client = new ManagementClient({
      server,
      managementToken: MANAGEMENT_TOKEN,
      frontEnd: 'tui',
      timeoutMs: 10_000,
      fetch,
    });
    let opened: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (opened = resolve));
    const read = async () => {
      for await (const { id, item } of open(client, { lastEventId, opened, signal: this.#leaving.signal })) {
        this.places.push(id);
        this.items.push(item);
      }
    };
    this.#done = read();
    this.opened = Promise.race([begun, this.#done]);
    this.opened.catch(() => undefined); // Whoever waits for the end is told.
  }

  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#done;
  }

  /** Resolves when the daemon ended the stream. */
  ended(): Promise<void> {
    return this.#done;
  }
}
