/** The purses of tokens and projects: what they have spent, and the limits of their budgets. Each change of a budget also writes its purse. */
import { MAX_NANO } from '../../api/money.js';
import type { Budget } from '../../api/vocabulary.js';
import { type Amount, currentStart, type PurseCounts } from '../../core/budget/counts.js';
import { dayOf, monthOf } from '../../core/budget/period.js';
import { purseLimits } from '../../core/budget/spending.js';
import type { Reader, SqlTransaction } from './database.js';
import { lockedCounts } from './purse-leases.js';
import { BY_ISSUER } from './scopes.js';
import { PURSE, PURSE_LEASES, type PurseColumns, type PurseLeaseColumns, PURSES } from './tables.js';

export async function insertPurse(
  tx: SqlTransaction,
  { id, budget }: { id: string; budget: Budget | null },
): Promise<void> {
  await PURSES.insert(tx, { id, ...purseLimits(budget) });
}

/**
 * Writes the limits of a changed budget. Its token or project is locked. If the period changes, existing leases are moved to the current period,
 * so that they and new leases together do not exceed the new limit.
 */
export async function limitPurse(tx: SqlTransaction, id: string, budget: Budget | null, nowMs: number): Promise<void> {
  const { period, ...limits } = purseLimits(budget);
  // Most changes do not change the period.
  if ((await PURSES.update(tx, { id, period }, limits)) > 0) return;
  const counts = await lockedCounts(tx, id);
  if (!counts) return;
  const fromMs = currentStart(counts, period, nowMs);
  const leases = await tx.select<PurseLeaseColumns>(
    `SELECT instance_id, from_ms, nano, tokens FROM purse_leases WHERE purse_id = $id AND (from_ms = $leasedFromMs OR from_ms >= $fromMs)`,
    { id, leasedFromMs: counts.leasedFromMs, fromMs },
  );
  const moved = new Map<string, Amount>();
  const leased = { nano: 0, tokens: 0 };
  for (const { instance_id: instanceId, from_ms: from, nano, tokens } of leases) {
    for (const sum of [leased, amountIn(moved, instanceId)]) {
      sum.nano += nano;
      sum.tokens += tokens;
    }
    await tx.execute(
      'DELETE FROM purse_leases WHERE purse_id = $id AND instance_id = $instanceId AND from_ms = $from',
      { id, instanceId, from },
    );
  }
  for (const [instanceId, amount] of moved)
    await PURSE_LEASES.insert(tx, { purseId: id, instanceId, fromMs, ...amount });
  const { nano: leasedNano, tokens: leasedTokens } = leased;
  await PURSES.update(tx, { id }, { period, ...limits, leasedFromMs: fromMs, leasedNano, leasedTokens });
}

function amountIn(amounts: Map<string, Amount>, key: string): Amount {
  let amount = amounts.get(key);
  if (!amount) amounts.set(key, (amount = { nano: 0, tokens: 0 }));
  return amount;
}

/** @returns the purses of these tokens and projects. */
export async function pursesOf(on: Reader, ids: readonly string[]): Promise<ReadonlyMap<string, PurseCounts>> {
  if (ids.length === 0) return new Map();
  const rows = await on.select<PurseColumns>(
    `SELECT u.id, ${PURSE.list} FROM ${on.dialect.rowsIn('purses u', 'u.id', '$ids')}`,
    { ids: JSON.stringify(ids) },
    'usual',
  );
  return new Map(rows.map((row) => [row.id, PURSE.of(row)]));
}

/** Sums of the purses of the tokens of an issuer, by project. Counts of another day or month are left out. */
export async function pursesOfIssuer(
  on: Reader,
  issuedBy: string,
  nowMs: number,
): Promise<ReadonlyMap<string, PurseCounts>> {
  const [dayMs, monthMs] = [dayOf(nowMs), monthOf(nowMs)];
  const summed = (column: string, current = '1 = 1') => {
    const part = `CASE WHEN ${current} THEN u.${column} ELSE 0 END`;
    return `${on.dialect.limitedSum(part, MAX_NANO)} AS ${column}`;
  };
  const inPeriod = (period: 'day' | 'month', fromMs: number) =>
    ['nano', 'tokens', 'unpriced'].map((unit) => summed(`${period}_${unit}`, `u.${period}_from = ${fromMs}`));
  const sums = [
    ...['life_nano', 'life_tokens', 'life_unpriced'].map((column) => summed(column)),
    ...inPeriod('month', monthMs),
    ...inPeriod('day', dayMs),
  ];
  const others = {
    period: 'none' as const,
    limit_nano: null,
    limit_tokens: null,
    leased_from: 0,
    leased_nano: 0,
    leased_tokens: 0,
  };
  const current = { month_from: monthMs, day_from: dayMs };
  const rows = await on.select<Omit<PurseColumns, keyof typeof others | keyof typeof current> & { project_id: string }>(
    `SELECT t.project_id, ${sums.join(', ')} FROM tokens t ${on.dialect.indexHint(BY_ISSUER)}
     ${on.dialect.joinInOrder} purses u ON u.id = t.id WHERE t.issued_by = $issuedBy GROUP BY t.project_id`,
    { issuedBy },
  );
  return new Map(rows.map((row) => [row.project_id, PURSE.of({ ...row, ...others, ...current })]));
}
