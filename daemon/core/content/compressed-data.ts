/** Compressed data that is decoded as it passes, within the limits of the budget. */
import { BoundedBytes } from './bounded-bytes.js';
import type { Decoder, DecodingBudget, OpenDecoder } from './decoding-budget.js';

// A decoder takes more memory than this, so it is opened only for more, or at the end.
const MAX_HELD_BYTES = 16 * 1024;
const DECODER_BYTES = 16 * 1024;
// How many bytes one may unpack to, on average. Event streams that repeat everything but a word may be compressed to a thirtieth.
const MAX_RATIO = 64;
// To fill a window takes less time than to read what it holds.
const WINDOW_COST = 4;
const MIN_UNPACKED_BYTES = 256 * 1024;

export interface DecodingOptions {
  budget: DecodingBudget;
  open: OpenDecoder;
  projectId: string;
}

export class CompressedData {
  readonly #options: DecodingOptions;
  readonly coding: string;
  readonly #take: (slice: Buffer) => void;
  #held: BoundedBytes | null = null;
  #decoder: Decoder | null = null;
  /** What the budget holds for it. */
  #reservedBytes = 0;
  #unpackedBytes = 0;
  /** Number of bytes added. */
  bytes = 0;
  /** It is invalid, has an unknown coding, or exceeds a limit. What was decoded before is only a part. */
  hasFailed = false;

  /** @param take gets the decoded data in slices, which are valid only during the call. */
  constructor(options: DecodingOptions, coding: string, take: (slice: Buffer) => void) {
    this.#options = options;
    this.coding = coding;
    this.#take = take;
  }

  add(bytes: Buffer): void {
    this.bytes += bytes.length;
    if (this.hasFailed) return;
    if (this.#decoder === null && this.bytes <= MAX_HELD_BYTES) {
      if (!this.#reserve(this.bytes)) return;
      (this.#held ??= new BoundedBytes(MAX_HELD_BYTES)).add(bytes);
      return;
    }
    this.#decodeHeld();
    this.#decode(bytes);
  }

  /** There is no more data. */
  end(): void {
    if (!this.hasFailed) this.#decodeHeld();
    this.#close();
  }

  #decodeHeld(): void {
    const held = this.#held;
    this.#held = null;
    if (held) this.#decode(held.head);
  }

  #decode(bytes: Buffer): void {
    if (this.hasFailed || bytes.length === 0) return;
    const { budget, open, projectId } = this.#options;
    const most = Math.max(MIN_UNPACKED_BYTES, MAX_RATIO * this.bytes) - this.#unpackedBytes;
    const allowed = Math.min(most, budget.allowanceFor(projectId, bytes.length));
    if (allowed <= 0) {
      this.#fail();
      return;
    }
    const decoder = (this.#decoder ??= open(this.coding, bytes[0] ?? 0));
    const unpacked = decoder ? decoder.decode(bytes, allowed, this.#take) : -1;
    const work = unpacked === -1 ? Math.max(allowed, (decoder?.maxWindowBytes ?? 0) / WINDOW_COST) : unpacked;
    budget.unpacked(projectId, decoder ? work : 0);
    if (!decoder || unpacked === -1) {
      this.#fail();
      return;
    }
    this.#unpackedBytes += unpacked;
    this.#reserve(DECODER_BYTES + Math.min(decoder.maxWindowBytes, this.#unpackedBytes));
  }

  #reserve(bytes: number): boolean {
    const { budget, projectId } = this.#options;
    if (bytes <= this.#reservedBytes) return true;
    if (!budget.hold(projectId, bytes - this.#reservedBytes)) {
      this.#fail();
      return false;
    }
    this.#reservedBytes = bytes;
    return true;
  }

  #fail(): void {
    this.hasFailed = true;
    this.#close();
  }

  #close(): void {
    this.#held = null;
    this.#decoder?.close();
    this.#decoder = null;
    if (this.#reservedBytes > 0) this.#options.budget.release(this.#options.projectId, this.#reservedBytes);
    this.#reservedBytes = 0;
  }
}
