/** What a token or project has spent in the period of its budget. */
import type { Budget, BudgetPeriod } from '../../api/vocabulary.js';

/** The counts of a token or project in the database, with or without a budget. */
export interface Purse {
  lifeNano: number;
  lifeTokens: number;
  lifeUnpriced: number;
  /** Starts of the month and the day that the counts are of. */
  monthFromMs: number;
  monthNano: number;
  monthTokens: number;
  monthUnpriced: number;
  dayFromMs: number;
  dayNano: number;
  dayTokens: number;
  dayUnpriced: number;
  /** Start of the period that these are of, and what instances have reserved in it and not settled. */
  leasedFromMs: number;
  leasedNano: number;
  leasedTokens: number;
}

/** What was spent since a time. */
export interface Spent {
  nano: number;
  tokens: number;
  /** Reserved for requests under way, and for those that come next. */
  reservedNano: number;
  /** Requests whose cost is unknown. */
  unpriced: number;
  sinceMs: number;
}

/** When the current period began, in UTC; 0 for `none`. */
export function periodStart(period: BudgetPeriod, nowMs: number): number {
  if (period === 'none') return 0;
  const now = new Date(nowMs);
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), period === 'day' ? now.getUTCDate() : 1);
}

/** What a token or project has spent in the period of its budget; without a budget, since it was created. */
export function spentIn(
  purse: Purse | undefined,
  { budget, createdAtMs }: { budget: Budget | null; createdAtMs: number },
  nowMs: number,
): Spent {
  const period = budget?.period ?? 'none';
  const startMs = periodStart(period, nowMs);
  return {
    ...(purse ? countsOf(purse, period, startMs) : NOTHING),
    reservedNano: purse?.leasedFromMs === startMs ? purse.leasedNano : 0,
    sinceMs: period === 'none' ? createdAtMs : startMs,
  };
}

/** Counts of another day or month than the current one are old: nothing was spent since. */
function countsOf(purse: Purse, period: BudgetPeriod, startMs: number): Pick<Spent, 'nano' | 'tokens' | 'unpriced'> {
  switch (period) {
    case 'none':
      return { nano: purse.lifeNano, tokens: purse.lifeTokens, unpriced: purse.lifeUnpriced };
    case 'month':
      if (purse.monthFromMs !== startMs) return NOTHING;
      return { nano: purse.monthNano, tokens: purse.monthTokens, unpriced: purse.monthUnpriced };
    case 'day':
      if (purse.dayFromMs !== startMs) return NOTHING;
      return { nano: purse.dayNano, tokens: purse.dayTokens, unpriced: purse.dayUnpriced };
  }
}

const NOTHING = { nano: 0, tokens: 0, unpriced: 0 };
