/**
 * Looks after the stream every few seconds: how far the dispatchers are behind, and what was lost to them. What a trim removes
 * before the group has read it is gone, and so is all of a stream that Redis evicts or that somebody deletes; Redis tells
 * nobody.
 */
import { comparePlaces } from '../../core/event-places.js';
import type { Clock, Log } from '../../core/ports.js';
import type { RedisConnection } from './connection.js';
import { LOOK } from './event-scripts.js';

/** The consumer group of all dispatchers. */
export const DISPATCHERS = 'llmp-dispatchers';

const LOOK_EVERY_MS = 5_000;
const TELL_EVERY_MS = 60_000;

interface Look {
  /** Of the whole life of the stream, those removed included; null where Redis does not tell. */
  added: number | null;
  /** Removed, by trims as a rule. */
  removed: number | null;
  lastPlace: string;
  read: number | null;
  lag: number | null;
}

export interface StreamWatchOptions {
  connection: RedisConnection;
  key: string;
  clock: Clock;
  log: Log;
}

export class StreamWatch {
  readonly #options: StreamWatchOptions;
  #lag: number | null = null;
  #trimmedUnread = 0;
  #before: Look | null = null;
  /** Of those that are gone now, how many the group has not read. */
  #missing = 0;
  #toldAtMs = -Infinity;
  #cancel: () => void = () => undefined;
  #isClosed = false;

  constructor(options: StreamWatchOptions) {
    this.#options = options;
    this.#lookLater();
  }

  get lag(): number | null {
    return this.#lag;
  }

  get trimmedUnread(): number {
    return this.#trimmedUnread;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #lookLater(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#options.clock.after(LOOK_EVERY_MS, () => {
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    const { connection, key } = this.#options;
    try {
      const reply = (await connection.run(LOOK, [key, DISPATCHERS])) as Buffer[];
      this.#judge(lookFrom(reply.map(String)));
    } catch {
      // It is away, which others tell. What was known stays until it is back.
    }
    this.#lookLater();
  }

  #judge(now: Look): void {
    const before = this.#before;
    this.#before = now;
    // A stream that has begun anew: what was in it and not read is gone.
    const isAnother = before !== null && before.lastPlace !== '' && isBehind(now, before);
    if (isAnother) {
      this.#lose(before.lag ?? 0, 'the stream of events has begun anew: what was in it and not dispatched is lost');
    }
    this.#lag = now.lag;
    const missing = missingIn(now);
    // What was missing when we first looked was told, or is not known. Fewer than before: the group has gone on behind the gap.
    const more = before?.read == null || isAnother ? 0 : missing - this.#missing;
    this.#missing = missing;
    if (more > 0) this.#lose(more, 'events were trimmed from the stream before they were dispatched');
  }

  #lose(count: number, message: string): void {
    if (count === 0) return;
    this.#trimmedUnread += count;
    const { clock, log } = this.#options;
    const nowMs = clock.monotonic();
    if (nowMs - this.#toldAtMs < TELL_EVERY_MS) return;
    this.#toldAtMs = nowMs;
    log.error(message, { lostSoFar: this.#trimmedUnread });
  }
}

function lookFrom(reply: readonly string[]): Look {
  const [length = '', addedText = '', lastPlace = '', readText = '', lagText = '', delivered = ''] = reply;
  const [lengthCount, added, lag] = [countFrom(length), countFrom(addedText), countFrom(lagText)];
  const removed = added === null || lengthCount === null ? null : added - lengthCount;
  // Redis does not count for a group that was made in the middle of a stream until it can.
  const guessed = added === null || lag === null ? null : added - lag;
  const read = countFrom(readText) ?? (delivered === '0-0' ? 0 : guessed);
  return { added, removed, lastPlace, read, lag };
}

/** Of those that are gone, how many the group has not read. */
const missingIn = ({ removed, read }: Look) => (removed === null || read === null ? 0 : Math.max(0, removed - read));

const countFrom = (text: string) => (/^\d+$/.test(text) ? Number(text) : null);

function isBehind(now: Look, before: Look): boolean {
  if (now.added !== null && before.added !== null) return now.added < before.added;
  return comparePlaces(now.lastPlace, before.lastPlace) < 0;
}
