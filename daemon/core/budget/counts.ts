/** The counts of a purse in the database: what was spent, and what is leased. Whole numbers of nano-USD and model tokens. */
import type { BudgetPeriod } from '../../api/vocabulary.js';
import { startOf } from './period.js';

/** Whole numbers. */
export interface Amount {
  /** Nano-USD. */
  nano: number;
  /** Model tokens, of prompts and completions. */
  tokens: number;
}

/** The limits and the period of a budget. A lease that was taken under other terms is returned. */
export interface PurseTerms {
  /** Null: no limit in this unit. */
  limitNano: number | null;
  limitTokens: number | null;
  period: BudgetPeriod;
}

export const haveSameTerms = (one: PurseTerms, other: PurseTerms): boolean =>
  one.limitNano === other.limitNano && one.limitTokens === other.limitTokens && one.period === other.period;

/** The counts of a token or project in the database, with or without a budget. */
export interface PurseCounts {
  lifeNano: number;
  lifeTokens: number;
  lifeUnpriced: number;
  /** Start of the month that the counts of the month belong to; `dayFromMs` likewise. */
  monthFromMs: number;
  monthNano: number;
  monthTokens: number;
  monthUnpriced: number;
  dayFromMs: number;
  dayNano: number;
  dayTokens: number;
  dayUnpriced: number;
  /** Start of the period of the leases, and what instances have leased in it and not settled. */
  leasedFromMs: number;
  leasedNano: number;
  leasedTokens: number;
}

/** A row of the database. Day and month are always counted, so that a change of the period resets nothing. */
export interface PurseRow extends PurseCounts, PurseTerms {}

/** What was spent, and the number of requests whose cost is unknown. */
export interface Spending extends Amount {
  unpriced: number;
}

/** What was spent in the current period of a budget, or in the whole life. */
export interface PurseState {
  used: Amount;
  /** For requests in flight, and leased by instances for the next ones. */
  reserved: Amount;
  /** Requests whose cost is unknown. */
  unpriced: number;
  /** Start of the period; 0 for the whole life. */
  sinceMs: number;
  /** When the period ends; null for the whole life. */
  endsMs: number | null;
}

/**
 * Start of the current period. The clocks of instances differ by seconds. Once an instance has begun a new period, it has begun for an
 * instance with a slow clock as well, because the counts of the previous period are gone.
 */
export function currentStart(counts: PurseRow, period: BudgetPeriod, startMs: number): number {
  if (period === 'none') return 0;
  const leasedFromMs = counts.period === period ? counts.leasedFromMs : 0;
  return Math.max(startMs, leasedFromMs, period === 'day' ? counts.dayFromMs : counts.monthFromMs);
}

/** What was spent in the period that starts at `fromMs`. */
export function spendingIn(counts: PurseCounts, period: BudgetPeriod, fromMs: number): Spending {
  if (period === 'none') {
    return { nano: counts.lifeNano, tokens: counts.lifeTokens, unpriced: counts.lifeUnpriced };
  }
  if (period === 'day') {
    if (counts.dayFromMs !== fromMs) return { nano: 0, tokens: 0, unpriced: 0 };
    return { nano: counts.dayNano, tokens: counts.dayTokens, unpriced: counts.dayUnpriced };
  }
  if (counts.monthFromMs !== fromMs) return { nano: 0, tokens: 0, unpriced: 0 };
  return { nano: counts.monthNano, tokens: counts.monthTokens, unpriced: counts.monthUnpriced };
}

/** What is leased in the period that starts at `fromMs`. */
export function leasedIn({ leasedFromMs, leasedNano, leasedTokens }: PurseRow, fromMs: number): Amount {
  return leasedFromMs >= fromMs ? { nano: leasedNano, tokens: leasedTokens } : { nano: 0, tokens: 0 };
}

/** A lease that an instance requests. */
export interface PurseTake {
  /** The budget that the instance knows. If the database has another one, nothing is granted. */
  terms: PurseTerms;
  /** For the requests that are waiting. */
  want: Amount;
  /** Less than this is not granted: no waiting request could use it, and other instances can. */
  least: Amount;
  /** For the next requests, if enough is left. */
  ahead: Amount;
}

export interface Grant extends Amount {
  /** Start of the period of the lease. */
  fromMs: number;
}

/** An instance leases up to this share of what is left ahead. So near the limit it leases only what requests wait for. */
const AHEAD_DIVISOR = 16;

/** @returns null if the database has other terms than the instance knows. */
export function grantOf(counts: PurseRow, { terms, want, least, ahead }: PurseTake, nowMs: number): Grant | null {
  if (!haveSameTerms(counts, terms)) return null;
  const { period } = counts;
  const fromMs = currentStart(counts, period, startOf(period, nowMs));
  const left = leftOf(counts, fromMs);
  const nano = granted(left.nano, want.nano, least.nano, ahead.nano);
  const tokens = granted(left.tokens, want.tokens, least.tokens, ahead.tokens);
  return nano === null || tokens === null ? { fromMs, nano: 0, tokens: 0 } : { fromMs, nano, tokens };
}

/** What is neither spent nor leased in the period that starts at `fromMs`; Infinity without a limit. */
export function leftOf(counts: PurseRow, fromMs: number): Amount {
  const { period, limitNano, limitTokens } = counts;
  const spent = spendingIn(counts, period, fromMs);
  const leased = leasedIn(counts, fromMs);
  const left = (limit: number | null, sum: number) => (limit === null ? Infinity : Math.max(0, limit - sum));
  return { nano: left(limitNano, spent.nano + leased.nano), tokens: left(limitTokens, spent.tokens + leased.tokens) };
}

/** The most that is leased ahead when `left` is left. */
export const aheadOf = (left: number): number => Math.floor(left / AHEAD_DIVISOR);

/** @returns null if less than `least` is left. */
function granted(left: number, want: number, least: number, ahead: number): number | null {
  if (left < least) return null;
  return left <= want ? left : Math.max(want, Math.min(ahead, aheadOf(left)));
}
