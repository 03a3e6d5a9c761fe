/** What a token or project has spent in the current period of its budget. */
import { addedNano, nanoOf } from '../../api/money.js';
import type { Budget, BudgetPeriod } from '../../api/vocabulary.js';
import {
  type Amount,
  beyond,
  type Charge,
  countedIn,
  currentStart,
  type DayCharge,
  leasedIn,
  nothing,
  type PurseCounts,
} from './counts.js';
import { endOf, startOf } from './period.js';
import type { Purse } from './purse.js';

/** What an instance has charged and not written. */
type Unwritten = Pick<Purse, 'charges' | 'settling' | 'leases'>;

/** What was spent in the current period of a budget, or in the whole life. */
export interface Spent extends Charge {
  /** For requests in flight, and leased by instances for the next ones. */
  reserved: Amount;
  /** Start of the period; for the whole life 0, or when it began. */
  sinceMs: number;
  /** When the period ends; null for the whole life. */
  endsMs: number | null;
}

/** The limits of a budget as the database stores them; null for a unit without a limit. */
export const purseLimits = (budget: Budget | null) => ({
  period: budget?.period ?? ('none' as const),
  limitNano: budget?.usd === undefined ? null : nanoOf(budget.usd),
  limitTokens: budget?.tokens ?? null,
});

/** What a token or project has spent: since it was created, or in the current period of its budget. */
export function spentOf(
  counts: PurseCounts | null | undefined,
  purse: Unwritten | undefined,
  { budget, createdAtMs }: { budget: Budget | null; createdAtMs: number },
  nowMs: number,
): Spent {
  const spent = spentIn(counts ?? null, purse, budget?.period ?? 'none', nowMs);
  return spent.endsMs === null ? { ...spent, sinceMs: createdAtMs } : spent;
}

/**
 * @param counts from the database; null: it has none, or they are not known.
 * @param purse that of this instance, whose charges are added; undefined if it has none.
 */
export function spentIn(
  counts: PurseCounts | null,
  purse: Unwritten | undefined,
  period: BudgetPeriod,
  nowMs: number,
): Spent {
  const startMs = currentStart(counts, period, nowMs);
  const used = usedIn(counts, purse, period, nowMs);
  let reserved = counts ? leasedIn(counts, startMs) : nothing();
  // What was charged of a lease is no longer reserved.
  for (const { fromMs, spent, settling } of purse?.leases ?? [])
    if (fromMs === startMs) reserved = beyond(beyond(reserved, spent), settling);
  return { ...used, reserved, sinceMs: startMs, endsMs: period === 'none' ? null : endOf(period, startMs) };
}

/** The part of it that each response asks for. */
export function usedIn(
  counts: PurseCounts | null,
  purse: Pick<Unwritten, 'charges' | 'settling'> | undefined,
  period: BudgetPeriod,
  nowMs: number,
): Charge {
  const startMs = currentStart(counts, period, nowMs);
  const used = counts ? countedIn(counts, period, startMs) : { ...nothing(), unpriced: 0 };
  if (purse) {
    addCharges(used, purse.charges, period, startMs);
    addCharges(used, purse.settling, period, startMs);
  }
  return used;
}

function addCharges(used: Charge, charges: readonly DayCharge[], period: BudgetPeriod, startMs: number): void {
  for (const { dayMs, nano, tokens, unpriced } of charges) {
    if (startOf(period, dayMs) !== startMs) continue;
    used.nano = addedNano(used.nano, nano);
    used.tokens += tokens;
    used.unpriced += unpriced;
  }
}

/** What is not spent of each unit of a budget. Reservations count as left, because they may be released. */
export function leftIn({ usd, tokens }: Budget, spent: Spent): { nano: number | null; tokens: number | null } {
  return {
    nano: usd === undefined ? null : Math.max(0, (nanoOf(usd) ?? 0) - spent.nano),
    tokens: tokens === undefined ? null : Math.max(0, tokens - spent.tokens),
  };
}
