/**
 * Monitor of the event stream. Every five seconds it reads the lag of the dispatchers and counts events that they have lost. An
 * event that is trimmed before the consumer group has read it is lost, and so is a stream that Redis evicts or that someone
 * deletes. Redis reports neither.
 */
import { LogThrottle } from '../../core/log-throttle.js';
import type { Clock, Log } from '../../core/ports.js';
import { every } from '../../core/timing.js';
import type { RedisConnection } from './connection.js';
import { stateOfStream, type StreamState } from './stream-state.js';

const CHECK_EVERY_MS = 5_000;
const LOG_EVERY_MS = 60_000;

export interface StreamMonitorOptions {
  connection: RedisConnection;
  key: string;
  clock: Clock;
  log: Log;
}

export class StreamMonitor {
  readonly #options: StreamMonitorOptions;
  #before: StreamState | null = null;
  /** How many events were trimmed unread, when this was last known. A dispatcher corrects it after it has counted them. */
  #trimmedBefore: number | null = null;
  #lost = 0;
  readonly #errors: LogThrottle<'error'>;
  readonly #stop: () => void;

  constructor(options: StreamMonitorOptions) {
    this.#options = options;
    this.#errors = new LogThrottle(options.clock, options.log, LOG_EVERY_MS);
    this.#stop = every(options.clock, CHECK_EVERY_MS, () => this.#check());
  }

  get lag(): number | null {
    return this.#before?.lag ?? null;
  }

  get trimmedUnread(): number {
    return this.#lost;
  }

  close(): void {
    this.#stop();
  }

  /** @throws if Redis is unavailable, which the connection logs. The last known values stay until it is available again. */
  async #check(): Promise<void> {
    const { connection, key } = this.#options;
    const now = await stateOfStream(connection, key, false);
    const before = this.#before;
    this.#before = now;
    // The stream was recreated: unread events of the old one are lost.
    if ((now.added ?? 0) < (before?.added ?? 0)) {
      this.#reportLoss(before?.lag ?? 0, 'the event stream was recreated: undelivered events in the old one are lost');
      this.#trimmedBefore = null;
    }
    if (now.trimmedUnread === null) return;
    // The first time there is nothing to compare with.
    const more = now.trimmedUnread - (this.#trimmedBefore ?? now.trimmedUnread);
    this.#trimmedBefore = now.trimmedUnread;
    this.#reportLoss(more, 'events were trimmed from the stream before a dispatcher read them');
  }

  #reportLoss(count: number, message: string): void {
    if (count <= 0) return;
    this.#lost += count;
    this.#errors.record('error', message, () => ({ lostSoFar: this.#lost }));
  }
}
