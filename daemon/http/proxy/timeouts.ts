import { LinkedSet, LinkedSetMember } from '../../core/linked-set.js';
import type { Clock } from '../../core/ports.js';
import { timeoutAfterReads } from '../../core/timing.js';

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

export interface TransferLimits {
  requestTimeoutMs: number;
  clientBodyTimeoutMs: number;
}

// A client that is slower than this counts as silent: otherwise a trickle of bytes could hold a connection to the upstream forever.
const UNIT_BYTES = 1024;

/** Minimum upload rate of a request body: `limitMs` for each KiB. Only time in which the proxy waits for the client counts. */
class MinimumRate {
  readonly #limitMs: number;
  readonly #clock: Clock;
  #remainingMs: number;
  #bytes = 0;
  #sinceMs = 0;

  constructor(limitMs: number, clock: Clock) {
    this.#limitMs = limitMs;
    this.#clock = clock;
    this.#remainingMs = limitMs;
  }

  /** Starts waiting for the client. @returns the remaining time for the current KiB, in milliseconds. */
  startWaiting(): number {
    this.#sinceMs = this.#clock.monotonic();
    return this.#remainingMs;
  }

  /** @param wasAwaited whether the proxy was waiting for these bytes. */
  received(bytes: number, wasAwaited: boolean): void {
    this.#bytes += bytes;
    if (this.#bytes < UNIT_BYTES) {
      const nowMs = this.#clock.monotonic();
      if (wasAwaited) this.#remainingMs -= nowMs - this.#sinceMs;
      this.#sinceMs = nowMs;
    } else {
      this.#bytes = 0;
      this.#remainingMs = this.#limitMs;
    }
  }
}

/** Timeouts of one request: tracks whether the proxy waits for the client, the upstream or another request, and for how long it may. */
export class TransferTimeouts {
  readonly #limits: TransferLimits;
  readonly #callbacks: { clientTimedOut: () => void; upstreamTimedOut: () => void };
  readonly #idleTimer: IdleTimer;
  readonly #clock: Clock;
  #bodyRate: MinimumRate | null = null;
  #isClientAwaited = false;
  /** Bytes received of the client's body. */
  receivedBytes = 0;

  constructor(
    idleTimers: IdleTimers,
    limits: TransferLimits,
    on: { clientTimedOut: () => void; upstreamTimedOut: () => void },
  ) {
    this.#limits = limits;
    this.#callbacks = on;
    this.#idleTimer = new IdleTimer(idleTimers);
    this.#clock = idleTimers.clock;
  }

  /** The client has a body to send; its minimum rate applies from here. */
  beginBody(): void {
    this.#bodyRate = new MinimumRate(this.#limits.clientBodyTimeoutMs, this.#clock);
  }

  waitForClient(): void {
    this.#isClientAwaited = true;
    this.#idleTimer.start(this.#bodyRate?.startWaiting() ?? 0, this.#onTimeout);
  }

  received(bytes: number): void {
    this.receivedBytes += bytes;
    this.#bodyRate?.received(bytes, this.#isClientAwaited);
  }

  waitForUpstream(nowMs?: number): void {
    this.#isClientAwaited = false;
    this.#idleTimer.start(this.#limits.requestTimeoutMs, this.#onTimeout, nowMs);
  }

  /** Waits for the response to an identical request. @param onTimeout called when that takes longer than an upstream may take. */
  waitForSharedResponse(onTimeout: () => void): void {
    this.#idleTimer.start(this.#limits.requestTimeoutMs, onTimeout);
  }

  pause(): void {
    this.#isClientAwaited = false;
    this.#idleTimer.pause();
  }

  /** The awaited side was active. */
  touch(): void {
    this.#idleTimer.touch();
  }

  end(): void {
    this.#idleTimer.end();
  }

  readonly #onTimeout = () => {
    if (this.#isClientAwaited) this.#callbacks.clientTimedOut();
    else this.#callbacks.upstreamTimedOut();
  };
}
