/**
 * What clients have sent and the daemon does not serve yet: unfinished heads, and requests that wait behind another one on their connection.
 * The memory for it is bounded for each connection, and for all connections of all listeners together. A request that comes alone and
 * whole costs next to nothing here.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../core/ports.js';
import { Arriving, type Arrivals } from './arriving.js';
import { Hoard } from '../hoard.js';
import type { ParsedSocket } from './parser.js';
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

const MOST_BYTES = 16 * 1024 * 1024;
/** How long a head may take while memory is short. At other times the ten seconds of `headersTimeout` are the limit. */
const HASTY_MS = 1_000;
const LARGE_BYTES = 8 * 1024;
const LOOK_EVERY_MS = 100;

export class Intake implements Arrivals {
  readonly #options: IntakeOptions;
  readonly slices: Slices;
  readonly #connections = new WeakMap<Socket, Arriving>();
  readonly #hoard: Hoard<Arriving>;
  readonly #mostBytes: number;
  #looksAtMs = -Infinity;

  constructor(options: IntakeOptions) {
    this.#options = options;
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
    return arriving.sinceMs < this.#options.clock.monotonic() - HASTY_MS;
  }

  get nowMs(): number {
    return this.#options.clock.monotonic();
  }

  hold(arriving: Arriving, bytes: number): void {
    const { clock, heap } = this.#options;
    const now = clock.monotonic();
    if (arriving.bytes === 0) arriving.sinceMs = now;
    this.#hoard.hold(arriving, bytes);
    if (now < this.#looksAtMs) return;
    this.#looksAtMs = now + LOOK_EVERY_MS;
    const { isFull } = heap;
    if (!isFull && this.#hoard.bytes < this.#mostBytes / 2) return;
    this.#hoard.dropWhere((each) => this.#isSlow(each) || (isFull && (each.isWaiting || each.bytes > LARGE_BYTES)));
  }

  letGo(arriving: Arriving): void {
    this.#hoard.letGo(arriving);
  }
}

/** Whether a response could still go out. After one with `Connection: close` none can. */
const isOpen = (socket: Socket) => !socket.writableEnded && !socket.destroyed;
