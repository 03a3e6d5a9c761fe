/** What a token or project has spent in the period of its budget. */
import { nanoOf } from '../../api/money.js';
import type { Budget } from '../../api/vocabulary.js';
import { spendingIn } from './counts.js';
import { startOf } from './period.js';

/** The counts of a token or project in the database, with or without a budget. */
export interface PurseCounts {
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

/** The limits of a budget as the database has them: null if there is no such limit. */
export const purseLimits = (budget: Budget | null) => ({
  period: budget?.period ?? ('none' as const),
  limitNano: budget?.usd === undefined ? null : nanoOf(budget.usd),
  limitTokens: budget?.tokens ?? null,
});

/** What a token or project has spent in the period of its budget; without a budget, since it was created. */
export function spentIn(
  purse: PurseCounts | undefined,
  { budget, createdAtMs }: { budget: Budget | null; createdAtMs: number },
  nowMs: number,
): Spent {
  const period = budget?.period ?? 'none';
  const startMs = startOf(period, nowMs);
  return {
    ...(purse ? spendingIn(purse, period, startMs) : NOTHING),
    reservedNano: purse?.leasedFromMs === startMs ? purse.leasedNano : 0,
    sinceMs: period === 'none' ? createdAtMs : startMs,
  };
}

const NOTHING = { nano: 0, tokens: 0, unpriced: 0 };
