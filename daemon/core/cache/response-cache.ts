/**
 * # The response cache
 *
 * A request that may be answered from the cache makes a `Visit` (visit.ts), after its admission. It looks for an answer, or follows
 * another request that is getting one (flights.ts), or asks the upstream itself, and then what comes is captured while it flows
 * on to the client. Only what arrived whole is kept, and only if nothing was changed or purged at its place since before the
 * upstream was asked: that is what a `Fill` of the store stands for. The rules are in wish.ts
 * and caching.ts.
 */
import { type CachingSettings, resourceOf } from './caching.js';
import { Flights } from './flights.js';
import type { CachePlace, CacheSelection, CacheSize, CacheStore, Clock, KeptAnswer, LookUp } from '../ports.js';
import { Room } from '../room.js';
import type { Ages } from './wish.js';

/** A kept answer that may be used as it is. Times are monotonic. */
export interface Fresh {
  answer: KeptAnswer;
  /** When it was made, as far as is known. */
  madeAtMs: number;
  freshUntilMs: number;
}

export interface ResponseCacheOptions {
  store: CacheStore;
  clock: Clock;
  live: { readonly current: CachingSettings };
}

export class ResponseCache {
  readonly #store: CacheStore;
  readonly #clock: Clock;
  readonly #live: ResponseCacheOptions['live'];
  readonly flights: Flights;
  /** Since the start of this instance. */
  hits = 0;
  misses = 0;
  readonly room = new Room();

  constructor({ store, clock, live }: ResponseCacheOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#live = live;
    this.flights = new Flights(clock);
  }

  get backend(): CacheStore['backend'] {
    return this.#store.backend;
  }

  get settings(): CachingSettings {
    return this.#live.current;
  }

  lookUp(place: CachePlace, reads: boolean, fills: boolean): LookUp | Promise<LookUp> {
    const isRoom = this.room.isLeft(this.settings.httpCacheMaxObjectBytes);
    return this.#store.lookUp(place, { reads: reads && isRoom, fills });
  }

  /** A request that changes things succeeded: what was kept of its target is worth nothing now. */
  wrote(projectId: string, target: string): void {
    const resource = resourceOf('GET', target);
    this.flights.closeResource(projectId, resource);
    this.#store.invalidate(projectId, resource);
  }

  /** @see CacheStore.purge. Who asks from now on waits for no answer that was asked for before. */
  async purge(selection: CacheSelection): Promise<number> {
    this.flights.closeSelected(selection);
    const count = await this.#store.purge(selection);
    this.flights.closeSelected(selection); // Those that had found an answer to hand out while it was being removed.
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

  freshOf(answer: KeptAnswer, heldMs: number, freshMs: number): Fresh {
    const keptAtMs = this.#clock.monotonic() - heldMs;
    return { answer, madeAtMs: keptAtMs - answer.ageMs, freshUntilMs: keptAtMs + freshMs };
  }

  /** How long a kept answer is fresh yet, and how old it is. */
  agesOf({ madeAtMs, freshUntilMs }: Fresh): Ages {
    const now = this.#clock.monotonic();
    return { ageMs: now - madeAtMs, freshForMs: freshUntilMs - now };
  }
}
