/** What tokens and projects have spent, and the amounts of their budgets. Each has a row with its ID, written in the transaction of the change. */
import { type PurseCounts, purseLimits } from '../../core/budget/spending.js';
import type { Budget } from '../../core/token.js';
import type { Reader, SqlTransaction } from './database.js';
import { PURSE, type PurseColumns, PURSES } from './tables.js';

export async function insertPurse(
  tx: SqlTransaction,
  { id, createdAtMs, budget }: { id: string; createdAtMs: number; budget: Budget | null },
): Promise<void> {
  await PURSES.insert(tx, { id, createdAtMs, ...purseLimits(budget) });
}

/** Its token or project is locked. */
export async function limitPurse(tx: SqlTransaction, id: string, budget: Budget | null): Promise<void> {
  await PURSES.update(tx, { id }, purseLimits(budget));
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

/** Locks it until the transaction ends: no instance settles or reserves anything. Its token or project is locked before. */
export async function lockedPurse(tx: SqlTransaction, id: string): Promise<PurseCounts | undefined> {
  const [row] = await tx.select<PurseColumns>(
    `SELECT ${PURSE.list} FROM purses u WHERE u.id = $id ${tx.dialect.forUpdate}`,
    { id },
    'usual',
  );
  return row && PURSE.of(row);
}
