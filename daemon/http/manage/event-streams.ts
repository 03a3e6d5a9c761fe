/**
 * Streams of server-sent events (HTML standard).
 *
 * The next events are read from a feed only after the client has taken the previous ones, so that a slow client uses little memory. A
 * client that takes nothing for a while is disconnected. It can reconnect with the ID of the last event that it has.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../core/ports.js';
import { unavailable } from '../../core/refusal.js';
import { every } from '../../core/timing.js';

export interface StreamedEvent {
  /** A reconnecting client sends this as `Last-Event-ID`. One line. */
  id: string;
  /** JSON on one line. */
  data: string;
}

/**
 * Yields batches of events as they occur, until `signal` is aborted; then it must end. If it ends earlier, the response ends and the
 * client reconnects.
 */
export type Feed = (signal: AbortSignal) => AsyncIterable<readonly StreamedEvent[]>;

const MAX_OPEN = 100;
// So that neither a proxy nor the client takes silence for a dead connection.
const HEARTBEAT_MS = 15_000;
const STALL_TIMEOUT_MS = 30_000;
const RECONNECT_DELAY_MS = 2_000;
/** A client whose authority has changed gets no more events after this time. */
const RECHECK_MS = 1_000;

export class EventStreams {
  readonly #clock: Clock;
  readonly #open = new Set<AbortController>();
  #hasEnded = false;
  #changes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Streams the events of `feed`. Resolves when the response has ended.
   *
   * @param mayStill whether the client may still get them; if not, or if that cannot be found out, the response ends.
   * @throws {Refusal} `unavailable` if too many streams are open.
   */
  async serve(
    req: IncomingMessage,
    res: ServerResponse,
    feed: Feed,
    mayStill: () => Promise<boolean> = () => Promise.resolve(true),
  ): Promise<void> {
    if (this.#hasEnded || this.#open.size >= MAX_OPEN) throw unavailable();
    // The client disconnected while the start position was looked up; no further event would report that.
    if (res.closed) return;
    res.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no', // Otherwise nginx would buffer events.
    });
    if (req.method === 'HEAD') {
      res.end();
      return;
    }
    const controller = new AbortController();
    this.#open.add(controller);
    const abandon = () => {
      controller.abort();
    };
    res.once('close', abandon);
    const check = this.#checkEvery(RECHECK_MS, mayStill, abandon);
    const cancelHeartbeats = this.#beat(res, check);
    try {
      await this.#send(res, feed, controller.signal, check);
      res.end();
    } finally {
      cancelHeartbeats();
      abandon();
      this.#open.delete(controller);
    }
  }

  /** Call when something was changed that may end the right to a stream. */
  recheck(): void {
    this.#changes += 1;
  }

  /** Ends all open streams regularly, and accepts no more. */
  end(): void {
    this.#hasEnded = true;
    for (const controller of this.#open) controller.abort();
  }

  /** @returns a check that asks again after this time, and after each `recheck`. If it fails, it calls `end`. */
  #checkEvery(ms: number, mayStill: () => Promise<boolean>, end: () => void): () => Promise<void> {
    let checkedAtMs = this.#clock.monotonic();
    let changes = this.#changes;
    return async () => {
      const now = this.#clock.monotonic();
      if (now - checkedAtMs < ms && changes === this.#changes) return;
      checkedAtMs = now;
      changes = this.#changes;
      if (!(await mayStill().catch(() => false))) end();
    };
  }

  async #send(res: ServerResponse, feed: Feed, signal: AbortSignal, check: () => Promise<void>): Promise<void> {
    res.write(`retry: ${RECONNECT_DELAY_MS}\n\n`);
    for await (const events of feed(signal)) {
      if (events.length > 0) await check();
      if (signal.aborted) return;
      const text = events.map(({ id, data }) => `id: ${id}\ndata: ${data}\n\n`).join('');
      if (text !== '' && !res.write(text)) await this.#drained(res, signal);
    }
  }

  /** Resolves when the client has taken the buffered data. Disconnects a client that does not. */
  #drained(res: ServerResponse, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(STALL_TIMEOUT_MS, () => res.destroy());
      const done = () => {
        cancel();
        res.off('drain', done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      res.once('drain', done);
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }

  /** Sends heartbeats. @returns a function that stops them. */
  #beat(res: ServerResponse, check: () => Promise<void>): () => void {
    return every(this.#clock, HEARTBEAT_MS, () => {
      void check();
      // Not while data is buffered: heartbeats would accumulate.
      if (!res.writableNeedDrain) res.write(':\n\n');
    });
  }
}
