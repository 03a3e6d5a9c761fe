import type { BudgetMode, BudgetPeriod } from '../../api/vocabulary.js';
import {
  aheadOf,
  type Amount,
  currentStart,
  haveSameTerms,
  leasedIn,
  leftOf,
  type PurseRow,
  type PurseState,
  type PurseTerms,
  type Spending,
  spendingIn,
} from './counts.js';
import { endOf, startOf } from './period.js';

export type { Amount, PurseState, PurseTerms } from './counts.js';

/** A budget as purses compare with it. */
export interface PurseBudget extends PurseTerms {
  mode: BudgetMode;
}

/** An amount that is set aside for a request until `Purses.charge` or `Purses.release`. It is 0 in a unit without a limit. */
export interface Reservation extends Readonly<Amount> {
  readonly purse: Purse;
  readonly lease: Lease;
  /** Start of the period that it belongs to. */
  readonly fromMs: number;
  /** When it was made. The time lies in that period. */
  readonly atMs: number;
}

/** A part of a budget that the database has set aside for this instance, in one period and under the terms of the budget. In nano-USD and model tokens. */
export class Lease {
  readonly fromMs: number;
  readonly endsMs: number;
  readonly terms: PurseTerms;
  /** Not set aside for a request. */
  freeNano = 0;
  freeTokens = 0;
  /** Set aside for requests that have not ended. */
  heldNano = 0;
  heldTokens = 0;
  /** Number of these requests. */
  holders = 0;
  /** Charged, and not settled yet. */
  spentNano = 0;
  spentTokens = 0;
  /** Charged, and part of a tick whose outcome is not known. */
  settlingNano = 0;
  settlingTokens = 0;
  /** The database granted less than was requested. */
  isShort = false;
  /** The database has counted all of it as spent. */
  isLost = false;

  constructor(fromMs: number, terms: PurseTerms) {
    this.fromMs = fromMs;
    this.endsMs = endOf(terms.period, fromMs);
    this.terms = terms;
  }

  /** Whether nothing of it remains to be settled. */
  get isOver(): boolean {
    return this.holders === 0 && this.hasNothing && this.settlingNano === 0 && this.settlingTokens === 0;
  }

  get hasNothing(): boolean {
    return this.freeNano === 0 && this.freeTokens === 0 && this.spentNano === 0 && this.spentTokens === 0;
  }

  get nano(): number {
    return this.freeNano + this.heldNano + this.spentNano;
  }

  get tokens(): number {
    return this.freeTokens + this.heldTokens + this.spentTokens;
  }
}

/** What was charged on one UTC day. */
export interface DayCharges extends Amount {
  dayMs: number;
  unpriced: number;
}

/** A request that waits until the database grants more. */
export interface PurseWaiter {
  needed: Amount;
  budget: PurseBudget;
  /** Whether a tick has requested it. */
  isAsked: boolean;
  resolve: (result: 'granted' | 'exhausted' | 'reserved') => void;
  reject: (reason: Error) => void;
}

/** Schedules the settlement of purses. */
export interface PurseKeeper {
  /** Includes the purse in the next tick. @param isUrgent run a tick at once. */
  tend(purse: Purse, isUrgent: boolean): void;
}

/** What is leased ahead: 4 times the largest recent reservation, or what was reserved in 2 intervals of ticks, whichever is more. */
const LARGEST_AHEAD = 4;
const INTERVALS_AHEAD = 2;
/** Share of the target below which a tick leases more at once. */
const REFILL_BELOW = 1 / 4;
/** With each tick the largest recent reservation fades to this share. */
const FADING = 7 / 8;

/**
 * What this instance holds of the spending of one token or project: a lease of its budget, and the charges that are not settled yet. Its ID is
 * that of the token or project.
 */
export class Purse {
  readonly id: string;
  readonly #keeper: PurseKeeper;

  /** Charges of the newest day, which is nearly always the current one. */
  readonly charged: DayCharges = { dayMs: 0, nano: 0, tokens: 0, unpriced: 0 };
  chargedElsewhere: DayCharges[] | null = null;
  /** Charges in a tick whose outcome is not known. */
  settling: readonly DayCharges[] | null = null;

  lease: Lease | null = null;
  /** Closed leases, until they are settled. */
  former: Lease[] | null = null;
  /** Whether the next tick returns what is free, and requests nothing. */
  givesBack = false;
  /** Whether the next tick leases ahead. */
  wantsMore = false;
  /** Whether a tick that requests a lease is in progress. */
  isTaking = false;

  /** As of the last tick that reported it. */
  counts: PurseRow | null = null;
  waiters: PurseWaiter[] | null = null;
  /** When it began to wait for what other instances have leased (monotonic); null while it does not wait. */
  contendingSinceMs: number | null = null;
  cancelRetry: (() => void) | null = null;
  /** Until this time (monotonic) it requests nothing, so that the instances that waited for what it returned come first. */
  yieldsUntilMs = -Infinity;
  /** The last amount that was refused as reserved, and until when (monotonic) it is refused without asking the database again. */
  refused: (Amount & { untilMs: number }) | null = null;

  /** Sum of the reservations since the last tick, and the largest recent one. */
  drawn: Amount | null = null;
  largest: Amount | null = null;
  /** How much to have leased, by the recent pace. */
  target: Amount | null = null;
  collectedAtMs = -Infinity;
  /** When it was last used (wall time). */
  usedAtMs = 0;
  /** It was removed from memory. Its ID may have another purse now. */
  isForgotten = false;

  constructor(id: string, keeper: PurseKeeper) {
    this.id = id;
    this.#keeper = keeper;
  }

  /**
   * Sets an amount aside from the lease. In mode `soft` it sets aside what is left if that is less and the database has no more.
   *
   * @returns null if not enough is leased: call `Purses.more`, and try again.
   */
  tryReserve(amount: Amount, budget: PurseBudget, nowMs: number): Reservation | null {
    const { lease } = this;
    if (lease === null) return null;
    if (nowMs >= lease.endsMs || !haveSameTerms(lease.terms, budget)) {
      this.closeLease();
      this.#keeper.tend(this, false);
      return null;
    }
    let { nano, tokens } = neededOf(amount, budget);
    if (lease.freeNano < nano || lease.freeTokens < tokens) {
      if (budget.mode !== 'soft' || !lease.isShort) return null;
      if ((nano > 0 && lease.freeNano === 0) || (tokens > 0 && lease.freeTokens === 0)) return null;
      nano = Math.min(nano, lease.freeNano);
      tokens = Math.min(tokens, lease.freeTokens);
    }
    lease.freeNano -= nano;
    lease.freeTokens -= tokens;
    lease.heldNano += nano;
    lease.heldTokens += tokens;
    lease.holders += 1;
    this.usedAtMs = nowMs;
    this.#drew(nano, tokens, lease);
    return { purse: this, lease, nano, tokens, fromMs: lease.fromMs, atMs: Math.max(nowMs, lease.fromMs) };
  }

  #drew(nano: number, tokens: number, lease: Lease): void {
    const drawn = (this.drawn ??= { nano: 0, tokens: 0 });
    const largest = (this.largest ??= { nano: 0, tokens: 0 });
    drawn.nano += nano;
    drawn.tokens += tokens;
    largest.nano = Math.max(largest.nano, nano);
    largest.tokens = Math.max(largest.tokens, tokens);
    if (this.isTaking || this.wantsMore || this.target === null || lease.isShort) return;
    const isLow = (free: number, target: number) => free < target * REFILL_BELOW;
    if (!isLow(lease.freeNano, this.target.nano) && !isLow(lease.freeTokens, this.target.tokens)) return;
    this.wantsMore = true;
    this.#keeper.tend(this, true);
  }

  /**
   * Updates `target`. Called with each tick.
   *
   * @param intervals number of intervals of ticks since the last one.
   * @returns whether anything was reserved since then.
   */
  measurePace(intervals: number): boolean {
    const { drawn, largest } = this;
    if (!drawn || !largest) return false;
    const hasDrawn = drawn.nano > 0 || drawn.tokens > 0;
    const most = this.#mostAhead();
    const target = (this.target ??= { nano: 0, tokens: 0 });
    for (const unit of ['nano', 'tokens'] as const) {
      const pace = drawn[unit] / Math.max(intervals, 1 / 100);
      const wish = Math.ceil(Math.max(LARGEST_AHEAD * largest[unit], INTERVALS_AHEAD * pace));
      target[unit] = Math.min(wish, most[unit]);
      drawn[unit] = 0;
      largest[unit] = Math.floor(largest[unit] * FADING);
    }
    return hasDrawn;
  }

  /** The most that may be leased ahead, by the counts of the last tick. */
  #mostAhead(): Amount {
    const { counts, lease } = this;
    if (!counts || !lease) return { nano: 0, tokens: 0 };
    const left = leftOf(counts, lease.fromMs);
    return { nano: aheadOf(left.nano), tokens: aheadOf(left.tokens) };
  }

  /** Stops using the lease. The next tick returns what is free of it. */
  closeLease(): void {
    if (this.lease) (this.former ??= []).push(this.lease);
    this.lease = null;
  }

  /** The open and the closed leases that are not settled. */
  leases(): readonly Lease[] {
    if (this.former === null) return this.lease ? [this.lease] : [];
    return this.lease ? [this.lease, ...this.former] : this.former;
  }

  /** What is spent and reserved of the budget. Before the first tick has reported counts, only what was charged here. */
  state(budget: PurseBudget | null, nowMs: number): PurseState {
    const period = budget?.period ?? 'none';
    const { counts } = this;
    const sinceMs = this.#startOf(period, nowMs);
    const { unpriced, ...used } = this.spending(period, nowMs);
    const reserved = counts ? leasedIn(counts, sinceMs) : { nano: 0, tokens: 0 };
    // What was charged from a lease is in both sums.
    for (const { spentNano, settlingNano, spentTokens, settlingTokens } of this.leases()) {
      reserved.nano = Math.max(0, reserved.nano - spentNano - settlingNano);
      reserved.tokens = Math.max(0, reserved.tokens - spentTokens - settlingTokens);
    }
    return { used, reserved, unpriced, sinceMs, endsMs: period === 'none' ? null : endOf(period, sinceMs) };
  }

  /** What is spent in the current period. Each response asks for it. */
  spending(period: BudgetPeriod, nowMs: number): Spending {
    const { counts } = this;
    const sinceMs = this.#startOf(period, nowMs);
    const sum = counts ? spendingIn(counts, period, sinceMs) : { nano: 0, tokens: 0, unpriced: 0 };
    addDay(sum, this.charged, period, sinceMs);
    for (const day of this.chargedElsewhere ?? []) addDay(sum, day, period, sinceMs);
    for (const day of this.settling ?? []) addDay(sum, day, period, sinceMs);
    return sum;
  }

  #startOf(period: BudgetPeriod, nowMs: number): number {
    const startMs = startOf(period, nowMs);
    return this.counts ? currentStart(this.counts, period, startMs) : startMs;
  }

  /** Charges that are not known to be settled. */
  unwritten(): readonly DayCharges[] {
    return [this.charged, ...(this.chargedElsewhere ?? []), ...(this.settling ?? [])];
  }

  get hasCharges(): boolean {
    const { nano, tokens, unpriced } = this.charged;
    return nano > 0 || tokens > 0 || unpriced > 0 || this.chargedElsewhere !== null;
  }

  /** Whether removing it from memory would lose something. */
  get isBusy(): boolean {
    return (
      this.hasCharges ||
      this.settling !== null ||
      this.lease !== null ||
      this.former !== null ||
      this.waiters !== null ||
      this.cancelRetry !== null ||
      this.isTaking
    );
  }
}

/** What of an amount a budget limits. Every request needs something, so that none passes when all is spent, and a free one finds a lease. */
export function neededOf({ nano, tokens }: Amount, { limitNano, limitTokens }: PurseTerms): Amount {
  return {
    nano: limitNano === null ? 0 : Math.max(1, nano),
    tokens: limitTokens === null ? 0 : Math.max(1, tokens),
  };
}

function addDay(sum: Spending, { dayMs, nano, tokens, unpriced }: DayCharges, period: BudgetPeriod, sinceMs: number) {
  if (startOf(period, dayMs) !== sinceMs) return;
  sum.nano += nano;
  sum.tokens += tokens;
  sum.unpriced += unpriced;
}
