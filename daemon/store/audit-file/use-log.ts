/**
 * Audit log of token uses: one line for each request.
 *
 * **While a request is handled**, it is only added to a list. Soon after, the list is formatted in slices between other work,
 * because long-lived objects cost the garbage collector more than formatting them does. The lines are chained as bytes and wait for
 * the next write. The log is written twice a second, so that a crash loses less than a second of traffic.
 *
 * **Bounded.** While the file cannot be written, up to `MAX_WAITING_BYTES` wait; further lines are dropped and counted. Requests
 * with an unknown token do not have a line each: once a minute, one line per error code has their number, so that a flood of
 * requests cannot fill the disk.
 */
import type { RequestEnded } from '../../core/events.js';
import type { Clock, Log } from '../../core/ports.js';
import type { AuditFile } from './audit-file.js';
import { Chain, chainLines, digestOfLine, fieldsOf, type Head } from './chain.js';
import { UseFields } from './fields.js';
import { linesOf } from './tail.js';
import { WriteFailed } from './writing.js';

// Takes up to 0.2 ms: requests that arrive meanwhile wait.
const SLICE = 16;
const WRITE_EVERY_MS = 500;
const RETRY_MS = 1_000;
const CHUNK_BYTES = 1024 * 1024; // Each chunk costs one disk sync.
const MAX_SPARES = 4; // As many chunks as a busy daemon fills between two writes.
const MAX_WAITING_BYTES = 32 * 1024 * 1024;
const SUMMARY_EVERY_MS = 60_000;

const NOWHERE: Head = { line: 0, digest: '' };

/** Chained lines that are written together. */
interface Chunk {
  bytes: Buffer;
  length: number;
  before: Head;
  after: Head;
}

const NEWLINE = 10;

const firstLineBytes = ({ bytes }: Chunk): number => bytes.indexOf(NEWLINE) + 1;

/** Splits off the lines that fit into `room` bytes, at least one. @returns these lines and the remaining ones. */
function cutToFit(chunk: Chunk, room: number): [Chunk, Chunk | null] {
  const { bytes, length, before, after } = chunk;
  if (length <= room) return [chunk, null];
  const fitting = room > 0 ? bytes.lastIndexOf(NEWLINE, room - 1) + 1 : 0;
  const cut = fitting > 0 ? fitting : firstLineBytes(chunk);
  if (cut >= length) return [chunk, null];
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
  #chunks: Chunk[] = [];
  /** The memory of chunks that were written. New memory twice a second would cause most of the full garbage collections. */
  readonly #spares: Buffer[] = [];
  #waitingBytes = 0;
  #unknown = new Map<string, number>();
  #cancelSummary: (() => void) | null = null;
  #cancelWrite: (() => void) | null = null;
  #writing: Promise<void> | null = null;
  #isClosed = false;
  /** Lines that were dropped for lack of space. */
  dropped = 0;
  #droppedUnlogged = 0;

  constructor(options: UseLogOptions) {
    this.#options = options;
    this.#chain = new Chain(options.file.head);
  }

  /** Bytes waiting to be written. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  readonly record = (ended: RequestEnded): void => {
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
    // A CORS preflight, which uses no token.
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
    for (const [code, count] of this.#unknown) this.#append(this.#fields.ofUnknown(code || null, count, now));
    this.#unknown.clear();
  }

  #compose(): void {
    const ended = this.#ended;
    this.#ended = [];
    for (const each of ended) this.#append(this.#fields.of(each));
  }

  /** @param fields parts of a text of ASCII characters. */
  #append(fields: readonly string[]): void {
    const chain = this.#chain;
    const link = chain.begin('');
    let room = link.length + 1;
    for (const part of fields) room += part.length;
    if (this.#waitingBytes + room > MAX_WAITING_BYTES) {
      this.dropped += 1;
      this.#droppedUnlogged += 1;
      return;
    }
    const chunk = this.#chunkFor(room);
    const { bytes, length } = chunk;
    let end = length + bytes.write(link, length, 'latin1');
    for (const part of fields) end += bytes.write(part, end, 'latin1');
    chain.take(bytes.subarray(length, end));
    bytes[end] = NEWLINE;
    chunk.length = end + 1;
    chunk.after = chain.head;
    this.#waitingBytes += end + 1 - length;
  }

  #chunkFor(bytes: number): Chunk {
    const last = this.#chunks.at(-1);
    if (last && last.length + bytes <= last.bytes.length) return last;
    const { head } = this.#chain;
    const chunk = { bytes: this.#memoryFor(bytes), length: 0, before: head, after: head };
    this.#chunks.push(chunk);
    return chunk;
  }

  #memoryFor(bytes: number): Buffer {
    if (bytes > CHUNK_BYTES) return Buffer.allocUnsafeSlow(bytes);
    return this.#spares.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
  }

  #writeLater(afterMs = WRITE_EVERY_MS): void {
    if (this.#isClosed || this.#writing) return;
    this.#cancelWrite ??= this.#options.clock.after(afterMs, () => {
      this.#cancelWrite = null;
      void this.write();
    });
  }

  /** Writes the waiting lines, and retries later if that fails. */
  write(): Promise<void> {
    return (this.#writing ??= this.#writeAll().then(
      () => {
        this.#writing = null;
      },
      () => {
        // The audit file has logged the error.
        this.#writing = null;
        this.#writeLater(RETRY_MS);
      },
    ));
  }

  async #writeAll(): Promise<void> {
    const { file, log } = this.#options;
    this.#compose();
    // Under load lines come all the time: those wait for the next write, or this one would not end, with a disk sync every few milliseconds.
    let until = this.#chain.line;
    do {
      const [chunk] = this.#chunks;
      await file.ready(chunk ? firstLineBytes(chunk) : 0);
      if (!chunk) {
        file.recovered();
        break;
      }
      if (chunk.before.digest !== file.head.digest) {
        this.#rechain();
        until = this.#chain.line;
      }
      await this.#writeChunk();
    } while (this.#chunks[0] && this.#chunks[0].before.line < until);
    if (this.#droppedUnlogged > 0)
      log.warn('the audit file could not be written for too long: uses of tokens are missing in it', {
        lines: this.#droppedUnlogged,
      });
    this.#droppedUnlogged = 0;
    if (this.#ended.length > 0 || this.#chunks.length > 0) {
      this.#writing = null;
      this.#writeLater();
    }
  }

  async #writeChunk(): Promise<void> {
    const whole = this.#chunks.shift();
    if (!whole) return;
    const [chunk, rest] = cutToFit(whole, this.#options.file.bytesLeft);
    if (rest) this.#chunks.unshift(rest);
    try {
      await this.#options.file.append(chunk.bytes.subarray(0, chunk.length), chunk.after);
      this.#waitingBytes -= chunk.length;
      if (chunk.bytes.length === CHUNK_BYTES && this.#spares.length < MAX_SPARES) this.#spares.push(chunk.bytes);
    } catch (error) {
      this.#putBack(chunk, error instanceof WriteFailed ? error.bytesWritten : 0);
      throw error;
    }
  }

  /** Returns the unwritten lines to the queue. Lines that were written completely are in the file, if the disk stored them. */
  #putBack(chunk: Chunk, taken: number): void {
    const cut = taken === 0 ? 0 : chunk.bytes.lastIndexOf(NEWLINE, taken - 1) + 1;
    this.#waitingBytes -= cut;
    const bytes = chunk.bytes.subarray(cut);
    const length = chunk.length - cut;
    // Its chain no longer matches the file.
    if (length > 0) this.#chunks.unshift({ ...chunk, bytes, length, before: NOWHERE });
  }

  /** Chains the waiting lines to the file's head again: at startup and after a failure they were chained to another one. */
  #rechain(): void {
    let { head } = this.#options.file;
    this.#chunks = this.#chunks.map(({ bytes, length }) => {
      const before = head;
      const chained = chainLines(fieldsOf(bytes.subarray(0, length)), before);
      head = chained.head;
      return { bytes: chained.bytes, length: chained.bytes.length, before, after: head };
    });
    this.#waitingBytes = this.#chunks.reduce((sum, { length }) => sum + length, 0);
    this.#chain = new Chain(head);
  }

  /** Writes everything now, including requests that are only counted so far. */
  async flush(): Promise<void> {
    await this.#writing;
    this.#cancelWrite?.();
    this.#cancelWrite = null;
    this.#compose();
    this.#summarise();
    if (this.#options.file.whyFailing === null) await this.write();
  }

  /** Writes pending lines synchronously when the process is about to end. */
  flushSync(): void {
    this.#compose();
    this.#summarise();
    const isInOrder = this.#chunks[0]?.before.digest === this.#options.file.head.digest;
    if (!isInOrder && !this.#writing) this.#rechain();
    for (const { bytes, length } of this.#chunks) this.#options.file.writeSync(bytes.subarray(0, length));
    this.#chunks = [];
  }

  /** Writes everything, unless the file cannot be written. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
  }
}
