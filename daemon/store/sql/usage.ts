/**
 * Usage per hour, and sums of it. A year of a thousand tokens can be nine million hourly rows, too many to add up while a client
 * waits. So the same transaction that adds to these rows also adds to three kinds of sums:
 *
 *   token_day     a day of a token and model          for reports without hours
 *   project_day   a day of a project and model        the same, without tokens
 *   project_hour  an hour of a project and model      for reports with hours, without tokens
 *
 * Sums do not have a line for each result, as the rows do; they count the failures of each kind. So do the minutes, of tokens and of
 * projects with their models, and the causes of failures by minute, which are added in the same transaction and removed after an hour.
 */
import {
  StoreUnavailable,
  type IncidentFigures,
  type Scope,
  type TopPart,
  type TopQuery,
  type UsageFlush,
  type UsageHour,
  type UsageLine,
  type UsageQuery,
  type UsageRow,
  type UsageStore,
} from '../../core/ports.js';
import { addedNano, MAX_NANO } from '../../api/money.js';
import { BROKEN_OUTCOMES, REFUSED_OUTCOMES } from '../../core/failure-kind.js';
import { DAY_MS, firstIdOf } from '../../core/usage.js';
import type { SqlTransaction, Database } from './database.js';
import {
  type SumKind,
  USAGE_CAUSE_KEY,
  USAGE_CAUSES,
  USAGE_COUNTS,
  USAGE_FLUSHES,
  USAGE_HOUR_COUNTS,
  USAGE_HOURLY,
  USAGE_MINUTE_COUNTS,
  USAGE_MINUTE_KEY,
  USAGE_MINUTES,
  USAGE_SUM_COUNTS,
  USAGE_SUM_KEY,
  USAGE_SUMS,
  type UsageCause,
  type UsageMinute,
  type UsageSum,
  type UsageSumColumns,
} from './tables.js';
import { incidentFigures } from './incidents.js';
import { topOfUsage } from './top.js';
import { usageReport } from './usage-report.js';

const DELETE_BATCH = 1_000;
// Providers may report any costs, and a sum that does not fit the column could not be written.
const LIMITS = { cost_nano: MAX_NANO };
// Statements are compiled once per number of rows. With two different numbers there is little to compile and little to send.
const ROWS_PER_STATEMENT = 40;

export class SqlUsage implements UsageStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add({ instanceId, seq, nowMs, rows }: UsageFlush): Promise<void> {
    return this.#database.transact(async (tx) => {
      await advance(tx, { instanceId, seq, nowMs });
      if (seq === 1) await tx.execute('DELETE FROM usage_flushes WHERE flushed_at < $old', { old: nowMs - DAY_MS });
      const { upsertAdd } = tx.dialect;
      await addAll(hoursOf(rows), (some) =>
        USAGE_HOURLY.insertAll(tx, some, upsertAdd('usage_hourly', ['id'], USAGE_HOUR_COUNTS.names, LIMITS)),
      );
      await addAll(sumsOf(rows), (some) =>
        USAGE_SUMS.insertAll(tx, some, upsertAdd('usage_sums', USAGE_SUM_KEY.names, USAGE_SUM_COUNTS.names, LIMITS)),
      );
      await addAll(minutesOf(rows), (some) =>
        USAGE_MINUTES.insertAll(
          tx,
          some,
          upsertAdd('usage_minutes', USAGE_MINUTE_KEY.names, USAGE_MINUTE_COUNTS.names, LIMITS),
        ),
      );
      await addAll(causesOf(rows), (some) =>
        USAGE_CAUSES.insertAll(tx, some, upsertAdd('usage_causes', USAGE_CAUSE_KEY.names, ['requests'])),
      );
    });
  }

  async lastFlush(instanceId: string): Promise<number> {
    const [row] = await this.#database.select<{ seq: number }>(
      'SELECT seq FROM usage_flushes WHERE instance_id = $instanceId',
      { instanceId },
    );
    return row?.seq ?? 0;
  }

  report(query: UsageQuery, most: number): Promise<UsageLine[]> {
    return usageReport(this.#database, query, most);
  }

  top(query: TopQuery, nowMs: number): Promise<TopPart> {
    return topOfUsage(this.#database, query, nowMs);
  }

  incidents(nowMs: number, urgentCause: string, scope?: Scope): Promise<IncidentFigures> {
    return incidentFigures(this.#database, nowMs, urgentCause, scope);
  }

  async removeBefore(dayMs: number): Promise<boolean> {
    return (await this.#forgetHours(dayMs)) || (await this.#forgetSums(dayMs));
  }

  async #forgetHours(dayMs: number): Promise<boolean> {
    const ids = await this.#database.select<{ id: string }>(
      `SELECT id FROM usage_hourly WHERE id < $before ORDER BY id LIMIT ${DELETE_BATCH}`,
      { before: firstIdOf(dayMs) },
    );
    const last = ids.at(-1);
    if (last)
      await this.#database.transact((tx) => tx.execute('DELETE FROM usage_hourly WHERE id <= $id', { id: last.id }));
    return last !== undefined;
  }

  /** The sums of one kind, time and project are no more than its tokens have models. */
  async #forgetSums(dayMs: number): Promise<boolean> {
    const [oldest] = await this.#database.select<Pick<UsageSumColumns, 'kind' | 'from_ms' | 'project_id'>>(
      `SELECT kind, from_ms, project_id FROM usage_sums WHERE (kind = 'token_day' OR kind = 'project_day' OR kind = 'project_hour')
         AND from_ms < $dayMs LIMIT 1`,
      { dayMs },
    );
    if (!oldest) return false;
    await this.#database.transact((tx) =>
      tx.execute(
        'DELETE FROM usage_sums WHERE kind = $kind AND from_ms = $from_ms AND project_id = $project_id',
        oldest,
      ),
    );
    return true;
  }

  async removeMinutesBefore(minuteMs: number, causeMs: number): Promise<boolean> {
    const hasMore = [
      await this.#removeMinutes('usage_minutes', minuteMs),
      await this.#removeMinutes('usage_causes', causeMs),
    ];
    return hasMore.includes(true);
  }

  /** A token has few rows in a minute, so that a batch is hardly larger than its rows. */
  async #removeMinutes(table: string, minuteMs: number): Promise<boolean> {
    const oldest = await this.#database.select<{ from_ms: number; token_id: string }>(
      `SELECT from_ms, token_id FROM ${table} WHERE from_ms < $before ORDER BY from_ms, token_id LIMIT ${DELETE_BATCH}`,
      { before: minuteMs },
    );
    const last = oldest.at(-1);
    if (last) {
      // Two statements, each of which reads only what it deletes: one condition for both would read all of the last minute.
      await this.#database.transact(async (tx) => {
        await tx.execute(`DELETE FROM ${table} WHERE from_ms < $from_ms`, { from_ms: last.from_ms });
        await tx.execute(`DELETE FROM ${table} WHERE from_ms = $from_ms AND token_id <= $token_id`, { ...last });
      });
    }
    return oldest.length === DELETE_BATCH;
  }
}

// ---- adding

/** Sets the instance's last flush number. Other instances may have deleted the row of an instance that flushed nothing for a day. */
async function advance(tx: SqlTransaction, { instanceId, seq, nowMs }: Omit<UsageFlush, 'rows'>): Promise<void> {
  const advanced = await tx.execute(
    'UPDATE usage_flushes SET seq = $seq, flushed_at = $nowMs WHERE instance_id = $instanceId AND seq = $seq - 1',
    { instanceId, seq, nowMs },
  );
  if (advanced === 1) return;
  const known = await tx.select('SELECT seq FROM usage_flushes WHERE instance_id = $instanceId', { instanceId });
  if (known.length > 0) throw new StoreUnavailable(`flush ${seq} is not the next of this instance`);
  await USAGE_FLUSHES.insert(tx, { instanceId, seq, flushedAtMs: nowMs });
}

/** The counts that a usage row adds to its sums. */
const countsOf = (row: UsageRow) => ({
  ...USAGE_COUNTS.pick(row),
  refused: REFUSED_OUTCOMES.includes(row.outcome) ? row.requests - row.cut : 0,
  failed: BROKEN_OUTCOMES.includes(row.outcome) ? row.requests : 0,
});

/** Without their minutes. */
function hoursOf(rows: readonly UsageRow[]): UsageHour[] {
  const hours = new Map<string, UsageHour>();
  // Copies, because a flush whose outcome is unknown may be sent again.
  for (const row of rows) addTo(hours, row.id, { ...row }, USAGE_HOUR_COUNTS.properties);
  return [...hours.values()];
}

function sumsOf(rows: readonly UsageRow[]): UsageSum[] {
  const sums = new Map<string, UsageSum>();
  for (const row of rows) {
    const dayMs = row.hourMs - (row.hourMs % DAY_MS);
    const counts = countsOf(row);
    const add = (kind: SumKind, fromMs: number, tokenId: string) => {
      const { projectId, model } = row;
      const key = `${kind}\n${fromMs}\n${projectId}\n${tokenId}\n${model}`;
      addTo(sums, key, { kind, fromMs, projectId, tokenId, model, ...counts }, USAGE_SUM_COUNTS.properties);
    };
    add('token_day', dayMs, row.tokenId);
    add('project_day', dayMs, '');
    add('project_hour', row.hourMs, '');
  }
  return [...sums.values()];
}

/** The minutes of tokens, and of projects with a token of ''. */
function minutesOf(rows: readonly UsageRow[]): UsageMinute[] {
  const minutes = new Map<string, UsageMinute>();
  for (const row of rows) {
    const { minuteMs: fromMs, projectId, model, times } = row;
    if (fromMs === null) continue;
    const counts = { ...countsOf(row), ...Object.fromEntries(times.map((count, bucket) => [`t${bucket}`, count])) };
    for (const tokenId of new Set([row.tokenId, ''])) {
      const key = `${fromMs}\n${projectId}\n${tokenId}\n${model}`;
      addTo(minutes, key, { fromMs, tokenId, projectId, model, ...counts }, USAGE_MINUTE_COUNTS.properties);
    }
  }
  return [...minutes.values()];
}

function causesOf(rows: readonly UsageRow[]): UsageCause[] {
  const causes = new Map<string, UsageCause>();
  for (const { minuteMs: fromMs, projectId, tokenId, cause, requests } of rows) {
    if (fromMs === null || cause === '') continue;
    addTo(causes, `${fromMs}\n${projectId}\n${tokenId}\n${cause}`, { fromMs, projectId, tokenId, cause, requests }, [
      'requests',
    ]);
  }
  return [...causes.values()];
}

/** Adds the counts to those of the row with this key, or stores the row as it is. */
function addTo<Count extends string, Row extends Record<Count, number>>(
  rows: Map<string, Row>,
  key: string,
  row: Row,
  counts: readonly Count[],
): void {
  const known: Record<Count, number> | undefined = rows.get(key);
  // No count reaches what a cost is limited to.
  if (known) for (const count of counts) known[count] = addedNano(known[count], row[count]);
  else rows.set(key, row);
}

/** @param add adds rows in one statement. */
async function addAll<Row>(rows: readonly Row[], add: (rows: readonly Row[]) => Promise<void>): Promise<void> {
  const wholes = rows.length - (rows.length % ROWS_PER_STATEMENT);
  for (let at = 0; at < wholes; at += ROWS_PER_STATEMENT) await add(rows.slice(at, at + ROWS_PER_STATEMENT));
  for (const row of rows.slice(wholes)) await add([row]);
}
