/**
 * Answers that go on: server-sent events, as the HTML standard has them.
 *
 * What feeds a stream is asked for more only when the client has taken what came before, so that little waits in memory for one
 * that is slow; who takes nothing at all for a while is cut. Whoever was cut comes back with the id of the last event it has.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../core/ports.js';
import { unavailable } from '../../core/refusal.js';

export interface StreamedEvent {
  /** What a client that comes back sends as `Last-Event-ID`. In one line. */
  id: string;
  /** JSON, in one line. */
  data: string;
}

/**
 * Gives events as they come, some at a time, until nobody wants any more: then `signal` is aborted, and it must end. It may
 * end before; so does the answer then, and the client comes back.
 */
export type Feed = (signal: AbortSignal) => AsyncIterable<readonly StreamedEvent[]>;

const MOST_OPEN = 100;
// So that neither a proxy on the way nor the client takes silence for the end.
const HEARTBEAT_MS = 15_000;
const STALLED_MS = 30_000;
const COME_BACK_AFTER_MS = 2_000;

export class EventStreams {
  readonly #clock: Clock;
  readonly #open = new Set<AbortController>();
  #hasEnded = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Answers with what `feed` gives. Resolves when the answer is over. @throws {Refusal} `unavailable`, when there are too many. */
  async answer(req: IncomingMessage, res: ServerResponse, feed: Feed): Promise<void> {
    if (this.#hasEnded || this.#open.size >= MOST_OPEN) throw unavailable();
    // The client left while it was found out where to begin: nobody will say so again.
    if (res.closed) return;
    res.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no', // nginx would gather them.
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
    const cancelHeartbeats = this.#beat(res);
    try {
      await this.#send(res, feed, controller.signal);
      res.end();
    } finally {
      cancelHeartbeats();
      abandon();
      this.#open.delete(controller);
    }
  }

  /** Ends all that are open, in order, and begins no other. */
  end(): void {
    this.#hasEnded = true;
    for (const controller of this.#open) controller.abort();
  }

  async #send(res: ServerResponse, feed: Feed, signal: AbortSignal): Promise<void> {
    res.write(`retry: ${COME_BACK_AFTER_MS}\n\n`);
    for await (const events of feed(signal)) {
      if (signal.aborted) return;
      const text = events.map(({ id, data }) => `id: ${id}\ndata: ${data}\n\n`).join('');
      if (text !== '' && !res.write(text)) await this.#drained(res, signal);
    }
  }

  /** Resolves when the client has taken what waits for it. Cuts one that does not. */
  #drained(res: ServerResponse, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(STALLED_MS, () => res.destroy());
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

  /** @returns ends them. */
  #beat(res: ServerResponse): () => void {
    let cancel: () => void;
    const beat = () => {
      // Not behind what was not taken yet: that would gather.
      if (!res.writableNeedDrain) res.write(':\n\n');
      cancel = this.#clock.after(HEARTBEAT_MS, beat);
    };
    cancel = this.#clock.after(HEARTBEAT_MS, beat);
    return () => {
      cancel();
    };
  }
}
