/**
 * # Recent traffic
 *
 * Statistics of /v1 requests in the last minute on this instance, for `GET /manage/status`: a ring buffer of 60 seconds, each with
 * its counts and upstream times. It takes about 20 KB whatever the traffic. Each slot is overwritten one minute later, so no timer
 * is needed.
 */
import type { RequestEnded } from './events.js';
import { failureKindOf } from './failure-kind.js';
import { bucketOf, quantile } from './histogram.js';
import type { Clock } from './ports.js';

const SECONDS = 60;
const FIRST_BOUND_MS = 1;
const GROWTH = 1.25; // Quantiles are off by up to this factor, typically by half of it.
/** 1 ms to 650 s. */
const BOUNDS_MS: readonly number[] = Array.from({ length: 61 }, (_, power) => FIRST_BOUND_MS * GROWTH ** power);
const BUCKETS = BOUNDS_MS.length + 1;

const COUNTED = ['requests', 'errors', 'refused', 'hits'] as const;
type Counted = (typeof COUNTED)[number];

export interface RecentTrafficReport {
  requestsPerSecond: number;
  /** Failures of every kind (failure-kind.ts). */
  errorsPerSecond: number;
  /** Cache hits among all requests that were not refused; null if there were none. */
  hitRatio: number | null;
  /** Time from forwarding a request to the first byte of the response, in ms; null if there were no responses. */
  upstreamP50Ms: number | null;
  upstreamP95Ms: number | null;
}

export class RecentTraffic {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #startedAtMs: number;
  /** The second that each slot of the ring buffer holds. */
  readonly #seconds = new Float64Array(SECONDS).fill(-1);
  readonly #counts: Record<Counted, Float64Array> = {
    requests: new Float64Array(SECONDS),
    errors: new Float64Array(SECONDS),
    refused: new Float64Array(SECONDS),
    hits: new Float64Array(SECONDS),
  };
  readonly #upstream = new Uint32Array(SECONDS * BUCKETS);

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#startedAtMs = clock.monotonic();
  }

  record(ended: RequestEnded): void {
    const slot = this.#currentSlot();
    const { requests, errors, refused, hits } = this.#counts;
    add(requests, slot);
    if (failureKindOf(ended) !== null) add(errors, slot);
    if (ended.outcome === 'refused') add(refused, slot);
    if (ended.cache === 'hit') add(hits, slot);
    if (ended.upstreamMs !== null) add(this.#upstream, slot * BUCKETS + bucketOf(BOUNDS_MS, ended.upstreamMs));
  }

  report(): RecentTrafficReport {
    const slots = this.#recentSlots();
    const sum = (of: Counted) => slots.reduce((total, slot) => total + (this.#counts[of][slot] ?? 0), 0);
    const sinceStartS = (this.#clock.monotonic() - this.#startedAtMs) / 1000;
    const periodS = Math.min(SECONDS, Math.max(1, sinceStartS));
    const served = sum('requests') - sum('refused');
    const times = this.#upstreamTimes(slots);
    return {
      requestsPerSecond: sum('requests') / periodS,
      errorsPerSecond: sum('errors') / periodS,
      hitRatio: served === 0 ? null : sum('hits') / served,
      upstreamP50Ms: quantile(BOUNDS_MS, times, 0.5),
      upstreamP95Ms: quantile(BOUNDS_MS, times, 0.95),
    };
  }

  #secondNow(): number {
    return Math.floor(this.#clock.monotonic() / 1000);
  }

  #currentSlot(): number {
    const second = this.#secondNow();
    const slot = second % SECONDS;
    if (this.#seconds[slot] !== second) {
      this.#seconds[slot] = second;
      for (const name of COUNTED) this.#counts[name][slot] = 0;
      this.#upstream.fill(0, slot * BUCKETS, (slot + 1) * BUCKETS);
    }
    return slot;
  }

  #recentSlots(): number[] {
    const oldest = this.#secondNow() - SECONDS;
    return [...this.#seconds.keys()].filter((slot) => (this.#seconds[slot] ?? -1) > Math.max(-1, oldest));
  }

  #upstreamTimes(slots: readonly number[]): number[] {
    return Array.from({ length: BUCKETS }, (_, bucket) =>
      slots.reduce((total, slot) => total + (this.#upstream[slot * BUCKETS + bucket] ?? 0), 0),
    );
  }
}

function add(counts: Float64Array | Uint32Array, at: number): void {
  counts[at] = (counts[at] ?? 0) + 1;
}
