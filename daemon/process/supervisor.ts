/**
 * Notifications to systemd:
 *
 * - WATCHDOG while the event loop runs, independent of the database.
 * - EXTEND_TIMEOUT_USEC during the start, because migrations may take long.
 * - READY when the process listens and is ready, or has listened for `MAX_WAIT_FOR_READY_MS` without becoming ready. An unavailable database does
 *   not make a running unit fail, so it does not make a starting one fail either; STATUS and `/ready` report it.
 * - STATUS, a health summary in one line, when it has changed, every five seconds at most.
 * - RELOADING and then READY for a reload, STOPPING for the shutdown.
 */
import type { Clock } from '../core/ports.js';
import { every } from '../core/timing.js';
import type { NotifyMessage } from './systemd-notify.js';

/** Short summary of the health of a service. */
export interface HealthSummary {
  /** What prevents the service from being ready; empty if it is ready. */
  missing: readonly string[];
  /** What is unavailable, although the service is ready. */
  degraded: readonly string[];
  /** For example `3 in flight`. */
  figures: readonly string[];
}

export interface SupervisorOptions {
  notify: (message: NotifyMessage) => void;
  /** Null if systemd has no watchdog for the service. */
  watchdogMs: number | null;
  clock: Clock;
}

const EXTEND_EVERY_MS = 10_000;
const EXTEND_BY_MS = 30_000;
/** Less than TimeoutStartSec= of the units. */
const MAX_WAIT_FOR_READY_MS = 20_000;
const READ_EVERY_MS = 5_000;
const FIRST_READS_EVERY_MS = 250;
/** In addition to the time for requests in flight: for writing counts to the database, and closing. */
const CLOSING_MS = 30_000;
/** Only an operator can end this condition, and may wait for the unit to become active first. */
const NEEDS_OPERATOR = 'pending migrations';

type Phase = 'starting' | 'waiting' | 'up' | 'stopping';

export class Supervisor {
  readonly #notify: (message: NotifyMessage) => void;
  readonly #clock: Clock;
  #phase: Phase = 'starting';
  /** The status that was sent last. */
  #sentStatus = '';
  #summary = 'starting';
  #hasReloadFailed = false;
  #listeningSinceMs = 0;
  #readHealth: () => Promise<HealthSummary> = () => Promise.reject(new Error('not listening yet'));

  constructor({ notify, watchdogMs, clock }: SupervisorOptions) {
    this.#notify = notify;
    this.#clock = clock;
    this.#sendStatus();
    this.#extendStartTimeout();
    if (watchdogMs !== null) this.#keepWatchdogAlive(watchdogMs / 2);
  }

  /** The process listens. @param readHealth returns the current health. */
  listening(readHealth: () => Promise<HealthSummary>): void {
    if (this.#phase !== 'starting') return;
    this.#phase = 'waiting';
    this.#listeningSinceMs = this.#clock.monotonic();
    this.#readHealth = readHealth;
    void this.#watchHealth();
  }

  reloading(): void {
    if (this.#phase !== 'up') return;
    // CLOCK_MONOTONIC, as systemd requires.
    this.#notify({ RELOADING: '1', MONOTONIC_USEC: String(process.hrtime.bigint() / 1000n) });
  }

  /** @param hasSucceeded whether the new settings are in force. */
  reloaded(hasSucceeded: boolean): void {
    if (this.#phase !== 'up') return;
    this.#hasReloadFailed = !hasSucceeded;
    this.#sendStatus({ READY: '1' });
  }

  /** @param withinMs how long requests in flight may take. */
  stopping(withinMs: number): void {
    if (this.#phase === 'stopping') return;
    this.#phase = 'stopping';
    this.#summary = 'stopping';
    this.#sendStatus({ STOPPING: '1', EXTEND_TIMEOUT_USEC: usec(withinMs + CLOSING_MS) });
  }

  /** Sends the status if it has changed. @param message fields that are sent in any case. */
  #sendStatus(message?: NotifyMessage): void {
    const status =
      this.#summary + (this.#hasReloadFailed ? '; the last reload failed, previous settings are in force' : '');
    if (message === undefined && status === this.#sentStatus) return;
    this.#sentStatus = status;
    this.#notify({ ...message, STATUS: status });
  }

  #extendStartTimeout(): void {
    if (this.#phase !== 'starting') return;
    this.#notify({ EXTEND_TIMEOUT_USEC: usec(EXTEND_BY_MS) });
    this.#clock.after(EXTEND_EVERY_MS, () => {
      this.#extendStartTimeout();
    });
  }

  #keepWatchdogAlive(everyMs: number): void {
    const notify = () => {
      this.#notify({ WATCHDOG: '1' });
    };
    notify();
    every(this.#clock, everyMs, notify);
  }

  async #watchHealth(): Promise<void> {
    const health = await this.#readHealth().catch(() => null);
    if (this.#phase === 'stopping') return;
    if (health) this.#report(health);
    this.#clock.after(this.#phase === 'up' ? READ_EVERY_MS : FIRST_READS_EVERY_MS, () => {
      void this.#watchHealth();
    });
  }

  #report(health: HealthSummary): void {
    this.#summary = statusLine(health);
    const becomesUp = this.#phase !== 'up' && this.#isUp(health);
    if (becomesUp) this.#phase = 'up';
    this.#sendStatus(becomesUp ? { READY: '1' } : undefined);
  }

  #isUp({ missing }: HealthSummary): boolean {
    const hasWaitedLong = this.#clock.monotonic() - this.#listeningSinceMs >= MAX_WAIT_FOR_READY_MS;
    return missing.length === 0 || missing.includes(NEEDS_OPERATOR) || hasWaitedLong;
  }
}

export function statusLine({ missing, degraded, figures }: HealthSummary): string {
  const state = missing.length > 0 ? `not ready (missing: ${list(missing)})` : 'ready';
  const limits = degraded.length > 0 ? [`degraded (${list(degraded)})`] : [];
  return [state, ...limits, ...figures].join('; ');
}

const list = (names: readonly string[]) => names.join(', ').replaceAll('_', ' ');
const usec = (ms: number) => String(Math.round(ms * 1000));
