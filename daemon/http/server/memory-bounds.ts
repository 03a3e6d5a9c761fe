/** The memory limit of a process, and those who keep to it on all its listeners. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Live } from '../../../config/settings.js';
import { LogThrottle } from '../../core/log-throttle.js';
import { MemoryLimit } from '../../core/memory-limit.js';
import type { Clock, Log } from '../../core/ports.js';
import { UnreadResponses } from '../connection-ends.js';
import { type Priority, Scheduler } from '../scheduler.js';
import { ConnectionBacklog } from './connection-backlog.js';
import { type ParsedSocket, SMALL_CHUNKS_CODE } from './parser.js';

const MAX_BYTES = 48 * 1024 * 1024;
const LOG_EVERY_MS = 10_000;

export interface Heap {
  /** Whether the heap has no room for another request. */
  readonly isFull: boolean;
}

export interface MemoryLimitSources {
  clock: Clock;
  heap: Heap;
  log: Pick<Log, 'warn'>;
  /** The current settings, in a process with a cache: there must be room for the largest response. */
  live?: Live<'httpCacheMaxObjectBytes'>;
}

/** The memory limit of a process. */
export function memoryLimitOf({ clock, heap, log, live }: MemoryLimitSources): MemoryLimit {
  const throttle = new LogThrottle(clock, log, LOG_EVERY_MS);
  const message = 'connections were closed: too much was waiting for their clients or providers';
  return new MemoryLimit({
    heap,
    maxBytes: () => MAX_BYTES + (live?.current.httpCacheMaxObjectBytes ?? 0),
    onDropped: () => {
      throttle.record('warn', message, (connections) => ({ connections }));
    },
  });
}

/** What the listeners of a process share, so that no client costs the others much time or memory. */
export class MemoryBounds {
  readonly memory: MemoryLimit;
  readonly scheduler: Scheduler;
  readonly intake: Intake;
  readonly unreadResponses: UnreadResponses;

  constructor(clock: Clock, memory: MemoryLimit) {
    this.memory = memory;
    this.scheduler = new Scheduler(clock);
    this.intake = new Intake({ clock, memory, scheduler: this.scheduler });
    this.unreadResponses = new UnreadResponses({ clock, memory });
  }
}

export type Serve = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => void;

/**
 * When a request starts if no other is ahead of it on its connection: immediately (`direct`), or queued with requests of other
 * connections.
 */
export type Urgency = 'direct' | 'urgent' | 'usual';

interface IntakeOptions {
  clock: Clock;
  /** Connections are closed if it is exceeded. */
  memory: MemoryLimit;
  scheduler: Scheduler;
}

/** How long a head may take while connections are short. Otherwise `headersTimeout` is the limit (10 seconds). */
const MAX_HEAD_MS = 1_000;

/**
 * Requests that have arrived but are not served yet: incomplete heads, and requests that wait for an earlier one on their connection.
 * Their memory is limited for each connection and for all connections of all listeners together. For a single complete request this costs
 * almost nothing.
 */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #connections = new WeakMap<Socket, ConnectionBacklog>();

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Counts what arrives on the connections of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: ParsedSocket) => {
      this.#options.scheduler.noteConnection();
      const { parser } = socket;
      if (parser === null) return;
      this.#connections.get(socket)?.replaced(); // Seen before: its request asked for another protocol and was served without it.
      this.#connections.set(
        socket,
        new ConnectionBacklog(this.#options, socket, parser, () => {
          server.emit('clientError', Object.assign(new Error('chunks too small'), { code: SMALL_CHUNKS_CODE }), socket);
        }),
      );
    });
  }

  /**
   * Serves the requests of a connection one at a time and in order. A request without others ahead of it starts immediately if it is
   * `direct`. All others are queued with the requests of other connections; requests of pipelining clients have the lowest priority.
   */
  inOrder(serve: Serve, urgencyOf: (req: IncomingMessage) => Urgency): Serve {
    const { scheduler } = this.#options;
    const serveSoon = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean, when: Priority) => {
      scheduler.add(() => {
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
          scheduler.noteOtherWork();
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

  /** @param rest what Node hands over with an upgrade. @returns all that was read after the head of the request. */
  restOf(socket: Socket, rest: Buffer): Buffer {
    const following = this.#connections.get(socket)?.takeFollowing() ?? null;
    return following === null || following.length === 0 ? rest : Buffer.concat([rest, following]);
  }

  /** Called when the parser has paused, as requested. @param rest the unparsed bytes. */
  parserPaused(socket: Socket, rest: Buffer): void {
    this.#connections.get(socket)?.parserPaused(rest);
  }

  /** Whether a request head on this connection has taken too long. */
  isSlow(socket: Socket): boolean {
    const sinceMs = this.#connections.get(socket)?.headSinceMs ?? Infinity;
    return sinceMs < this.#options.clock.monotonic() - MAX_HEAD_MS;
  }
}

/** Whether a response can still be sent. After one with `Connection: close` none can. */
const isOpen = (socket: Socket) => !socket.writableEnded && !socket.destroyed;
