import type { Account } from './account.js';
import type { Clock } from './ports.js';

const MOST_ACCOUNTS = 100_000;
const MOST_MISSING = 10_000;
// Long enough that a client in a retry loop costs one look-up in a while, short enough not to matter to anyone.
const MISSING_FOR_MS = 5_000;
// How far the hand goes for one insertion; what it passes while looking is busy or was used since it last came by.
const EVICTION_STEPS = 64;

/**
 * Accounts by digest and by token id, and the digests that are no token's. Bounded by count: a second
 * chance eviction (a Map keeps insertion order, and its front is where the hand stands) that costs the
 * hot path one flag.
 */
export class Remembered {
  readonly #clock: Clock;
  readonly #byDigest = new Map<string, Account>();
  readonly #byTokenId = new Map<string, Account>();
  readonly #missing = new Map<string, number>();
  readonly #mostAccounts: number;

  constructor(clock: Clock, mostAccounts = MOST_ACCOUNTS) {
    this.#clock = clock;
    this.#mostAccounts = mostAccounts;
  }

  get size(): number {
    return this.#byDigest.size;
  }

  byDigest(digest: string): Account | undefined {
    return this.#byDigest.get(digest);
  }

  byTokenId(tokenId: string): Account | undefined {
    return this.#byTokenId.get(tokenId);
  }

  all(): IterableIterator<Account> {
    return this.#byDigest.values();
  }

  /** @returns accounts over the bound that are idle but hold units: they can go once these are given back. */
  add(account: Account): Account[] {
    this.#byDigest.set(account.digest, account);
    this.#byTokenId.set(account.tokenId, account);
    this.#missing.delete(account.digest);
    return this.#evict(account);
  }

  isMissing(digest: string): boolean {
    const until = this.#missing.get(digest);
    if (until === undefined) return false;
    if (this.#clock.monotonic() < until) return true;
    this.#missing.delete(digest);
    return false;
  }

  setMissing(digest: string): void {
    // All live equally long, so the oldest is the first to lapse.
    if (this.#missing.size >= MOST_MISSING) {
      const [oldest] = this.#missing.keys();
      if (oldest !== undefined) this.#missing.delete(oldest);
    }
    this.#missing.set(digest, this.#clock.monotonic() + MISSING_FOR_MS);
  }

  clearMissing(digest: string): void {
    this.#missing.delete(digest);
  }

  #evict(newest: Account): Account[] {
    const holding: Account[] = [];
    for (let step = 0; step < EVICTION_STEPS && this.#byDigest.size > this.#mostAccounts; step++) {
      const [oldest] = this.#byDigest.values();
      if (oldest === undefined) break;
      this.#byDigest.delete(oldest.digest);
      if (oldest === newest || oldest.recentlyUsed || oldest.isBusy) {
        if (!oldest.recentlyUsed && oldest.units > 0 && oldest.inFlight.size === 0) holding.push(oldest);
        oldest.recentlyUsed = false;
        this.#byDigest.set(oldest.digest, oldest);
      } else {
        this.#byTokenId.delete(oldest.tokenId);
      }
    }
    return holding;
  }
}
