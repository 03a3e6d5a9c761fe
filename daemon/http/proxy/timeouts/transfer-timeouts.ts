import type { Clock } from '../../../core/ports.js';
import type { BodyTimeouts } from '../../body.js';
import { MinimumRate } from './minimum-rate.js';
import { IdleTimer, type IdleTimers } from './idle-timers.js';

export interface TransferLimits {
  requestTimeoutMs: number;
  clientBodyTimeoutMs: number;
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
