import type { BudgetMode } from '../../api/vocabulary.js';
import {
  aheadOf,
  type Amount,
  haveSameTerms,
  leftOf,
  type PurseRow,
  type PurseState,
  type PurseTerms,
  stateOf,
} from './counts.js';
import { endOf, startOf } from './period.js';

export type { Amount, PurseState, PurseTerms } from './counts.js';

/** A budget as purses compare with it. */
export interface PurseBudget extends PurseTerms {
  mode: BudgetMode;
}

/** An amount that is set aside for a request, until `Purses.charge` or `Purses.release`. Of a unit without a limit, nothing is. */
export interface Reservation extends Readonly<Amount> {
  readonly purse: Purse;
  readonly lease: Lease;
  /** Start of the period that it is of. */
  readonly fromMs: number;
  /** When it was made; within that period. */
  readonly atMs: number;
}

/** What the database has set aside for this instance, of one period and under the terms of a budget. Nano-USD, and model tokens. */
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
  /** Charged, and not written yet. */
  spentNano = 0;
  spentTokens = 0;
  /** What was charged of what is in a tick whose outcome is not known. */
  settlingNano = 0;
  settlingTokens = 0;
  /** The database had less than what was asked for. */
  isShort = false;
  /** The database has counted all of it as spent. */
  isLost = false;

  constructor(fromMs: number, terms: PurseTerms) {
    this.fromMs = fromMs;
    this.endsMs = endOf(terms.period, fromMs);
    this.terms = terms;
  }

  /** Whether nothing of it is left that the database must be told. */
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

/** What was charged on another day than the current one. */
export interface DayCharges extends Amount {
  dayMs: number;
  unpriced: number;
}

/** A request that waits for more. */
export interface PurseWaiter {
  needed: Amount;
  budget: PurseBudget;
  /** Whether a tick has asked for it. */
  isAsked: boolean;
  resolve: (result: 'granted' | 'exhausted' | 'reserved') => void;
  reject: (reason: Error) => void;
}

/** What a purse tells those who write it. */
export interface PurseKeeper {
  /** Its lease ends, or is running low: include it in the next tick, or in one at once. */
  tend(purse: Purse, isUrgent: boolean): void;
}

/** How much is leased ahead: for so many requests such as the largest recent one, or what was set aside in so many intervals of ticks. */
const LARGEST_AHEAD = 4;
const INTERVALS_AHEAD = 2;
/** Share of that below which more is leased, with a tick at once. */
const REFILL_BELOW = 1 / 4;
/** The largest recent request is forgotten by this share with each tick. */
const FADING = 7 / 8;

/**
 * The part that this instance has of the money of one token or project: a lease, and what was charged and is not written yet. It has the ID of
 * its token or project.
 */
export class Purse {
  readonly id: string;
  readonly #keeper: PurseKeeper;

  /** What requests of one day were charged, which is nearly always the current one. */
  readonly charged: DayCharges = { dayMs: 0, nano: 0, tokens: 0, unpriced: 0 };
  chargedElsewhere: DayCharges[] | null = null;
  /** Those in a tick whose outcome is not known. */
  settling: readonly DayCharges[] | null = null;

  lease: Lease | null = null;
  /** Those that may no longer be used, until they are settled. */
  former: Lease[] | null = null;
  /** Whether the next tick takes nothing, and gives back what is free. */
  givesBack = false;
  /** Whether a tick is to take something ahead. */
  wantsMore = false;
  /** Whether a tick that takes something is in progress. */
  isTaking = false;

  /** As of the last tick that reported it. */
  counts: PurseRow | null = null;
  waiters: PurseWaiter[] | null = null;
  /** When it began to wait for what other instances hold (monotonic); null while it does not. */
  contendingSinceMs: number | null = null;
  cancelRetry: (() => void) | null = null;
  /** Until this time (monotonic) nothing is asked for: others, which waited for what was given back, take first. */
  yieldsUntilMs = -Infinity;
  /** The last amount that was reserved elsewhere, and until when (monotonic) it need not be asked for again. */
  refused: (Amount & { untilMs: number }) | null = null;

  /** Set aside since the last tick, and the largest recent amount. */
  drawn: Amount | null = null;
  largest: Amount | null = null;
  /** What should be leased, by the recent pace. */
  target: Amount | null = null;
  collectedAtMs = -Infinity;
  /** When it was last used (wall time). */
  usedAtMs = 0;
  /** It is no longer the purse of its ID: that has another one. */
  isForgotten = false;

  constructor(id: string, keeper: PurseKeeper) {
    this.id = id;
    this.#keeper = keeper;
  }

  /**
   * Sets an amount aside, of what is leased here. In mode `soft`, what is left if that is less and the database has no more.
   *
   * @returns null if not enough is leased here: ask `Purses.more`, and try again.
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
   * With each tick.
   *
   * @param intervals number of intervals of ticks since the last one.
   * @returns whether anything was set aside since.
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

  /** By the counts of the last tick. */
  #mostAhead(): Amount {
    const { counts, lease } = this;
    if (!counts || !lease) return { nano: 0, tokens: 0 };
    const left = leftOf(counts, lease.fromMs);
    return { nano: aheadOf(left.nano), tokens: aheadOf(left.tokens) };
  }

  /** The lease may no longer be used; what is free of it is given back with the next tick. */
  closeLease(): void {
    if (this.lease) (this.former ??= []).push(this.lease);
    this.lease = null;
  }

  /** Leases that the database knows of. */
  leases(): readonly Lease[] {
    if (this.former === null) return this.lease ? [this.lease] : [];
    return this.lease ? [this.lease, ...this.former] : this.former;
  }

  /** What was spent of the budget, and is reserved. Before the first tick that reported it, only what was charged here. */
  state(budget: PurseBudget | null, nowMs: number): PurseState {
    const period = budget?.period ?? 'none';
    const { counts } = this;
    const state: PurseState = counts
      ? stateOf(counts, period, nowMs)
      : {
          used: { nano: 0, tokens: 0 },
          reserved: { nano: 0, tokens: 0 },
          unpriced: 0,
          sinceMs: startOf(period, nowMs),
          endsMs: period === 'none' ? null : endOf(period, startOf(period, nowMs)),
        };
    for (const { dayMs, nano, tokens, unpriced } of this.unwritten()) {
      if (startOf(period, dayMs) !== state.sinceMs) continue;
      state.used.nano += nano;
      state.used.tokens += tokens;
      state.unpriced += unpriced;
    }
    // What was spent of a lease is in both.
    for (const { spentNano, settlingNano, spentTokens, settlingTokens } of this.leases()) {
      state.reserved.nano = Math.max(0, state.reserved.nano - spentNano - settlingNano);
      state.reserved.tokens = Math.max(0, state.reserved.tokens - spentTokens - settlingTokens);
    }
    return state;
  }

  /** What was charged and is not known to be written. */
  *unwritten(): Iterable<DayCharges> {
    yield this.charged;
    if (this.chargedElsewhere) yield* this.chargedElsewhere;
    if (this.settling) yield* this.settling;
  }

  get hasCharges(): boolean {
    const { nano, tokens, unpriced } = this.charged;
    return nano > 0 || tokens > 0 || unpriced > 0 || this.chargedElsewhere !== null;
  }

  /** Whether it has something that would be lost if it were forgotten. */
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
