import type { Account } from './account.js';
import type { Clock } from './ports.js';

const MAX_ACCOUNTS = 100_000;
const MAX_MISSING = 10_000;
// A client that retries in a loop costs one lookup per 5 s.
const MISSING_FOR_MS = 5_000;
// Maximum number of accounts examined per insertion; those it passes are busy or were used since the last round.
const EVICTION_STEPS = 64;

/**
 * Cache of accounts by digest and by token ID, with a negative cache of digests that belong to no token. Both are bounded. Accounts
 * are evicted with the clock algorithm (second chance): the clock hand evicts accounts that were not used since its last pass, and
 * clears the flag of the others, so the hot path only sets a flag. The hand is a persistent iterator, because a Map finds its first
 * entry more slowly the more entries were deleted before it.
 */
export class AccountCache {
  readonly #clock: Clock;
  readonly #byDigest = new Map<string, Account>();
  readonly #byTokenId = new Map<string, Account>();
  readonly #missing = new Map<string, number>();
  #hand: Iterator<Account> = this.#byDigest.values();
  #oldestMissing: Iterator<string> = this.#missing.keys();
  readonly #maxAccounts: number;

  constructor(clock: Clock, mostAccounts = MAX_ACCOUNTS) {
    this.#clock = clock;
    this.#maxAccounts = mostAccounts;
  }

  get size(): number {
    return this.#byDigest.size;
  }

  /** Number of digests in the negative cache. */
  get missing(): number {
    return this.#missing.size;
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

  /** @returns idle accounts over the limit that hold units: they can be evicted once these are given back. */
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
    // All have the same lifetime, so the oldest expires first.
    if (this.#missing.size >= MAX_MISSING) this.#dropOldestMissing();
    this.#missing.set(digest, this.#clock.monotonic() + MISSING_FOR_MS);
  }

  clearMissing(digest: string): void {
    this.#missing.delete(digest);
  }

  #dropOldestMissing(): void {
    let oldest = this.#oldestMissing.next();
    if (oldest.done) {
      this.#oldestMissing = this.#missing.keys();
      oldest = this.#oldestMissing.next();
    }
    if (!oldest.done) this.#missing.delete(oldest.value);
  }

  #evict(newest: Account): Account[] {
    const holding: Account[] = [];
    for (let step = 0; step < EVICTION_STEPS && this.#byDigest.size > this.#maxAccounts; step++) {
      const account = this.#advanceHand();
      if (account === newest || account.recentlyUsed) {
        account.recentlyUsed = false;
      } else if (!account.isBusy) {
        this.#byDigest.delete(account.digest);
        this.#byTokenId.delete(account.tokenId);
      } else if (account.units > 0 && account.inFlight.size === 0) {
        holding.push(account);
      }
    }
    return holding;
  }

  /** Advances the clock hand. There is always an account: at least the newest. */
  #advanceHand(): Account {
    let next = this.#hand.next();
    if (next.done) {
      this.#hand = this.#byDigest.values();
      next = this.#hand.next();
    }
    return next.value as Account;
  }
}
