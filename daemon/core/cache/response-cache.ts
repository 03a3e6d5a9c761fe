/**
 * # Response cache
 *
 * Each admitted request that may use the cache begins a `CacheTransaction` (cache-transaction.ts). It looks for a stored response,
 * waits for an identical request in flight (request-coalescing.ts), or asks the upstream; the response is then captured while it
 * is streamed to the client. It is stored only if it arrived completely, and only if its resource was not changed or purged since
 * before the upstream was asked: the store's `WriteLease` guarantees this. The rules are in request-directives.ts and caching.ts.
 */
import { type CachingSettings, resourceOf } from './caching.js';
import { RequestCoalescing } from './request-coalescing.js';
import type { CacheKey, CacheLookup, CacheSelection, CacheSize, CacheStore, Clock, StoredResponse } from '../ports.js';
import type { MemoryLimit } from '../memory-limit.js';
import type { Ages } from './request-directives.js';

/** A stored response that may be used without revalidation. Times are monotonic. */
export interface FreshResponse {
  response: StoredResponse;
  /** When the upstream generated it, as far as is known. */
  generatedAtMs: number;
  freshUntilMs: number;
}

export interface ResponseCacheOptions {
  store: CacheStore;
  clock: Clock;
  live: { readonly current: CachingSettings };
  /** Responses that are being captured count here, apart from the cache itself. */
  memory: MemoryLimit;
}

export class ResponseCache {
  readonly #store: CacheStore;
  readonly #clock: Clock;
  readonly #live: ResponseCacheOptions['live'];
  readonly coalescing: RequestCoalescing;
  /** Counted since this instance started. */
  hits = 0;
  misses = 0;
  readonly memory: MemoryLimit;
  readonly replays = new Replays();
  /** Whether a response that had begun well reports an error of the provider, or cannot be read. Then it is not stored. */
  reportsError: (projectId: string, response: StoredResponse) => boolean = () => false;

  constructor({ store, clock, live, memory }: ResponseCacheOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#live = live;
    this.memory = memory;
    this.coalescing = new RequestCoalescing(clock);
  }

  get backend(): CacheStore['backend'] {
    return this.#store.backend;
  }

  get settings(): CachingSettings {
    return this.#live.current;
  }

  lookUp(cacheKey: CacheKey, mayRead: boolean, mayStore: boolean): CacheLookup | Promise<CacheLookup> {
    const hasRoom = this.replays.hasRoom(this.settings.httpCacheMaxObjectBytes);
    return this.#store.lookUp(cacheKey, { mayRead: mayRead && hasRoom, mayStore });
  }

  /** Removes what is stored for the target of an unsafe request that succeeded (RFC 9111, 4.4). @see CacheStore.invalidate */
  invalidateTarget(projectId: string, target: string): undefined | Promise<void> {
    const resource = resourceOf('GET', target);
    this.coalescing.closeResource(projectId, resource);
    return this.#store.invalidate(projectId, resource);
  }

  /** @see CacheStore.purge. Requests from now on do not join a coalescing group that was begun before. */
  async purge(selection: CacheSelection): Promise<number> {
    this.coalescing.closeSelected(selection);
    const count = await this.#store.purge(selection);
    this.coalescing.closeSelected(selection); // Groups that began during the purge may have read an entry before it was removed.
    return count;
  }

  count(selection: CacheSelection): Promise<number> {
    return this.#store.count(selection);
  }

  size(): Promise<CacheSize> {
    return this.#store.size();
  }

  now(): number {
    return this.#clock.now();
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  freshResponseOf(response: StoredResponse, residentMs: number, freshMs: number): FreshResponse {
    const storedAtMs = this.#clock.monotonic() - residentMs;
    return { response, generatedAtMs: storedAtMs - response.ageMs, freshUntilMs: storedAtMs + freshMs };
  }

  /** Age of a response, and how long it stays fresh. */
  agesOf({ generatedAtMs, freshUntilMs }: FreshResponse): Ages {
    const now = this.#clock.monotonic();
    return { ageMs: now - generatedAtMs, freshForMs: freshUntilMs - now };
  }
}

// In addition to one response of the maximum size.
const MAX_BYTES = 64 * 1024 * 1024;
// Smaller bodies fit into the kernel's socket buffers even if their clients do not read.
const COUNTED_FROM_BYTES = 64 * 1024;

/**
 * Stored responses that are being sent. Usually they are in the cache, which has its own limit; but it may replace one while a slow client
 * still reads it. So when there are many, no more are begun. Those who read them are not cut off for it.
 */
class Replays {
  #bytes = 0;
  /** The number of clients that receive each: a shared body is counted once. */
  readonly #clients = new Map<StoredResponse, number>();

  /** @param maxBytes maximum size of one response. */
  hasRoom(maxBytes: number): boolean {
    return this.#bytes <= MAX_BYTES + maxBytes;
  }

  begin(response: StoredResponse): void {
    const { length } = response.body;
    if (length < COUNTED_FROM_BYTES) return;
    const clients = this.#clients.get(response) ?? 0;
    if (clients === 0) this.#bytes += length;
    this.#clients.set(response, clients + 1);
  }

  /** Call once for each `begin` of the same response. */
  end(response: StoredResponse): void {
    const clients = this.#clients.get(response);
    if (clients === undefined) return;
    if (clients > 1) {
      this.#clients.set(response, clients - 1);
      return;
    }
    this.#clients.delete(response);
    this.#bytes -= response.body.length;
  }
}
