/**
 * What clients have sent and the daemon does not serve yet: unfinished heads, and requests that wait behind another one on their connection.
 * The memory for it is bounded for each connection, and for all connections of all listeners together. A request that comes alone and
 * whole costs next to nothing here.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../core/ports.js';
import { type Holder, Hoard } from '../hoard.js';
import { onEachHead, onEachRead, type ParsedSocket, PAUSED, type Parser, type Reads } from './parser.js';
import { type Class, Slices } from './slices.js';

export type Serve = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => void;

/** When a request begins that is alone on its connection: at once, or in its turn with those of other connections. */
export type Urgency = 'direct' | 'urgent' | 'usual';

export interface IntakeOptions {
  clock: Clock;
  heap: { readonly isFull: boolean };
  /** Called for each connection that is ended because memory is short. */
  onDropped: () => void;
  /** How much all connections may hold together. */
  mostBytes?: number;
}

// When so many requests wait on a connection, nothing more of it is parsed or read, so that memory stays bounded. Until then it is
// read: only so does the daemon notice that a client has left.
const MOST_WAITING = 4;
// Not as soon as one request has left: to stop reading and to go on has its price.
const GO_ON_AT = MOST_WAITING / 2;
const MOST_BYTES = 16 * 1024 * 1024;
// What each takes beside its bytes, as measured: a connection with its parser; a request with its response; a field's name or value.
const CONNECTION_BYTES = 2 * 1024;
const REQUEST_BYTES = 3 * 1024;
const TEXT_BYTES = 40;
/** How long a head may take while memory is short. At other times the ten seconds of `headersTimeout` are the limit. */
const HASTY_MS = 1_000;
/** For so long a connection on which requests waited counts as one whose client does not wait for its answers. */
const PIPELINES_FOR_MS = 2_000;
const LARGE_BYTES = 8 * 1024;
const LOOK_EVERY_MS = 100;

export class Intake {
  readonly slices: Slices;
  readonly #connections = new WeakMap<Socket, Arriving>();
  readonly #hoard: Hoard<Arriving>;
  readonly #mostBytes: number;
  #looksAtMs = -Infinity;

  constructor(private readonly options: IntakeOptions) {
    this.#mostBytes = options.mostBytes ?? MOST_BYTES;
    this.slices = new Slices(options.clock);
    this.#hoard = new Hoard(this.#mostBytes, options.onDropped);
  }

  /** Counts what arrives at the connections of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: ParsedSocket) => {
      this.slices.hurry();
      const { parser } = socket;
      if (parser === null) return;
      this.#connections.get(socket)?.replaced(); // It came before: its request asked for another protocol and did not get it.
      this.#connections.set(socket, new Arriving(this, socket, parser));
    });
  }

  /**
   * Serves one request of a connection at a time: each waits until those before it are answered. One that is alone begins at once if it
   * is `direct`. All others take turns with the requests of other connections. Those of a client that does not wait for its answers come
   * last.
   */
  inTurn(serve: Serve, urgencyOf: (req: IncomingMessage) => Urgency): Serve {
    const serveSoon = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean, when: Class) => {
      this.slices.add(() => {
        // It was refused meanwhile if the rest of it could not be parsed.
        if (isOpen(req.socket) && !res.headersSent) serve(req, res, expectsContinue);
      }, when);
    };
    return (req, res, expectsContinue) => {
      const arriving = this.#connections.get(req.socket);
      if (res.socket) {
        if (!isOpen(res.socket)) return;
        const urgency = urgencyOf(req);
        if (arriving?.isPipelining) {
          serveSoon(req, res, expectsContinue, 'late');
        } else if (urgency === 'direct') {
          this.slices.othersAreServed();
          serve(req, res, expectsContinue);
        } else {
          serveSoon(req, res, expectsContinue, urgency);
        }
        return;
      }
      arriving?.enter(req);
      // Node gives a response its connection when the response before it has gone out.
      res.once('socket', () => {
        arriving?.leave();
        serveSoon(req, res, expectsContinue, 'late');
      });
    };
  }

  /** The parser has stopped, as it was told to. @param rest the bytes that it has not parsed. */
  stopped(socket: Socket, rest: Buffer): void {
    this.#connections.get(socket)?.stopped(rest);
  }

  /** Whether a connection is in the middle of a head for longer than that takes. */
  isSlow(socket: Socket): boolean {
    return this.#isSlow(this.#connections.get(socket));
  }

  #isSlow(arriving: Arriving | undefined): boolean {
    if (!arriving?.isInHead || arriving.bytes === 0) return false;
    return arriving.sinceMs < this.options.clock.monotonic() - HASTY_MS;
  }

  /** @internal */
  get nowMs(): number {
    return this.options.clock.monotonic();
  }

  /** @internal */
  hold(arriving: Arriving, bytes: number): void {
    const { clock, heap } = this.options;
    const now = clock.monotonic();
    if (arriving.bytes === 0) arriving.sinceMs = now;
    this.#hoard.hold(arriving, bytes);
    if (now < this.#looksAtMs) return;
    this.#looksAtMs = now + LOOK_EVERY_MS;
    const { isFull } = heap;
    if (!isFull && this.#hoard.bytes < this.#mostBytes / 2) return;
    this.#hoard.dropWhere((each) => this.#isSlow(each) || (isFull && (each.isWaiting || each.bytes > LARGE_BYTES)));
  }

  /** @internal */
  letGo(arriving: Arriving): void {
    this.#hoard.letGo(arriving);
  }
}

/** Whether a response could still go out. After one with `Connection: close` none can. */
const isOpen = (socket: Socket) => !socket.writableEnded && !socket.destroyed;

/** What has arrived on one connection and is not served. */
class Arriving implements Holder {
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

  constructor(
    private readonly intake: Intake,
    private readonly socket: ParsedSocket,
    private readonly parser: Parser,
  ) {
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
    return this.#waitedAtMs > this.intake.nowMs - PIPELINES_FOR_MS;
  }

  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  drop(): void {
    this.socket.destroy();
  }

  letGo(): void {
    this.#rest = null;
    this.#waiting = 0;
    this.intake.letGo(this);
    if (!this.#isReading) this.#readOn();
  }

  /** The connection has another parser now, and somebody else counts what it reads. */
  replaced(): void {
    this.letGo();
    this.#reads.stop();
    this.socket.off('close', this.#onClose);
  }

  enter(req: IncomingMessage): void {
    this.#waitedAtMs = this.intake.nowMs;
    this.#waiting += 1;
    this.#texts += req.rawHeaders.length;
    if (this.#waiting >= MOST_WAITING && this.#isReading) this.#stopReading();
    this.#count();
  }

  leave(): void {
    if (this.#waiting === 0) return; // The connection has been let go of.
    this.#waitedAtMs = this.intake.nowMs;
    // Which bytes are whose is not known: it takes its share with it, and nothing of a head that is not whole.
    this.#read -= Math.floor((this.#read - this.#head) / this.#waiting);
    this.#texts -= Math.floor(this.#texts / this.#waiting);
    this.#waiting -= 1;
    this.#count();
    if (this.#waiting <= GO_ON_AT && !this.#isReading) this.#goOnSoon();
  }

  /** Within a read: what it has brought is counted when it is over. */
  stopped(rest: Buffer): void {
    if (this.socket.destroyed) return;
    this.#unparsed = rest.length;
    // A small part of a large buffer would keep all of it in memory.
    this.#rest = rest.length < rest.buffer.byteLength / 2 ? Buffer.from(rest) : rest;
  }

  get #isParsing(): boolean {
    return this.socket.parser === this.parser;
  }

  #count(): void {
    if (!this.isInHead && this.#waiting === 0 && this.#rest === null) {
      this.#read = this.#head = this.#texts = 0;
      this.intake.letGo(this);
      return;
    }
    if (this.socket.destroyed) return;
    if (!this.#isHeard) {
      this.#isHeard = true;
      this.socket.once('close', this.#onClose);
    }
    const texts = this.#texts + (this.isInHead ? this.parser._headers.length : 0);
    const requests = this.#waiting * REQUEST_BYTES;
    this.intake.hold(this, CONNECTION_BYTES + this.#read + this.#restBytes + requests + texts * TEXT_BYTES);
  }

  #goOnSoon(): void {
    if (this.#isGoingOn) return;
    this.#isGoingOn = true;
    this.intake.slices.add(() => {
      this.#isGoingOn = false;
      this.#goOn();
    }, 'late');
  }

  /** Parses what was left, up to the next stop, and reads on. */
  #goOn(): void {
    const { socket } = this;
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
    this.socket.resume = () => this.socket;
    this.socket.pause();
    // Once more behind a resumption that is already under way.
    process.nextTick(() => {
      if (this.#isReading) return;
      this.socket.pause();
      // A body that nobody reads yet may have paused it before: then `pause` alone would not tell Node again.
      this.socket.emit('pause');
    });
  }

  #readOn(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    Reflect.deleteProperty(this.socket, 'resume');
    this.socket.resume();
  }
}
