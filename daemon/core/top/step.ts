/**
 * The figures of one step of time: a cell for each token and model that had requests in it. Cells are in chunks of typed arrays, so a
 * request allocates nothing unless its cell is the first of a chunk.
 */
import { BUCKETS, COUNTS, FIRST_FAILURE, PROMPT_TOKENS } from './counts.js';
import type { RequestFigures } from './request-figures.js';

/** Counts of requests fit 32 bits; providers report token counts of any size. */
const SMALL_COUNTS = PROMPT_TOKENS;
const LARGE_COUNTS = COUNTS.length - SMALL_COUNTS;

/** Cells, or groups, that are looked at before other work runs: less than a millisecond. */
export const CELLS_PER_SLICE = 8_192;
const CHUNK_BITS = 10;
export const CHUNK = 1 << CHUNK_BITS;
const LAST_OF_CHUNK = CHUNK - 1;
const HISTOGRAMS = 128;

// A cell is in one piece, so that a request finds it in one or two lines of the processor's cache: first words of 32 bits, then floats.
const TOKEN = 0;
const MODEL = 1;
/** Time of the last request, in ms since the start of the step. */
const LAST_MS = 2;
/** 0: no response yet; up to BUCKETS: one, in bucket n - 1; above: number of its histogram. Most cells have few requests. */
const TIME = 3;
const FIRST_COUNT = 4;
const FIRST_FLOAT = Math.ceil((FIRST_COUNT + SMALL_COUNTS) / 2);
const FLOATS = FIRST_FLOAT + LARGE_COUNTS;
const WORDS = 2 * FLOATS;

/** The same memory, as words and as floats. */
interface Chunk {
  words: Uint32Array;
  floats: Float64Array;
}

export const CHUNK_BYTES = CHUNK * FLOATS * Float64Array.BYTES_PER_ELEMENT;
export const HISTOGRAM_CHUNK_BYTES = HISTOGRAMS * BUCKETS * 4;

function newChunk(): Chunk {
  const memory = new ArrayBuffer(CHUNK_BYTES);
  return { words: new Uint32Array(memory), floats: new Float64Array(memory) };
}

function increase(counts: Uint32Array | Float64Array | number[], at: number, by = 1): void {
  counts[at] = (counts[at] ?? 0) + by;
}

/** @param cell its first word. */
function failuresAt(words: Uint32Array, cell: number): number {
  let failures = 0;
  for (let count = FIRST_FAILURE; count < SMALL_COUNTS; count += 1) failures += words[cell + FIRST_COUNT + count] ?? 0;
  return failures;
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
    const { words } = (this.#chunks[cell >>> CHUNK_BITS] ??= newChunk());
    const at = (cell & LAST_OF_CHUNK) * WORDS;
    words[at + TOKEN] = token;
    words[at + MODEL] = model;
    return cell;
  }

  #chunkOf(cell: number): Chunk {
    return this.#chunks[cell >>> CHUNK_BITS] as Chunk; // Every cell has one.
  }

  #wordOf(cell: number, word: number): number {
    return this.#chunkOf(cell).words[(cell & LAST_OF_CHUNK) * WORDS + word] ?? 0;
  }

  tokenOf(cell: number): number {
    return this.#wordOf(cell, TOKEN);
  }

  modelOf(cell: number): number {
    return this.#wordOf(cell, MODEL);
  }

  /** Time of the last request, in ms since the epoch. */
  lastMsOf(cell: number): number {
    return this.startMs + this.#wordOf(cell, LAST_MS);
  }

  /** Value number `count` of `COUNTS`. */
  countOf(cell: number, count: number): number {
    if (count < SMALL_COUNTS) return this.#wordOf(cell, FIRST_COUNT + count);
    return this.#chunkOf(cell).floats[(cell & LAST_OF_CHUNK) * FLOATS + FIRST_FLOAT + count - SMALL_COUNTS] ?? 0;
  }

  /** Writes the tokens of the cells that begin with `from`, as many as `tokens` has room for. */
  readTokens(from: number, tokens: Int32Array): void {
    this.#inChunks(from, tokens.length, ({ words }, at, cells, index) => {
      for (let n = 0; n < cells; n += 1) tokens[index + n] = words[at + n * WORDS + TOKEN] ?? 0;
    });
  }

  /** Like `readTokens`, but the times of the last requests. */
  readLastMs(from: number, times: Float64Array): void {
    this.#inChunks(from, times.length, ({ words }, at, cells, index) => {
      for (let n = 0; n < cells; n += 1) times[index + n] = this.startMs + (words[at + n * WORDS + LAST_MS] ?? 0);
    });
  }

  /** Like `readTokens`, but the requests. */
  readRequests(from: number, requests: Float64Array): void {
    this.#inChunks(from, requests.length, ({ words }, at, cells, index) => {
      for (let n = 0; n < cells; n += 1) requests[index + n] = words[at + n * WORDS + FIRST_COUNT] ?? 0;
    });
  }

  /** Like `readTokens`, but the failed requests. */
  readFailures(from: number, failures: Float64Array): void {
    this.#inChunks(from, failures.length, ({ words }, at, cells, index) => {
      for (let n = 0; n < cells; n += 1) failures[index + n] = failuresAt(words, at + n * WORDS);
    });
  }

  /** Like `readTokens`, but the model tokens. */
  readModelTokens(from: number, sums: Float64Array): void {
    this.#inChunks(from, sums.length, ({ floats }, at, cells, index) => {
      for (let n = 0, float = at / 2 + FIRST_FLOAT; n < cells; n += 1, float += FLOATS)
        sums[index + n] = (floats[float] ?? 0) + (floats[float + 1] ?? 0);
    });
  }

  /** Calls `read` for the cells of each chunk. @param read gets the first word of its first cell, and how many cells came before. */
  #inChunks(
    from: number,
    length: number,
    read: (chunk: Chunk, firstWord: number, cells: number, before: number) => void,
  ): void {
    for (let before = 0; before < length;) {
      const cell = from + before;
      const ofChunk = cell & LAST_OF_CHUNK;
      const cells = Math.min(length - before, CHUNK - ofChunk);
      read(this.#chunkOf(cell), ofChunk * WORDS, cells, before);
      before += cells;
    }
  }

  failuresOf(cell: number): number {
    return failuresAt(this.#chunkOf(cell).words, (cell & LAST_OF_CHUNK) * WORDS);
  }

  /** Adds the number of responses in each bucket to `counts`, from `at`. */
  addTimes(cell: number, counts: Uint32Array | Float64Array | number[], at: number): void {
    const time = this.#wordOf(cell, TIME);
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
  addTotal({ isHit, failure, promptTokens, completionTokens, bucket }: RequestFigures): void {
    const { counts, times } = this.total;
    increase(counts, 0);
    if (isHit) increase(counts, 1);
    if (failure >= 0) increase(counts, failure);
    if (promptTokens > 0) increase(counts, PROMPT_TOKENS, promptTokens);
    if (completionTokens > 0) increase(counts, PROMPT_TOKENS + 1, completionTokens);
    if (bucket >= 0) increase(times, bucket);
  }

  /** Counts a request in a cell. */
  addTo(cell: number, figures: RequestFigures, canGrow: () => boolean): void {
    const { words, floats } = this.#chunkOf(cell);
    const at = (cell & LAST_OF_CHUNK) * WORDS;
    const counts = at + FIRST_COUNT;
    increase(words, counts);
    if (figures.isHit) increase(words, counts + 1);
    if (figures.failure >= 0) increase(words, counts + figures.failure);
    const large = (cell & LAST_OF_CHUNK) * FLOATS + FIRST_FLOAT;
    if (figures.promptTokens > 0) increase(floats, large, figures.promptTokens);
    if (figures.completionTokens > 0) increase(floats, large + 1, figures.completionTokens);
    const lastMs = figures.timeMs - this.startMs;
    if (lastMs > (words[at + LAST_MS] ?? 0)) words[at + LAST_MS] = lastMs;
    if (figures.bucket >= 0) this.#addTime(words, at + TIME, figures.bucket, canGrow);
  }

  /** Adds sums of requests to the total, and to a cell unless it is null. @param counts in the order of `COUNTS`. */
  addSums(cell: number | null, counts: readonly number[], lastMs: number): void {
    for (let count = 0; count < counts.length; count += 1) increase(this.total.counts, count, counts[count]);
    if (cell === null) return;
    const { words, floats } = this.#chunkOf(cell);
    const at = (cell & LAST_OF_CHUNK) * WORDS;
    const large = (cell & LAST_OF_CHUNK) * FLOATS + FIRST_FLOAT - SMALL_COUNTS;
    for (let count = 0; count < counts.length; count += 1) {
      if (count < SMALL_COUNTS) increase(words, at + FIRST_COUNT + count, counts[count]);
      else increase(floats, large + count, counts[count]);
    }
    words[at + LAST_MS] = Math.max(words[at + LAST_MS] ?? 0, lastMs - this.startMs);
  }

  #addTime(words: Uint32Array, at: number, bucket: number, canGrow: () => boolean): void {
    const time = words[at] ?? 0;
    if (time === 0) {
      words[at] = bucket + 1;
      return;
    }
    let histogram = time - BUCKETS - 1;
    if (histogram < 0) {
      if (this.#histogramCount === this.#histograms.length * HISTOGRAMS) {
        if (!canGrow()) return; // Without memory the first time stands for all.
        this.#histograms.push(new Uint32Array(HISTOGRAMS * BUCKETS));
      }
      histogram = this.#histogramCount++;
      words[at] = histogram + BUCKETS + 1;
      this.#increaseTime(histogram, time - 1);
    }
    this.#increaseTime(histogram, bucket);
  }

  #increaseTime(histogram: number, bucket: number): void {
    const counts = this.#histograms[Math.floor(histogram / HISTOGRAMS)] as Uint32Array;
    increase(counts, (histogram % HISTOGRAMS) * BUCKETS + bucket);
  }
}
