import type { Clock } from '../../../core/ports.js';
import type { BodyTimeouts } from '../../body.js';
import { IdleTimer, type IdleTimers } from './idle-timers.js';

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
export class TransferTimeouts implements BodyTimeouts {
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
