/**
 * The uses of tokens, a line for each request.
 *
 * **In the request's turn** it is put on a list, and nothing else. The list is emptied a slice at a time between turns, soon, for
 * what lives long costs the collector of garbage more than it costs to write it out: into bytes, chained, which wait for
 * the next write. One is made twice a second, so that a kill costs less than a second of traffic.
 *
 * **Bounded.** While the file cannot be written `MOST_WAITING_BYTES` wait; then lines are dropped and counted. Requests whose token
 * nobody knows have no line each: once a minute one line a code says how many there were, so that no flood fills the file.
 */
import type { RequestEnded } from '../../core/events.js';
import type { Clock, Log } from '../../core/ports.js';
import type { AuditFile } from './audit-file.js';
import { Chain, chained, digestOfLine, fieldsOf, type Head } from './chain.js';
import { UseFields } from './fields.js';
import { linesOf } from './tail.js';
import { NotWritten } from './writing.js';

// About half a millisecond's work.
const SLICE = 128;
const WRITE_EVERY_MS = 500;
const RETRY_MS = 1_000;
const PIECE_BYTES = 1024 * 1024; // Each costs a sync of the disk.
const MOST_WAITING_BYTES = 32 * 1024 * 1024;
const SUMMARY_EVERY_MS = 60_000;

const NOWHERE: Head = { line: 0, digest: '' };

/** Lines that are chained one behind the other, to be written together. */
interface Piece {
  bytes: Buffer;
  length: number;
  before: Head;
  after: Head;
}

const NEWLINE = 10;

const firstLineBytes = ({ bytes }: Piece): number => bytes.indexOf(NEWLINE) + 1;

/** The lines that fit into so many bytes, but one at least, and those that are left. */
function cutToFit(piece: Piece, room: number): [Piece, Piece | null] {
  const { bytes, length, before, after } = piece;
  if (length <= room) return [piece, null];
  const fitting = room > 0 ? bytes.lastIndexOf(NEWLINE, room - 1) + 1 : 0;
  const cut = fitting > 0 ? fitting : firstLineBytes(piece);
  if (cut >= length) return [piece, null];
  const taken = linesOf(bytes.subarray(0, cut));
  const last = taken.at(-1) ?? Buffer.alloc(0);
  const between = { line: before.line + taken.length, digest: digestOfLine(last) };
  return [
    { bytes: bytes.subarray(0, cut), length: cut, before, after: between },
    { bytes: bytes.subarray(cut), length: length - cut, before: between, after },
  ];
}

export interface UseLogOptions {
  file: AuditFile;
  clock: Clock;
  log: Log;
}

export class UseLog {
  readonly #options: UseLogOptions;
  readonly #fields = new UseFields();
  #ended: RequestEnded[] = [];
  #isSliceDue = false;
  #chain: Chain;
  #pieces: Piece[] = [];
  #waitingBytes = 0;
  #unknown = new Map<string, number>();
  #cancelSummary: (() => void) | null = null;
  #cancelWrite: (() => void) | null = null;
  #writing: Promise<void> | null = null;
  #isClosed = false;
  /** Lines for which there was no room. */
  dropped = 0;
  #droppedUntold = 0;

  constructor(options: UseLogOptions) {
    this.#options = options;
    this.#chain = new Chain(options.file.head);
  }

  /** Bytes that wait to be written. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  readonly keep = (ended: RequestEnded): void => {
    if (ended.tokenId === null) {
      this.#countUnknown(ended);
      return;
    }
    this.#ended.push(ended);
    if (this.#isSliceDue) return;
    if (this.#ended.length >= SLICE) {
      this.#isSliceDue = true;
      setImmediate(this.#slice);
    }
    this.#writeLater();
  };

  readonly #slice = (): void => {
    this.#isSliceDue = false;
    this.#compose();
  };

  #countUnknown({ code, outcome }: RequestEnded): void {
    // A preflight, which is no use of anything.
    if (outcome === 'ok') return;
    const key = code ?? '';
    this.#unknown.set(key, (this.#unknown.get(key) ?? 0) + 1);
    this.#cancelSummary ??= this.#options.clock.after(SUMMARY_EVERY_MS, () => {
      this.#summarise();
      this.#writeLater();
    });
  }

  #summarise(): void {
    this.#cancelSummary?.();
    this.#cancelSummary = null;
    const now = this.#options.clock.now();
    for (const [code, count] of this.#unknown) this.#put(this.#fields.ofUnknown(code || null, count, now));
    this.#unknown.clear();
  }

  #compose(): void {
    const ended = this.#ended;
    this.#ended = [];
    for (const each of ended) this.#put(this.#fields.of(each));
  }

  #put(fields: string): void {
    // So much at least is added in front, and a newline.
    if (this.#waitingBytes + fields.length + 100 > MOST_WAITING_BYTES) {
      this.dropped += 1;
      this.#droppedUntold += 1;
      return;
    }
    const chain = this.#chain;
    const line = chain.begin(fields);
    const piece = this.#pieceFor(line.length + 1);
    const { bytes, length } = piece;
    const end = length + bytes.write(line, length, 'latin1');
    chain.take(bytes.subarray(length, end));
    bytes[end] = NEWLINE;
    piece.length = end + 1;
    piece.after = chain.head;
    this.#waitingBytes += end + 1 - length;
  }

  #pieceFor(bytes: number): Piece {
    const last = this.#pieces.at(-1);
    if (last && last.length + bytes <= last.bytes.length) return last;
    const { head } = this.#chain;
    const size = Math.max(PIECE_BYTES, bytes);
    const piece = { bytes: Buffer.allocUnsafeSlow(size), length: 0, before: head, after: head };
    this.#pieces.push(piece);
    return piece;
  }

  #writeLater(afterMs = WRITE_EVERY_MS): void {
    if (this.#isClosed || this.#writing) return;
    this.#cancelWrite ??= this.#options.clock.after(afterMs, () => {
      this.#cancelWrite = null;
      void this.write();
    });
  }

  /** Writes what waits, if that can be done; otherwise it is tried again. */
  write(): Promise<void> {
    return (this.#writing ??= this.#writeAll().then(
      () => {
        this.#writing = null;
      },
      () => {
        // The file has told of it.
        this.#writing = null;
        this.#writeLater(RETRY_MS);
      },
    ));
  }

  async #writeAll(): Promise<void> {
    const { file, log } = this.#options;
    this.#compose();
    do {
      const [piece] = this.#pieces;
      await file.ready(piece ? firstLineBytes(piece) : 0);
      if (!piece) {
        file.settle();
        break;
      }
      if (piece.before.digest !== file.head.digest) this.#chainAnew();
      await this.#writePiece();
    } while (this.#pieces.length > 0 || this.#ended.length >= SLICE);
    if (this.#droppedUntold > 0)
      log.warn('uses of tokens are missing in the audit file', { lines: this.#droppedUntold });
    this.#droppedUntold = 0;
    if (this.#ended.length > 0) {
      this.#writing = null;
      this.#writeLater();
    }
  }

  async #writePiece(): Promise<void> {
    const whole = this.#pieces.shift();
    if (!whole) return;
    const [piece, rest] = cutToFit(whole, this.#options.file.room);
    if (rest) this.#pieces.unshift(rest);
    try {
      await this.#options.file.append(piece.bytes.subarray(0, piece.length), piece.after);
      this.#waitingBytes -= piece.length;
    } catch (error) {
      this.#putBack(piece, error instanceof NotWritten ? error.taken : 0);
      throw error;
    }
  }

  /** What is left of it: lines that were taken whole are in the file, the disk willing. */
  #putBack(piece: Piece, taken: number): void {
    const cut = taken === 0 ? 0 : piece.bytes.lastIndexOf(NEWLINE, taken - 1) + 1;
    this.#waitingBytes -= cut;
    const bytes = piece.bytes.subarray(cut);
    const length = piece.length - cut;
    // Its chain is that of no file any more.
    if (length > 0) this.#pieces.unshift({ ...piece, bytes, length, before: NOWHERE });
  }

  /** What waits was chained to another head than the file has: at the start, and after a failure. */
  #chainAnew(): void {
    let { head } = this.#options.file;
    this.#pieces = this.#pieces.map(({ bytes, length }) => {
      const before = head;
      const anew = chained(fieldsOf(bytes.subarray(0, length)), before);
      head = anew.head;
      return { bytes: anew.bytes, length: anew.bytes.length, before, after: head };
    });
    this.#waitingBytes = this.#pieces.reduce((sum, { length }) => sum + length, 0);
    this.#chain = new Chain(head);
  }

  /** Writes all there is now, what is only counted so far too. */
  async flush(): Promise<void> {
    await this.#writing;
    this.#cancelWrite?.();
    this.#cancelWrite = null;
    this.#compose();
    this.#summarise();
    if (this.#options.file.whyFailing === null) await this.write();
  }

  /** The process ends at once. */
  writeAtOnce(): void {
    this.#compose();
    this.#summarise();
    const isInOrder = this.#pieces[0]?.before.digest === this.#options.file.head.digest;
    if (!isInOrder && !this.#writing) this.#chainAnew();
    for (const { bytes, length } of this.#pieces) this.#options.file.writeAtOnce(bytes.subarray(0, length));
    this.#pieces = [];
  }

  /** Writes all there is, unless that cannot be done now. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
  }
}
