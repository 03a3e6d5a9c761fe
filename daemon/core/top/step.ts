/**
 * The figures of one step of time: a cell for each token and model that had requests in it. Cells are in chunks of typed arrays, so a
 * request allocates nothing unless its cell is the first of a chunk.
 */
import { bucketOf } from '../histogram.js';
import { failureKindOf } from '../failure-kind.js';
import type { RequestEnded } from '../events.js';
import { BOUNDS_MS, BUCKETS, COUNTS, FIRST_FAILURE, PROMPT_TOKENS } from './counts.js';

/** Counts of requests fit 32 bits; providers report token counts of any size. */
const SMALL_COUNTS = PROMPT_TOKENS;
const LARGE_COUNTS = COUNTS.length - SMALL_COUNTS;

const CHUNK_BITS = 10;
export const CHUNK = 1 << CHUNK_BITS;
const LAST_OF_CHUNK = CHUNK - 1;
const HISTOGRAMS = 128;

interface Chunk {
  tokens: Uint32Array;
  models: Uint32Array;
  small: Uint32Array;
  large: Float64Array;
  /** Time of the last request, in ms since the start of the step. */
  lastMs: Uint32Array;
  /** 0: no response yet; up to BUCKETS: one, in bucket n - 1; above: number of its histogram. Most cells have few requests. */
  times: Uint32Array;
}

export const CHUNK_BYTES = CHUNK * (4 * (4 + SMALL_COUNTS) + 8 * LARGE_COUNTS);
export const HISTOGRAM_CHUNK_BYTES = HISTOGRAMS * BUCKETS * 4;

const newChunk = (): Chunk => ({
  tokens: new Uint32Array(CHUNK),
  models: new Uint32Array(CHUNK),
  small: new Uint32Array(CHUNK * SMALL_COUNTS),
  large: new Float64Array(CHUNK * LARGE_COUNTS),
  lastMs: new Uint32Array(CHUNK),
  times: new Uint32Array(CHUNK),
});

function increase(counts: Uint32Array | Float64Array, at: number, by = 1): void {
  counts[at] = (counts[at] ?? 0) + by;
}

/** Adds up the counts and times of cells. */
export interface Sums {
  counts: Float64Array;
  times: Float64Array;
}
export const noSums = (): Sums => ({ counts: new Float64Array(COUNTS.length), times: new Float64Array(BUCKETS) });

export class Step {
  readonly startMs: number;
  /** All requests, also those without a cell. */
  readonly total = noSums();
  /** Requests of known tokens for which there was no room. */
  untracked = 0;
  readonly #chunks: Chunk[] = [];
  readonly #histograms: Uint32Array[] = [];
  #cells = 0;
  #histogramCount = 0;

  constructor(startMs: number) {
    this.startMs = startMs;
  }

  get cells(): number {
    return this.#cells;
  }

  get bytes(): number {
    return this.#chunks.length * CHUNK_BYTES + this.#histograms.length * HISTOGRAM_CHUNK_BYTES;
  }

  /** The next cell needs memory. */
  get isFull(): boolean {
    return this.#cells === this.#chunks.length * CHUNK;
  }

  addCell(token: number, model: number): number {
    const cell = this.#cells++;
    const chunk = (this.#chunks[cell >>> CHUNK_BITS] ??= newChunk());
    chunk.tokens[cell & LAST_OF_CHUNK] = token;
    chunk.models[cell & LAST_OF_CHUNK] = model;
    return cell;
  }

  #chunkOf(cell: number): Chunk {
    return this.#chunks[cell >>> CHUNK_BITS] as Chunk; // Every cell has one.
  }

  tokenOf(cell: number): number {
    return this.#chunkOf(cell).tokens[cell & LAST_OF_CHUNK] ?? 0;
  }

  modelOf(cell: number): number {
    return this.#chunkOf(cell).models[cell & LAST_OF_CHUNK] ?? 0;
  }

  /** Time of the last request, in ms since the epoch. */
  lastMsOf(cell: number): number {
    return this.startMs + (this.#chunkOf(cell).lastMs[cell & LAST_OF_CHUNK] ?? 0);
  }

  /** Value number `count` of `COUNTS`. */
  countOf(cell: number, count: number): number {
    const { small, large } = this.#chunkOf(cell);
    const at = cell & LAST_OF_CHUNK;
    return (
      (count < SMALL_COUNTS ? small[at * SMALL_COUNTS + count] : large[at * LARGE_COUNTS + count - SMALL_COUNTS]) ?? 0
    );
  }

  failuresOf(cell: number): number {
    const { small } = this.#chunkOf(cell);
    const at = (cell & LAST_OF_CHUNK) * SMALL_COUNTS;
    let failures = 0;
    for (let count = FIRST_FAILURE; count < SMALL_COUNTS; count += 1) failures += small[at + count] ?? 0;
    return failures;
  }

  /** Adds the number of responses in each bucket to `counts`, from `at`. */
  addTimes(cell: number, counts: Uint32Array | Float64Array, at: number): void {
    const time = this.#chunkOf(cell).times[cell & LAST_OF_CHUNK] ?? 0;
    if (time === 0) return;
    if (time <= BUCKETS) {
      increase(counts, at + time - 1);
      return;
    }
    const histogram = time - BUCKETS - 1;
    const from = this.#histograms[Math.floor(histogram / HISTOGRAMS)] as Uint32Array;
    const first = (histogram % HISTOGRAMS) * BUCKETS;
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) increase(counts, at + bucket, from[first + bucket] ?? 0);
  }

  /** Counts a request in the total. */
  addTotal(ended: RequestEnded): void {
    const { counts, times } = this.total;
    increase(counts, 0);
    if (ended.cache === 'hit') increase(counts, 1);
    const failure = failureKindOf(ended);
    if (failure !== null) increase(counts, COUNTS.indexOf(failure));
    if (ended.usage) {
      increase(counts, PROMPT_TOKENS, ended.usage.promptTokens ?? 0);
      increase(counts, PROMPT_TOKENS + 1, ended.usage.completionTokens ?? 0);
    }
    if (ended.upstreamMs !== null) increase(times, bucketFor(ended.upstreamMs));
  }

  /** Counts a request in a cell. */
  addTo(cell: number, ended: RequestEnded, canGrow: () => boolean): void {
    const { small, large, lastMs, times } = this.#chunkOf(cell);
    const at = cell & LAST_OF_CHUNK;
    const counts = at * SMALL_COUNTS;
    increase(small, counts);
    if (ended.cache === 'hit') increase(small, counts + 1);
    const failure = failureKindOf(ended);
    if (failure !== null) increase(small, counts + COUNTS.indexOf(failure));
    if (ended.usage) {
      increase(large, at * LARGE_COUNTS, ended.usage.promptTokens ?? 0);
      increase(large, at * LARGE_COUNTS + 1, ended.usage.completionTokens ?? 0);
    }
    lastMs[at] = Math.max(lastMs[at] ?? 0, ended.timeMs - this.startMs);
    if (ended.upstreamMs !== null) this.#addTime(times, at, bucketFor(ended.upstreamMs), canGrow);
  }

  #addTime(times: Uint32Array, at: number, bucket: number, canGrow: () => boolean): void {
    const time = times[at] ?? 0;
    if (time === 0) {
      times[at] = bucket + 1;
      return;
    }
    let histogram = time - BUCKETS - 1;
    if (histogram < 0) {
      if (this.#histogramCount === this.#histograms.length * HISTOGRAMS) {
        if (!canGrow()) return; // Without memory the first time stands for all.
        this.#histograms.push(new Uint32Array(HISTOGRAMS * BUCKETS));
      }
      histogram = this.#histogramCount++;
      times[at] = histogram + BUCKETS + 1;
      this.#increaseTime(histogram, time - 1);
    }
    this.#increaseTime(histogram, bucket);
  }

  #increaseTime(histogram: number, bucket: number): void {
    const counts = this.#histograms[Math.floor(histogram / HISTOGRAMS)] as Uint32Array;
    increase(counts, (histogram % HISTOGRAMS) * BUCKETS + bucket);
  }
}

const bucketFor = (ms: number): number => Math.min(BUCKETS - 1, bucketOf(BOUNDS_MS, ms));
