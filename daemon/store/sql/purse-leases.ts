/**
 * The part of a tick for purses: charges of requests, and leases of budgets.
 *
 * The leased amount of a purse is the sum of its rows in `purse_leases` of its current period. Rows of earlier periods remain until they are
 * settled, but no longer count. Before any of them is changed, the purse is locked.
 */
import { MAX_NANO } from '../../api/money.js';
import { type Amount, grantOf, type LeasedAmount, type PurseCounts } from '../../core/budget/counts.js';
import { monthOf, startOf } from '../../core/budget/period.js';
import { type PurseReport, type PurseTickRow, StoreUnavailable, type Tick } from '../../core/ports.js';
import type { Bind, Reader, SqlTransaction } from './database.js';
import type { Dialect } from './dialect.js';
import { PURSE, PURSE_LEASES, type PurseColumns, type PurseLeaseColumns } from './tables.js';

/** Sums are limited to what JavaScript reads exactly. */
const MOST = { nano: MAX_NANO, tokens: Number.MAX_SAFE_INTEGER, unpriced: Number.MAX_SAFE_INTEGER };
const UNITS = ['nano', 'tokens', 'unpriced'] as const;
type Unit = (typeof UNITS)[number];
const LEASED = ['nano', 'tokens'] as const;

const NO_CHARGE = { dayMs: 0, nano: 0, tokens: 0, unpriced: 0 };
const NOTHING_RETURNED: LeasedAmount = { fromMs: 0, nano: 0, tokens: 0 };

/** Settles the row of one purse. @returns null if no report was requested, or the purse does not exist. */
export async function settlePurse(tx: SqlTransaction, tick: Tick, row: PurseTickRow): Promise<PurseReport | null> {
  const { purseId, charges, returns, take, isReported } = row;
  let counts: PurseCounts | null = null;
  const statements = Math.max(charges.length, returns.length);
  for (let at = 0; at < statements; at++) {
    const change = changeOf(tx.dialect, charges[at], returns[at]);
    const isLast = isReported && at === statements - 1;
    if (isLast) counts = await countsAfter(tx, purseId, change);
    const isFound = isLast ? counts !== null : (await tx.execute(change.sql, { ...change.bind, id: purseId })) > 0;
    if (!isFound) return null;
  }
  for (const returned of returns) await returnLease(tx, purseId, tick.instanceId, returned);
  if (!isReported) return null;
  if (returns.length > 0) await deleteEmptyLeases(tx, purseId, tick.instanceId);
  counts ??= await lockedCounts(tx, purseId);
  return counts && lease(tx, tick, purseId, counts, take);
}

// ---- charges and returns

interface Change {
  sql: string;
  bind: Bind;
}

function changeOf(
  dialect: Dialect,
  charge: PurseTickRow['charges'][number] | undefined,
  returned: LeasedAmount | undefined,
): Change {
  const { dayMs, ...amounts } = charge ?? NO_CHARGE;
  const { fromMs, nano: returnedNano, tokens: returnedTokens } = returned ?? NOTHING_RETURNED;
  const set = [...(returned ? returning(RETURNED) : []), ...(charge ? charging(dialect, CHARGED) : [])];
  return {
    sql: `UPDATE purses SET ${set.join(', ')} WHERE id = $id`,
    bind: {
      ...(returned && { fromMs, returnedNano, returnedTokens }),
      ...(charge && { ...amounts, dayMs, monthMs: monthOf(dayMs) }),
    },
  };
}

const RETURNED = { nano: '$returnedNano', tokens: '$returnedTokens' };
const CHARGED = { nano: '$nano', tokens: '$tokens', unpriced: '$unpriced' };

/** Assignments that subtract amounts from the leases of the period that starts at `$fromMs`. */
const returning = (amounts: Record<keyof Amount, string>): string[] =>
  LEASED.map(
    (unit) =>
      `leased_${unit} = CASE WHEN leased_from = $fromMs THEN leased_${unit} - ${amounts[unit]} ELSE leased_${unit} END`,
  );

/**
 * Assignments that charge amounts to the day `$dayMs` in the month `$monthMs`. A charge of an earlier day or month is not added to the current one, and
 * a later one begins a new day or month. MySQL assigns from left to right, so the columns that are compared are assigned last.
 */
function charging(dialect: Dialect, amounts: Record<Unit, string>): string[] {
  const sum = (column: string, unit: Unit) => dialect.least(`${column} + ${amounts[unit]}`, String(MOST[unit]));
  return [
    ...UNITS.map((unit) => `life_${unit} = ${sum(`life_${unit}`, unit)}`),
    ...(['month', 'day'] as const).flatMap((period) => [
      ...UNITS.map((unit) => {
        const column = `${period}_${unit}`;
        const begun = `WHEN ${period}_from < $${period}Ms THEN ${dialect.least(amounts[unit], String(MOST[unit]))}`;
        return `${column} = CASE WHEN ${period}_from = $${period}Ms THEN ${sum(column, unit)} ${begun} ELSE ${column} END`;
      }),
      `${period}_from = ${dialect.greatest(`${period}_from`, `$${period}Ms`)}`,
    ]),
  ];
}

async function countsAfter(tx: SqlTransaction, id: string, { sql, bind }: Change): Promise<PurseCounts | null> {
  if (!tx.dialect.supportsReturning) {
    return (await tx.execute(sql, { ...bind, id })) > 0 ? countsOf(tx, id) : null;
  }
  const [row] = await tx.select<PurseColumns>(`${sql} RETURNING ${PURSE.list}`, { ...bind, id });
  return row ? PURSE.of(row) : null;
}

async function countsOf(tx: SqlTransaction, id: string, lock = ''): Promise<PurseCounts | null> {
  const [row] = await tx.select<PurseColumns>(`SELECT ${PURSE.list} FROM purses WHERE id = $id ${lock}`, { id });
  return row ? PURSE.of(row) : null;
}

/** Locks the purse, so that no other transaction changes it or its leases until this one ends. */
export const lockedCounts = (tx: SqlTransaction, id: string) => countsOf(tx, id, tx.dialect.forUpdate);

/** Subtracts what is returned from the lease. The purse is locked, and its sum no longer contains the amount. */
async function returnLease(
  tx: SqlTransaction,
  purseId: string,
  instanceId: string,
  returned: LeasedAmount,
): Promise<void> {
  const found = await tx.execute(
    `UPDATE purse_leases SET nano = nano - $nano, tokens = tokens - $tokens
     WHERE purse_id = $purseId AND instance_id = $instanceId AND from_ms = $fromMs AND nano >= $nano AND tokens >= $tokens`,
    { purseId, instanceId, ...returned },
  );
  if (found === 0) await returnMovedLease(tx, purseId, instanceId, returned);
}

/** The same for a lease that a change of the period has moved to another one. */
async function returnMovedLease(
  tx: SqlTransaction,
  purseId: string,
  instanceId: string,
  { fromMs, nano, tokens }: LeasedAmount,
): Promise<void> {
  const moveLeased = (from: number, moved: Amount, isBack: boolean) =>
    tx.execute(
      `UPDATE purses SET leased_nano = leased_nano ${isBack ? '+' : '-'} $nano, leased_tokens = leased_tokens ${isBack ? '+' : '-'} $tokens
       WHERE id = $purseId AND leased_from = $from`,
      { purseId, from, nano: moved.nano, tokens: moved.tokens },
    );
  await moveLeased(fromMs, { nano, tokens }, true);
  const left = { nano, tokens };
  const leases = await leasesOf(tx, purseId, instanceId);
  for (const lease of leases.sort((a, b) => Number(b.fromMs === fromMs) - Number(a.fromMs === fromMs))) {
    const part = { nano: Math.min(left.nano, lease.nano), tokens: Math.min(left.tokens, lease.tokens) };
    left.nano -= part.nano;
    left.tokens -= part.tokens;
    await tx.execute(
      `UPDATE purse_leases SET nano = nano - $nano, tokens = tokens - $tokens
       WHERE purse_id = $purseId AND instance_id = $instanceId AND from_ms = $fromMs`,
      { purseId, instanceId, fromMs: lease.fromMs, ...part },
    );
    await moveLeased(lease.fromMs, part, false);
  }
}

async function leasesOf(tx: SqlTransaction, purseId: string, instanceId: string): Promise<LeasedAmount[]> {
  const rows = await tx.select<Pick<PurseLeaseColumns, 'from_ms' | 'nano' | 'tokens'>>(
    'SELECT from_ms, nano, tokens FROM purse_leases WHERE purse_id = $purseId AND instance_id = $instanceId ORDER BY from_ms DESC',
    { purseId, instanceId },
  );
  return rows.map(({ from_ms: fromMs, nano, tokens }) => ({ fromMs, nano, tokens }));
}

/** Deleting a row also clears the request of another instance. */
async function deleteEmptyLeases(tx: SqlTransaction, purseId: string, instanceId: string): Promise<void> {
  await tx.execute(
    'DELETE FROM purse_leases WHERE purse_id = $purseId AND instance_id = $instanceId AND nano = 0 AND tokens = 0',
    { purseId, instanceId },
  );
}

// ---- leases

/** Takes a lease as large as the budget allows. The purse is locked. */
async function lease(
  tx: SqlTransaction,
  tick: Tick,
  purseId: string,
  counts: PurseCounts,
  take: PurseTickRow['take'],
): Promise<PurseReport> {
  const grant = take && grantOf(counts, take, tick.nowMs);
  if (!grant) return { counts, grant: null, isHeldElsewhere: false };
  const { instanceId } = tick;
  const isRefused = grant.nano < take.want.nano || grant.tokens < take.want.tokens;
  const isHeldElsewhere = isRefused && (await askOthers(tx, tick, purseId, grant.fromMs));
  if (grant.nano === 0 && grant.tokens === 0) return { counts, grant, isHeldElsewhere };
  const { fromMs, nano, tokens } = grant;
  const bind = { purseId, fromMs, nano, tokens };
  const taken = await tx.execute(TAKE[counts.period], bind);
  if (taken === 0) throw new StoreUnavailable('a locked purse was changed by another transaction');
  const added = await tx.execute(
    `UPDATE purse_leases SET nano = nano + $nano, tokens = tokens + $tokens
     WHERE purse_id = $purseId AND instance_id = $instanceId AND from_ms = $fromMs`,
    { ...bind, instanceId },
  );
  if (added === 0) await PURSE_LEASES.insert(tx, { ...bind, instanceId });
  const isSamePeriod = counts.leasedFromMs === fromMs;
  const leased = {
    leasedFromMs: fromMs,
    leasedNano: (isSamePeriod ? counts.leasedNano : 0) + nano,
    leasedTokens: (isSamePeriod ? counts.leasedTokens : 0) + tokens,
  };
  return { counts: { ...counts, ...leased }, grant, isHeldElsewhere };
}

/** The statements that enforce budgets, by period. When a new period begins, the leases of the previous one no longer count. */
const TAKE = {
  none: takeWithin((unit) => `life_${unit}`),
  month: takeWithin((unit) => `CASE WHEN month_from = $fromMs THEN month_${unit} ELSE 0 END`),
  day: takeWithin((unit) => `CASE WHEN day_from = $fromMs THEN day_${unit} ELSE 0 END`),
};

function takeWithin(spent: (unit: keyof Amount) => string): string {
  const leased = (unit: keyof Amount) => `CASE WHEN leased_from = $fromMs THEN leased_${unit} ELSE 0 END + $${unit}`;
  const fits = (unit: keyof Amount) =>
    `(limit_${unit} IS NULL OR ${spent(unit)} + ${leased(unit)} <= limit_${unit} OR $${unit} = 0)`;
  return `UPDATE purses SET ${LEASED.map((unit) => `leased_${unit} = ${leased(unit)}`).join(', ')}, leased_from = $fromMs
    WHERE id = $purseId AND leased_from <= $fromMs AND ${LEASED.map(fits).join(' AND ')}`;
}

/** Asks other instances to return what they do not need of this period. @returns whether any holds something. */
async function askOthers(
  tx: SqlTransaction,
  { instanceId, nowMs }: Tick,
  purseId: string,
  fromMs: number,
): Promise<boolean> {
  const asked = await tx.execute(
    `UPDATE purse_leases SET wanted_at = ${tx.dialect.now('$nowMs')}
     WHERE purse_id = $purseId AND instance_id <> $instanceId AND from_ms = $fromMs AND (nano > 0 OR tokens > 0)`,
    { purseId, instanceId, fromMs, nowMs },
  );
  return asked > 0;
}

// ---- of an instance

/** What an instance has leased of these purses, of all periods. */
export async function heldOfPurses(
  on: Reader,
  instanceId: string,
  purseIds: readonly string[],
): Promise<Map<string, Amount>> {
  const rows = await on.select<Pick<PurseLeaseColumns, 'purse_id' | 'nano' | 'tokens'>>(
    `SELECT purse_id, nano, tokens FROM ${on.dialect.rowsIn('purse_leases', 'purse_id', '$purses')}
     WHERE instance_id = $instanceId`,
    { instanceId, purses: JSON.stringify(purseIds) },
    'usual',
  );
  const held = new Map<string, Amount>();
  for (const { purse_id: id, nano, tokens } of rows) {
    const before = held.get(id);
    held.set(id, { nano: nano + (before?.nano ?? 0), tokens: tokens + (before?.tokens ?? 0) });
  }
  return held;
}

/**
 * Counts what an instance had leased and not settled as spent, because it may have been: in the period of the lease, on the last day of it on
 * which the instance was seen.
 */
export async function forfeitPurses(tx: SqlTransaction, instanceId: string, seenAtMs: number): Promise<void> {
  const mine = 'SELECT purse_id FROM purse_leases WHERE instance_id = $instanceId';
  const bind = { instanceId };
  // In the order of ticks, so that they cannot deadlock. Then no change moves leases to another period.
  const held = await tx.select<{ id: string }>(
    `SELECT id FROM purses WHERE id IN (${mine}) ORDER BY id ${tx.dialect.forUpdate}`,
    bind,
    'long',
  );
  const groups =
    held.length === 0
      ? []
      : await tx.select<Pick<PurseLeaseColumns, 'from_ms'> & Pick<PurseColumns, 'period'>>(
          `SELECT DISTINCT l.from_ms, p.period FROM purse_leases l JOIN purses p ON p.id = l.purse_id
           WHERE l.instance_id = $instanceId`,
          bind,
          'long',
        );
  const lost = (unit: keyof Amount) =>
    `(SELECT ${unit} FROM purse_leases WHERE purse_id = purses.id AND instance_id = $instanceId AND from_ms = $fromMs)`;
  const amounts = { nano: lost('nano'), tokens: lost('tokens'), unpriced: '0' };
  const set = [...returning(amounts), ...charging(tx.dialect, amounts)];
  for (const { from_ms: fromMs, period } of groups) {
    const atMs = startOf(period, seenAtMs) > fromMs ? fromMs : Math.max(fromMs, seenAtMs);
    const dayMs = startOf('day', period === 'none' ? seenAtMs : atMs);
    await tx.execute(
      `UPDATE purses SET ${set.join(', ')} WHERE period = $period AND id IN (${mine} AND from_ms = $fromMs)`,
      { ...bind, fromMs, period, dayMs, monthMs: monthOf(dayMs) },
      'long',
    );
  }
  await tx.execute('DELETE FROM purse_leases WHERE instance_id = $instanceId', bind, 'long');
}
