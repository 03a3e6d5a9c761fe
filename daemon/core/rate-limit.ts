/**
 * How many requests on /v1 one address, and all together, may make in a window.
 *
 * **An address** is counted before anything is looked up, whatever it presents: a flood of guesses costs no read of the
 * database. **All together** are counted once their token proved valid, so that nobody without one can use up what the
 * others have.
 *
 * **Shared.** With Redis all instances count together. While it is away each counts by itself, from nothing: at worst an
 * address gets one window more from each. An operator who would rather serve nobody than too many says `deny`.
 *
 * **Off** (a limit of 0) costs nothing. Nothing here waits unless the shared windows do.
 */
import { networkOf } from './address.js';
import { type RateTaken, type RateWindow, type RateWindows, StoreUnavailable } from './ports.js';
import { rateLimited, type RateLimitPolicy, unavailable } from './refusal.js';

export interface RateLimitSettings {
  /** 0: any number, as in the next. */
  ipRateLimit: number;
  globalRateLimit: number;
  rateLimitWindowMs: number;
  rateLimitOnRedisFailure: 'local' | 'deny';
}

/** Windows of this process, which are never away. */
export interface LocalRateWindows extends RateWindows {
  take(key: string, window: RateWindow): RateTaken;
}

export interface RateLimitOptions {
  /** Those in force: SIGHUP may put others in their place. */
  live: { readonly current: RateLimitSettings };
  /** One for each policy: however many addresses there are, they do not push out the window of all. */
  local: Record<RateLimitPolicy, LocalRateWindows>;
  /** Null where this instance is alone. */
  shared: RateWindows | null;
}

const NO_ADDRESS = 'none';

export class RateLimits {
  readonly #options: RateLimitOptions;
  /** Requests that were counted here alone because the shared windows were away. */
  failOpens = 0;
  /** Requests that were refused because a window was full. */
  readonly refusals: Record<RateLimitPolicy, number> = { address: 0, global: 0 };

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /** Whether an address need be found out at all. */
  get countsAddresses(): boolean {
    return this.#options.live.current.ipRateLimit > 0;
  }

  /**
   * Counts a request of an address.
   *
   * @param ip null where there is none: all those are one.
   * @returns a promise only where there is something to wait for.
   * @throws {Refusal} `rate_limited`, or `unavailable` where it shall not be counted here alone. Or rejects with it.
   */
  countAddress(ip: string | null): Promise<void> | undefined {
    const limit = this.#options.live.current.ipRateLimit;
    return limit > 0 ? this.#count('address', ip === null ? NO_ADDRESS : networkOf(ip), limit) : undefined;
  }

  /** Counts a request with a valid token, in the same way. */
  countValid(): Promise<void> | undefined {
    const limit = this.#options.live.current.globalRateLimit;
    return limit > 0 ? this.#count('global', 'all', limit) : undefined;
  }

  #count(policy: RateLimitPolicy, of: string, limit: number): Promise<void> | undefined {
    const window = { limit, windowMs: this.#options.live.current.rateLimitWindowMs };
    const key = `${policy}:${of}`;
    const { local, shared } = this.#options;
    if (!shared) {
      this.#refuseBeyond(local[policy].take(key, window), policy, window);
      return undefined;
    }
    let taken: RateTaken | Promise<RateTaken>;
    try {
      taken = shared.take(key, window);
    } catch (error) {
      taken = this.#withoutShared(error, policy, key, window);
    }
    if (!(taken instanceof Promise)) {
      this.#refuseBeyond(taken, policy, window);
      return undefined;
    }
    return taken.then(
      (it) => {
        this.#refuseBeyond(it, policy, window);
      },
      (error: unknown) => {
        this.#refuseBeyond(this.#withoutShared(error, policy, key, window), policy, window);
      },
    );
  }

  #withoutShared(error: unknown, policy: RateLimitPolicy, key: string, window: RateWindow): RateTaken {
    if (!(error instanceof StoreUnavailable)) throw error;
    const { live, local } = this.#options;
    if (live.current.rateLimitOnRedisFailure === 'deny') throw unavailable(error);
    this.failOpens++;
    return local[policy].take(key, window);
  }

  #refuseBeyond({ isWithin, resetMs }: RateTaken, policy: RateLimitPolicy, { limit, windowMs }: RateWindow): void {
    if (isWithin) return;
    this.refusals[policy] += 1;
    throw rateLimited({ policy, limit, windowMs, resetMs });
  }
}
