/**
 * Requests that have arrived but are not served yet: incomplete heads, and requests that wait for an earlier one on their connection.
 * Their memory is limited for each connection and for all connections of all listeners together. For a single complete request this costs
 * almost nothing.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../core/ports.js';
import { ConnectionBacklog, type BacklogOwner } from './connection-backlog.js';
import { MemoryLimit } from '../memory-limit.js';
import type { ParsedSocket } from './parser.js';
import { type Priority, TimeSlicedQueue } from './time-sliced-queue.js';

export type Serve = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => void;

/**
 * When a request starts if no other is ahead of it on its connection: immediately (`direct`), or queued with requests of other
 * connections.
 */
export type Urgency = 'direct' | 'urgent' | 'usual';

export interface IntakeOptions {
  clock: Clock;
  heap: { readonly isFull: boolean };
  /** Called for each connection that is closed because memory is short. */
  onDropped: () => void;
  /** Limit for all connections together. */
  maxBytes?: number;
}

const DEFAULT_MAX_BYTES = 16 * 1024 * 1024;
/** How long a head may take while memory is short. Otherwise `headersTimeout` is the limit (10 seconds). */
const MAX_HEAD_MS = 1_000;
const LARGE_BYTES = 8 * 1024;
const CHECK_EVERY_MS = 100;

export class Intake implements BacklogOwner {
  readonly #options: IntakeOptions;
  readonly slices: TimeSlicedQueue;
  readonly #connections = new WeakMap<Socket, ConnectionBacklog>();
  readonly #memory: MemoryLimit<ConnectionBacklog>;
  readonly #maxBytes: number;
  #nextCheckAtMs = -Infinity;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
    this.slices = new TimeSlicedQueue(options.clock);
    this.#memory = new MemoryLimit(this.#maxBytes, options.onDropped);
  }

  /** Counts what arrives on the connections of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: ParsedSocket) => {
      this.slices.noteConnection();
      const { parser } = socket;
      if (parser === null) return;
      this.#connections.get(socket)?.replaced(); // Seen before: its request asked for another protocol and was served without it.
      this.#connections.set(socket, new ConnectionBacklog(this, socket, parser));
    });
  }

  /**
   * Serves the requests of a connection one at a time and in order. A request without others ahead of it starts immediately if it is
   * `direct`. All others are queued with the requests of other connections; requests of pipelining clients have the lowest priority.
   */
  inOrder(serve: Serve, urgencyOf: (req: IncomingMessage) => Urgency): Serve {
    const serveSoon = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean, when: Priority) => {
      this.slices.add(() => {
        // It may have been refused in the meantime, if the rest of it could not be parsed.
        if (isOpen(req.socket) && !res.headersSent) serve(req, res, expectsContinue);
      }, when);
    };
    return (req, res, expectsContinue) => {
      const backlog = this.#connections.get(req.socket);
      if (res.socket) {
        if (!isOpen(res.socket)) return;
        const urgency = urgencyOf(req);
        if (backlog?.isPipelining) {
          serveSoon(req, res, expectsContinue, 'late');
        } else if (urgency === 'direct') {
          this.slices.noteOtherWork();
          serve(req, res, expectsContinue);
        } else {
          serveSoon(req, res, expectsContinue, urgency);
        }
        return;
      }
      backlog?.requestQueued(req);
      // Node assigns the connection to a response when the previous response has been sent.
      res.once('socket', () => {
        backlog?.requestDequeued();
        serveSoon(req, res, expectsContinue, 'late');
      });
    };
  }

  /** Called when the parser has paused, as requested. @param rest the unparsed bytes. */
  parserPaused(socket: Socket, rest: Buffer): void {
    this.#connections.get(socket)?.parserPaused(rest);
  }

  /** Whether a request head on this connection has taken too long. */
  isSlow(socket: Socket): boolean {
    return this.#isSlow(this.#connections.get(socket));
  }

  #isSlow(backlog: ConnectionBacklog | undefined): boolean {
    if (!backlog?.isReadingHead || backlog.bytes === 0) return false;
    return backlog.sinceMs < this.#options.clock.monotonic() - MAX_HEAD_MS;
  }

  get nowMs(): number {
    return this.#options.clock.monotonic();
  }

  hold(backlog: ConnectionBacklog, bytes: number): void {
    const { clock, heap } = this.#options;
    const now = clock.monotonic();
    if (backlog.bytes === 0) backlog.sinceMs = now;
    this.#memory.hold(backlog, bytes);
    if (now < this.#nextCheckAtMs) return;
    this.#nextCheckAtMs = now + CHECK_EVERY_MS;
    const { isFull } = heap;
    if (!isFull && this.#memory.bytes < this.#maxBytes / 2) return;
    this.#memory.dropWhere((each) => this.#isSlow(each) || (isFull && (each.isWaiting || each.bytes > LARGE_BYTES)));
  }

  release(backlog: ConnectionBacklog): void {
    this.#memory.release(backlog);
  }
}

/** Whether a response can still be sent. After one with `Connection: close` none can. */
const isOpen = (socket: Socket) => !socket.writableEnded && !socket.destroyed;
