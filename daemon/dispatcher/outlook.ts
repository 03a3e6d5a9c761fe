/** What is thought of the back end: whether it takes events, and when it is to be asked again. */
import type { Clock, Log } from '../core/ports.js';
import { Backoff } from './backoff.js';

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 30_000;
/** A credential does not become right by itself. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

export class Outlook {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #backoff = new Backoff(FIRST_DELAY_MS, LONGEST_DELAY_MS);
  readonly #pause = new Backoff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  /** Two of the events that failed since one was delivered, enough to tell one bad event from a bad back end. */
  readonly #failing = new Set<string>();
  #untilMs = 0;
  #deliveredAtMs = -Infinity;
  #failingSinceMs: number | null = null;
  #isPaused = false;
  #isTold = false;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** How long nothing is to be sent. */
  get waitMs(): number {
    return Math.max(0, this.#untilMs - this.#clock.monotonic());
  }

  /** It does not accept our credential. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  get isFailing(): boolean {
    return this.#isTold;
  }

  /** Since when, by the monotonic clock, nothing was delivered although it was tried; null when that is not so. */
  get failingSinceMs(): number | null {
    return this.#failingSinceMs;
  }

  /** Whether anything was delivered after that. */
  hasDeliveredSince(ms: number | null): boolean {
    return ms !== null && this.#deliveredAtMs > ms;
  }

  /** @returns whether it had failed before. */
  succeeded(): boolean {
    const hadFailed = this.#failingSinceMs !== null;
    this.#deliveredAtMs = this.#clock.monotonic();
    this.answered();
    return hadFailed;
  }

  /** It is there, whatever it said of the events. */
  answered(): void {
    if (this.#isTold) this.#log.info('the back end is back');
    this.#isTold = false;
    this.#isPaused = false;
    this.#failing.clear();
    this.#failingSinceMs = null;
    this.#untilMs = 0;
    this.#backoff.reset();
    this.#pause.reset();
  }

  /** @param ids of the events that it did not take. @param afterMs how long it asked to be left alone. */
  failed(ids: readonly string[], why: string, afterMs = 0): void {
    this.#failingSinceMs ??= this.#clock.monotonic();
    for (const id of ids.slice(0, 2)) if (this.#failing.size < 2) this.#failing.add(id);
    // One event alone may be one that it chokes on: it waits by itself, and no other does.
    if (this.#failing.size < 2 && afterMs === 0) return;
    // Of those that were under way together the first counts.
    this.#wait(Math.max(this.waitMs > 0 ? 0 : this.#backoff.next(), afterMs));
    if (this.#isTold) return;
    this.#isTold = true;
    this.#log.warn('the back end fails, events wait', { reason: why });
  }

  unauthorized(why: string): void {
    this.#failingSinceMs ??= this.#clock.monotonic();
    if (this.waitMs === 0) this.#wait(this.#pause.next());
    if (!this.#isPaused) {
      this.#log.error('the back end refuses DISPATCHER_API_KEY: nothing is delivered until it accepts it', {
        reason: why,
      });
    }
    this.#isPaused = true;
    this.#isTold = true;
  }

  /** Something was mended: it is asked at once. */
  hurry(): void {
    this.#untilMs = 0;
  }

  #wait(ms: number): void {
    this.#untilMs = Math.max(this.#untilMs, this.#clock.monotonic() + ms);
  }
}
