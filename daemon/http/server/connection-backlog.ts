import type { IncomingMessage } from 'node:http';
import type { MemoryHolder } from '../memory-limit.js';
import { onEachHead, onEachRead, type ParsedSocket, PAUSED, type Parser, type ReadHook } from './parser.js';
import type { TimeSlicedQueue } from './time-sliced-queue.js';

// When this many requests wait on a connection, its parser and reading stop, to bound memory. Up to that point it is read, since only
// reading reveals that a client has disconnected.
const MAX_WAITING = 4;
// Lower than the limit, because stopping and resuming has a cost.
const RESUME_AT = MAX_WAITING / 2;
// Measured memory in addition to the bytes: of a connection with its parser, of a request with its response, and of a header's name or
// value.
const CONNECTION_BYTES = 2 * 1024;
const REQUEST_BYTES = 3 * 1024;
const TEXT_BYTES = 40;
/** How long a connection counts as pipelining after a request waited on it. */
const PIPELINING_WINDOW_MS = 2_000;

/** The owner of all backlogs: `Intake`. */
export interface BacklogOwner {
  readonly slices: Pick<TimeSlicedQueue, 'add'>;
  /** Monotonic time. */
  readonly nowMs: number;
  /** Counts the memory of a connection, and drops connections if all together hold too much. */
  hold(backlog: ConnectionBacklog, bytes: number): void;
  release(backlog: ConnectionBacklog): void;
}

/** Input of one connection that is not served yet. Its parser is paused when too many requests wait. */
export class ConnectionBacklog implements MemoryHolder {
  readonly #owner: BacklogOwner;
  readonly #socket: ParsedSocket;
  readonly #parser: Parser;
  sinceMs = 0;
  bytes = 0;
  /** Whether a request head has begun and is not complete. */
  isReadingHead = false;
  /** When a request last waited for an earlier one. */
  #waitedAtMs = -Infinity;
  #waiting = 0;
  /** Bytes of the waiting requests and of the incomplete head. */
  #readBytes = 0;
  /** Those of these bytes that may belong to the incomplete head. */
  #headBytes = 0;
  /** Number of header names and values of the waiting requests. */
  #textCount = 0;
  /** Bytes that were read but not parsed, because the parser was paused. */
  #heldBack: Buffer | null = null;
  /** Number of unparsed bytes of the last read, until that read is counted. */
  #unparsedBytes = 0;
  #isReading = true;
  #isResuming = false;
  #observesClose = false;
  /** False from the start of a head to its end, and before the first one. */
  #isHeadComplete = false;
  /** Whether the incomplete head began with the last read. */
  #isHeadNew = false;
  readonly #readHook: ReadHook;
  readonly #onClose = () => {
    this.release();
  };

  constructor(owner: BacklogOwner, socket: ParsedSocket, parser: Parser) {
    this.#owner = owner;
    this.#socket = socket;
    this.#parser = parser;
    const begin = parser.onIncoming;
    onEachHead(parser, () => {
      this.#isHeadComplete = false;
      this.#isHeadNew = true;
    });
    parser.onIncoming = (req, keepAlive) => {
      this.#isHeadComplete = true;
      this.#headBytes = 0;
      if (this.#waiting === 0) this.#readBytes = this.#textCount = 0; // This request is served immediately.
      const verdict = begin.call(parser, req, keepAlive);
      return verdict === 0 && this.#waiting >= MAX_WAITING ? PAUSED : verdict;
    };
    this.#readHook = onEachRead(socket, parser, (bytes) => {
      this.#onRead(bytes);
    });
  }

  #onRead(bytes: number): void {
    const isReadingHead = this.#isParsing && !this.#isHeadComplete;
    if (!isReadingHead && this.bytes === 0 && this.#waiting === 0) return;
    const parsed = bytes - this.#unparsedBytes;
    this.#unparsedBytes = 0;
    this.isReadingHead = isReadingHead;
    this.#readBytes += parsed;
    if (isReadingHead) {
      this.#headBytes = this.#isHeadNew ? parsed : this.#headBytes + parsed;
      this.#isHeadNew = false;
    }
    this.#count();
  }

  /** Whether the client pipelines: it sends requests before earlier ones are answered, now or a moment ago. */
  get isPipelining(): boolean {
    return this.#waitedAtMs > this.#owner.nowMs - PIPELINING_WINDOW_MS;
  }

  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  drop(): void {
    this.#socket.destroy();
  }

  release(): void {
    this.#heldBack = null;
    this.#waiting = 0;
    this.#owner.release(this);
    if (!this.#isReading) this.#resumeReading();
  }

  /** The connection has a new parser, and a new backlog counts what it reads. */
  replaced(): void {
    this.release();
    this.#readHook.stop();
    this.#socket.off('close', this.#onClose);
  }

  requestQueued(req: IncomingMessage): void {
    this.#waitedAtMs = this.#owner.nowMs;
    this.#waiting += 1;
    this.#textCount += req.rawHeaders.length;
    if (this.#waiting >= MAX_WAITING && this.#isReading) this.#stopReading();
    this.#count();
  }

  requestDequeued(): void {
    if (this.#waiting === 0) return; // The connection was released.
    this.#waitedAtMs = this.#owner.nowMs;
    // It is not known which bytes belong to which request: each takes an equal share, and nothing of the incomplete head.
    this.#readBytes -= Math.floor((this.#readBytes - this.#headBytes) / this.#waiting);
    this.#textCount -= Math.floor(this.#textCount / this.#waiting);
    this.#waiting -= 1;
    this.#count();
    if (this.#waiting <= RESUME_AT && !this.#isReading) this.#resumeSoon();
  }

  /** The parser has paused within a read; the bytes of that read are counted when it ends. */
  parserPaused(rest: Buffer): void {
    if (this.#socket.destroyed) return;
    this.#unparsedBytes = rest.length;
    // Keeping a small slice would keep the whole large buffer in memory.
    this.#heldBack = rest.length < rest.buffer.byteLength / 2 ? Buffer.from(rest) : rest;
  }

  get #isParsing(): boolean {
    return this.#socket.parser === this.#parser;
  }

  #count(): void {
    if (!this.isReadingHead && this.#waiting === 0 && this.#heldBack === null) {
      this.#readBytes = this.#headBytes = this.#textCount = 0;
      this.#owner.release(this);
      return;
    }
    if (this.#socket.destroyed) return;
    if (!this.#observesClose) {
      this.#observesClose = true;
      this.#socket.once('close', this.#onClose);
    }
    const texts = this.#textCount + (this.isReadingHead ? this.#parser._headers.length : 0);
    const requests = this.#waiting * REQUEST_BYTES;
    this.#owner.hold(this, CONNECTION_BYTES + this.#readBytes + this.#heldBackBytes + requests + texts * TEXT_BYTES);
  }

  #resumeSoon(): void {
    if (this.#isResuming) return;
    this.#isResuming = true;
    this.#owner.slices.add(() => {
      this.#isResuming = false;
      this.#resume();
    }, 'late');
  }

  /** Parses the bytes that were held back, up to the next pause, and resumes reading. */
  #resume(): void {
    const socket = this.#socket;
    if (socket.destroyed || !this.#isParsing || this.#waiting > RESUME_AT) return;
    if (socket._paused) {
      socket.once('drain', () => {
        this.#resumeSoon();
      });
      return;
    }
    const rest = this.#heldBack;
    this.#heldBack = null;
    if (rest !== null) this.#readHook.resume(rest);
    // Newly read bytes must not reach a parser that has paused within the held-back bytes.
    if (!this.#hasHeldBack) this.#resumeReading();
    this.#count();
  }

  get #hasHeldBack(): boolean {
    return this.#heldBack !== null;
  }

  get #heldBackBytes(): number {
    return this.#heldBack === null ? 0 : this.#heldBack.buffer.byteLength + this.#readHook.readAheadBytes;
  }

  #stopReading(): void {
    this.#isReading = false;
    // Node resumes a connection after every message, which must have no effect now.
    this.#socket.resume = () => this.#socket;
    this.#socket.pause();
    // Again, after a resume that is already scheduled.
    process.nextTick(() => {
      if (this.#isReading) return;
      this.#socket.pause();
      // An unread body may have paused it before: then `pause` alone would not notify Node again.
      this.#socket.emit('pause');
    });
  }

  #resumeReading(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    Reflect.deleteProperty(this.#socket, 'resume');
    this.#socket.resume();
  }
}
