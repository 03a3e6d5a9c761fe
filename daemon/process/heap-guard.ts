import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import type { Clock } from '../core/ports.js';

// The default of --max-semi-space-size: 16 MB, and 64 MB since V8 13.
const SEMI_SPACE_MB = Number.parseInt(process.versions.v8, 10) >= 13 ? 64 : 16;
const MEASURE_EVERY_MS = 100;
const FULL_ABOVE = 0.9;
// Lower than FULL_ABOVE, so that the state does not change with each garbage collection.
const FREE_BELOW = 0.85;

/**
 * Guard against heap exhaustion: while the heap is nearly full, new requests are refused. Node crashes when the heap is full, and all requests in
 * flight are lost; a client that is refused can retry, here or on another instance.
 *
 * It measures the heap when it is asked, up to ten times per second. An idle instance needs no timer for it.
 */
export class HeapGuard {
  readonly #clock: Clock;
  readonly #fullness: () => number;
  #isFull = false;
  #measuredAtMs = -Infinity;
  /** Number of requests that were refused because the heap was full. */
  refused = 0;

  constructor(clock: Clock, fullness: () => number = fullnessOfHeap) {
    this.#clock = clock;
    this.#fullness = fullness;
  }

  /** Whether the heap is too full for another request. */
  get isFull(): boolean {
    const now = this.#clock.monotonic();
    if (now >= this.#measuredAtMs + MEASURE_EVERY_MS) {
      this.#measuredAtMs = now;
      this.#isFull = this.#fullness() >= (this.#isFull ? FREE_BELOW : FULL_ABOVE);
    }
    return this.#isFull;
  }

  /** Whether one more request may be served. Counts the request as refused if not. */
  admits(): boolean {
    const { isFull } = this;
    if (isFull) this.refused += 1;
    return !isFull;
  }
}

// V8 crashes when the old generation is full. Its limit includes the young generation, which consists of three semi-spaces.
const LIMIT_BYTES = getHeapStatistics().heap_size_limit;
const OLD_GENERATION_LIMIT_BYTES = Math.max(LIMIT_BYTES - 3 * semiSpaceMb() * 2 ** 20, LIMIT_BYTES / 4);

function semiSpaceMb(): number {
  const given = process.execArgv.map((option) => /^--max[-_]semi[-_]space[-_]size=(\d+)$/.exec(option)?.[1]);
  return Number(given.findLast((size) => size !== undefined) ?? SEMI_SPACE_MB);
}

function fullnessOfHeap(): number {
  const young = getHeapSpaceStatistics().filter(({ space_name: name }) => name.startsWith('new_'));
  const youngBytes = young.reduce((bytes, { space_used_size: used }) => bytes + used, 0);
  return (getHeapStatistics().used_heap_size - youngBytes) / OLD_GENERATION_LIMIT_BYTES;
}
