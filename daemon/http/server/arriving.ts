import type { IncomingMessage } from 'node:http';
import type { Holder } from '../hoard.js';
import { onEachHead, onEachRead, type ParsedSocket, PAUSED, type Parser, type Reads } from './parser.js';
import type { Slices } from './slices.js';

// When so many requests wait on a connection, nothing more of it is parsed or read, so that memory stays bounded. Until then it is
// read: only so does the daemon notice that a client has left.
const MOST_WAITING = 4;
// Not as soon as one request has left: to stop reading and to go on has its price.
const GO_ON_AT = MOST_WAITING / 2;
// What each takes beside its bytes, as measured: a connection with its parser; a request with its response; a field's name or value.
const CONNECTION_BYTES = 2 * 1024;
const REQUEST_BYTES = 3 * 1024;
const TEXT_BYTES = 40;
/** For so long a connection on which requests waited counts as one whose client does not wait for its answers. */
const PIPELINES_FOR_MS = 2_000;

/** What all connections have in common. */
export interface Arrivals {
  readonly slices: Pick<Slices, 'add'>;
  /** Monotonic. */
  readonly nowMs: number;
  /** Counts what a connection holds, and drops connections where all hold too much. */
  hold(arriving: Arriving, bytes: number): void;
  letGo(arriving: Arriving): void;
}

/** What has arrived on one connection and is not served. Its parser is stopped when too many requests wait. */
export class Arriving implements Holder {
  readonly #all: Arrivals;
  readonly #socket: ParsedSocket;
  readonly #parser: Parser;
  sinceMs = 0;
  bytes = 0;
  /** In the middle of a head. */
  isInHead = false;
  /** When a request waited last for those before it. */
  #waitedAtMs = -Infinity;
  #waiting = 0;
  /** Bytes of what waits, and of the head that is not whole. */
  #read = 0;
  /** Those of them that may belong to the head that is not whole. */
  #head = 0;
  /** Names and values of the fields of what waits. */
  #texts = 0;
  /** Bytes that were read and are not parsed, because the parser was stopped. */
  #rest: Buffer | null = null;
  /** Bytes of the last read that are not parsed, as long as that read is not counted. */
  #unparsed = 0;
  #isReading = true;
  #isGoingOn = false;
  #isHeard = false;
  /** False from the beginning of a head to its end, and before the first one. */
  #isHeadWhole = false;
  /** The head that is not whole began with the last read. */
  #isHeadNew = false;
  readonly #reads: Reads;
  readonly #onClose = () => {
    this.letGo();
  };

  constructor(all: Arrivals, socket: ParsedSocket, parser: Parser) {
    this.#all = all;
    this.#socket = socket;
    this.#parser = parser;
    const begin = parser.onIncoming;
    onEachHead(parser, () => {
      this.#isHeadWhole = false;
      this.#isHeadNew = true;
    });
    parser.onIncoming = (req, keepAlive) => {
      this.#isHeadWhole = true;
      this.#head = 0;
      if (this.#waiting === 0) this.#read = this.#texts = 0; // It is served at once.
      const verdict = begin.call(parser, req, keepAlive);
      return verdict === 0 && this.#waiting >= MOST_WAITING ? PAUSED : verdict;
    };
    this.#reads = onEachRead(socket, parser, (bytes) => {
      this.#arrived(bytes);
    });
  }

  #arrived(bytes: number): void {
    const isInHead = this.#isParsing && !this.#isHeadWhole;
    if (!isInHead && this.bytes === 0 && this.#waiting === 0) return;
    const parsed = bytes - this.#unparsed;
    this.#unparsed = 0;
    this.isInHead = isInHead;
    this.#read += parsed;
    if (isInHead) {
      this.#head = this.#isHeadNew ? parsed : this.#head + parsed;
      this.#isHeadNew = false;
    }
    this.#count();
  }

  /** Whether requests came before those before them were answered, now or a moment ago. */
  get isPipelining(): boolean {
    return this.#waitedAtMs > this.#all.nowMs - PIPELINES_FOR_MS;
  }

  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  drop(): void {
    this.#socket.destroy();
  }

  letGo(): void {
    this.#rest = null;
    this.#waiting = 0;
    this.#all.letGo(this);
    if (!this.#isReading) this.#readOn();
  }

  /** The connection has another parser now, and somebody else counts what it reads. */
  replaced(): void {
    this.letGo();
    this.#reads.stop();
    this.#socket.off('close', this.#onClose);
  }

  enter(req: IncomingMessage): void {
    this.#waitedAtMs = this.#all.nowMs;
    this.#waiting += 1;
    this.#texts += req.rawHeaders.length;
    if (this.#waiting >= MOST_WAITING && this.#isReading) this.#stopReading();
    this.#count();
  }

  leave(): void {
    if (this.#waiting === 0) return; // The connection has been let go of.
    this.#waitedAtMs = this.#all.nowMs;
    // Which bytes are whose is not known: it takes its share with it, and nothing of a head that is not whole.
    this.#read -= Math.floor((this.#read - this.#head) / this.#waiting);
    this.#texts -= Math.floor(this.#texts / this.#waiting);
    this.#waiting -= 1;
    this.#count();
    if (this.#waiting <= GO_ON_AT && !this.#isReading) this.#goOnSoon();
  }

  /** Within a read: what it has brought is counted when it is over. */
  stopped(rest: Buffer): void {
    if (this.#socket.destroyed) return;
    this.#unparsed = rest.length;
    // A small part of a large buffer would keep all of it in memory.
    this.#rest = rest.length < rest.buffer.byteLength / 2 ? Buffer.from(rest) : rest;
  }

  get #isParsing(): boolean {
    return this.#socket.parser === this.#parser;
  }

  #count(): void {
    if (!this.isInHead && this.#waiting === 0 && this.#rest === null) {
      this.#read = this.#head = this.#texts = 0;
      this.#all.letGo(this);
      return;
    }
    if (this.#socket.destroyed) return;
    if (!this.#isHeard) {
      this.#isHeard = true;
      this.#socket.once('close', this.#onClose);
    }
    const texts = this.#texts + (this.isInHead ? this.#parser._headers.length : 0);
    const requests = this.#waiting * REQUEST_BYTES;
    this.#all.hold(this, CONNECTION_BYTES + this.#read + this.#restBytes + requests + texts * TEXT_BYTES);
  }

  #goOnSoon(): void {
    if (this.#isGoingOn) return;
    this.#isGoingOn = true;
    this.#all.slices.add(() => {
      this.#isGoingOn = false;
      this.#goOn();
    }, 'late');
  }

  /** Parses what was left, up to the next stop, and reads on. */
  #goOn(): void {
    const socket = this.#socket;
    if (socket.destroyed || !this.#isParsing || this.#waiting > GO_ON_AT) return;
    if (socket._paused) {
      socket.once('drain', () => {
        this.#goOnSoon();
      });
      return;
    }
    const rest = this.#rest;
    this.#rest = null;
    if (rest !== null) this.#reads.resume(rest);
    // What is read behind the rest must not come to a parser that has stopped in the middle of it.
    if (!this.#hasRest) this.#readOn();
    this.#count();
  }

  get #hasRest(): boolean {
    return this.#rest !== null;
  }

  get #restBytes(): number {
    return this.#rest === null ? 0 : this.#rest.buffer.byteLength + this.#reads.aheadBytes;
  }

  #stopReading(): void {
    this.#isReading = false;
    // Node resumes a connection behind every message, and must not get to.
    this.#socket.resume = () => this.#socket;
    this.#socket.pause();
    // Once more behind a resumption that is already under way.
    process.nextTick(() => {
      if (this.#isReading) return;
      this.#socket.pause();
      // A body that nobody reads yet may have paused it before: then `pause` alone would not tell Node again.
      this.#socket.emit('pause');
    });
  }

  #readOn(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    Reflect.deleteProperty(this.#socket, 'resume');
    this.#socket.resume();
  }
}
