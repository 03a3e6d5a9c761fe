import { Account, type AccountSnapshot } from './account.js';
import { AccountCache } from './account-cache.js';
import { budgetsOf } from './budget/owned-budget.js';
import { Policy } from './policy/policy.js';
import type { Change, Clock, KnownToken, TokenLookup } from './ports.js';
import { StoreUnavailable } from './ports.js';
import { scopesOf } from './limiter.js';
import { unavailable } from './refusal.js';

const RECHECK_AFTER_MS = 30_000;
const RECHECK_DURING_OUTAGE_MS = 1_000;

/** A read in progress. Its result is discarded if its token or project is among the changed IDs. */
interface Read {
  changed: Set<string>;
  /** Anything may have changed since it began. */
  isDiscarded: boolean;
  done: Promise<void>;
}

/** An account whose state is known. */
export type KnownAccount = Account & { known: AccountSnapshot };

export interface AccountsOptions {
  lookup: TokenLookup;
  clock: Clock;
  /** How long verified state may be used after this instance was last up to date. */
  staleLimitMs: number;
  /** Whether other instances share the database. */
  isShared: boolean;
  /** Whether every token may use the routes that lead around its restrictions. */
  allowsEscapes: boolean;
  maxAccounts?: number | undefined;
  /** Called with an idle account over the limit that holds units: it can be evicted once these are given back. */
  onHolding: (account: Account) => void;
}

/**
 * What this instance knows of tokens and projects.
 *
 * The digest of a secret maps to an account. Its state is read from the database when it is needed, once for all concurrent requests, and
 * again after 30 s at most. It is cached only if its token and project did not change since the read began.
 *
 * While the database is unavailable, verified state stays usable for `staleLimitMs` after this instance was last up to date. An instance
 * with a database of its own is up to date after each successful query; an instance that shares it, after it has read all changes made
 * by others (cluster-sync.ts).
 */
export class Accounts {
  readonly #options: AccountsOptions;
  readonly #cache: AccountCache;
  readonly #reads = new Map<string, Read>();
  /** Changes made before this time (monotonic) are known. */
  #upToDateAtMs: number;
  #isDatabaseUnavailable = false;

  constructor(options: AccountsOptions) {
    this.#options = options;
    this.#cache = new AccountCache(options.clock, options.maxAccounts);
    this.#upToDateAtMs = options.clock.monotonic();
  }

  /** Whether the last read failed because the database was unavailable. If it hangs, detection takes seconds. */
  get isDatabaseUnavailable(): boolean {
    return this.#isDatabaseUnavailable;
  }

  /** Called after any successful database query. */
  onDatabaseContact(): void {
    const { isShared, clock } = this.#options;
    if (!isShared) this.caughtUp(clock.monotonic());
  }

  /** Every change made before this time (monotonic) is known. */
  caughtUp(atMs: number): void {
    this.#upToDateAtMs = Math.max(this.#upToDateAtMs, atMs);
  }

  /** Whether verified state may be used even if the database is unavailable now. */
  get isWithinStaleLimit(): boolean {
    const { clock, staleLimitMs } = this.#options;
    return clock.monotonic() < this.#upToDateAtMs + staleLimitMs;
  }

  /** The account of a digest, if its state is known and may be used now. */
  usable(digest: string): KnownAccount | undefined {
    const account = this.#cache.byDigest(digest);
    return account && isKnown(account) && this.#options.clock.monotonic() < account.known.recheckAtMs
      ? account
      : undefined;
  }

  /** Whether a digest was found to belong to no token, a few seconds ago at most. */
  isMissing(digest: string): boolean {
    return this.#cache.isMissing(digest);
  }

  byTokenId(tokenId: string): Account | undefined {
    return this.#cache.byTokenId(tokenId);
  }

  all(): IterableIterator<Account> {
    return this.#cache.all();
  }

  /** The accounts of a change's token or project. */
  *concernedBy(change: Change): Iterable<Account> {
    if (change.tokenId !== null) {
      const account = this.#cache.byTokenId(change.tokenId);
      if (account) yield account;
      return;
    }
    for (const account of this.#cache.all()) if (account.projectId === change.projectId) yield account;
  }

  /** Number of accounts, and of digests in the negative cache. */
  get size(): { accounts: number; missing: number } {
    return { accounts: this.#cache.size, missing: this.#cache.missing };
  }

  /** Drops the state of the change's token or project, and discards the results of reads in progress. */
  forget(change: Change): void {
    for (const { changed } of this.#reads.values()) {
      for (const id of [change.projectId, change.tokenId]) if (id !== null) changed.add(id);
    }
    for (const account of this.concernedBy(change)) account.known = null;
  }

  /** Drops all state; it must be read again before use. */
  forgetAll(): void {
    for (const read of this.#reads.values()) read.isDiscarded = true;
    for (const account of this.#cache.all()) account.known = null;
  }

  /** Reads a token created here, so that it works even if the database becomes unavailable now. */
  async preload(digest: string): Promise<void> {
    this.#reads.get(digest)?.changed.add(digest);
    this.#cache.clearMissing(digest);
    await this.read(digest).catch(() => undefined); // Then its first request reads it.
  }

  /** Waits for a read; if the database is known to be unavailable, only when no state can be used meanwhile. */
  async refresh(digest: string): Promise<void> {
    const read = this.read(digest);
    if (this.#isDatabaseUnavailable && this.#extend(digest)) read.catch(() => undefined);
    else await read;
  }

  /**
   * Reads a digest once for all concurrent callers. They must look up the account again to see the result.
   *
   * @throws {Refusal} (rejects with) `unavailable` if nothing may be used.
   */
  read(digest: string): Promise<void> {
    let read = this.#reads.get(digest);
    if (!read) {
      const begun: Read = { changed: new Set(), isDiscarded: false, done: Promise.resolve() };
      begun.done = this.#readInto(digest, begun).finally(() => this.#reads.delete(digest));
      this.#reads.set(digest, begun);
      read = begun;
    }
    return read.done;
  }

  async #readInto(digest: string, read: Pick<Read, 'changed' | 'isDiscarded'>): Promise<void> {
    const { lookup, clock, isShared } = this.#options;
    const { changed } = read;
    const begunAtMs = clock.monotonic();
    try {
      const found = await lookup.byDigest(digest);
      this.#isDatabaseUnavailable = false;
      if (!isShared) this.caughtUp(begunAtMs);
      if (read.isDiscarded) return;
      if (found === null) {
        // Unless the token was created during the read.
        if (changed.size === 0) this.#cache.setMissing(digest);
      } else if (!changed.has(found.token.id) && !changed.has(found.token.projectId)) {
        this.#keep(digest, found, begunAtMs);
      }
    } catch (error) {
      this.#isDatabaseUnavailable = error instanceof StoreUnavailable;
      if (!this.#isDatabaseUnavailable || !this.#extend(digest)) throw unavailable(error);
    }
  }

  #keep(digest: string, found: KnownToken, readAtMs: number): void {
    const { token } = found;
    let account = this.#cache.byDigest(digest);
    if (!account) {
      account = new Account(digest, token.id, token.projectId, token.maxRequests > 0);
      // Only the first read sets this: afterwards each settlement reports a newer value.
      account.left = Math.max(0, token.maxRequests - found.reserved);
      for (const idle of this.#cache.add(account)) this.#options.onHolding(idle);
    }
    account.known = {
      ...found,
      policy: Policy.of({
        policies: [token, found.projectPolicies],
        isCapped: account.isCapped,
        allowsEscapes: this.#options.allowsEscapes,
      }),
      recheckAtMs: readAtMs + RECHECK_AFTER_MS,
      expiresAt: null,
      upstreamDigest: null,
      pricedProvider: undefined,
      scopes: scopesOf(found),
      budgets: budgetsOf(found),
    };
  }

  /** The database is unavailable: extends the use of verified state a little, up to the stale limit. */
  #extend(digest: string): boolean {
    const { clock, staleLimitMs } = this.#options;
    const account = this.#cache.byDigest(digest);
    if (!account?.known || !this.isWithinStaleLimit) return false;
    const untilMs = this.#upToDateAtMs + staleLimitMs;
    const recheckAtMs = Math.min(untilMs, clock.monotonic() + RECHECK_DURING_OUTAGE_MS);
    account.known = { ...account.known, recheckAtMs };
    return true;
  }
}

export function isKnown(account: Account): account is KnownAccount {
  return account.known !== null;
}
