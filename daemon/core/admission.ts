/**
 * # Admission
 *
 * Decides whether a request with a token may be forwarded, without asking the database about tokens that are cached.
 *
 * **Accounts.** What this instance knows of tokens and projects is read and cached by accounts.ts.
 *
 * **Check, then draw.** `admit` checks that (a) the token exists and is active, (b) it has not expired, (c) its project is active, and
 * (d) a unit of its cap is free, in this order, and then whether it may use the route and the models that the request names
 * (policy/policy.ts). After waiting for anything it starts again at (a). `draw` takes the unit when
 * forwarding is decided, with the same checks and without awaiting, so nothing can change in between (one thread). A response from
 * the cache and a refusal never draw a unit.
 *
 * **Leases.** Units of a cap are leased in the database before they are drawn (settlement.ts), so the cap holds if a process is killed
 * at any time.
 *
 * **Invalidation.** A committed change reaches `apply` before the operator gets the response. The affected cached state is dropped. A
 * revocation or deactivation also ends requests in flight, even if a reactivation follows at once. Changes made by other instances, or
 * whose reply to COMMIT was lost, arrive late, perhaps after that reactivation. A request admitted by a read that had already seen the
 * change is not ended by it; the change's number shows this.
 *
 * **Database unavailable.** No request waits for it longer than `DATABASE_WAIT_MS`. Requests in flight continue until a revocation is
 * received. When verified state is too old to be used, and for unknown tokens and used-up leases, the response is `unavailable`, never
 * `unauthorized`.
 */
import type { Budget, Limits } from '../api/vocabulary.js';
import { type Account, Pass } from './account.js';
import { Accounts, isKnown, type KnownAccount } from './accounts.js';
import { Budgets, type Spending } from './budget/budgets.js';
import type { BudgetHold } from './budget/owned-budget.js';
import type { PurseCounts } from './budget/counts.js';
import { type Spent, spentOf } from './budget/spending.js';
import type { Costs } from './cost/costs.js';
import type { BudgetEvent } from './events.js';
import { Histogram } from './histogram.js';
import type { Asked, BodyModels, Policy } from './policy/policy.js';
import type { Limiter, Wanted } from './limiter.js';
import type {
  Change,
  Clock,
  HeldClaim,
  KnownToken,
  Ledger,
  LimitedScope,
  Log,
  NumberedChange,
  TokenLookup,
} from './ports.js';
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
import { ConcurrencyLimit } from './concurrency-limit.js';
import { Settlement } from './settlement.js';
import { digestOf, isWellFormedSecret, withUnsettled } from './token.js';
import { DATABASE_WAIT_MS, withDatabaseTimeout } from './timing.js';

// A request that was admitted in time may go on after its token has expired.
const BEFORE_EXPIRY = -Infinity;
// Reads for holders of tokens must not occupy the database connections that admission needs.
const MAX_HOLDER_READS = 2;
const PROPAGATION_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000];

export interface AdmissionOptions {
  lookup: TokenLookup;
  ledger: Ledger;
  clock: Clock;
  log: Log;
  instanceId: string;
  staleLimitMs: number;
  /** Whether other instances share the database. */
  isShared?: boolean;
  /** Default: false. */
  allowsEscapes?: boolean;
  /** Enforces the limits of tokens and projects. */
  limiter: Limiter;
  /** Default: no model has a price. */
  costs?: Pick<Costs, 'priceOf'>;
  /** Called with each event of a budget. */
  onBudgetEvent?: (event: BudgetEvent) => void;
  /** Called when the others have taken this instance for dead, and it joins them again. */
  onRejoin?: () => void;
  /** Called with the ID of a token or project when this instance needs units or money that other instances hold. */
  onContention?: (id: string) => void;
  maxAccounts?: number;
}

type KnownPurses = ReadonlyMap<string, PurseCounts>;

/** What the holder of a token may know about it and its project. */
export interface InspectedToken extends Pick<KnownToken, 'token' | 'upstreamAuth' | 'projectPolicies'> {
  spent: Spent;
  projectSpent: Spent;
}

export class Admission {
  readonly #lookup: TokenLookup;
  readonly #clock: Clock;
  readonly #log: Log;
  /** What this instance knows of tokens and projects. */
  readonly accounts: Accounts;
  readonly #settlement: Settlement;
  readonly #limiter: Limiter;
  /** Reserves and charges what requests spend. */
  readonly budgets: Budgets;
  readonly #holderReads = new ConcurrencyLimit(MAX_HOLDER_READS);
  /** Time in ms from recording a revocation or deactivation until this instance enforced it. */
  readonly propagation = new Histogram(PROPAGATION_MS);

  /** The instance must be enrolled in the ledger first. */
  constructor(options: AdmissionOptions) {
    this.#lookup = options.lookup;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#limiter = options.limiter;
    this.accounts = new Accounts({
      ...options,
      isShared: options.isShared ?? false,
      allowsEscapes: options.allowsEscapes ?? false,
      onHolding: (account) => {
        this.#settlement.giveBack(account);
      },
    });
    this.#settlement = new Settlement({
      ...options,
      onContact: () => {
        this.accounts.onDatabaseContact();
      },
      onContention: options.onContention ?? (() => undefined),
      onSpent: (id, before, after) => {
        this.budgets.spent(id, before, after);
      },
      onRejoin: options.onRejoin ?? (() => undefined),
    });
    this.budgets = new Budgets({
      ...options,
      purses: this.#settlement.purses,
      costs: options.costs ?? { priceOf: () => null },
      publish: options.onBudgetEvent ?? (() => undefined),
    });
  }

  /**
   * Admits a request that presents `secret`, and registers it as in flight until `finish`.
   *
   * Synchronous for a cached token; otherwise it waits for a read, or for a unit of the cap.
   *
   * @param secret the presented value; neither stored nor logged.
   * @param digest its digest, if the caller already has it.
   * @param request asks for a route, and perhaps models. Its body is checked later, with `checkBody`.
   * @throws {Refusal} (or rejects with) `unauthorized`, `project_inactive`, `request_limit_reached`, `unavailable`, or what its policy refuses
   *   it with.
   */
  admit(secret: string, digest = digestOf(secret), request: Asking | null = null): Pass | Promise<Pass> {
    const account = this.accounts.usable(digest);
    if (account && this.#verdictOn(account, request) === null) return this.#createPass(account);
    // From here on all requests take the same path, so that the timing of a refusal does not reveal its reason.
    if (!isWellFormedSecret(secret)) throw unauthorized(); // Typos and guesses never reach the database.
    return withDatabaseTimeout(this.#clock, DATABASE_WAIT_MS, (isLate) =>
      this.#admitAfterWaiting(digest, request, isLate),
    );
  }

  async #admitAfterWaiting(digest: string, request: Asking | null, isLate: () => boolean): Promise<Pass> {
    for (;;) {
      if (isLate()) throw unavailable();
      const account = this.accounts.usable(digest);
      if (account === undefined) {
        if (this.accounts.isMissing(digest)) throw unauthorized();
        await this.accounts.refresh(digest);
      } else {
        const pass = await this.#enterOrWait(account, request);
        if (pass) return pass;
      }
    }
  }

  /** @returns null when it had to wait, so that all checks must be repeated. */
  async #enterOrWait(account: KnownAccount, request: Asking | null): Promise<Pass | null> {
    const { tokenId, projectId, known } = account;
    const { token, projectName } = known;
    try {
      if (this.#check(account, request)) return this.#createPass(account);
      await this.#settlement.unitsFor(account);
      return null;
    } catch (error) {
      const { name: tokenName, obfuscated } = token;
      if (error instanceof Refusal) error.subject = { tokenId, projectId, tokenName, projectName, obfuscated };
      throw error;
    }
  }

  /**
   * The account of a token for its holder, also if its cap is used up.
   *
   * @throws {Refusal} (rejects with) `unauthorized`, `project_inactive`, `unavailable`, as `admit` does.
   */
  async identify(secret: string, digest = digestOf(secret)): Promise<Account> {
    if (!isWellFormedSecret(secret)) throw unauthorized();
    return withDatabaseTimeout(this.#clock, DATABASE_WAIT_MS, async (isLate) => {
      for (;;) {
        if (isLate()) throw unavailable();
        const account = this.accounts.usable(digest);
        if (account) {
          this.#checkUsable(account.known);
          return account;
        }
        if (this.accounts.isMissing(digest)) throw unauthorized();
        await this.accounts.refresh(digest);
      }
    });
  }

  /**
   * The token of an account with its current counts, read from the database. If that is unavailable, the counts are those of the cached
   * state, which is up to 30 s older.
   *
   * @throws {Refusal} (rejects with) the same as `identify`.
   */
  async inspect(account: Account): Promise<InspectedToken> {
    const read = await this.#readForHolder(account);
    const known = read?.known ?? account.known;
    if (known === null) throw unavailable();
    this.#checkUsable(known);
    const { uses, hits, lastUsedAtMs } = this.unsettled(account.tokenId);
    const { upstreamAuth, projectPolicies, projectCreatedAtMs } = known;
    const token = withUnsettled(known.token, uses, hits, lastUsedAtMs);
    const nowMs = this.#clock.now();
    const spent = (of: { id: string; budget: Budget | null; createdAtMs: number }) => {
      const purse = this.purses.known(of.id);
      return spentOf(read?.purses.get(of.id) ?? purse?.counts, purse, of, nowMs);
    };
    const project = { id: token.projectId, budget: projectPolicies.budget, createdAtMs: projectCreatedAtMs };
    return { token, upstreamAuth, projectPolicies, spent: spent(token), projectSpent: spent(project) };
  }

  /** @returns null if the database is unavailable. */
  async #readForHolder({ digest }: Account): Promise<{ known: KnownToken; purses: KnownPurses } | null> {
    if (this.accounts.isDatabaseUnavailable) return null;
    const find = async () => {
      const known = await this.#lookup.byDigest(digest);
      return known && { known, purses: await this.#lookup.purses([known.token.id, known.token.projectId]) };
    };
    const read = () => this.#settlement.readBesideTicks(find);
    try {
      const found = await this.#holderReads.run(() => withDatabaseTimeout(this.#clock, DATABASE_WAIT_MS, read));
      if (found === null) throw unauthorized();
      return found;
    } catch (error) {
      if (error instanceof StoreUnavailable) return null;
      throw error;
    }
  }

  /**
   * Draws one use; the caller must forward the request without awaiting anything first. The use stays counted if the upstream
   * fails: a failing provider must not grant free attempts.
   *
   * @param isRead it passes the same checks, (d) included, and the token was used now, but it takes no unit and counts as no use.
   * @param isWithheld the use is counted by `forwarded`, or undone by `takeBack`; a pass that is finished before counts.
   * @param spending what the request reserves in budgets until `Budgets.settle`; null: nothing.
   * @returns a promise only when it has to wait.
   * @throws {Refusal} as `admit`, or the one the pass was ended with.
   */
  draw(
    pass: Pass,
    isRead = false,
    isWithheld = false,
    runsModel = !isRead,
    spending: Spending | null = null,
  ): undefined | Promise<void> {
    const kind = { isRequest: true, runsModel, spending };
    return this.#drawUntil(pass, kind, () => this.#tryDraw(pass, isRead, isWithheld));
  }

  /**
   * Takes a slot that the pass keeps until it is finished, without a use: for a connection on which each response is one.
   *
   * @returns a promise only when it has to wait.
   * @throws {Refusal} as `draw`.
   */
  hold(pass: Pass): undefined | Promise<void> {
    return this.#enter(pass, { isRequest: false, runsModel: false, spending: null }, () => this.#stillPasses(pass));
  }

  /**
   * Checks (a) to (d), then the limits, then the budgets, then `isDone`, which repeats the checks and may take a unit. If one step
   * fails, the previous ones are undone.
   */
  #enter(pass: Pass, kind: EntryKind, isDone: () => boolean): undefined | Promise<void> {
    const confirming = this.confirm(pass);
    if (confirming) return confirming.then(() => this.#enter(pass, kind, isDone));
    const { tokenId, known } = pass.account;
    const { spending, ...claimed } = kind;
    const scopes = known?.scopes;
    if (!scopes) return this.#entered(pass, null, spending, isDone);
    const entering = this.#limiter.enter({ scopes, tokenId, takesSlot: pass.slot === null, ...claimed });
    if (entering instanceof Promise) return entering.then((claim) => this.#entered(pass, claim, spending, isDone));
    return this.#entered(pass, entering, spending, isDone);
  }

  #entered(
    pass: Pass,
    claim: HeldClaim | null,
    spending: Spending | null,
    isDone: () => boolean,
  ): undefined | Promise<void> {
    const taken: Taken = { claim, hold: null };
    try {
      const holding = spending && this.budgets.reserve(pass, spending);
      if (!(holding instanceof Promise)) {
        taken.hold = holding;
        return this.#finishEntry(pass, taken, isDone);
      }
      return holding
        .then((hold) => {
          taken.hold = hold;
          return this.#finishEntry(pass, taken, isDone);
        })
        .catch((error: unknown) => this.#giveUp(taken, error));
    } catch (error) {
      return this.#giveUp(taken, error);
    }
  }

  #finishEntry(pass: Pass, taken: Taken, isDone: () => boolean): undefined | Promise<void> {
    if (isDone()) {
      this.#keep(pass, taken);
      return undefined;
    }
    return this.#until(pass, isDone).then(
      () => {
        // The request ended just when its unit was drawn.
        if (pass.isFinished) this.#giveUp(taken, new Error('the request has ended'));
        this.#keep(pass, taken);
      },
      (error: unknown) => this.#giveUp(taken, error),
    );
  }

  /** Undoes what was taken. Does nothing the second time. */
  #giveUp(taken: Taken, error: unknown): never {
    const { claim, hold } = taken;
    taken.claim = taken.hold = null;
    if (claim) this.#limiter.cancel(claim);
    if (hold) this.budgets.release(hold);
    throw error;
  }

  #keep(pass: Pass, { claim, hold }: Taken): void {
    if (hold) (pass.held ??= []).push(hold);
    if (claim) this.#keepClaim(pass, claim);
  }

  #keepClaim(pass: Pass, claim: HeldClaim): void {
    if (claim.tokens > 0) (pass.unsettled ??= []).push(claim);
    if (!claim.takesSlot) return;
    // Two responses on a connection whose token had no limits before.
    if (pass.slot) this.#limiter.leave(claim);
    else pass.slot = { claim, passes: 1 };
  }

  /**
   * The usage of a use of this pass is known: of the oldest of them, if there are several.
   *
   * @param tokens null if it is not known how many the model has used.
   */
  settleTokens(pass: Pass, tokens: number | null): void {
    const claim = pass.unsettled?.shift();
    if (claim) this.#limiter.settle(claim, pass.tokenId, tokens);
  }

  /** What is left of the limits of an account. Null without limits. @throws {Refusal} (rejects with) `unavailable` */
  async limitsLeft({ known }: Account): Promise<{ scope: LimitedScope; left: Limits }[]> {
    const scopes = known?.scopes ?? [];
    const left = await this.#limiter.left(scopes);
    return scopes.map((scope, at) => ({ scope, left: left[at] ?? {} }));
  }

  /**
   * The same for a message that asks for a response on a connection. It is a request of its own, so it is checked with the policy of now.
   *
   * @param message null if it was not read.
   * @param spending as for `draw`.
   */
  drawForMessage(
    pass: Pass,
    isRead: boolean,
    message: BodyModels | null,
    spending: Spending | null = null,
  ): undefined | Promise<void> {
    const isAllowed = () => {
      if (!this.#stillPasses(pass)) return false;
      this.checkMessage(pass, message, true);
      return true;
    };
    isAllowed(); // Before the limits.
    // Each response is settled, in turn: one that took nothing would be settled with what another has taken.
    const kind = { isRequest: true, runsModel: true, spending };
    return this.#drawUntil(pass, kind, () => isAllowed() && this.#tryDraw(pass, isRead, false));
  }

  #drawUntil(pass: Pass, kind: EntryKind, draw: () => boolean): undefined | Promise<void> {
    const isPlain = kind.spending === null && pass.account.known?.scopes === null;
    return isPlain && draw() ? undefined : this.#enter(pass, kind, draw);
  }

  /** Checks what a message on a connection asks for. @throws {Refusal} what the policy refuses it with. */
  checkMessage(pass: Pass, message: BodyModels | null, isRequest: boolean): void {
    const reason = this.policyOf(pass)?.reasonAgainstMessage(message, isRequest);
    if (reason) throw reason();
  }

  /** Checks what was read of the body of a request that is admitted. @throws {Refusal} what its policy refuses it with. */
  checkBody(pass: Pass, request: Asking): void {
    const reason = pass.policy?.reasonAgainst(request.asked);
    if (reason) throw reason();
  }

  /** The policy for the next message on a connection. */
  policyOf({ account, policy }: Pass): Policy | null {
    return account.known ? account.known.policy : policy;
  }

  /** The withheld use was forwarded. */
  forwarded(pass: Pass): void {
    const { account, withheldAt } = pass;
    if (withheldAt === null) return;
    pass.withheldAt = null;
    const isLost = account.isCapped && withheldAt !== account.losses; // Then it counts as used already.
    if (account.isCapped && !isLost) account.withheld -= 1;
    if (!isLost) this.#settlement.countUse(account);
  }

  /** The request of the withheld use is refused. */
  takeBack(pass: Pass): void {
    const { account, withheldAt, slot } = pass;
    pass.withheldAt = null;
    this.budgets.takeBack(pass);
    if (slot) {
      // The slot is returned when the request has ended.
      this.#limiter.cancel({ ...slot.claim, takesSlot: false });
      pass.unsettled = null;
    }
    if (withheldAt !== account.losses || !account.isCapped) return;
    account.withheld -= 1;
    account.units += 1;
    account.wake();
  }

  #until({ account }: Pass, isDone: () => boolean): Promise<void> {
    return withDatabaseTimeout(this.#clock, DATABASE_WAIT_MS, async (isLate) => {
      do {
        if (this.accounts.usable(account.digest)) await this.#settlement.unitsFor(account);
        else await this.accounts.refresh(account.digest);
        if (isLate()) throw unavailable();
      } while (!isDone());
    });
  }

  #tryDraw(pass: Pass, isRead: boolean, isWithheld: boolean): boolean {
    if (!this.#stillPasses(pass)) return false;
    const { account } = pass;
    if (isRead) {
      this.#settlement.noteRead(account);
      return true;
    }
    if (account.isCapped) account.units -= 1;
    if (isWithheld) {
      if (account.isCapped) account.withheld += 1;
      pass.withheldAt = account.losses;
    } else this.#settlement.countUse(account);
    return true;
  }

  /**
   * Checks (a) to (d) again, because time may have passed, before a request is answered from the cache or a connection is opened on
   * which each response is a use. This draws no use. For a hit the caller must call `countHit` without awaiting anything first.
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
    // The client disconnected during the wait: a request that is not forwarded is not counted.
    if (pass.isFinished) throw new Error('the request has ended');
    const { account } = pass;
    if (!this.accounts.usable(account.digest) || !isKnown(account)) {
      if (this.accounts.isMissing(account.digest)) throw unauthorized();
      return false;
    }
    return this.#check(account);
  }

  /**
   * Registers a second pass for work that outlasts its request, such as a response still being captured for the cache after its
   * client disconnected. End it with `finish`.
   *
   * @param pass must not be finished.
   */
  addCompanion(pass: Pass): Pass {
    const { account } = pass;
    const companion = pass.duplicate();
    account.inFlight.add(companion);
    return companion;
  }

  /** Call when the request has ended for any reason. */
  finish(pass: Pass): void {
    this.forwarded(pass);
    pass.isFinished = true;
    pass.holder = null;
    pass.account.inFlight.delete(pass);
    const { slot } = pass;
    if (slot === null) return;
    pass.slot = null;
    slot.passes -= 1;
    if (slot.passes === 0) this.#limiter.leave(slot.claim);
  }

  /**
   * Applies a change committed here or by another instance. Changes may arrive out of order.
   *
   * @param recordedAtMs when it was recorded (monotonic).
   */
  apply(change: NumberedChange, recordedAtMs = this.#clock.monotonic()): void {
    this.accounts.forget(change);
    const end = ENDING_REFUSALS[change.kind];
    if (!end) return;
    this.propagation.observe(this.#clock.monotonic() - recordedAtMs);
    for (const account of this.accounts.concernedBy(change)) {
      for (const pass of account.inFlight.all()) if (pass.changeSeq < change.seq) this.#end(pass, end());
    }
  }

  /** Ends a request in flight. A failure must not keep the other requests of a revoked token from ending. */
  #end(pass: Pass, refusal: Refusal): void {
    pass.ended = refusal;
    try {
      pass.holder?.cut(refusal);
    } catch (error) {
      this.#log.error('a request of a revoked token or inactive project did not end', { error });
    }
  }

  /** Changes may have been missed: drops all cached state, and ends requests in flight whose token is no longer valid. */
  async resynchronize(): Promise<void> {
    this.accounts.forgetAll();
    const busy = [...this.accounts.all()].filter(({ inFlight }) => inFlight.size > 0);
    // The database may have been restored from a backup, so that change numbers start again at an earlier value.
    for (const { inFlight } of busy) for (const pass of inFlight.all()) pass.changeSeq = -1;
    for (const account of busy) {
      await this.accounts.read(account.digest);
      const reason = this.#reasonToEnd(account);
      if (reason) for (const pass of account.inFlight.all()) this.#end(pass, reason());
    }
  }

  /** Why requests in flight of this account must end. Null also while its state is unknown. */
  #reasonToEnd({ digest, known }: Account): Reason | null {
    if (!known) return this.accounts.isMissing(digest) ? unauthorized : null;
    return reasonAgainst(known, BEFORE_EXPIRY);
  }

  /** Returns units and leases of budgets of these tokens and projects, for which other instances are waiting. */
  giveBackUnits(ids: Iterable<string>): void {
    for (const id of ids) {
      const account = this.accounts.byTokenId(id);
      if (account) this.#settlement.giveBackUnits(account);
      this.purses.giveBack(id);
    }
  }

  /** @see Settlement.giveBackIdleUnits */
  giveBackIdleUnits(): void {
    this.#settlement.giveBackIdleUnits();
  }

  /** @see Settlement.heartbeat */
  heartbeat(): Promise<void> {
    return this.#settlement.heartbeat();
  }

  /** Uses and hits of a token that are not yet written to the database. */
  unsettled(tokenId: string): { uses: number; hits: number; lastUsedAtMs: number } {
    const account = this.accounts.byTokenId(tokenId);
    if (!account) return { uses: 0, hits: 0, lastUsedAtMs: 0 };
    return {
      uses: account.uses + account.settlingUses,
      hits: account.hits + account.settlingHits,
      lastUsedAtMs: account.lastUsedAtMs,
    };
  }

  /** @see Settlement.readBetweenTicks */
  readBetweenTicks<T>(read: () => Promise<T>): Promise<T> {
    return this.#settlement.readBetweenTicks(read);
  }

  /**
   * Number of cached tokens, of digests in the negative cache, of requests in flight, of leases, and of undrawn units in them.
   * Iterates over all accounts: about 1 ms for 100,000.
   */
  get size(): { accounts: number; missing: number; inFlight: number; leases: number; leasedUnits: number } {
    let [inFlight, leases, leasedUnits] = [0, 0, 0];
    for (const account of this.accounts.all()) {
      inFlight += account.inFlight.size;
      if (account.units === 0) continue;
      leases += 1;
      leasedUnits += account.units;
    }
    return { ...this.accounts.size, inFlight, leases, leasedUnits };
  }

  /** @see Settlement.purses */
  get purses(): Settlement['purses'] {
    return this.#settlement.purses;
  }

  /** Settlement statistics. */
  get settling(): Pick<Settlement, 'durations' | 'failed'> {
    return this.#settlement;
  }

  /** At shutdown, after all requests have ended. */
  retire(): Promise<void> {
    return this.#settlement.retire(this.accounts.all());
  }

  /**
   * Checks (a) to (d), and the route and the models: the one rule for admission, draws and confirmations. A request that was admitted goes on
   * when its policy changes.
   *
   * @param request null if it was admitted.
   * @returns null if they pass, or why not; `waits` when only a unit of the cap is missing and may still become available.
   */
  #verdictOn({ known, isCapped, units, exhaustedUntilMs }: KnownAccount, request: Asking | null): Verdict {
    const reason = reasonAgainst(known, this.#clock.now());
    if (reason) return reason;
    if (isCapped && units <= 0) return this.#clock.monotonic() < exhaustedUntilMs ? limitReached : 'waits';
    return known.policy && request ? known.policy.reasonAgainst(request.asked) : null;
  }

  /** @returns false when a unit must be waited for. */
  #check(account: KnownAccount, request: Asking | null = null): boolean {
    const verdict = this.#verdictOn(account, request);
    if (verdict === null || verdict === 'waits') return verdict === null;
    throw verdict();
  }

  /** Checks (a) to (c). */
  #checkUsable(known: KnownToken): void {
    const reason = reasonAgainst(known, this.#clock.now());
    if (reason) throw reason();
  }

  #createPass(account: KnownAccount): Pass {
    const pass = new Pass(account, account.known);
    account.inFlight.add(pass);
    account.recentlyUsed = true;
    return pass;
  }
}

/** A request that asks for admission. */
export interface Asking {
  /** What it asks for. It is read only for a token with a policy. */
  readonly asked: Asked;
}

/** What a request enters as. */
type EntryKind = Pick<Wanted, 'isRequest' | 'runsModel'> & {
  /** What it reserves in budgets; null: nothing. */
  spending: Spending | null;
};

/** What a request has taken so far. */
interface Taken {
  claim: HeldClaim | null;
  hold: BudgetHold | null;
}

/** Why a request is refused: creates its refusal. */
type Reason = () => Refusal;
type Verdict = Reason | 'waits' | null;

/** Checks (a) to (c). A new reason to refuse a token belongs here, and takes effect at every step. */
function reasonAgainst({ token, projectIsActive }: KnownToken, nowMs: number): Reason | null {
  if (!token.isActive) return tokenRevoked;
  if (nowMs >= token.expiresAtMs) return tokenExpired;
  if (!projectIsActive) return projectInactive;
  return null;
}

/** The changes that end requests in flight, and the refusal for clients that have not received a response yet. */
const ENDING_REFUSALS: Partial<Record<Change['kind'], Reason>> = {
  'token.revoked': tokenRevoked,
  'tokens.revoked': tokenRevoked,
  'project.deactivated': projectInactive,
};
