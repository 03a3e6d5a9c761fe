/** Follower of streams: opens the wanted streams, closes the others, and dispatches received items in batches, ten times a second. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ManagementClient } from '../../daemon/api/client.js';
import type { WireAuditRecord, WireEvent } from '../../daemon/api/contract.js';
import type { Action, Failure, Stream, Streamed } from '../state/exchange.js';
import { followStream } from '../../daemon/api/follow-stream.js';

const BATCH_MS = 100;

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

export interface StreamFollowerOptions {
  client: ManagementClient;
  act: (action: Action) => void;
  failureOf: (error: unknown) => Failure;
}

const ofToken = ({ id, since }: Extract<Stream, { of: 'tokenEvents' }>) => ({ token_id: id, since });

export class StreamFollower {
  readonly #options: StreamFollowerOptions;
  readonly #running = new Map<string, AbortController>();
  #items: Streamed[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(options: StreamFollowerOptions) {
    this.#options = options;
  }

  /** Follows exactly these streams. */
  set(streams: readonly Stream[]): void {
    const wanted = new Map(streams.map((stream) => [JSON.stringify(stream), stream]));
    for (const [key, running] of this.#running) {
      if (wanted.has(key)) continue;
      running.abort();
      this.#running.delete(key);
      // Its batched items belong to another filter, or to a screen that is not shown any more.
      const { of } = JSON.parse(key) as Stream;
      this.#items = this.#items.filter((item) => item.of !== of);
    }
    for (const [key, stream] of wanted) {
      if (this.#running.has(key)) continue;
      const controller = new AbortController();
      this.#running.set(key, controller);
      void this.#follow(stream, controller.signal).catch((error: unknown) => {
        // A retry would fail as well. It is opened again only when it is requested again.
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
    const options = {
      signal,
      pause,
      onConnected() {
        act({ on: 'stream', of: stream.of, is: 'open', failure: null });
      },
      onLost: (error: unknown) => {
        if (!signal.aborted) this.#lost(stream.of, error);
      },
    };
    if (stream.of === 'audit') {
      const onItem = (record: WireAuditRecord) => {
        this.#received({ of: 'audit', item: record }, signal);
      };
      return followStream({
        ...options,
        onItem,
        open: (streamOptions) => client.auditStream(stream.query, streamOptions),
      });
    }
    const query = stream.of === 'events' ? stream.query : ofToken(stream);
    const onItem = (event: WireEvent) => {
      this.#received({ of: stream.of === 'events' ? 'events' : 'tokenEvents', item: event }, signal);
    };
    return followStream({ ...options, onItem, open: (streamOptions) => client.events(query, streamOptions) });
  }

  #lost(of: Stream['of'], error: unknown): void {
    const failure = error === null ? null : this.#options.failureOf(error);
    this.#options.act({ on: 'stream', of, is: 'lost', failure });
  }

  #received(item: Streamed, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#items.push(item);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      const streamed = this.#items;
      this.#items = [];
      if (streamed.length > 0) this.#options.act({ on: 'streamed', streamed });
    }, BATCH_MS);
  }
}
