/** What a token or project has spent in the current period of its budget. */
import { addedNano, nanoOf } from '../../api/money.js';
import type { Budget } from '../../api/vocabulary.js';
import { type PurseCounts, spendingIn } from './counts.js';
import { startOf } from './period.js';

export type { PurseCounts } from './counts.js';
import type { Purse } from './purse.js';

/** What was spent since `sinceMs`. */
export interface Spent {
  nano: number;
  tokens: number;
  /** Reserved for requests in flight, and leased by instances for the next ones. */
  reservedNano: number;
  /** Requests whose cost is unknown. */
  unpriced: number;
  sinceMs: number;
}

/** The limits of a budget as the database stores them; null for a unit without a limit. */
export const purseLimits = (budget: Budget | null) => ({
  period: budget?.period ?? ('none' as const),
  limitNano: budget?.usd === undefined ? null : nanoOf(budget.usd),
  limitTokens: budget?.tokens ?? null,
});

/**
 * What a token or project has spent in the period of its budget; without a budget, since it was created.
 *
 * @param counts from the database; undefined if it has no row.
 * @param purse the purse of this instance, whose unwritten charges are added; undefined if it has none.
 */
export function spentIn(
  counts: PurseCounts | undefined,
  purse: Pick<Purse, 'unwritten' | 'leases'> | undefined,
  { budget, createdAtMs }: { budget: Budget | null; createdAtMs: number },
  nowMs: number,
): Spent {
  const period = budget?.period ?? 'none';
  const startMs = startOf(period, nowMs);
  const spent: Spent = {
    ...(counts ? spendingIn(counts, period, startMs) : NOTHING),
    reservedNano: counts?.leasedFromMs === startMs ? counts.leasedNano : 0,
    sinceMs: period === 'none' ? createdAtMs : startMs,
  };
  for (const { dayMs, nano, tokens, unpriced } of purse?.unwritten() ?? []) {
    if (startOf(period, dayMs) !== startMs) continue;
    spent.nano = addedNano(spent.nano, nano);
    spent.tokens += tokens;
    spent.unpriced += unpriced;
  }
  // What was charged of a lease is no longer reserved.
  for (const { fromMs, spentNano, settlingNano } of purse?.leases() ?? []) {
    if (fromMs === startMs) spent.reservedNano = Math.max(0, spent.reservedNano - spentNano - settlingNano);
  }
  return spent;
}

const NOTHING = { nano: 0, tokens: 0, unpriced: 0 };

/** What is not spent of each unit of a budget. Reservations count as left, because they may be released. */
export function leftIn({ usd, tokens }: Budget, spent: Spent): { nano: number | null; tokens: number | null } {
  return {
    nano: usd === undefined ? null : Math.max(0, (nanoOf(usd) ?? 0) - spent.nano),
    tokens: tokens === undefined ? null : Math.max(0, tokens - spent.tokens),
  };
}
