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
import { Chain, chainLines, fieldsOf, type Head } from './chain.js';
import { UseFields } from './fields.js';

// Takes up to 0.2 ms: requests that arrive meanwhile wait.
const SLICE = 16;
const WRITE_EVERY_MS = 500;
const RETRY_MS = 1_000;
const CHUNK_BYTES = 1024 * 1024; // Each chunk costs one disk sync.
const MAX_SPARES = 4; // As many chunks as a busy daemon fills between two writes.
const MAX_WAITING_BYTES = 32 * 1024 * 1024;
const SUMMARY_EVERY_MS = 60_000;

const NEWLINE = 10;

/** Chained lines that are written together. */
interface Chunk {
  bytes: Buffer;
  length: number;
  /** Its last line. */
  head: Head;
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
  /** What the first waiting line is chained to. */
  #before: Head;
  #chain: Chain;
  /** Full ones, and those that are to be written next. */
  #chunks: Chunk[] = [];
  /** The one that lines are added to. */
  #open: Chunk | null = null;
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
    this.#before = options.file.head;
    this.#chain = new Chain(this.#before);
  }

  /** Bytes waiting to be written. */
  get waitingBytes(): number {
    return this.#waitingBytes + this.#options.file.bytesWaiting;
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
    if (this.waitingBytes + room > MAX_WAITING_BYTES) {
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
    chunk.head = chain.head;
    this.#waitingBytes += end + 1 - length;
  }

  #chunkFor(bytes: number): Chunk {
    if (this.#open && this.#open.length + bytes <= this.#open.bytes.length) return this.#open;
    this.#closeChunk();
    return (this.#open = { bytes: this.#memoryFor(bytes), length: 0, head: this.#chain.head });
  }

  #closeChunk(): void {
    if (this.#open) this.#chunks.push(this.#open);
    this.#open = null;
  }

  /** A chunk fits into an empty file, unless a single line does not. */
  #memoryFor(bytes: number): Buffer {
    const size = Math.min(CHUNK_BYTES, this.#options.file.maxBytes);
    if (bytes > size) return Buffer.allocUnsafeSlow(bytes);
    return this.#spares.pop() ?? Buffer.allocUnsafeSlow(size);
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
    this.#closeChunk();
    if (this.#chunks.length === 0) {
      await file.ready();
      file.recovered();
    }
    // Under load lines come all the time: those wait for the next write, or this one would not end, with a disk sync every few milliseconds.
    for (let left = this.#chunks.length; left > 0; left--) await this.#writeChunk();
    if (this.#droppedUnlogged > 0)
      log.warn('the audit file could not be written for too long: uses of tokens are missing in it', {
        lines: this.#droppedUnlogged,
      });
    this.#droppedUnlogged = 0;
    if (this.#ended.length > 0 || this.#open || this.#chunks.length > 0) {
      this.#writing = null;
      this.#writeLater();
    }
  }

  async #writeChunk(): Promise<void> {
    const { file } = this.#options;
    await file.ready(this.#chunks[0]?.length);
    if (this.#before.digest !== file.head.digest) this.#rechain();
    const chunk = this.#chunks.shift();
    if (!chunk) return;
    this.#before = chunk.head;
    this.#waitingBytes -= chunk.length;
    // If it fails, the file keeps the lines and writes them later.
    await file.append(chunk.bytes.subarray(0, chunk.length), chunk.head);
    const isReusable = chunk.bytes.length === Math.min(CHUNK_BYTES, file.maxBytes);
    if (isReusable && this.#spares.length < MAX_SPARES) this.#spares.push(chunk.bytes);
  }

  /** Chains the waiting lines to the file's head again: at startup, and after a marker was written, they are chained to another one. */
  #rechain(): void {
    this.#closeChunk();
    let { head } = this.#options.file;
    this.#before = head;
    this.#chunks = this.#chunks.map(({ bytes, length }) => {
      const chained = chainLines(fieldsOf(bytes.subarray(0, length)), head);
      head = chained.head;
      return { bytes: chained.bytes, length: chained.bytes.length, head };
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
    this.#closeChunk();
    if (this.#before.digest !== this.#options.file.head.digest && !this.#writing) this.#rechain();
    for (const { bytes, length } of this.#chunks) this.#options.file.writeSync(bytes.subarray(0, length));
    this.#chunks = [];
  }

  /** Writes everything, unless the file cannot be written. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
  }
}
