import type { Account } from './account.js';
import type { Clock } from './ports.js';

const MOST_ACCOUNTS = 100_000;
const MOST_MISSING = 10_000;
// Long enough that a client in a retry loop costs one look-up in a while, short enough not to matter to anyone.
const MISSING_FOR_MS = 5_000;
// How far the hand goes for one insertion; what it passes while looking is busy or was used since it last came by.
const EVICTION_STEPS = 64;

/**
 * Accounts by digest and by token id, and the digests that are no token's. Bounded by count, by a second
 * chance: a hand goes round, takes what was not used since it last came by, and clears the flag of what was. That
 * costs the hot path one flag. The hand is an iterator that is kept, for a Map finds its first entry the more
 * slowly the more were deleted in front of it.
 */
export class Remembered {
  readonly #clock: Clock;
  readonly #byDigest = new Map<string, Account>();
  readonly #byTokenId = new Map<string, Account>();
  readonly #missing = new Map<string, number>();
  #hand: Iterator<Account> = this.#byDigest.values();
  #oldestMissing: Iterator<string> = this.#missing.keys();
  readonly #mostAccounts: number;

  constructor(clock: Clock, mostAccounts = MOST_ACCOUNTS) {
    this.#clock = clock;
    this.#mostAccounts = mostAccounts;
  }

  get size(): number {
    return this.#byDigest.size;
  }

  /** How many digests are known to be no token's. */
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
    if (this.#missing.size >= MOST_MISSING) this.#dropOldestMissing();
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
    for (let step = 0; step < EVICTION_STEPS && this.#byDigest.size > this.#mostAccounts; step++) {
      const account = this.#underHand();
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

  /** Moves the hand on. There is always an account: the newest at least. */
  #underHand(): Account {
    let next = this.#hand.next();
    if (next.done) {
      this.#hand = this.#byDigest.values();
      next = this.#hand.next();
    }
    return next.value as Account;
  }
}
