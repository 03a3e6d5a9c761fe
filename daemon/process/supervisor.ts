/**
 * # What systemd is told
 *
 * That the process lives (WATCHDOG) as long as its event loop turns, whatever the database does. That it starts, and may take its time for
 * migrations (EXTEND_TIMEOUT_USEC). That it is up (READY): it listens and can do its work, or it listens and what it lacks does not come
 * within `PATIENCE_MS`. A database that is away after the start does not make the unit fail, so one that is away before does not either: the
 * status says what is missing, and `/ready` does. How it does, in a line (STATUS), when that has changed, every five seconds at most. And that
 * it reads its settings again (RELOADING … READY), or stops (STOPPING).
 */
import type { Clock } from '../core/ports.js';
import type { Message } from './systemd-notify.js';

/** How a service does, at a glance. */
export interface Sight {
  /** What it lacks to do its work; empty when it is ready. */
  missing: readonly string[];
  /** What it does without for now. */
  degraded: readonly string[];
  /** Such as `3 requests in flight`. */
  figures: readonly string[];
}

export interface SupervisorOptions {
  tell: (message: Message) => void;
  /** Null where nobody watches. */
  watchdogMs: number | null;
  clock: Clock;
}

const EXTEND_EVERY_MS = 10_000;
const EXTEND_BY_MS = 30_000;
/** Less than TimeoutStartSec= of the units. */
const PATIENCE_MS = 20_000;
const LOOK_EVERY_MS = 5_000;
const FIRST_LOOKS_EVERY_MS = 250;
/** Beside what the settings give requests in flight: for writing what was counted, and closing. */
const CLOSING_MS = 30_000;
/** Nobody else can mend it, and who is to may wait for the unit to be up. */
const FOR_OPERATORS = 'pending migrations';

type Phase = 'starting' | 'waiting' | 'up' | 'stopping';

export class Supervisor {
  readonly #tell: (message: Message) => void;
  readonly #clock: Clock;
  #phase: Phase = 'starting';
  /** What was said last. */
  #status = '';
  #sight = 'starting';
  #hasReloadFailed = false;
  #waitsSinceMs = 0;
  #look: () => Promise<Sight> = () => Promise.reject(new Error('nothing to be seen yet'));

  constructor({ tell, watchdogMs, clock }: SupervisorOptions) {
    this.#tell = tell;
    this.#clock = clock;
    this.#say();
    this.#extend();
    if (watchdogMs !== null) this.#live(watchdogMs / 2);
  }

  /** It listens. @param look says how it does from now on. */
  listening(look: () => Promise<Sight>): void {
    if (this.#phase !== 'starting') return;
    this.#phase = 'waiting';
    this.#waitsSinceMs = this.#clock.monotonic();
    this.#look = look;
    void this.#lookOn();
  }

  reloading(): void {
    if (this.#phase !== 'up') return;
    // By the clock that systemd compares it with.
    this.#tell({ RELOADING: '1', MONOTONIC_USEC: String(process.hrtime.bigint() / 1000n) });
  }

  /** @param isGood whether what was read is in force. */
  reloaded(isGood: boolean): void {
    if (this.#phase !== 'up') return;
    this.#hasReloadFailed = !isGood;
    this.#say({ READY: '1' });
  }

  /** @param withinMs what the settings give those in flight. */
  stopping(withinMs: number): void {
    if (this.#phase === 'stopping') return;
    this.#phase = 'stopping';
    this.#sight = 'stopping';
    this.#say({ STOPPING: '1', EXTEND_TIMEOUT_USEC: usec(withinMs + CLOSING_MS) });
  }

  /** @param message what is said whether or not the status is another. */
  #say(message?: Message): void {
    const status = this.#sight + (this.#hasReloadFailed ? '; a reload failed, the settings are those from before' : '');
    if (message === undefined && status === this.#status) return;
    this.#status = status;
    this.#tell({ ...message, STATUS: status });
  }

  #extend(): void {
    if (this.#phase !== 'starting') return;
    this.#tell({ EXTEND_TIMEOUT_USEC: usec(EXTEND_BY_MS) });
    this.#clock.after(EXTEND_EVERY_MS, () => {
      this.#extend();
    });
  }

  #live(everyMs: number): void {
    this.#tell({ WATCHDOG: '1' });
    this.#clock.after(everyMs, () => {
      this.#live(everyMs);
    });
  }

  async #lookOn(): Promise<void> {
    const sight = await this.#look().catch(() => null);
    if (this.#phase === 'stopping') return;
    if (sight) this.#show(sight);
    this.#clock.after(this.#phase === 'up' ? LOOK_EVERY_MS : FIRST_LOOKS_EVERY_MS, () => {
      void this.#lookOn();
    });
  }

  #show(sight: Sight): void {
    this.#sight = statusLine(sight);
    const comesUp = this.#phase !== 'up' && this.#isUp(sight);
    if (comesUp) this.#phase = 'up';
    this.#say(comesUp ? { READY: '1' } : undefined);
  }

  #isUp({ missing }: Sight): boolean {
    const isOutOfPatience = this.#clock.monotonic() - this.#waitsSinceMs >= PATIENCE_MS;
    return missing.length === 0 || missing.includes(FOR_OPERATORS) || isOutOfPatience;
  }
}

export function statusLine({ missing, degraded, figures }: Sight): string {
  const state = missing.length > 0 ? `not ready, for want of ${list(missing)}` : 'ready';
  const without = degraded.length > 0 ? `, without ${list(degraded)}` : '';
  return [state + without, ...figures].join('; ');
}

const list = (names: readonly string[]) => names.join(', ').replaceAll('_', ' ');
const usec = (ms: number) => String(Math.round(ms * 1000));
