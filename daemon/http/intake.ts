/**
 * What clients have sent that nobody serves yet: heads that are not whole, and requests that wait behind another one on their connection.
 * It is bounded for each connection, and for all connections of all listeners together. A request that comes alone and whole pays a glance
 * for this.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../core/ports.js';
import { type Holder, Hoard } from './hoard.js';
import { onEachHead, onEachRead, type ParsedSocket, PAUSED, type Parser } from './parser.js';
import { type Class, Slices } from './slices.js';

export type Serve = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => void;

/** When a request begins that is alone on its connection: at once, or in its turn with those of other connections. */
export type Urgency = 'direct' | 'urgent' | 'usual';

export interface IntakeOptions {
  clock: Clock;
  heap: { readonly isFull: boolean };
  /** Told of each connection that is ended because there is no room. */
  onDropped: () => void;
  /** What all may hold together. */
  mostBytes?: number;
}

// When as many wait, nothing more is parsed or read, so that memory stays bounded. Not from the first on: that a client
// has left is noticed by reading.
const MOST_WAITING = 4;
// Not at each one that leaves: to stop and go on costs something.
const GO_ON_AT = MOST_WAITING / 2;
const MOST_BYTES = 16 * 1024 * 1024;
// What one holds beside its bytes, measured: a connection with its parser, a request and its response, a name or value of a field.
const CONNECTION_BYTES = 2 * 1024;
const REQUEST_BYTES = 3 * 1024;
const TEXT_BYTES = 40;
/** How long a head may take while room is short. Otherwise it is the ten seconds of `headersTimeout`. */
const HASTY_MS = 1_000;
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

  /** What is held now, about. */
  get bytes(): number {
    return this.#hoard.bytes;
  }

  /** Counts what arrives at the connections of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: ParsedSocket) => {
      this.slices.hurry();
      const { parser } = socket;
      if (parser === null) return;
      this.#connections.get(socket)?.letGo(); // Given back, by who looked at an upgrade.
      this.#connections.set(socket, new Arriving(this, socket, parser));
    });
  }

  /**
   * One request at a time for each connection: each waits until those before it are answered. One that is alone begins at once if it is
   * `direct`. All others take their turn with those of other connections, and those of a client that does not wait for its answers come last.
   */
  inTurn(serve: Serve, urgencyOf: (req: IncomingMessage) => Urgency): Serve {
    const serveSoon = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean, when: Class) => {
      this.slices.add(() => {
        // Unless it was refused meanwhile: its rest could not be read.
        if (isOpen(req.socket) && !res.headersSent) serve(req, res, expectsContinue);
      }, when);
    };
    return (req, res, expectsContinue) => {
      const arriving = this.#connections.get(req.socket);
      if (res.socket) {
        if (!isOpen(res.socket)) return;
        const urgency = urgencyOf(req);
        if (arriving?.hasPipelined) {
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
      // Node gives a response its connection when the one before has gone out. What is done later is behind the end of that.
      res.once('socket', () => {
        arriving?.leave();
        serveSoon(req, res, expectsContinue, 'late');
      });
    };
  }

  /** The parser has stopped, as it was told to. @param rest what it has not parsed. */
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

/** Whether an answer could go out: not behind one that said it is the connection's last. */
const isOpen = (socket: Socket) => !socket.writableEnded && !socket.destroyed;

/** What has arrived on one connection and is not served. */
class Arriving implements Holder {
  sinceMs = 0;
  bytes = 0;
  /** In the middle of a head. */
  isInHead = false;
  /** Whether a request ever came before those before it were answered. */
  hasPipelined = false;
  #waiting = 0;
  /** Bytes of what waits, and of the head that is not whole. Never less than there are. */
  #read = 0;
  /** Names and values of the fields of what waits. */
  #texts = 0;
  /** What was read and is not parsed: the parser is stopped. */
  #rest: Buffer | null = null;
  #isReading = true;
  #isGoingOn = false;
  #isHeard = false;
  /** False from the beginning of a head to its end, and before the first one. */
  #isHeadWhole = false;

  constructor(
    private readonly intake: Intake,
    private readonly socket: ParsedSocket,
    private readonly parser: Parser,
  ) {
    const begin = parser.onIncoming;
    onEachHead(parser, () => {
      this.#isHeadWhole = false;
    });
    parser.onIncoming = (req, keepAlive) => {
      this.#isHeadWhole = true;
      if (this.#waiting === 0) this.#read = this.#texts = 0; // It is served at once.
      const verdict = begin.call(parser, req, keepAlive);
      return verdict === 0 && this.#waiting >= MOST_WAITING ? PAUSED : verdict;
    };
    onEachRead(socket, parser, (bytes) => {
      const isInHead = this.#isParsing && !this.#isHeadWhole;
      if (!isInHead && this.bytes === 0 && this.#waiting === 0) return;
      this.isInHead = isInHead;
      if (this.#rest === null) this.#read += bytes; // Else it is counted as that.
      this.#count();
    });
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

  enter(req: IncomingMessage): void {
    this.hasPipelined = true;
    this.#waiting += 1;
    this.#texts += req.rawHeaders.length;
    if (this.#waiting >= MOST_WAITING && this.#isReading) this.#stopReading();
    this.#count();
  }

  leave(): void {
    if (this.#waiting === 0) return; // Let go of.
    this.#read -= this.#read / this.#waiting;
    this.#texts -= this.#texts / this.#waiting;
    this.#waiting -= 1;
    this.#count();
    if (this.#waiting <= GO_ON_AT && !this.#isReading) this.#goOnSoon();
  }

  stopped(rest: Buffer): void {
    if (this.socket.destroyed) return;
    const all = this.#rest === null ? rest : Buffer.concat([this.#rest, rest]);
    // A piece keeps all that it is a piece of.
    this.#rest = all.length < all.buffer.byteLength / 2 ? Buffer.from(all) : all;
    if (this.#isReading) this.#stopReading();
    this.#count();
    if (this.#waiting <= GO_ON_AT) this.#goOnSoon();
  }

  get #isParsing(): boolean {
    return this.socket.parser === this.parser;
  }

  #count(): void {
    if (!this.isInHead && this.#waiting === 0 && this.#rest === null) {
      this.#read = this.#texts = 0;
      this.intake.letGo(this);
      return;
    }
    if (this.socket.destroyed) return;
    if (!this.#isHeard) {
      this.#isHeard = true;
      this.socket.once('close', () => {
        this.letGo();
      });
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
    const { socket, parser } = this;
    if (socket.destroyed || !this.#isParsing || this.#waiting > GO_ON_AT) return;
    if (socket._paused) {
      socket.once('drain', () => {
        this.#goOnSoon();
      });
      return;
    }
    const rest = this.#rest;
    this.#rest = null;
    this.#readOn();
    if (rest !== null) {
      parser.resume();
      // To the parser a piece without a byte is the end of the connection.
      if (rest.length > 0) {
        socket.emit('data', rest);
        this.#parsed(rest.length);
      }
    }
    this.#count();
  }

  /** @param bytes of a rest, of which the parser may have left something again. */
  #parsed(bytes: number): void {
    this.#read += bytes - (this.#rest?.length ?? 0);
    this.isInHead = this.#isParsing && !this.#isHeadWhole;
  }

  get #restBytes(): number {
    return this.#rest?.buffer.byteLength ?? 0;
  }

  #stopReading(): void {
    this.#isReading = false;
    // Node resumes a connection behind every message, and must not get to.
    this.socket.resume = () => this.socket;
    // Behind a resumption that is already under way.
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
