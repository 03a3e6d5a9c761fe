/**
 * Usage by the hour, and sums of it. A year of a thousand tokens can be nine million rows of hours, which nobody can add up while
 * somebody waits; so whatever is added to them is added to three kinds of sums as well, in the same transaction:
 *
 *   token_day     a day of a token and model          what reports without hours are made of
 *   project_day   a day of a project and model        the same, where tokens are not told apart
 *   project_hour  an hour of a project and model      reports with hours, where tokens are not told apart
 *
 * Sums do not tell results apart as the rows do; they say how many were refused and how many failed.
 */
import {
  StoreUnavailable,
  USAGE_COUNTS,
  type UsageCounts,
  type UsageFlush,
  type UsageLine,
  type UsageQuery,
  type UsageRow,
  type UsageStore,
} from '../../core/ports.js';
import { DAY_MS, FAILED, firstIdOf, REFUSED } from '../../core/usage.js';
import type { Bind, Connection, Database } from './database.js';
import { insert } from './insert.js';
import { type SumKind, usageReport } from './usage-report.js';

const FORGOTTEN_AT_ONCE = 1_000;
// Statements are compiled once for each number of rows; with two of them there is little to compile and little to send.
const ROWS_IN_A_STATEMENT = 40;

const COUNTS: readonly string[] = Object.values(USAGE_COUNTS);
const HOURLY = {
  table: 'usage_hourly',
  key: ['id'],
  facts: ['hour_ms', 'token_id', 'project_id', 'outcome', 'code', 'model'],
  counts: [...COUNTS, 'with_tokens'],
};
const SUMS = {
  table: 'usage_sums',
  key: ['kind', 'from_ms', 'project_id', 'token_id', 'model'],
  facts: [],
  counts: [...COUNTS, 'refused', 'errors'],
};
type Table = typeof HOURLY | typeof SUMS;
type Values = Record<string, string | number>;

export class SqlUsage implements UsageStore {
  constructor(private readonly database: Database) {}

  add({ instanceId, seq, nowMs, rows }: UsageFlush): Promise<void> {
    return this.database.transact(async (tx) => {
      await advance(tx, { instanceId, seq, nowMs });
      if (seq === 1) await tx.execute('DELETE FROM usage_flushes WHERE flushed_at < $old', { old: nowMs - DAY_MS });
      await addAll(tx, HOURLY, rows.map(hourlyOf));
      await addAll(tx, SUMS, sumsOf(rows));
    });
  }

  async lastFlush(instanceId: string): Promise<number> {
    const [row] = await this.database.select<{ seq: number }>(
      'SELECT seq FROM usage_flushes WHERE instance_id = $instanceId',
      { instanceId },
    );
    return row?.seq ?? 0;
  }

  report(query: UsageQuery, most: number): Promise<UsageLine[]> {
    return usageReport(this.database, query, most);
  }

  async forgetBefore(dayMs: number): Promise<boolean> {
    return (await this.#forgetHours(dayMs)) || (await this.#forgetSums(dayMs));
  }

  async #forgetHours(dayMs: number): Promise<boolean> {
    const ids = await this.database.select<{ id: string }>(
      `SELECT id FROM usage_hourly WHERE id < $before ORDER BY id LIMIT ${FORGOTTEN_AT_ONCE}`,
      { before: firstIdOf(dayMs) },
    );
    const last = ids.at(-1);
    if (last)
      await this.database.transact((tx) => tx.execute('DELETE FROM usage_hourly WHERE id <= $id', { id: last.id }));
    return last !== undefined;
  }

  /** Those of one kind, one time and one project are no more than its tokens have models. */
  async #forgetSums(dayMs: number): Promise<boolean> {
    const [oldest] = await this.database.select<Values>(
      `SELECT kind, from_ms, project_id FROM usage_sums WHERE (kind = 'token_day' OR kind = 'project_day' OR kind = 'project_hour')
         AND from_ms < $dayMs LIMIT 1`,
      { dayMs },
    );
    if (!oldest) return false;
    await this.database.transact((tx) =>
      tx.execute(
        'DELETE FROM usage_sums WHERE kind = $kind AND from_ms = $from_ms AND project_id = $project_id',
        oldest,
      ),
    );
    return true;
  }
}

// ---- adding

/** Makes the flush's number the instance's last. One that had nothing to flush for a day may have been forgotten by others. */
async function advance(tx: Connection, { instanceId, seq, nowMs }: Omit<UsageFlush, 'rows'>): Promise<void> {
  const advanced = await tx.execute(
    'UPDATE usage_flushes SET seq = $seq, flushed_at = $nowMs WHERE instance_id = $instanceId AND seq = $seq - 1',
    { instanceId, seq, nowMs },
  );
  if (advanced === 1) return;
  const known = await tx.select('SELECT seq FROM usage_flushes WHERE instance_id = $instanceId', { instanceId });
  if (known.length > 0) throw new StoreUnavailable(`flush ${seq} is not the next of this instance`);
  await insert(tx, 'usage_flushes', { instance_id: instanceId, seq, flushed_at: nowMs });
}

const countsOf = (counts: UsageCounts): Record<string, number> =>
  Object.fromEntries(Object.entries(USAGE_COUNTS).map(([name, column]) => [column, counts[name as keyof UsageCounts]]));

const hourlyOf = (row: UsageRow): Values => ({
  id: row.id,
  hour_ms: row.hourMs,
  token_id: row.tokenId,
  project_id: row.projectId,
  outcome: row.outcome,
  code: row.code,
  model: row.model,
  ...countsOf(row),
  with_tokens: row.withTokens,
});

function sumsOf(rows: readonly UsageRow[]): Values[] {
  const sums = new Map<string, Values>();
  for (const row of rows) {
    const dayMs = row.hourMs - (row.hourMs % DAY_MS);
    addSum(sums, row, 'token_day', dayMs, row.tokenId);
    addSum(sums, row, 'project_day', dayMs, '');
    addSum(sums, row, 'project_hour', row.hourMs, '');
  }
  return [...sums.values()];
}

function addSum(sums: Map<string, Values>, row: UsageRow, kind: SumKind, fromMs: number, tokenId: string): void {
  const key = `${kind}\n${fromMs}\n${row.projectId}\n${tokenId}\n${row.model}`;
  const sum = sums.get(key);
  const counts: Record<string, number> = {
    ...countsOf(row),
    refused: REFUSED.includes(row.outcome) ? row.requests - row.cut : 0,
    errors: FAILED.includes(row.outcome) ? row.requests : 0,
  };
  if (sum) for (const name of SUMS.counts) sum[name] = Number(sum[name]) + (counts[name] ?? 0);
  else
    sums.set(key, { kind, from_ms: fromMs, project_id: row.projectId, token_id: tokenId, model: row.model, ...counts });
}

async function addAll(tx: Connection, table: Table, rows: readonly Values[]): Promise<void> {
  const wholes = rows.length - (rows.length % ROWS_IN_A_STATEMENT);
  for (let at = 0; at < wholes; at += ROWS_IN_A_STATEMENT) {
    await addSome(tx, table, rows.slice(at, at + ROWS_IN_A_STATEMENT));
  }
  for (const row of rows.slice(wholes)) await addSome(tx, table, [row]);
}

async function addSome(tx: Connection, { table, key, facts, counts }: Table, rows: readonly Values[]): Promise<void> {
  const columns = [...key, ...facts, ...counts];
  const bind: Bind = {};
  const tuples = rows.map((row, i) => {
    for (const column of columns) bind[`${column}_${i}`] = row[column] ?? '';
    return `(${columns.map((column) => `$${column}_${i}`).join(', ')})`;
  });
  await tx.execute(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${tuples.join(', ')} ${tx.dialect.orAdd(table, key, counts)}`,
    bind,
  );
}
