/** The streams that are followed: those that are wanted are begun, the others ended. What comes is told a few times a second. */
import type { ManagementClient } from '../../daemon/api/client.js';
import type { WireAuditRecord, WireEvent } from '../../daemon/api/contract.js';
import type { Action, Failure, Stream, Streamed } from '../state/exchange.js';
import { followStream } from './follow.js';

const TOLD_EVERY_MS = 100;

export interface FollowingOptions {
  client: ManagementClient;
  act: (action: Action) => void;
  failureOf: (error: unknown) => Failure;
}

export class Followed {
  readonly #options: FollowingOptions;
  readonly #running = new Map<string, AbortController>();
  #items: Streamed[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(options: FollowingOptions) {
    this.#options = options;
  }

  /** These and no others. */
  set(streams: readonly Stream[]): void {
    const wanted = new Map(streams.map((stream) => [JSON.stringify(stream), stream]));
    for (const [key, running] of this.#running) {
      if (wanted.has(key)) continue;
      running.abort();
      this.#running.delete(key);
      // What came of it and was not told yet is of another filter, or of a screen that is not looked at.
      const { of } = JSON.parse(key) as Stream;
      this.#items = this.#items.filter((item) => item.of !== of);
    }
    for (const [key, stream] of wanted) {
      if (this.#running.has(key)) continue;
      const controller = new AbortController();
      this.#running.set(key, controller);
      void this.#follow(stream, controller.signal).catch((error: unknown) => {
        // Asking again would not mend it, unless it is wanted anew.
        if (controller.signal.aborted) return;
        this.#running.delete(key);
        this.#lost(stream.of, error);
      });
    }
  }

  end(): void {
    this.set([]);
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  async #follow(stream: Stream, signal: AbortSignal): Promise<void> {
    const { client, act } = this.#options;
    const told = {
      signal,
      connected() {
        act({ on: 'stream', of: stream.of, is: 'open', failure: null });
      },
      lost: (error: unknown) => {
        if (!signal.aborted) this.#lost(stream.of, error);
      },
    };
    if (stream.of === 'audit') {
      const item = (record: WireAuditRecord) => {
        this.#came({ of: 'audit', item: record }, signal);
      };
      return followStream({ ...told, item, open: (options) => client.auditStream(stream.query, options) });
    }
    const query = stream.of === 'events' ? stream.query : { token_id: stream.id };
    const item = (event: WireEvent) => {
      this.#came({ of: stream.of === 'events' ? 'events' : 'tokenEvents', item: event }, signal);
    };
    return followStream({ ...told, item, open: (options) => client.events(query, options) });
  }

  #lost(of: Stream['of'], error: unknown): void {
    const failure = error === null ? null : this.#options.failureOf(error);
    this.#options.act({ on: 'stream', of, is: 'lost', failure });
  }

  #came(item: Streamed, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#items.push(item);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      const streamed = this.#items;
      this.#items = [];
      if (streamed.length > 0) this.#options.act({ on: 'streamed', streamed });
    }, TOLD_EVERY_MS);
  }
}
