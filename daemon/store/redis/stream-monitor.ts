/**
 * Monitor of the event stream. Every five seconds it reads the lag of the dispatchers and counts events that they have lost. An
 * event that is trimmed before the consumer group has read it is lost, and so is a stream that Redis evicts or that someone
 * deletes. Redis reports neither.
 */
import { LogThrottle } from '../../core/log-throttle.js';
import { compareStreamIds } from '../../core/events.js';
import type { Clock, Log } from '../../core/ports.js';
import { every } from '../../core/timing.js';
import type { RedisConnection } from './connection.js';
import { INSPECT_STREAM } from './event-scripts.js';

/** Consumer group of all dispatchers. */
export const DISPATCHER_GROUP = 'llmp-dispatchers';

const CHECK_EVERY_MS = 5_000;
const LOG_EVERY_MS = 60_000;

interface StreamState {
  /** Events ever added to the stream, removed ones included; null if Redis does not report it. */
  added: number | null;
  /** Events removed, usually by trimming. */
  removed: number | null;
  lastPlace: string;
  read: number | null;
  lag: number | null;
}

export interface StreamMonitorOptions {
  connection: RedisConnection;
  key: string;
  clock: Clock;
  log: Log;
}

export class StreamMonitor {
  readonly #options: StreamMonitorOptions;
  #lag: number | null = null;
  #trimmedUnread = 0;
  #before: StreamState | null = null;
  /** How many removed events the group had not read, at the last check. */
  #missing = 0;
  readonly #errors: LogThrottle<'error'>;
  readonly #stop: () => void;

  constructor(options: StreamMonitorOptions) {
    this.#options = options;
    this.#errors = new LogThrottle(options.clock, options.log, LOG_EVERY_MS);
    this.#stop = every(options.clock, CHECK_EVERY_MS, () => this.#check());
  }

  get lag(): number | null {
    return this.#lag;
  }

  get trimmedUnread(): number {
    return this.#trimmedUnread;
  }

  close(): void {
    this.#stop();
  }

  /** @throws if Redis is unavailable, which the connection logs. The last known values stay until it is available again. */
  async #check(): Promise<void> {
    const { connection, key } = this.#options;
    const reply = (await connection.run(INSPECT_STREAM, [key, DISPATCHER_GROUP])) as Buffer[];
    this.#compare(stateFrom(reply.map(String)));
  }

  #compare(now: StreamState): void {
    const before = this.#before;
    this.#before = now;
    // The stream was recreated: unread events of the old one are lost.
    const isAnother = before !== null && before.lastPlace !== '' && isEarlier(now, before);
    if (isAnother) {
      this.#reportLoss(before.lag ?? 0, 'the event stream was recreated: undelivered events in the old one are lost');
    }
    this.#lag = now.lag;
    const missing = missingIn(now);
    // The first check has nothing to compare with. If fewer are missing than before, the group has moved past the gap.
    const more = before?.read == null || isAnother ? 0 : missing - this.#missing;
    this.#missing = missing;
    if (more > 0) this.#reportLoss(more, 'events were trimmed from the stream before a dispatcher read them');
  }

  #reportLoss(count: number, message: string): void {
    if (count === 0) return;
    this.#trimmedUnread += count;
    this.#errors.record('error', message, () => ({ lostSoFar: this.#trimmedUnread }));
  }
}

function stateFrom(reply: readonly string[]): StreamState {
  const [length = '', addedText = '', lastPlace = '', readText = '', lagText = '', delivered = ''] = reply;
  const [lengthCount, added, lag] = [countFrom(length), countFrom(addedText), countFrom(lagText)];
  const removed = added === null || lengthCount === null ? null : added - lengthCount;
  // Redis reports no read count, for a time, for a group that was created in the middle of a stream.
  const guessed = added === null || lag === null ? null : added - lag;
  const read = countFrom(readText) ?? (delivered === '0-0' ? 0 : guessed);
  return { added, removed, lastPlace, read, lag };
}

/** How many removed events the group has not read. */
const missingIn = ({ removed, read }: StreamState) =>
  removed === null || read === null ? 0 : Math.max(0, removed - read);

const countFrom = (text: string) => (/^\d+$/.test(text) ? Number(text) : null);

function isEarlier(now: StreamState, before: StreamState): boolean {
  if (now.added !== null && before.added !== null) return now.added < before.added;
  return compareStreamIds(now.lastPlace, before.lastPlace) < 0;
}
