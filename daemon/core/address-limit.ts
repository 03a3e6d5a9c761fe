/** Limits how often an address may do something that needs no credential, in any minute. */
import { networkOf } from './address.js';
import type { Clock } from './ports.js';
import { Refusal, wholeSeconds } from './refusal.js';

const WINDOW_MS = 60_000;
/** Further addresses count as one. */
const MAX_ADDRESSES = 256;

interface Window {
  endsAtMs: number;
  count: number;
}

export class AddressLimit {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #perMinute: number;
  readonly #windows = new Map<string, Window>();

  constructor(clock: Pick<Clock, 'monotonic'>, perMinute: number) {
    this.#clock = clock;
    this.#perMinute = perMinute;
  }

  /** @param ip null on a Unix socket. @throws {Refusal} `too_many_attempts` */
  count(ip: string | null): void {
    const now = this.#clock.monotonic();
    const window = this.#windowOf(keyOf(ip), now);
    this.#checkRoom(window, now);
    window.count += 1;
  }

  /**
   * For what is counted only if it fails (`note`). An address that is not remembered, because there are too many, may go on: nobody can
   * keep others out with many addresses.
   *
   * @param ip null on a Unix socket. @throws {Refusal} `too_many_attempts`
   */
  check(ip: string | null): void {
    const window = this.#windows.get(keyOf(ip));
    const now = this.#clock.monotonic();
    if (window && window.endsAtMs > now) this.#checkRoom(window, now);
  }

  note(ip: string | null): void {
    this.#windowOf(keyOf(ip), this.#clock.monotonic()).count += 1;
  }

  #checkRoom(window: Window, now: number): void {
    if (window.count < this.#perMinute) return;
    const retryAfterSeconds = wholeSeconds(window.endsAtMs - now);
    throw new Refusal('too_many_attempts', 'too many requests from this address', { retryAfterSeconds });
  }

  #windowOf(network: string, now: number): Window {
    if (this.#windows.size >= MAX_ADDRESSES) this.#forgetEnded(now);
    const key = this.#windows.size < MAX_ADDRESSES || this.#windows.has(network) ? network : 'others';
    let window = this.#windows.get(key);
    if (!window || window.endsAtMs <= now) this.#windows.set(key, (window = { endsAtMs: now + WINDOW_MS, count: 0 }));
    return window;
  }

  #forgetEnded(now: number): void {
    for (const [key, { endsAtMs }] of this.#windows) if (endsAtMs <= now) this.#windows.delete(key);
  }
}

const keyOf = (ip: string | null) => (ip === null ? '' : networkOf(ip));
