/**
 * Limits for decoding compressed responses, of which only a copy is read. A few bytes may unpack to megabytes, so what may be unpacked and
 * held depends on what was forwarded: for one response, for a project, and for the daemon. Whatever exceeds a limit is not read, at once,
 * and the usage of its request is unknown. Nothing waits.
 */
import type { Clock } from '../ports.js';

/** A decoder of one response. */
export interface Decoder {
  /** Most bytes that it holds, whatever it has decoded. A decoder may fill its window before it returns any of it. */
  readonly maxWindowBytes: number;
  /**
   * Decodes the next bytes.
   *
   * @param take gets the result in slices, which are valid only during the call.
   * @returns the number of decoded bytes; -1 if the input is invalid, or has more than `maxBytes`. Then it cannot continue.
   */
  decode(bytes: Buffer, maxBytes: number, take: (slice: Buffer) => void): number;
  close(): void;
}

/** @param first byte of the data. @returns null for an unknown content coding. */
export type OpenDecoder = (coding: string, first: number) => Decoder | null;

const MIB = 1024 * 1024;
/** Limits for all projects together, and for each. */
const MAX_HELD_BYTES = 64 * MIB;
const MAX_HELD_BYTES_OF_PROJECT = MAX_HELD_BYTES / 2;
// Short, since all that a project may unpack in one may come in one turn of the event loop.
const WINDOW_MS = 125;
// 64 MiB per second take two thirds of the time of one CPU, in the worst case.
const BYTES_PER_WINDOW = 8 * MIB;
const BYTES_PER_WINDOW_OF_PROJECT = BYTES_PER_WINDOW / 4;
// Of ordinary responses one byte unpacks to fewer, so these are not limited.
const ORDINARY_RATIO = 8;

interface Share {
  heldBytes: number;
  /** In the current window of time. */
  packedBytes: number;
  unpackedBytes: number;
}

const newShare = (): Share => ({ heldBytes: 0, packedBytes: 0, unpackedBytes: 0 });

export class DecodingBudget {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #all = newShare();
  /** Of the projects that hold something or have used something in this window. */
  readonly #shares = new Map<string, Share>();
  #windowEndsAtMs = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Bytes that are held for all responses: compressed data that is not decoded yet, and the windows of decoders. */
  get heldBytes(): number {
    return this.#all.heldBytes;
  }

  /** @returns false if there is no room, and nothing changes. */
  hold(projectId: string, bytes: number): boolean {
    const share = this.#shareOf(projectId);
    if (this.#all.heldBytes + bytes > MAX_HELD_BYTES) return false;
    if (share.heldBytes + bytes > MAX_HELD_BYTES_OF_PROJECT) return false;
    this.#all.heldBytes += bytes;
    share.heldBytes += bytes;
    return true;
  }

  release(projectId: string, bytes: number): void {
    const share = this.#shareOf(projectId);
    this.#all.heldBytes -= bytes;
    share.heldBytes -= bytes;
  }

  /** How much these compressed bytes may unpack to, now. */
  allowanceFor(projectId: string, packedBytes: number): number {
    const share = this.#shareOf(projectId);
    this.#all.packedBytes += packedBytes;
    share.packedBytes += packedBytes;
    return Math.max(0, Math.min(leftOf(this.#all, BYTES_PER_WINDOW), leftOf(share, BYTES_PER_WINDOW_OF_PROJECT)));
  }

  /** Counts what was decoded, or how much work that was. */
  unpacked(projectId: string, bytes: number): void {
    this.#all.unpackedBytes += bytes;
    this.#shareOf(projectId).unpackedBytes += bytes;
  }

  #shareOf(projectId: string): Share {
    const nowMs = this.#clock.monotonic();
    if (nowMs >= this.#windowEndsAtMs) this.#beginWindow(nowMs);
    let share = this.#shares.get(projectId);
    if (!share) this.#shares.set(projectId, (share = newShare()));
    return share;
  }

  #beginWindow(nowMs: number): void {
    this.#windowEndsAtMs = nowMs + WINDOW_MS;
    this.#all.packedBytes = this.#all.unpackedBytes = 0;
    for (const [projectId, share] of this.#shares) {
      if (share.heldBytes === 0) this.#shares.delete(projectId);
      else share.packedBytes = share.unpackedBytes = 0;
    }
  }
}

const leftOf = (share: Share, base: number) => base + ORDINARY_RATIO * share.packedBytes - share.unpackedBytes;
