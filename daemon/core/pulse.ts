/**
 * # The pulse
 *
 * What requests on /v1 were like in the last minute, for whoever looks at this instance alone (`GET /manage/status`): a ring of sixty
 * seconds, each with its counts and its upstream's times. It takes some 20 KB whatever the traffic; a second that is over is
 * overwritten by the one that comes a minute later, so nothing need run while nobody asks.
 */
import type { RequestEnded } from './events.js';
import { bucketOf } from './histogram.js';
import type { Clock } from './ports.js';

const SECONDS = 60;
const FIRST_BOUND_MS = 1;
const GROWTH = 1.25; // What is read off is wrong by at most this factor, and by half of it as a rule.
/** 1 ms to 650 s. */
const BOUNDS_MS: readonly number[] = Array.from({ length: 61 }, (_, power) => FIRST_BOUND_MS * GROWTH ** power);
const BUCKETS = BOUNDS_MS.length + 1;

const COUNTED = ['requests', 'errors', 'refused', 'hits'] as const;
type Counted = (typeof COUNTED)[number];

export interface PulseReport {
  requestsPerSecond: number;
  /** Of those that failed here or at the upstream; a provider's 4xx and a refusal below 500 are none. */
  errorsPerSecond: number;
  /** Requests answered from the cache among all that were not refused; null where there were none. */
  hitRatio: number | null;
  /** From forwarding a request until its answer began, in ms; null where none did. */
  upstreamP50Ms: number | null;
  upstreamP95Ms: number | null;
}

export class Pulse {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #startedAtMs: number;
  /** Which second each place of the ring stands for. */
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
    const place = this.#placeNow();
    const { requests, errors, refused, hits } = this.#counts;
    add(requests, place);
    if (isError(ended)) add(errors, place);
    if (ended.outcome === 'refused') add(refused, place);
    if (ended.cache === 'hit') add(hits, place);
    if (ended.upstreamMs !== null) add(this.#upstream, place * BUCKETS + bucketOf(BOUNDS_MS, ended.upstreamMs));
  }

  report(): PulseReport {
    const places = this.#recentPlaces();
    const sum = (of: Counted) => places.reduce((total, place) => total + (this.#counts[of][place] ?? 0), 0);
    const sinceStartS = (this.#clock.monotonic() - this.#startedAtMs) / 1000;
    const overS = Math.min(SECONDS, Math.max(1, sinceStartS));
    const served = sum('requests') - sum('refused');
    const times = this.#upstreamTimes(places);
    return {
      requestsPerSecond: sum('requests') / overS,
      errorsPerSecond: sum('errors') / overS,
      hitRatio: served === 0 ? null : sum('hits') / served,
      upstreamP50Ms: quantile(times, 0.5),
      upstreamP95Ms: quantile(times, 0.95),
    };
  }

  #secondNow(): number {
    return Math.floor(this.#clock.monotonic() / 1000);
  }

  #placeNow(): number {
    const second = this.#secondNow();
    const place = second % SECONDS;
    if (this.#seconds[place] !== second) {
      this.#seconds[place] = second;
      for (const name of COUNTED) this.#counts[name][place] = 0;
      this.#upstream.fill(0, place * BUCKETS, (place + 1) * BUCKETS);
    }
    return place;
  }

  #recentPlaces(): number[] {
    const oldest = this.#secondNow() - SECONDS;
    return [...this.#seconds.keys()].filter((place) => (this.#seconds[place] ?? -1) > Math.max(-1, oldest));
  }

  #upstreamTimes(places: readonly number[]): number[] {
    return Array.from({ length: BUCKETS }, (_, bucket) =>
      places.reduce((total, place) => total + (this.#upstream[place * BUCKETS + bucket] ?? 0), 0),
    );
  }
}

function add(counts: Float64Array | Uint32Array, at: number): void {
  counts[at] = (counts[at] ?? 0) + 1;
}

/** A client that was too slow with its request (408) is none. */
function isError({ status, outcome }: RequestEnded): boolean {
  return status >= 500 || outcome === 'truncated' || (outcome === 'timeout' && status !== 408);
}

/** The time below which this part of all lies, in ms; null of nothing. */
function quantile(times: readonly number[], part: number): number | null {
  const total = times.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  for (const [bucket, count] of times.entries()) {
    if (below + count >= total * part) {
      const lower = BOUNDS_MS[bucket - 1] ?? 0;
      const upper = BOUNDS_MS[bucket] ?? lower;
      return lower + ((upper - lower) * (total * part - below)) / count;
    }
    below += count;
  }
  return null;
}
