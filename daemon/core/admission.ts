/**
 * # Admission
 *
 * Decides whether a request that bears a secret may pass, without asking the database for a token it knows.
 *
 * **Remember.** A secret's digest leads to an account: what the database said of its token and project,
 * with the decrypted upstream key. Simultaneous first requests share one read. What was read is kept only if no
 * change touched its token or project since the read began, and is read again after 30 s at the latest.
 *
 * **Check, then draw.** `admit` checks (a) exists and is active, (b) not expired, (c) project active, (d) a unit of
 * the cap is free, in this order, and begins again at (a) after whatever it had to
 * wait for. `draw` takes the unit when forwarding is decided, with the same checks, in one go: on one
 * thread nothing comes in between. An answer from the cache, or a refusal, never draws.
 *
 * **Leases.** The units of a cap are set aside in the database before they are drawn (settlement.ts), so
 * the cap holds whatever is killed when.
 *
 * **Forget on change.** A committed change reaches `apply` before its operator gets the answer. What it touches is
 * forgotten, and a revocation or deactivation ends what is in flight, by its kind: a reactivation right behind it
 * saves nobody. Changes of other instances, and those of which the answer to COMMIT was lost, are heard of late, perhaps behind that
 * reactivation. What was let in by a read that had seen the change is not ended by it: its number tells.
 *
 * **The database is away.** No request waits for it longer than `DATABASE_WAIT_MS`. What is in flight goes on, and is ended as soon as it is
 * heard that it was revoked. What was verified stays usable for `staleLimitMs` after this instance last knew itself up to
 * date; then, and for tokens never seen or leases used up, the answer is `unavailable`, never `unauthorized`. An instance that has its
 * database for itself is up to date at each word from it; one that shares it, when it has heard all that the others changed (neighbours.ts).
 */
import { Account, type Known, Pass } from './account.js';
import { Histogram } from './histogram.js';
import type { Change, Clock, KnownToken, Ledger, Log, NumberedChange, TokenLookup } from './ports.js';
import { StoreUnavailable } from './ports.js';
import {
  limitReached,
  projectInactive,
  Refusal,
  tokenExpired,
  tokenRevoked,
  unauthorized,
  unavailable,
} from './refusal.js';
import { Remembered } from './remembered.js';
import { Settlement } from './settlement.js';
import { digestOf, isWellFormedSecret } from './token.js';
import { DATABASE_WAIT_MS, within } from './within.js';

const RECHECK_AFTER_MS = 30_000;
const RECHECK_WHILE_AWAY_MS = 1_000;
const PROPAGATION_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000];

/** A read that has begun; the ids of what changed since make its result worthless. */
interface Read {
  changed: Set<string>;
  /** Anything may have changed since. */
  isVoid: boolean;
  done: Promise<void>;
}

export interface AdmissionOptions {
  lookup: TokenLookup;
  ledger: Ledger;
  clock: Clock;
  log: Log;
  instanceId: string;
  staleLimitMs: number;
  /** Whether other instances change tokens too. */
  isShared?: boolean;
  /** Told of tokens of which other instances hold units that are wanted here. */
  onContention?: (tokenId: string) => void;
  mostAccounts?: number;
}

export class Admission {
  readonly #lookup: TokenLookup;
  readonly #clock: Clock;
  readonly #staleLimitMs: number;
  readonly #isShared: boolean;
  readonly #remembered: Remembered;
  readonly #settlement: Settlement;
  readonly #reads = new Map<string, Read>();
  /** When this instance last knew every change made so far. */
  #upToDateAtMs: number;
  /** The last read found no database. One that stands still takes seconds to be found away. */
  #isAway = false;
  /** From when a revocation or deactivation was recorded until it held here, in ms. */
  readonly propagation = new Histogram(PROPAGATION_MS);

  /** Enrol the instance in the ledger first. */
  constructor(options: AdmissionOptions) {
    this.#lookup = options.lookup;
    this.#clock = options.clock;
    this.#staleLimitMs = options.staleLimitMs;
    this.#isShared = options.isShared ?? false;
    this.#remembered = new Remembered(options.clock, options.mostAccounts);
    this.#upToDateAtMs = options.clock.monotonic();
    this.#settlement = new Settlement({
      ...options,
      onContact: () => {
        this.heardFromDatabase();
      },
      onContention: options.onContention ?? (() => undefined),
    });
  }

  /** The database answered somebody here. */
  heardFromDatabase(): void {
    if (!this.#isShared) this.caughtUp(this.#clock.monotonic());
  }

  /** Every change that was made before then (monotonic) is known here. */
  caughtUp(atMs: number): void {
    this.#upToDateAtMs = Math.max(this.#upToDateAtMs, atMs);
  }

  /** Whether what was verified may be believed even if the database is away now. */
  get outlastsDatabase(): boolean {
    return this.#clock.monotonic() < this.#upToDateAtMs + this.#staleLimitMs;
  }

  /**
   * Admits a request bearing `secret`, and keeps it registered as in flight until `finish`.
   *
   * Answers at once for a token that is remembered; otherwise it waits for one read, or for a unit of the cap.
   *
   * @param secret the presented value; neither stored nor logged.
   * @param digest its digest, for whoever has it at hand.
   * @throws {Refusal} (or rejects with) `unauthorized`, `project_inactive`, `request_limit_reached`, `unavailable`.
   */
  admit(secret: string, digest = digestOf(secret)): Pass | Promise<Pass> {
    const account = this.#believed(digest);
    if (account && this.#passes(account)) return this.#enter(account);
    // From here on all go the same way, so that the time of a refusal does not tell what it is for.
    if (!isWellFormedSecret(secret)) throw unauthorized(); // A typo, or a scanner's guess, never reaches the database.
    return within(this.#clock, DATABASE_WAIT_MS, (isLate) => this.#admitAfterWaiting(digest, isLate));
  }

  async #admitAfterWaiting(digest: string, isLate: () => boolean): Promise<Pass> {
    for (;;) {
      if (isLate()) throw unavailable();
      const account = this.#believed(digest);
      if (account === undefined) {
        if (this.#remembered.isMissing(digest)) throw unauthorized();
        await this.#readAgain(digest);
      } else {
        const pass = await this.#enterOrWait(account);
        if (pass) return pass;
      }
    }
  }

  /** @returns null when it had to wait, and all is to be checked again. */
  async #enterOrWait(account: KnownAccount): Promise<Pass | null> {
    const { tokenId, projectId, known } = account;
    try {
      if (this.#check(account)) return this.#enter(account);
      await this.#settlement.unitsFor(account);
      return null;
    } catch (error) {
      if (error instanceof Refusal) error.subject = { tokenId, projectId, obfuscated: known.token.obfuscated };
      throw error;
    }
  }

  /**
   * Counts the pass's use; the caller forwards in the same turn. A use stays counted when the upstream
   * then fails: a failing provider must not hand out free tries.
   *
   * @returns a promise only when it has to wait.
   * @throws {Refusal} as `admit`, or the one the pass was ended with.
   */
  draw(pass: Pass): undefined | Promise<void> {
    return this.#tryDraw(pass) ? undefined : this.#until(pass, () => this.#tryDraw(pass));
  }

  #until({ account }: Pass, isDone: () => boolean): Promise<void> {
    return within(this.#clock, DATABASE_WAIT_MS, async (isLate) => {
      do {
        if (this.#believed(account.digest)) await this.#settlement.unitsFor(account);
        else await this.#readAgain(account.digest);
        if (isLate()) throw unavailable();
      } while (!isDone());
    });
  }

  #tryDraw(pass: Pass): boolean {
    if (!this.#stillPasses(pass)) return false;
    const { account } = pass;
    if (account.isCapped) account.units -= 1;
    this.#settlement.countUse(account);
    pass.isDrawn = true;
    return true;
  }

  /**
   * Whether an admitted request may be answered from the cache: checks (a) to (d) once more, for time may have passed. It
   * costs no use; `countHit` counts it in the same turn.
   *
   * @returns a promise only when it has to wait.
   * @throws {Refusal} as `draw`.
   */
  confirm(pass: Pass): undefined | Promise<void> {
    return this.#stillPasses(pass) ? undefined : this.#until(pass, () => this.#stillPasses(pass));
  }

  countHit(pass: Pass): void {
    this.#settlement.countHit(pass.account);
  }

  #stillPasses(pass: Pass): boolean {
    if (pass.ended) throw pass.ended;
    // Its client left while it waited: what is not forwarded is not counted.
    if (pass.isFinished) throw new Error('the request is over');
    const { account } = pass;
    if (!this.#believed(account.digest) || !isKnown(account)) {
      if (this.#remembered.isMissing(account.digest)) throw unauthorized();
      return false;
    }
    return this.#check(account);
  }

  /**
   * A second registration in flight for what outlasts its request, such as an answer that goes on into the cache when its client has
   * left. `finish` ends it.
   *
   * @param pass not yet finished.
   */
  accompany(pass: Pass): Pass {
    const { account } = pass;
    const companion = pass.again();
    account.inFlight.add(companion);
    return companion;
  }

  /** The request has ended, however it did. */
  finish(pass: Pass): void {
    pass.isFinished = true;
    pass.onEnded = null;
    pass.account.inFlight.delete(pass);
  }

  /**
   * A change was committed, here or elsewhere. It may be heard of behind others that followed it.
   *
   * @param recordedAtMs when it was recorded (monotonic).
   */
  apply(change: NumberedChange, recordedAtMs = this.#clock.monotonic()): void {
    this.forget(change);
    const end = ENDS[change.kind];
    if (!end) return;
    this.propagation.observe(this.#clock.monotonic() - recordedAtMs);
    for (const account of this.#accountsOf(change)) {
      for (const pass of account.inFlight.all()) if (pass.changeSeq < change.seq) endPass(pass, end());
    }
  }

  /** What is remembered of the change's token or project must be read again, and reads under way are worth nothing. */
  forget(change: Change): void {
    for (const { changed } of this.#reads.values()) {
      for (const id of [change.projectId, change.tokenId]) if (id !== null) changed.add(id);
    }
    for (const account of this.#accountsOf(change)) account.known = null;
  }

  /** Nothing that is remembered is believed any more: all of it must be read again. */
  distrust(): void {
    for (const read of this.#reads.values()) read.isVoid = true;
    for (const account of this.#remembered.all()) account.known = null;
  }

  /** It cannot be told any more what was changed: distrusts everything, and ends what is in flight for what is not good any more. */
  async lostTrack(): Promise<void> {
    this.distrust();
    const busy = [...this.#remembered.all()].filter(({ inFlight }) => inFlight.size > 0);
    // The database may have been put back to an earlier day, and its numbers with it.
    for (const { inFlight } of busy) for (const pass of inFlight.all()) pass.changeSeq = -1;
    for (const account of busy) {
      await this.#read(account.digest);
      const end = this.#whyEnded(account);
      if (end) for (const pass of account.inFlight.all()) endPass(pass, end());
    }
  }

  #whyEnded({ digest, known }: Account): (() => Refusal) | null {
    if (!known) return this.#remembered.isMissing(digest) ? unauthorized : null;
    if (!known.token.isActive) return tokenRevoked;
    return known.projectIsActive ? null : projectInactive;
  }

  /** Other instances wait for units of these tokens. */
  yieldUnits(tokenIds: Iterable<string>): void {
    for (const tokenId of tokenIds) {
      const account = this.#remembered.byTokenId(tokenId);
      if (account) this.#settlement.yieldUnits(account);
    }
  }

  /** @see Settlement.yieldIdle */
  yieldIdle(): void {
    this.#settlement.yieldIdle();
  }

  /** @see Settlement.showLife */
  showLife(): Promise<void> {
    return this.#settlement.showLife();
  }

  /** A token was created here: makes it known, so that it works even if the database goes away now. */
  async prepare(digest: string): Promise<void> {
    this.#reads.get(digest)?.changed.add(digest);
    this.#remembered.clearMissing(digest);
    await this.#read(digest).catch(() => undefined); // Its first request reads it then.
  }

  /** Uses and hits of a token that the database does not show yet. */
  unsettled(tokenId: string): { uses: number; hits: number; lastUsedAtMs: number } {
    const account = this.#remembered.byTokenId(tokenId);
    if (!account) return { uses: 0, hits: 0, lastUsedAtMs: 0 };
    return {
      uses: account.uses + account.settlingUses,
      hits: account.hits + account.settlingHits,
      lastUsedAtMs: account.lastUsedAtMs,
    };
  }

  /** @see Settlement.between */
  between<T>(read: () => Promise<T>): Promise<T> {
    return this.#settlement.between(read);
  }

  /**
   * How many tokens are remembered, how many secrets that are none's, how many requests are in flight, and the units in hand of how
   * many leases. Looks at each token: a millisecond or so for a hundred thousand.
   */
  get size(): { accounts: number; missing: number; inFlight: number; leases: number; leasedUnits: number } {
    let [inFlight, leases, leasedUnits] = [0, 0, 0];
    for (const account of this.#remembered.all()) {
      inFlight += account.inFlight.size;
      if (account.units === 0) continue;
      leases += 1;
      leasedUnits += account.units;
    }
    return { accounts: this.#remembered.size, missing: this.#remembered.missing, inFlight, leases, leasedUnits };
  }

  /** How settling goes. */
  get settling(): Pick<Settlement, 'durations' | 'failed'> {
    return this.#settlement;
  }

  /** At shutdown, when nothing is in flight any more. */
  retire(): Promise<void> {
    return this.#settlement.retire(this.#remembered.all());
  }

  /** The account of a digest, if what is remembered of it may be believed now. */
  #believed(digest: string): KnownAccount | undefined {
    const account = this.#remembered.byDigest(digest);
    return account && isKnown(account) && this.#clock.monotonic() < account.known.recheckAtMs ? account : undefined;
  }

  /** Whether checks (a) to (d) would all be passed. */
  #passes({ known: { token, projectIsActive }, isCapped, units }: KnownAccount): boolean {
    return token.isActive && this.#clock.now() < token.expiresAtMs && projectIsActive && (!isCapped || units > 0);
  }

  /**
   * Checks (a) to (d).
   *
   * @returns false when only a unit of the cap is missing and may yet come.
   */
  #check(account: KnownAccount): boolean {
    const { token, projectIsActive } = account.known;
    if (!token.isActive) throw tokenRevoked();
    if (this.#clock.now() >= token.expiresAtMs) throw tokenExpired();
    if (!projectIsActive) throw projectInactive();
    if (!account.isCapped || account.units > 0) return true;
    if (this.#clock.monotonic() < account.exhaustedUntilMs) throw limitReached();
    return false;
  }

  #enter(account: KnownAccount): Pass {
    const pass = new Pass(account, account.known);
    account.inFlight.add(pass);
    account.recentlyUsed = true;
    return pass;
  }

  /** Waits for what the database says; where it is known to be away only if there is nothing to believe meanwhile. */
  async #readAgain(digest: string): Promise<void> {
    const read = this.#read(digest);
    if (this.#isAway && this.#extend(digest)) read.catch(() => undefined);
    else await read;
  }

  /** Reads a digest once for all who wait for it. Whether anything came of it, the caller sees when it looks again. */
  #read(digest: string): Promise<void> {
    let read = this.#reads.get(digest);
    if (!read) {
      const begun: Read = { changed: new Set(), isVoid: false, done: Promise.resolve() };
      begun.done = this.#readInto(digest, begun).finally(() => this.#reads.delete(digest));
      this.#reads.set(digest, begun);
      read = begun;
    }
    return read.done;
  }

  async #readInto(digest: string, read: Pick<Read, 'changed' | 'isVoid'>): Promise<void> {
    const { changed } = read;
    const begunAtMs = this.#clock.monotonic();
    try {
      const found = await this.#lookup.byDigest(digest);
      this.#isAway = false;
      if (!this.#isShared) this.caughtUp(begunAtMs);
      if (read.isVoid) return;
      if (found === null) {
        // Unless it was created while we looked.
        if (changed.size === 0) this.#remembered.setMissing(digest);
      } else if (!changed.has(found.token.id) && !changed.has(found.token.projectId)) {
        this.#keep(digest, found, begunAtMs);
      }
    } catch (error) {
      this.#isAway = error instanceof StoreUnavailable;
      if (!this.#isAway || !this.#extend(digest)) throw unavailable(error);
    }
  }

  #keep(digest: string, found: KnownToken, readAtMs: number): void {
    const { token } = found;
    let account = this.#remembered.byDigest(digest);
    if (!account) {
      account = new Account(digest, token.id, token.projectId, token.maxRequests > 0);
      // The database's word on what is left; afterwards each take brings newer news than a read could.
      account.left = Math.max(0, token.maxRequests - found.reserved);
      for (const idle of this.#remembered.add(account)) this.#settlement.giveBack(idle);
    }
    account.known = { ...found, recheckAtMs: readAtMs + RECHECK_AFTER_MS, expiresAt: null, upstreamKeyDigest: null };
  }

  /** The database is away: what was verified is believed a little longer, up to the limit. */
  #extend(digest: string): boolean {
    const account = this.#remembered.byDigest(digest);
    if (!account?.known || !this.outlastsDatabase) return false;
    const untilMs = this.#upToDateAtMs + this.#staleLimitMs;
    const recheckAtMs = Math.min(untilMs, this.#clock.monotonic() + RECHECK_WHILE_AWAY_MS);
    account.known = { ...account.known, recheckAtMs };
    return true;
  }

  *#accountsOf(change: Change): Iterable<Account> {
    if (change.tokenId !== null) {
      const account = this.#remembered.byTokenId(change.tokenId);
      if (account) yield account;
      return;
    }
    for (const account of this.#remembered.all()) if (account.projectId === change.projectId) yield account;
  }
}

type KnownAccount = Account & { known: Known };

function isKnown(account: Account): account is KnownAccount {
  return account.known !== null;
}

/** The changes that end what is in flight, and the answer for a client that has not been sent one yet. */
const ENDS: Partial<Record<Change['kind'], () => Refusal>> = {
  'token.revoked': tokenRevoked,
  'tokens.revoked': tokenRevoked,
  'project.deactivated': projectInactive,
};

function endPass(pass: Pass, refusal: Refusal): void {
  pass.ended = refusal;
  pass.onEnded?.(refusal);
}
