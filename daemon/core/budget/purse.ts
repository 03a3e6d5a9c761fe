import { addedNano } from '../../api/money.js';
import type { BudgetMode } from '../../api/vocabulary.js';
import {
  add,
  type Amount,
  aheadOf,
  type DayCharge,
  haveSameTerms,
  isNothing,
  leastOf,
  leftOf,
  nothing,
  type PurseCounts,
  type PurseTerms,
  subtract,
  UNITS,
} from './counts.js';
import { endOf } from './period.js';

/** A budget as purses compare with it. */
export interface PurseBudget extends PurseTerms {
  mode: BudgetMode;
}

/** An amount that is set aside for a request until `Purses.charge` or `Purses.release`. It is 0 in a unit without a limit. */
export interface Reservation extends Readonly<Amount> {
  readonly purse: Purse;
  readonly lease: Lease;
  /** When it was made. The time lies in the period of the lease. */
  readonly atMs: number;
}

/** A part of a budget that the database has set aside for this instance, in one period and under the terms of the budget. */
export class Lease {
  readonly fromMs: number;
  readonly endsMs: number;
  readonly terms: PurseTerms;
  /** All of it: what is free, what is set aside for requests that have not ended, and what is charged and not settled. */
  readonly whole = nothing();
  /** Not set aside for a request. */
  free = nothing();
  /** Charged, and not settled yet. */
  spent = nothing();
  /** Charged, and part of a tick whose outcome is not known. It no longer belongs to the whole. */
  settling = nothing();
  /** The database granted less than was requested. */
  isShort = false;
  /** The database has counted all of it as spent. */
  isLost = false;

  constructor(fromMs: number, terms: PurseTerms) {
    this.fromMs = fromMs;
    this.endsMs = endOf(terms.period, fromMs);
    this.terms = terms;
  }

  grow(granted: Amount): void {
    add(this.whole, granted);
    add(this.free, granted);
  }

  /** @returns what leaves it with the next tick: what was charged, and also what is free if it is no longer needed. */
  settle(isNeeded: boolean): Amount {
    const left = { ...this.spent };
    this.settling = this.spent;
    this.spent = nothing();
    if (!isNeeded) {
      add(left, this.free);
      this.free = nothing();
    }
    subtract(this.whole, left);
    return left;
  }
}

export const NONE: readonly never[] = [];

/** `granted`: try again. `exhausted`: the amount does not fit. `reserved`: it fits after other requests have ended. */
export type MoreResult = 'granted' | 'exhausted' | 'reserved';

/** A request that waits until the database grants more. */
export interface PurseWaiter {
  needed: Amount;
  budget: PurseBudget;
  /** Whether a tick has requested it. */
  isAsked: boolean;
  resolve: (result: MoreResult) => void;
  reject: (reason: Error) => void;
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
  /** Includes the purse in the next tick, which runs at once if that is urgent. */
  readonly #tend: (purse: Purse, isUrgent: boolean) => void;

  /** Charges of the newest day, which is nearly always the current one, then those of other days. */
  charges: readonly DayCharge[] = NONE;
  /** Charges in a tick whose outcome is not known. */
  settling: readonly DayCharge[] = NONE;

  lease: Lease | null = null;
  /** Closed leases, until they are settled. */
  former: readonly Lease[] = NONE;
  /** Whether the next tick returns what is free, and requests nothing. */
  givesBack = false;
  /** Whether the next tick leases ahead. */
  wantsMore = false;
  /** Whether a tick that requests a lease is in progress. */
  isTaking = false;

  /** As of the last tick that reported it. */
  counts: PurseCounts | null = null;
  /** Whether the next charge asks for them, because a budget is compared with them. */
  needsCounts = false;
  waiters: PurseWaiter[] = [];
  /** When it began to wait for what other instances have leased (monotonic); null while it does not wait. */
  contendingSinceMs: number | null = null;
  cancelRetry: (() => void) | null = null;
  /** Until this time (monotonic) it requests nothing, so that the instances that waited for what it returned come first. */
  yieldsUntilMs = -Infinity;
  /** The last amount that was refused as reserved, and until when (monotonic) it is refused without asking the database again. */
  refused: (Amount & { untilMs: number }) | null = null;

  /** Sum of the reservations since the last tick, and the largest recent one. */
  readonly #drawn = nothing();
  readonly #largest = nothing();
  /** How much to have leased, by the recent pace. */
  readonly target = nothing();
  collectedAtMs = -Infinity;
  /** When it was last used (wall time). */
  usedAtMs = 0;

  constructor(id: string, tend: (purse: Purse, isUrgent: boolean) => void) {
    this.id = id;
    this.#tend = tend;
  }

  /**
   * Sets an amount aside from the lease. Unless the mode is `hard`, it sets aside what is left if that is less and the database has no more.
   *
   * @returns null if not enough is leased: call `Purses.more`, and try again.
   */
  tryReserve(amount: Amount, budget: PurseBudget, nowMs: number): Reservation | null {
    const { lease } = this;
    if (lease === null) return null;
    if (nowMs >= lease.endsMs || !haveSameTerms(lease.terms, budget)) {
      this.closeLease();
      this.#tend(this, false);
      return null;
    }
    const { free } = lease;
    let { nano, tokens } = neededOf(amount, budget);
    if (free.nano < nano || free.tokens < tokens) {
      if (budget.mode === 'hard' || !lease.isShort) return null;
      if ((nano > 0 && free.nano === 0) || (tokens > 0 && free.tokens === 0)) return null;
      nano = Math.min(nano, free.nano);
      tokens = Math.min(tokens, free.tokens);
    }
    const reservation = { nano, tokens, purse: this, lease, atMs: Math.max(nowMs, lease.fromMs) };
    subtract(free, reservation);
    this.usedAtMs = nowMs;
    this.#draw(reservation, lease);
    return reservation;
  }

  #draw({ nano, tokens }: Amount, { free, isShort }: Lease): void {
    const { target } = this;
    this.#drawn.nano += nano;
    this.#drawn.tokens += tokens;
    this.#largest.nano = Math.max(this.#largest.nano, nano);
    this.#largest.tokens = Math.max(this.#largest.tokens, tokens);
    if (this.isTaking || this.wantsMore || isShort) return;
    if (free.nano >= target.nano * REFILL_BELOW && free.tokens >= target.tokens * REFILL_BELOW) return;
    this.wantsMore = true;
    this.#tend(this, true);
  }

  /**
   * Updates `target`. Called with each tick.
   *
   * @param intervals number of intervals of ticks since the last one.
   * @returns whether anything was reserved since then.
   */
  measurePace(intervals: number): boolean {
    const hasDrawn = !isNothing(this.#drawn);
    const { counts, lease } = this;
    // As much as the counts of the last tick allow.
    const left = counts && lease ? leftOf(counts, lease.fromMs) : nothing();
    for (const unit of UNITS) {
      const pace = this.#drawn[unit] / Math.max(intervals, 1 / 100);
      const wish = Math.ceil(Math.max(LARGEST_AHEAD * this.#largest[unit], INTERVALS_AHEAD * pace));
      this.target[unit] = Math.min(wish, aheadOf(left[unit]));
      this.#drawn[unit] = 0;
      this.#largest[unit] = Math.floor(this.#largest[unit] * FADING);
    }
    return hasDrawn;
  }

  /** Stops using the lease. The next tick returns what is free of it. */
  closeLease(): void {
    if (this.lease) this.former = [...this.former, this.lease];
    this.lease = null;
  }

  /** The open and the closed leases that are not settled. */
  get leases(): readonly Lease[] {
    return this.lease ? [this.lease, ...this.former] : this.former;
  }

  /** Adds a charge to the others of its day. */
  charge({ dayMs, nano, tokens, unpriced }: DayCharge): void {
    const newest = this.charges[0];
    let sum = newest?.dayMs === dayMs ? newest : this.charges.find((each) => each.dayMs === dayMs);
    if (!sum) {
      sum = { dayMs, nano: 0, tokens: 0, unpriced: 0 };
      this.charges = [...this.charges, sum].sort((one, other) => other.dayMs - one.dayMs);
    }
    sum.nano = addedNano(sum.nano, nano);
    sum.tokens = Math.min(Number.MAX_SAFE_INTEGER, sum.tokens + tokens);
    sum.unpriced += unpriced;
  }

  /** Moves the charges into a tick. */
  collectCharges(): readonly DayCharge[] {
    this.settling = this.charges;
    this.charges = NONE;
    return this.settling;
  }

  /** These charges from a lost lease count as spent already. The newest charges are most likely from it. */
  takeBack(amount: Amount): void {
    const left = { ...amount };
    for (const charge of this.charges) {
      const part = leastOf(left, charge);
      subtract(charge, part);
      subtract(left, part);
    }
    this.charges = this.charges.filter((charge) => !isNothing(charge) || charge.unpriced > 0);
  }
}

/** What of an amount a budget limits. Every request needs something, so that none passes when all is spent, and a free one finds a lease. */
export function neededOf({ nano, tokens }: Amount, { limitNano, limitTokens }: PurseTerms): Amount {
  return {
    nano: limitNano === null ? 0 : Math.max(1, nano),
    tokens: limitTokens === null ? 0 : Math.max(1, tokens),
  };
}
