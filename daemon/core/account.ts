import type { MissingUsage, UpstreamAuth } from '../api/vocabulary.js';
import type { BudgetHold, OwnedBudget } from './budget/owned-budget.js';
import { pricedProviderOf } from './cost/priced-providers.js';
import { LinkedSet, LinkedSetMember } from './linked-set.js';
import type { Policy } from './policy/policy.js';
import type { HeldClaim, KnownToken, LimitedScope } from './ports.js';
import type { Refusal } from './refusal.js';
import { digestOf } from './token.js';

/** State of a token as read from the database. Immutable: replaced as a whole. */
export interface AccountSnapshot extends KnownToken {
  /** Which routes and models it may use; null: all. */
  policy: Policy | null;
  /** From this time on (monotonic) it must be read again before use. */
  recheckAtMs: number;
  /** Expiry in RFC 3339, formatted on first use because every response carries it. */
  expiresAt: string | null;
  /** Computed on first use because every cache lookup needs it. */
  upstreamDigest: string | null;
  /** The provider whose prices apply, found on first use; null if it is unknown, or the project has no base URL of its own. */
  pricedProvider: string | null | undefined;
  /** What limits the token; null if nothing does. */
  scopes: readonly LimitedScope[] | null;
  /** The budgets that its requests must fit; null: neither it nor its project has one. */
  budgets: readonly OwnedBudget[] | null;
}

/**
 * In-memory account of one token: cached state (`known`), lease, and unsettled uses. Invalidation drops only the cached state.
 */
export class Account {
  readonly digest: string;
  readonly tokenId: string;
  readonly projectId: string;
  /** Stored outside `known`, because the cap of a token never changes. */
  readonly isCapped: boolean;
  known: AccountSnapshot | null = null;

  // The lease: units of a cap that the database has set aside for this instance.
  /** Leased units that are not yet drawn. */
  units = 0;
  /** Drawn units of requests of which it is not known yet whether they will be forwarded. They belong to the lease, and are no uses. */
  withheld = 0;
  /** How often the lease was lost: what was withheld before that cannot be returned. */
  losses = 0;
  /** Units requested by the tick in progress. */
  taking = 0;
  /** Whether the next tick requests units. */
  wantsUnits = false;
  /** Whether the next tick gives back the undrawn units. */
  givesBack = false;
  /** When it began to wait for units held by other instances (monotonic); null while it does not wait. */
  contendingSinceMs: number | null = null;
  /** Cancels the timer for requesting them again. */
  cancelRetry: (() => void) | null = null;
  /** Until this time (monotonic) no units are requested: others, which waited for those given back, take them first. */
  yieldsUntilMs = -Infinity;
  /** Recent number of uses per tick interval. */
  pace = 0;
  /** When its uses were last collected (monotonic). */
  collectedAtMs = -Infinity;
  /** Units that were still free in the database, as last reported. */
  left = 0;
  /** Until this time (monotonic) no units are requested, because the database had none left. */
  exhaustedUntilMs = 0;
  waiters: { resolve: () => void; reject: (reason: Error) => void }[] = [];

  // Counted here and not yet written to the database.
  uses = 0;
  hits = 0;
  /** Included in a tick that is not known to be committed yet. */
  settlingUses = 0;
  settlingHits = 0;
  lastUsedAtMs = 0;

  readonly inFlight = new LinkedSet<Pass>();
  /** Set by each use, cleared by the eviction's clock hand (see account-cache.ts). */
  recentlyUsed = true;

  constructor(digest: string, tokenId: string, projectId: string, isCapped: boolean) {
    this.digest = digest;
    this.tokenId = tokenId;
    this.projectId = projectId;
    this.isCapped = isCapped;
  }

  /** Whether it has units, counts or requests that eviction would lose. */
  get isBusy(): boolean {
    return (
      this.units > 0 ||
      this.taking > 0 ||
      this.uses > 0 ||
      this.hits > 0 ||
      this.settlingUses > 0 ||
      this.settlingHits > 0 ||
      this.inFlight.size > 0 ||
      this.waiters.length > 0
    );
  }

  wake(): void {
    const { waiters } = this;
    this.waiters = [];
    for (const waiter of waiters) waiter.resolve();
  }

  fail(reason: Error): void {
    const { waiters } = this;
    this.waiters = [];
    this.contendingSinceMs = null;
    for (const waiter of waiters) waiter.reject(reason);
  }
}

/** Clients are warned when less than this share of a lifetime or cap is left. */
const WARNING_DIVISOR = 10;

/** What a pass permits, such as a request. */
export interface PassHolder {
  /** Its token was revoked or its project deactivated. */
  cut(refusal: Refusal): void;
}

/** A slot of a request, which is returned when the last of its passes has ended. */
export interface PassSlot {
  claim: HeldClaim;
  passes: number;
}

/** Permission for one request, valid from its admission until it ends. */
export class Pass extends LinkedSetMember {
  readonly account: Account;
  readonly #known: AccountSnapshot;
  readonly tokenId: string;
  readonly projectId: string;
  readonly obfuscated: string;
  readonly upstreamKey: string;
  readonly upstreamBaseUrl: string | null;
  readonly upstreamAuth: UpstreamAuth;
  readonly missingUsage: MissingUsage;
  /** Whether the request has ended; then no use can be drawn. */
  isFinished = false;
  /** For a use that may still be undone: `losses` of the account when it was drawn. */
  withheldAt: number | null = null;
  /** Its slot; null if its token has no limits. A second pass of the same request shares it. */
  slot: PassSlot | null = null;
  /** Claims for tokens of models whose usage is not known yet, the oldest first. */
  unsettled: HeldClaim[] | null = null;
  /** The reservations of its uses in budgets that are not settled yet, the oldest first. */
  held: BudgetHold[] | null = null;
  /** Set when the token was revoked, or the project deactivated, while the request was in flight. */
  ended: Refusal | null = null;
  /**
   * Number of the last change that the state used for admission included. Changes up to this number do not end the request, even if
   * they arrive later. Negative when numbers are no longer comparable (the database was restored).
   */
  changeSeq: number;
  /**
   * Is told when `ended` is set. An object, not a function: in code that is not optimized yet, V8 allocates a function in the old generation
   * if it is written where it is assigned to a property. A request's data that it refers to is then garbage until the next full collection.
   */
  holder: PassHolder | null = null;

  constructor(account: Account, known: AccountSnapshot) {
    super();
    this.account = account;
    this.#known = known;
    this.tokenId = account.tokenId;
    this.projectId = account.projectId;
    this.obfuscated = known.token.obfuscated;
    this.upstreamKey = known.upstreamKey;
    this.upstreamBaseUrl = known.upstreamBaseUrl;
    this.upstreamAuth = known.upstreamAuth;
    this.missingUsage = known.missingUsage;
    this.changeSeq = known.changeSeq;
  }

  /** A second pass with the same permission. */
  duplicate(): Pass {
    const pass = new Pass(this.account, this.#known);
    pass.changeSeq = this.changeSeq;
    pass.slot = this.slot;
    if (pass.slot) pass.slot.passes += 1;
    return pass;
  }

  /** Which routes and models the request may use, as of its admission; null: all. */
  get policy(): Policy | null {
    return this.#known.policy;
  }

  /** The budgets that the request must fit, as of its admission; null without a budget. */
  get budgets(): readonly OwnedBudget[] | null {
    return this.#known.budgets;
  }

  get tokenName(): string | null {
    return this.#known.token.name;
  }

  get projectName(): string {
    return this.#known.projectName;
  }

  /** Identifies the upstream and its key without revealing it. */
  get upstreamDigest(): string {
    return (this.#known.upstreamDigest ??= digestOf(
      this.upstreamBaseUrl === null ? this.upstreamKey : `${this.upstreamKey} ${this.upstreamBaseUrl}`,
    ));
  }

  /** The provider of `upstreamBaseUrl`, whose prices apply; null if it is unknown. */
  get pricedProvider(): string | null {
    if (this.#known.pricedProvider === undefined) {
      const { upstreamBaseUrl: baseUrl, upstreamAuth: auth } = this;
      this.#known.pricedProvider = baseUrl === null ? null : pricedProviderOf(baseUrl, auth);
    }
    return this.#known.pricedProvider;
  }

  /** In ms since the epoch. */
  get expiresAtMs(): number {
    return this.#known.token.expiresAtMs;
  }

  /** The same in RFC 3339. */
  get expiresAt(): string {
    return (this.#known.expiresAt ??= new Date(this.#known.token.expiresAtMs).toISOString());
  }

  /**
   * A warning for the client once less than a tenth of the lifetime or of the cap is left, such as `expires-in=540` (seconds) or
   * `requests-left=4%`; both are joined as one list. Null before that.
   */
  warning(nowMs: number): string | null {
    const { expiresAtMs, createdAtMs, maxRequests } = this.#known.token;
    const leftMs = expiresAtMs - nowMs;
    const { remaining } = this;
    const endsSoon = leftMs * WARNING_DIVISOR < expiresAtMs - createdAtMs;
    const isScarce = remaining !== null && remaining * WARNING_DIVISOR < maxRequests;
    if (!endsSoon && !isScarce) return null;
    const warnings = [];
    if (endsSoon) warnings.push(`expires-in=${Math.max(0, Math.floor(leftMs / 1000))}`);
    if (isScarce) warnings.push(`requests-left=${Math.floor((100 * remaining) / maxRequests)}%`);
    return warnings.join(', ');
  }

  /** Lower bound of the uses left in the cap; null when unlimited. */
  get remaining(): number | null {
    return this.account.isCapped ? this.account.units + this.account.left : null;
  }
}

const USUAL_LEASE = 256;
const DIVISOR_OF_UNITS_LEFT = 16;
// Above the usual number, a busy token may hold only this small share of the units left.
const BUSY_DIVISOR = 256;

/**
 * Number of units that an instance may hold of a cap with `left` free units. Few when few are left, so that the units lost if the
 * process is killed, and those not available to other instances, stay a small share. A token that draws more per tick interval may
 * hold that many, so that it is written no more often than an unlimited token.
 */
export function leaseTarget(left: number, pace: number): number {
  const most = Math.max(USUAL_LEASE, Math.min(pace, left / BUSY_DIVISOR));
  return Math.max(1, Math.floor(Math.min(most, left / DIVISOR_OF_UNITS_LEFT)));
}
