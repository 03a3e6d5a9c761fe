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

export const UNITS = ['nano', 'tokens'] as const satisfies (keyof Amount)[];

export const nothing = (): Amount => ({ nano: 0, tokens: 0 });

export const isNothing = ({ nano, tokens }: Amount): boolean => nano === 0 && tokens === 0;

/** Adds an amount to a sum. */
export function add(sum: Amount, { nano, tokens }: Amount): void {
  sum.nano += nano;
  sum.tokens += tokens;
}

export function subtract(sum: Amount, { nano, tokens }: Amount): void {
  sum.nano -= nano;
  sum.tokens -= tokens;
}

/** The smaller one in each unit. */
export const leastOf = (one: Amount, other: Amount): Amount => ({
  nano: Math.min(one.nano, other.nano),
  tokens: Math.min(one.tokens, other.tokens),
});

/** What one is more than another, in each unit. */
export const beyond = (one: Amount, other: Amount): Amount => ({
  nano: Math.max(0, one.nano - other.nano),
  tokens: Math.max(0, one.tokens - other.tokens),
});

/** The limits and the period of a budget. A lease that was taken under other terms is returned. */
export interface PurseTerms {
  /** Null: no limit in this unit. */
  limitNano: number | null;
  limitTokens: number | null;
  period: BudgetPeriod;
}

export const haveSameTerms = (one: PurseTerms, other: PurseTerms): boolean =>
  one.limitNano === other.limitNano && one.limitTokens === other.limitTokens && one.period === other.period;

/**
 * The counts of a token or project in the database, and the limits of its budget. Without a budget there are no limits. Day and month are always
 * counted, so that a change of the period resets nothing.
 */
export interface PurseCounts extends PurseTerms {
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

/** What was charged, and the number of requests whose cost is unknown. */
export interface Charge extends Amount {
  unpriced: number;
}

/** What was charged to requests that were admitted on one UTC day. */
export interface DayCharge extends Charge {
  /** Start of the day. */
  dayMs: number;
}

/**
 * Start of the current period; 0 for the whole life. The clocks of instances differ by seconds. Once an instance has begun a new period, it has
 * begun for an instance with a slow clock as well, because the counts of the previous period are gone.
 */
export function currentStart(counts: PurseCounts | null, period: BudgetPeriod, nowMs: number): number {
  const startMs = startOf(period, nowMs);
  if (counts === null || period === 'none') return startMs;
  const leasedFromMs = counts.period === period ? counts.leasedFromMs : 0;
  return Math.max(startMs, leasedFromMs, period === 'day' ? counts.dayFromMs : counts.monthFromMs);
}

/** What the database has counted in the period that starts at `fromMs`. */
export function countedIn(counts: PurseCounts, period: BudgetPeriod, fromMs: number): Charge {
  if (period === 'none') return { nano: counts.lifeNano, tokens: counts.lifeTokens, unpriced: counts.lifeUnpriced };
  if (period === 'day' && counts.dayFromMs === fromMs)
    return { nano: counts.dayNano, tokens: counts.dayTokens, unpriced: counts.dayUnpriced };
  if (period === 'month' && counts.monthFromMs === fromMs)
    return { nano: counts.monthNano, tokens: counts.monthTokens, unpriced: counts.monthUnpriced };
  return { nano: 0, tokens: 0, unpriced: 0 };
}

/** What is leased in the period that starts at `fromMs`. */
export function leasedIn({ leasedFromMs, leasedNano, leasedTokens }: PurseCounts, fromMs: number): Amount {
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

/** An amount of a lease. */
export interface LeasedAmount extends Amount {
  /** Start of the period of the lease. */
  fromMs: number;
}

/** An instance leases up to this share of what is left ahead. So near the limit it leases only what requests wait for. */
const AHEAD_DIVISOR = 16;

/** @returns null if the database has other terms than the instance knows. */
export function grantOf(
  counts: PurseCounts,
  { terms, want, least, ahead }: PurseTake,
  nowMs: number,
): LeasedAmount | null {
  if (!haveSameTerms(counts, terms)) return null;
  const { period } = counts;
  const fromMs = currentStart(counts, period, nowMs);
  const left = leftOf(counts, fromMs);
  const nano = granted(left.nano, want.nano, least.nano, ahead.nano);
  const tokens = granted(left.tokens, want.tokens, least.tokens, ahead.tokens);
  return nano === null || tokens === null ? { fromMs, nano: 0, tokens: 0 } : { fromMs, nano, tokens };
}

/** What is neither spent nor leased in the period that starts at `fromMs`; Infinity without a limit. */
export function leftOf(counts: PurseCounts, fromMs: number): Amount {
  const { period, limitNano, limitTokens } = counts;
  const spent = countedIn(counts, period, fromMs);
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
