/**
 * Rate limits for /v1: requests per window, per client address and in total.
 *
 * **Per address.** Requests are counted before any lookup, whatever their credential: guesses beyond the limit
 * cause no database reads.
 * **In total.** Requests are counted after their token was verified, so that clients without a token cannot use up the limit.
 *
 * **Shared windows.** With Redis all instances count together. While it is unavailable, each instance counts by itself, starting at 0:
 * at worst an address gets one additional window per instance. Operators who prefer to refuse all requests instead choose `deny`.
 *
 * **Per token.** Questions about a token by its holder (`GET /token/self`), which are no requests on /v1.
 *
 * A limit of 0 turns a limit off, at no cost. Only shared windows may wait.
 */
import { networkOf } from './address.js';
import { type RateDecision, type RateWindow, type RateWindows, StoreUnavailable } from './ports.js';
import { rateLimited, type RateLimitPolicy, unavailable } from './refusal.js';

export interface RateLimitSettings {
  /** 0: no limit; also for `globalRateLimit`. */
  ipRateLimit: number;
  globalRateLimit: number;
  rateLimitWindowMs: number;
  rateLimitOnRedisFailure: 'local' | 'deny';
}

/** Windows in this process, which are always available. */
export interface LocalRateWindows extends RateWindows {
  take(key: string, window: RateWindow): RateDecision;
}

export interface RateLimitOptions {
  /** Current settings; SIGHUP may replace them. */
  live: { readonly current: RateLimitSettings };
  /** Separate per policy, so that many addresses cannot evict the global window. */
  local: Record<RateLimitPolicy, LocalRateWindows>;
  /** Null without Redis. */
  shared: RateWindows | null;
  /** In a worker with Redis: the windows of all processes of this instance, while those in Redis are unavailable. */
  ofInstance?: RateWindows | null;
}

const NO_ADDRESS = 'none';

const SELF_WINDOW: RateWindow = { limit: 60, windowMs: 60_000 };

/** The limit that a key of a window belongs to. */
export function policyOf(key: string): RateLimitPolicy {
  const [policy] = key.split(':', 1);
  return policy === 'global' || policy === 'self' ? policy : 'address';
}

export class RateLimits {
  readonly #options: RateLimitOptions;
  /** Requests counted locally because the shared windows were unavailable. */
  failOpens = 0;
  /** Requests refused because a window was full. */
  readonly refusals: Record<RateLimitPolicy, number> = { address: 0, global: 0, self: 0 };

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /** Whether the client address is needed. */
  get countsAddresses(): boolean {
    return this.#options.live.current.ipRateLimit > 0;
  }

  /**
   * Counts a request from an address.
   *
   * @param ip null if there is none; all such requests share one window.
   * @returns a promise only if it has to wait.
   * @throws {Refusal} (or rejects with) `rate_limited`; `unavailable` if the shared windows are and the setting is `deny`.
   */
  countAddress(ip: string | null): Promise<void> | undefined {
    const limit = this.#options.live.current.ipRateLimit;
    return limit > 0 ? this.#count('address', ip === null ? NO_ADDRESS : networkOf(ip), limit) : undefined;
  }

  /** Counts a request with a valid token towards the total, in the same way. */
  countAuthenticated(): Promise<void> | undefined {
    const limit = this.#options.live.current.globalRateLimit;
    return limit > 0 ? this.#count('global', 'all', limit) : undefined;
  }

  /** Counts a question about a token by its holder, in the same way. */
  countSelf(tokenId: string): Promise<void> | undefined {
    return this.#count('self', tokenId, SELF_WINDOW.limit, SELF_WINDOW.windowMs);
  }

  #count(
    policy: RateLimitPolicy,
    of: string,
    limit: number,
    windowMs = this.#options.live.current.rateLimitWindowMs,
  ): Promise<void> | undefined {
    const window = { limit, windowMs };
    const key = `${policy}:${of}`;
    const { local, shared } = this.#options;
    if (!shared) {
      this.#refuseBeyond(local[policy].take(key, window), policy, window);
      return undefined;
    }
    let taken: RateDecision | Promise<RateDecision>;
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
      async (error: unknown) => {
        this.#refuseBeyond(await this.#withoutShared(error, policy, key, window), policy, window);
      },
    );
  }

  #withoutShared(
    error: unknown,
    policy: RateLimitPolicy,
    key: string,
    window: RateWindow,
  ): RateDecision | Promise<RateDecision> {
    if (!(error instanceof StoreUnavailable)) throw error;
    const { live, local, ofInstance } = this.#options;
    if (live.current.rateLimitOnRedisFailure === 'deny') throw unavailable(error);
    this.failOpens++;
    return ofInstance ? this.#takeOf(ofInstance, policy, key, window) : local[policy].take(key, window);
  }

  async #takeOf(windows: RateWindows, policy: RateLimitPolicy, key: string, window: RateWindow): Promise<RateDecision> {
    try {
      return await windows.take(key, window);
    } catch {
      return this.#options.local[policy].take(key, window);
    }
  }

  #refuseBeyond({ isAllowed, resetMs }: RateDecision, policy: RateLimitPolicy, { limit, windowMs }: RateWindow): void {
    if (isAllowed) return;
    this.refusals[policy] += 1;
    throw rateLimited({ policy, limit, windowMs, resetMs });
  }
}
