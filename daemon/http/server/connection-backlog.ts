import type { IncomingMessage } from 'node:http';
import { HeldMemory, type MemoryLimit } from '../../core/memory-limit.js';
import type { Clock } from '../../core/ports.js';
import { onEachHead, onEachRead, type ParsedSocket, PAUSED, type Parser, type ReadHook, UPGRADED } from './parser.js';
import { SlicedParsing } from './sliced-parsing.js';
import { startHandle, stopHandle } from '../socket-handle.js';
import type { Priority, Scheduler } from '../scheduler.js';

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
/** What a connection with chunked bodies may read ahead: Node reads it into the buffer of a stream. */
const READ_AHEAD_BYTES = 64 * 1024;

/** How long a connection counts as pipelining after a request waited on it. */
const PIPELINING_WINDOW_MS = 2_000;

export interface BacklogOptions {
  clock: Clock;
  memory: MemoryLimit;
  scheduler: Pick<Scheduler, 'add'>;
}

/** Input of one connection that is not served yet. Its parser is paused when too many requests wait. */
export class ConnectionBacklog {
  readonly #options: BacklogOptions;
  readonly #socket: ParsedSocket;
  readonly #parser: Parser;
  /** Refuses the request whose body is being sent. */
  readonly #refuse: () => void;
  /** Null until something is held. */
  #memory: HeldMemory | null = null;
  /** Since when something is held. */
  #sinceMs = 0;
  /** Whether a request head has begun and is not complete. */
  #isReadingHead = false;
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
  #hasChunkedBody = false;
  /** Set once the connection has sent a chunked body. */
  #slices: SlicedParsing | null = null;
  /** Whether another backlog took the connection over, perhaps with the same parser object. */
  #isReplaced = false;
  /** Whether nobody takes what is parsed, for now. */
  #isBlocked = false;
  /** Whether input is dropped, because a body was refused. */
  #isDropping = false;
  readonly #onClose = () => {
    this.release();
  };

  /** @param refuse refuses the request whose body is being sent, because its chunks are too small. */
  constructor(options: BacklogOptions, socket: ParsedSocket, parser: Parser, refuse: () => void) {
    this.#options = options;
    this.#refuse = refuse;
    this.#socket = socket;
    this.#parser = parser;
    const begin = parser.onIncoming;
    onEachHead(parser, () => {
      this.#isHeadComplete = false;
      this.#isHeadNew = true;
    });
    const onIncoming: typeof begin = (req, keepAlive) => {
      this.#isHeadComplete = true;
      this.#headBytes = 0;
      if (this.#waiting === 0) this.#readBytes = this.#textCount = 0; // This request is served immediately.
      const verdict = begin.call(parser, req, keepAlive);
      if (req.upgrade) return UPGRADED;
      if (verdict !== 0) return verdict;
      const isFirstChunked = !this.#hasChunkedBody && req.headers['transfer-encoding'] !== undefined;
      this.#hasChunkedBody ||= isFirstChunked;
      return isFirstChunked || this.#waiting >= MAX_WAITING ? PAUSED : 0;
    };
    parser.onIncoming = onIncoming; // Not written here: see `holder` of a pass.
    this.#readHook = onEachRead(socket, parser, (bytes) => {
      this.#onRead(bytes);
    });
  }

  #onRead(bytes: number): void {
    const isReadingHead = this.#isParsing && !this.#isHeadComplete;
    const parsed = bytes - this.#unparsedBytes;
    this.#unparsedBytes = 0;
    if (!isReadingHead && this.#waiting === 0 && !this.#holdsMemory) return;
    this.#isReadingHead = isReadingHead;
    this.#readBytes += parsed;
    if (isReadingHead) {
      this.#headBytes = this.#isHeadNew ? parsed : this.#headBytes + parsed;
      this.#isHeadNew = false;
    }
    this.#countMemory();
  }

  /** Whether the client pipelines: it sends requests before earlier ones are answered, now or a moment ago. */
  get isPipelining(): boolean {
    return this.#waitedAtMs > this.#options.clock.monotonic() - PIPELINING_WINDOW_MS;
  }

  /** Since when the incomplete head of a request is waited for (monotonic); Infinity if there is none. */
  get headSinceMs(): number {
    return this.#isReadingHead && this.#holdsMemory ? this.#sinceMs : Infinity;
  }

  get #holdsMemory(): boolean {
    return this.#memory !== null && this.#memory.bytes > 0;
  }

  release(): void {
    this.#heldBack = null;
    this.#waiting = 0;
    this.#memory?.release();
    if (!this.#isReading) this.#resumeReading();
  }

  /** The connection has a new parser, and a new backlog counts what it reads. */
  replaced(): void {
    this.#isReplaced = true;
    this.release();
    this.#readHook.stop();
    this.#socket.off('data', this.#onData).off('close', this.#onClose);
  }

  requestQueued(req: IncomingMessage): void {
    this.#waitedAtMs = this.#options.clock.monotonic();
    this.#waiting += 1;
    this.#textCount += req.rawHeaders.length;
    if (this.#waiting >= MAX_WAITING && this.#isReading) this.#stopReading();
    this.#countMemory();
  }

  requestDequeued(): void {
    if (this.#waiting === 0) return; // The connection was released.
    this.#waitedAtMs = this.#options.clock.monotonic();
    // It is not known which bytes belong to which request: each takes an equal share, and nothing of the incomplete head.
    this.#readBytes -= Math.floor((this.#readBytes - this.#headBytes) / this.#waiting);
    this.#textCount -= Math.floor(this.#textCount / this.#waiting);
    this.#waiting -= 1;
    this.#countMemory();
    if (this.#waiting <= RESUME_AT && !this.#isReading) this.#parseSoon('late');
  }

  /** The parser has paused within a read; the bytes of that read are counted when it ends. */
  parserPaused(rest: Buffer): void {
    if (this.#socket.destroyed) return;
    if (this.#slices?.isParsing) {
      this.#slices.paused(rest.length);
      return;
    }
    this.#unparsedBytes = rest.length;
    this.#holdBack(rest);
    if (!this.#hasChunkedBody) return;
    this.#slices ??= new SlicedParsing(this.#parser, this.#readHook.takeOver(this.#onData));
    // Parsing nothing would mean the end of the connection.
    if (rest.length === 0) this.#heldBack = null;
    else if (this.#waiting < MAX_WAITING) this.#parseSoon('usual');
  }

  #holdBack(bytes: Buffer): void {
    // Keeping a small slice would keep the whole large buffer in memory.
    this.#heldBack = bytes.length < bytes.buffer.byteLength / 2 ? Buffer.from(bytes) : bytes;
  }

  get #isParsing(): boolean {
    return !this.#isReplaced && this.#socket.parser === this.#parser;
  }

  #countMemory(): void {
    if (!this.#isReadingHead && this.#waiting === 0 && this.#heldBack === null) {
      this.#readBytes = this.#headBytes = this.#textCount = 0;
      this.#memory?.release();
      return;
    }
    if (this.#socket.destroyed) return;
    if (!this.#observesClose) {
      this.#observesClose = true;
      this.#socket.once('close', this.#onClose);
    }
    const texts = this.#textCount + (this.#isReadingHead ? this.#parser._headers.length : 0);
    const requests = this.#waiting * REQUEST_BYTES;
    if (!this.#holdsMemory) this.#sinceMs = this.#options.clock.monotonic();
    this.#memory ??= new HeldMemory(this.#options.memory, () => {
      this.#socket.destroy();
    });
    this.#memory.isUnknown = this.#isReadingHead && this.#waiting === 0;
    this.#memory.hold(CONNECTION_BYTES + this.#readBytes + this.#heldBackBytes + requests + texts * TEXT_BYTES);
  }

  #parseSoon(when: Priority): void {
    if (this.#isResuming) return;
    this.#isResuming = true;
    if (this.#isReading && this.#slices !== null) this.#stopReading();
    this.#options.scheduler.add(() => {
      this.#isResuming = false;
      this.#resume();
    }, when);
  }

  /** Parses the bytes that were held back, up to the next pause, and resumes reading. */
  #resume(): void {
    const socket = this.#socket;
    if (socket.destroyed || !this.#isParsing || this.#waiting > RESUME_AT) return;
    if (socket._paused) {
      socket.once('drain', () => {
        this.#parseSoon('late');
      });
      return;
    }
    if (this.#slices !== null) {
      if (!this.#isBlocked) this.#parseSlices(this.#slices);
      return;
    }
    const rest = this.#heldBack;
    this.#heldBack = null;
    if (rest !== null) this.#readHook.resume(rest);
    // Newly read bytes must not reach a parser that has paused within the held-back bytes.
    if (!this.#hasHeldBack) this.#resumeReading();
    this.#countMemory();
  }

  // ---- connections with chunked bodies

  readonly #onData = (bytes: Buffer): void => {
    if (this.#isDropping) return;
    if (!this.#isParsing) {
      // The connection has switched protocols. Its parser may belong to another connection by now.
      this.#socket.off('data', this.#onData);
      return;
    }
    const { _paused: isPaused } = this.#socket;
    const isHeld = this.#heldBack !== null;
    this.#holdBack(this.#heldBack === null ? bytes : Buffer.concat([this.#heldBack, bytes]));
    const slices = this.#slices;
    if (isHeld || this.#isBlocked || slices === null) this.#countMemory();
    else if (slices.isDense || isPaused === true) this.#parseSoon('late');
    else this.#parseSlices(slices);
  };

  /** Parses what was held back: all of it, unless it has many chunks; then one slice at a time, when others need no time. */
  #parseSlices(slices: SlicedParsing): void {
    const bytes = this.#heldBack;
    this.#heldBack = null;
    if (bytes !== null) this.#holdBackFrom(bytes, slices.parse(bytes, this.#onSlice));
    if (slices.hasSmallChunks && !this.#isDropping) this.#refuseBody();
    this.#countMemory();
    if (this.#socket.destroyed || this.#isDropping) return;
    if (this.#waiting >= MAX_WAITING || (this.#hasHeldBack && this.#isBlocked)) this.#stopReading();
    else if (!this.#hasHeldBack) this.#resumeReading();
    else this.#parseSoon(slices.isDense ? 'late' : 'usual');
  }

  /** @returns whether the next slice may be parsed. Node asserts that nothing is parsed while it waits for the client to read. */
  readonly #onSlice = (parsed: number): boolean => {
    this.#onRead(parsed);
    const { _paused: isPaused, destroyed } = this.#socket;
    return !destroyed && isPaused !== true && this.#isParsing && this.#waiting < MAX_WAITING;
  };

  #refuseBody(): void {
    this.#isDropping = true;
    this.#heldBack = null;
    this.#refuse();
    this.#stopReading(); // The connection is closed soon; its client only has to get the response.
  }

  /** For an upgrade: what was read after the bytes that Node hands over with it. No more of it is parsed here. */
  takeFollowing(): Buffer | null {
    return this.#slices?.takeFollowing() ?? null;
  }

  #holdBackFrom(bytes: Buffer, at: number): void {
    if (at === bytes.length || this.#isDropping || this.#socket.destroyed) return;
    if (this.#isParsing) this.#holdBack(bytes.subarray(at));
    else this.#socket.off('data', this.#onData);
  }

  get #hasHeldBack(): boolean {
    return this.#heldBack !== null;
  }

  get #heldBackBytes(): number {
    if (this.#heldBack === null) return 0;
    return this.#heldBack.buffer.byteLength + (this.#slices ? READ_AHEAD_BYTES : this.#readHook.readAheadBytes);
  }

  #stopReading(): void {
    if (!this.#isReading) return;
    this.#isReading = false;
    const socket = this.#socket;
    this.#isBlocked = this.#slices !== null && socket.isPaused();
    // Node resumes a connection after every message, and when a body is read. The latter lets held-back bytes be parsed.
    socket.resume = () => {
      if (this.#isBlocked) this.#unblock();
      return socket;
    };
    const pause = socket.pause.bind(socket);
    const stop = () => {
      if (this.#isReading) return;
      pause();
      stopHandle(socket);
    };
    stop();
    // Again, after a resume that is already scheduled.
    process.nextTick(stop);
    if (this.#slices === null) return;
    socket.pause = () => {
      this.#isBlocked = true;
      return socket;
    };
  }

  #unblock(): void {
    this.#isBlocked = false;
    if (this.#hasHeldBack && this.#waiting < MAX_WAITING) this.#parseSoon(this.#slices?.isDense ? 'late' : 'usual');
  }

  #resumeReading(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    Reflect.deleteProperty(this.#socket, 'resume');
    Reflect.deleteProperty(this.#socket, 'pause');
    startHandle(this.#socket);
    if (!this.#isBlocked) this.#socket.resume();
    this.#isBlocked = false;
  }
}
