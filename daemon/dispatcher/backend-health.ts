import type { Clock, Log } from '../core/ports.js';
import { Backoff } from '../core/backoff.js';

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 30_000;
/** Longer than the delays above: an operator has to correct a credential. */
const FIRST_CREDENTIAL_DELAY_MS = 1_000;
const MAX_CREDENTIAL_DELAY_MS = 60_000;

/** Health of the backend, as deliveries show it: whether it accepts events, and when to retry. */
export class BackendHealth {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #backoff = new Backoff(FIRST_DELAY_MS, MAX_DELAY_MS);
  readonly #credentialBackoff = new Backoff(FIRST_CREDENTIAL_DELAY_MS, MAX_CREDENTIAL_DELAY_MS);
  /** Up to two events that failed since the last delivery: enough to tell a bad event from a failing backend. */
  readonly #failing = new Set<string>();
  #retryAtMs = 0;
  #deliveredAtMs = -Infinity;
  #failingSinceMs: number | null = null;
  #isPaused = false;
  #isReported = false;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** How long to wait before sending anything. */
  get waitMs(): number {
    return Math.max(0, this.#retryAtMs - this.#clock.monotonic());
  }

  /** Whether the backend refuses the credential. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Whether a failure was logged that is not over. */
  get isFailing(): boolean {
    return this.#isReported;
  }

  /** Since when deliveries have failed, on the monotonic clock; null if the last one succeeded. */
  get failingSinceMs(): number | null {
    return this.#failingSinceMs;
  }

  /** Whether any event was delivered after this time. */
  hasDeliveredSince(ms: number | null): boolean {
    return ms !== null && this.#deliveredAtMs > ms;
  }

  /** @returns whether deliveries failed before this one. */
  succeeded(): boolean {
    const hadFailed = this.#failingSinceMs !== null;
    this.#deliveredAtMs = this.#clock.monotonic();
    this.responded();
    return hadFailed;
  }

  /** Records a response, whether the backend accepted the events or not. */
  responded(): void {
    if (this.#isReported) this.#log.info('backend available');
    this.#isReported = false;
    this.#isPaused = false;
    this.#failing.clear();
    this.#failingSinceMs = null;
    this.#retryAtMs = 0;
    this.#backoff.reset();
    this.#credentialBackoff.reset();
  }

  /** @param ids the events that were not accepted. @param afterMs the delay that the backend asked for. */
  failed(ids: readonly string[], why: string, afterMs = 0): void {
    this.#failingSinceMs ??= this.#clock.monotonic();
    for (const id of ids.slice(0, 2)) if (this.#failing.size < 2) this.#failing.add(id);
    // If only one event failed, it may be the cause: it waits alone, and other events are still sent.
    if (this.#failing.size < 2 && afterMs === 0) return;
    // Only the first failure of deliveries that ran at the same time increases the backoff.
    this.#delayBy(Math.max(this.waitMs > 0 ? 0 : this.#backoff.next(), afterMs));
    if (this.#isReported) return;
    this.#isReported = true;
    this.#log.warn('backend unavailable, retrying', { reason: why });
  }

  unauthorized(why: string): void {
    this.#failingSinceMs ??= this.#clock.monotonic();
    if (this.waitMs === 0) this.#delayBy(this.#credentialBackoff.next());
    if (!this.#isPaused) {
      this.#log.error('backend refuses DISPATCHER_API_KEY, deliveries paused', { reason: why });
    }
    this.#isPaused = true;
    this.#isReported = true;
  }

  /** Ends the current delay, for example after an operator corrected something. */
  retryNow(): void {
    this.#retryAtMs = 0;
  }

  #delayBy(ms: number): void {
    this.#retryAtMs = Math.max(this.#retryAtMs, this.#clock.monotonic() + ms);
  }
}
