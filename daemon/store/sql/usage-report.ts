/** Usage reports: which tables each one is read from, and how. */
import type { Outcome } from '../../core/events.js';
import type { UsageLine, UsageQuery } from '../../core/ports.js';
import { MAX_NANO } from '../../api/money.js';
import { BROKEN_OUTCOMES, REFUSED_OUTCOMES } from '../../core/failure-kind.js';
import { DAY_MS, firstIdOf } from '../../core/usage.js';
import type { Bind, Reader } from './database.js';
import type { Dialect } from './dialect.js';
import { Conditions } from './lists.js';
import { inProjects, IS_ISSUED, ofIssued } from './scopes.js';
import { type SumKind, USAGE_SUM_COUNTS, type UsageCountColumns } from './tables.js';

/** @returns up to `most` lines, and one more if there are more. */
export async function usageReport(on: Reader, query: UsageQuery, most: number): Promise<UsageLine[]> {
  const lines = new Map<string, UsageLine>();
  for (const { sql, bind } of partsOf(on.dialect, query, most)) {
    for (const row of await on.select<ReportRow>(sql, bind)) addLine(lines, lineOf(row));
  }
  return [...lines.values()];
}

const requestsThat = (ended: readonly Outcome[], counted = 'requests') =>
  `CASE WHEN outcome IN ('${ended.join("', '")}') THEN ${counted} ELSE 0 END`;

/** How hourly rows, which have an outcome instead, have the columns `refused` and `failed` of sums. */
export const FAILURES_BY_OUTCOME = {
  refused: requestsThat(REFUSED_OUTCOMES, 'requests - cut'),
  failed: requestsThat(BROKEN_OUTCOMES),
};

/** SQL for the failures in an hourly row. */
export const FAILURES_IN_HOUR = `${FAILURES_BY_OUTCOME.refused} + upstream_refused + ${FAILURES_BY_OUTCOME.failed} + cut`;

/** SQL for the sum of a column, which is 0 without rows. A cost is limited to what is exact. */
export const summedIn = ({ limitedSum }: Pick<Dialect, 'limitedSum'>, column: string): string =>
  column === 'cost_nano' ? limitedSum(column, MAX_NANO) : `COALESCE(SUM(${column}), 0)`;

interface ReportRow extends UsageCountColumns {
  token_id?: string;
  project_id?: string;
  model?: string;
  hour_ms?: number;
  day_ms?: number;
}

interface Part {
  sql: string;
  bind: Bind;
}

/** The queries of a report. Together they cover each moment of its time exactly once. */
function partsOf(dialect: Dialect, query: UsageQuery, most: number): Part[] {
  const { by, sinceMs, untilMs, projectId, tokenId, scope } = query;
  const isOfIssuer = scope !== undefined && scope.issuedBy !== null;
  const tellsTokens = by.has('token') || tokenId !== undefined || isOfIssuer;
  const hours = (fromMs: number, toMs: number): Part[] => {
    if (fromMs >= toMs) return [];
    const span = { ...query, sinceMs: fromMs, untilMs: toMs };
    return [tellsTokens ? fromRows(dialect, span, most) : fromSums(dialect, 'project_hour', span, most)];
  };
  // One token has few hours, and so have those of an issuer. Sums of days are not found by token.
  if (by.has('hour') || tokenId !== undefined || isOfIssuer) return hours(sinceMs, untilMs);
  const firstDayMs = Math.ceil(sinceMs / DAY_MS) * DAY_MS;
  const lastDayMs = Math.floor(untilMs / DAY_MS) * DAY_MS;
  if (firstDayMs >= lastDayMs) return hours(sinceMs, untilMs);
  const days = { by, sinceMs: firstDayMs, untilMs: lastDayMs, projectId, scope };
  return [
    ...hours(sinceMs, firstDayMs),
    fromSums(dialect, tellsTokens ? 'token_day' : 'project_day', days, most),
    ...hours(lastDayMs, untilMs),
  ];
}

function fromRows(dialect: Dialect, query: UsageQuery, most: number): Part {
  const { by, sinceMs, untilMs, projectId, tokenId, scope } = query;
  const where = inProjects(new Conditions(), 'project_id', scope?.projects);
  const issuedBy = scope?.issuedBy ?? null;
  if (issuedBy !== null && tokenId !== undefined) where.and(IS_ISSUED, { issuedBy });
  const isByIssuer = issuedBy !== null && tokenId === undefined;
  if (tokenId !== undefined) where.and('token_id = $tokenId', { tokenId });
  if (projectId !== undefined) where.and('project_id = $projectId', { projectId });
  // The indexes on tokens and projects continue with the hour. The table itself is in the order of IDs.
  if (where.sql === '' && !isByIssuer) {
    where.and('id >= $since AND id < $until', { since: firstIdOf(sinceMs), until: firstIdOf(untilMs) });
  } else {
    where.and('hour_ms >= $since AND hour_ms < $until', { since: sinceMs, until: untilMs });
  }
  const from = isByIssuer ? ofIssued(dialect, 'usage_hourly', 'usage_hourly_token') : 'usage_hourly';
  const bind = isByIssuer ? { ...where.bind, issuedBy } : where.bind;
  return { sql: summed(dialect, by, from, 'hour_ms', where, FAILURES_BY_OUTCOME, most), bind };
}

function fromSums(
  dialect: Dialect,
  kind: SumKind,
  { by, sinceMs, untilMs, projectId, scope }: UsageQuery,
  most: number,
): Part {
  const where = new Conditions()
    .and('kind = $kind', { kind })
    .and('from_ms >= $since AND from_ms < $until', { since: sinceMs, until: untilMs });
  if (projectId !== undefined) where.and('project_id = $projectId', { projectId });
  inProjects(where, 'project_id', scope?.projects);
  return { sql: summed(dialect, by, 'usage_sums', 'from_ms', where, {}, most), bind: where.bind };
}

function summed(
  dialect: Dialect,
  by: UsageQuery['by'],
  table: string,
  time: string,
  where: Conditions,
  counts: Readonly<Record<string, string>>,
  most: number,
): string {
  const columns: Record<string, string> = {
    ...(by.has('token') && { token_id: 'token_id' }),
    ...(by.has('project') && { project_id: 'project_id' }),
    ...(by.has('model') && { model: 'model' }),
    ...(by.has('hour') && { hour_ms: time }),
    ...(by.has('day') && { day_ms: `${time} - ${time} % ${DAY_MS}` }),
  };
  const sums = { ...Object.fromEntries(USAGE_SUM_COUNTS.names.map((count) => [count, count])), ...counts };
  const shown = [
    ...Object.entries(columns).map(([name, column]) => `${column} AS ${name}`),
    ...Object.entries(sums).map(([name, column]) => `${summedIn(dialect, column)} AS ${name}`),
  ];
  const groups = Object.values(columns);
  const grouped = groups.length === 0 ? '' : `GROUP BY ${groups.join(', ')} LIMIT ${most + 1}`;
  return `SELECT ${shown.join(', ')} FROM ${table} ${where.sql} ${grouped}`;
}

const lineOf = (row: ReportRow): UsageLine => ({
  ...(row.token_id !== undefined && { tokenId: row.token_id }),
  ...(row.project_id !== undefined && { projectId: row.project_id }),
  ...(row.model !== undefined && { model: row.model }),
  ...(row.hour_ms !== undefined && { hourMs: row.hour_ms }),
  ...(row.day_ms !== undefined && { dayMs: row.day_ms }),
  ...USAGE_SUM_COUNTS.of(row),
});

/** Adds a line; several queries may return the same one. */
function addLine(lines: Map<string, UsageLine>, line: UsageLine): void {
  const { tokenId, projectId, model, hourMs, dayMs } = line;
  const key = `${hourMs ?? dayMs ?? ''}\n${projectId ?? ''}\n${tokenId ?? ''}\n${model ?? ''}`;
  const before = lines.get(key);
  if (!before) {
    lines.set(key, line);
    return;
  }
  for (const count of USAGE_SUM_COUNTS.properties) before[count] += line[count];
}
