import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import type { Clock } from '../core/ports.js';

// The largest semi-space, unless --max-semi-space-size says another: 16 MB, and 64 since V8 13.
const SEMI_SPACE_MB = Number.parseInt(process.versions.v8, 10) >= 13 ? 64 : 16;
const LOOK_EVERY_MS = 100;
const FULL = 0.9;
// Below it again, so that it does not come and go with each collection.
const ROOMY = 0.85;

/**
 * How full the heap of this process is. Node ends a process whose heap is full, with all that is in flight; who is refused in time can
 * ask again, or another instance.
 *
 * It looks when it is asked, ten times a second at most: an instance with nothing to do needs no timer for it.
 */
export class Heap {
  readonly #clock: Clock;
  readonly #fullness: () => number;
  #isFull = false;
  #lookedAtMs = -Infinity;
  /** Requests that were refused because of it. */
  refused = 0;

  constructor(clock: Clock, fullness: () => number = fullnessOfHeap) {
    this.#clock = clock;
    this.#fullness = fullness;
  }

  /** Whether there is no room for another request now. */
  get isFull(): boolean {
    const now = this.#clock.monotonic();
    if (now >= this.#lookedAtMs + LOOK_EVERY_MS) {
      this.#lookedAtMs = now;
      this.#isFull = this.#fullness() >= (this.#isFull ? ROOMY : FULL);
    }
    return this.#isFull;
  }

  /** Whether there is room for one more request; one that there is none for is counted. */
  admits(): boolean {
    const { isFull } = this;
    if (isFull) this.refused += 1;
    return !isFull;
  }
}

// V8 gives up when what is old has no room left. Its limit is for old and young together, and young are three semi-spaces.
const LIMIT_BYTES = getHeapStatistics().heap_size_limit;
const LIMIT_OF_OLD_BYTES = Math.max(LIMIT_BYTES - 3 * semiSpaceMb() * 2 ** 20, LIMIT_BYTES / 4);

function semiSpaceMb(): number {
  const given = process.execArgv.map((option) => /^--max[-_]semi[-_]space[-_]size=(\d+)$/.exec(option)?.[1]);
  return Number(given.findLast((size) => size !== undefined) ?? SEMI_SPACE_MB);
}

function fullnessOfHeap(): number {
  const young = getHeapSpaceStatistics().filter(({ space_name: name }) => name.startsWith('new_'));
  const ofYoung = young.reduce((bytes, { space_used_size: used }) => bytes + used, 0);
  return (getHeapStatistics().used_heap_size - ofYoung) / LIMIT_OF_OLD_BYTES;
}
