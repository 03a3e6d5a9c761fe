import { LinkedSet, LinkedSetMember } from '../../../core/linked-set.js';
import type { Clock } from '../../../core/ports.js';
import { timeoutAfterReads } from '../../../core/timing.js';

// Lower bound between two checks. With many timers one is due at any moment, and each check visits all of them.
const MIN_CHECK_INTERVAL_MS = 10;
// Node's timers fire up to one millisecond early.
const TIMER_EARLY_MS = 1;

/**
 * All idle timers of a listener, driven by one Node timer. Setting and clearing a Node timer per request would take a twentieth of a
 * request's processing time. So the Node timer is cleared at the end of a turn of the event loop, if no request has come in the meantime.
 */
export class IdleTimers {
  readonly clock: Clock;
  readonly #timers = new LinkedSet<IdleTimer>();
  #nextCheckAtMs = Infinity;
  #cancel: (() => void) | null = null;
  #isClearDue = false;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  add(timer: IdleTimer): void {
    this.#timers.add(timer);
  }

  delete(timer: IdleTimer): void {
    this.#timers.delete(timer);
    if (this.#timers.size > 0 || this.#isClearDue || this.#cancel === null) return;
    this.#isClearDue = true;
    setImmediate(() => {
      this.#isClearDue = false;
      if (this.#timers.size === 0) this.#cancelTimer();
    });
  }

  /** Makes sure that the timers are checked at this time or earlier. */
  scheduleBy(atMs: number): void {
    if (atMs >= this.#nextCheckAtMs) return;
    this.#cancelTimer();
    this.#nextCheckAtMs = atMs;
    this.#cancel = timeoutAfterReads(this.clock, atMs - this.clock.monotonic(), () => {
      this.#checkAll();
    });
  }

  #checkAll(): void {
    this.#cancelTimer();
    const now = this.clock.monotonic();
    let nextMs = Infinity;
    for (const timer of this.#timers.all()) nextMs = Math.min(nextMs, timer.check(now));
    if (this.#timers.size > 0) this.scheduleBy(Math.max(nextMs, now + MIN_CHECK_INTERVAL_MS));
  }

  #cancelTimer(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#nextCheckAtMs = Infinity;
  }
}

/** Idle timer: fires when nothing has happened for too long. `touch` costs one clock reading. */
export class IdleTimer extends LinkedSetMember {
  readonly #all: IdleTimers;
  #limitMs = Infinity;
  #onIdle: () => void = () => undefined;
  #lastActivityMs = 0;
  #isRegistered = false;
  #hasEnded = false;

  constructor(idleTimers: IdleTimers) {
    super();
    this.#all = idleTimers;
  }

  /**
   * Starts the timer: calls `onIdle` once when `limitMs` pass without `touch`.
   *
   * @param nowMs the current monotonic time, if the caller has it already.
   */
  start(limitMs: number, onIdle: () => void, nowMs = this.#all.clock.monotonic()): void {
    if (this.#hasEnded) return;
    this.#limitMs = limitMs;
    this.#onIdle = onIdle;
    this.#lastActivityMs = nowMs;
    if (!this.#isRegistered) this.#all.add(this);
    this.#isRegistered = true;
    this.#all.scheduleBy(this.#lastActivityMs + limitMs);
  }

  touch(): void {
    this.#lastActivityMs = this.#all.clock.monotonic();
  }

  /** Pauses the timer until the next `start`. */
  pause(): void {
    this.#limitMs = Infinity;
  }

  /** Ends the timer permanently: an upload can go on after its response, and must not start the timer again. */
  end(): void {
    this.#hasEnded = true;
    this.#all.delete(this);
  }

  /** @returns the time of the next check; Infinity while paused. */
  check(nowMs: number): number {
    if (this.#lastActivityMs + this.#limitMs < nowMs + TIMER_EARLY_MS) {
      this.#limitMs = Infinity;
      this.#onIdle();
    }
    return this.#lastActivityMs + this.#limitMs;
  }
}
