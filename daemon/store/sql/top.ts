/** The tokens, projects and models with the most requests or failures, from the hourly usage. */
import { FAILURE_KINDS, type FailureKind } from '../../core/failure-kind.js';
import type { LastUse, TopGroup, TopGroupHour, TopHourRow, TopPart, TopQuery } from '../../core/ports.js';
import { COUNTS, TOP_DAY_STEPS } from '../../core/top/counts.js';
import { firstIdOf } from '../../core/usage.js';
import type { Reader } from './database.js';
import { Conditions } from './lists.js';

const when = (condition: string) => `CASE WHEN ${condition} THEN requests ELSE 0 END`;

/** The rules of `failureKindOf`, for rows of `usage_hourly`. */
const FAILURES: Readonly<Record<FailureKind, string>> = {
  refused: `CASE WHEN outcome IN ('refused', 'drained') OR (outcome = 'upstream_error' AND code = 'internal')
    OR (outcome = 'timeout' AND code = 'request_timeout') THEN requests WHEN outcome = 'revoked' THEN requests - cut ELSE 0 END`,
  upstreamRefused: when(`outcome = 'upstream_refused'`),
  upstreamErrors: when(
    `outcome IN ('truncated', 'provider_error') OR (outcome = 'upstream_error' AND code <> 'internal') OR (outcome = 'timeout' AND code <> 'request_timeout')`,
  ),
  cut: 'cut',
};
const FAILED = FAILURE_KINDS.map((kind) => FAILURES[kind]).join(' + ');
/** The same in `usage_sums`. */
const FAILED_OF_SUMS = 'refused + upstream_refused + errors + cut';
const VALUES: Readonly<Record<(typeof COUNTS)[number], string>> = {
  requests: 'requests',
  cacheHits: 'hits',
  ...FAILURES,
  promptTokens: 'prompt_tokens',
  completionTokens: 'completion_tokens',
};
// Without rows, SUM returns NULL.
const sumOf = (value: string) => `COALESCE(SUM(${value}), 0)`;
/** `n0`, `n1` … in the order of `COUNTS`. */
const SUMS = COUNTS.map((count, index) => `${sumOf(VALUES[count])} AS n${index}`).join(', ');
/** The same of each row. */
const EACH = COUNTS.map((count, index) => `${VALUES[count]} AS n${index}`).join(', ');
type SumColumns = Record<`n${number}`, number>;
const countsIn = (row: SumColumns | undefined) => COUNTS.map((_, index) => row?.[`n${index}`] ?? 0);

/** There are no times, so these are sorted by requests. */
const ORDERS: Readonly<Record<TopQuery['sort'], string>> = {
  errors: sumOf(FAILED),
  requests: sumOf('requests'),
  tokens: `${sumOf('prompt_tokens')} + ${sumOf('completion_tokens')}`,
  p50: sumOf('requests'),
  p95: sumOf('requests'),
  last_used: 'MAX(hour_ms)',
};
const DIMENSIONS: Readonly<Record<TopQuery['by'], readonly string[]>> = {
  token: ['token_id', 'project_id'],
  project: ['project_id'],
  model: ['project_id', 'model'],
};

interface KeyColumns {
  token_id?: string;
  project_id: string;
  model?: string;
}
type GroupRow = KeyColumns & SumColumns & { last_ms: number };
type HourColumns = KeyColumns & { hour: number; done: number; failed: number };

/** @param firstMs start of the first of the hours. */
export async function topOfUsage(on: Reader, query: TopQuery, firstMs: number): Promise<TopPart> {
  const { by, sort, limit } = query;
  const keys = DIMENSIONS[by].join(', ');
  const everything = conditionsOf(query, firstMs);
  // Requests with an unknown token are in the total only.
  const known = conditionsOf(query, firstMs).and("token_id <> ''");
  const rows = await on.select<GroupRow>(
    `SELECT ${keys}, ${SUMS}, MAX(hour_ms) AS last_ms FROM usage_hourly ${known.sql} GROUP BY ${keys}
     ORDER BY ${ORDERS[sort]} DESC, ${sumOf('requests')} DESC, ${keys} LIMIT ${limit}`,
    known.bind,
  );
  const [counted] = await on.select<{ n: number }>(
    `SELECT COUNT(*) AS n FROM (SELECT DISTINCT ${keys} FROM usage_hourly ${known.sql}) k`,
    known.bind,
  );
  const [total] = await on.select<SumColumns>(`SELECT ${SUMS} FROM usage_hourly ${everything.sql}`, everything.bind);
  return {
    fromMs: firstMs,
    groups: rows.map(groupOf),
    groupCount: counted?.n ?? 0,
    untracked: 0,
    total: { counts: countsIn(total), times: [] },
  };
}

function conditionsOf({ projectId, tokenId }: TopQuery, firstMs: number): Conditions {
  const where = new Conditions();
  if (tokenId !== undefined) where.and('token_id = $tokenId', { tokenId });
  if (projectId !== undefined) where.and('project_id = $projectId', { projectId });
  // As in reports of usage: the indexes on tokens and projects continue with the hour, and the table is in the order of IDs.
  return where.sql === ''
    ? where.and('id >= $since', { since: firstIdOf(firstMs) })
    : where.and('hour_ms >= $since', { since: firstMs });
}

/** @param firstMs start of the first of the hours. */
export async function topGroupHours(
  on: Reader,
  query: TopQuery,
  firstMs: number,
  groups: readonly TopGroup[],
): Promise<TopGroupHour[]> {
  if (groups.length === 0) return [];
  const keys = DIMENSIONS[query.by].join(', ');
  const { table, index, column, hour, failed, where, ids } = hourSource(query, firstMs, groups);
  // Otherwise SQLite reads the rows of all projects for each of the listed ones.
  const listed = on.dialect.rowsIn(`${table} ${on.dialect.indexHint(index)}`, column, '$ids');
  const rows = await on.select<HourColumns>(
    `SELECT ${keys}, ${hour} AS hour, SUM(requests) AS done, SUM(${failed}) AS failed
     FROM ${listed} ${where.sql} GROUP BY ${keys}, ${hour}`,
    { ...where.bind, ids: JSON.stringify([...new Set(ids)]) },
  );
  return rows.map(({ token_id, project_id, model, hour: hourMs, done, failed: failures }) => ({
    tokenId: token_id ?? null,
    projectId: project_id,
    model: model ?? null,
    hourMs,
    requests: done,
    failures,
  }));
}

/** Rows of tokens, or, for projects as a whole, their sums: those are few, however many tokens a project has. */
function hourSource({ by, projectId, tokenId }: TopQuery, since: number, groups: readonly TopGroup[]) {
  const where = new Conditions();
  if (by !== 'token' && tokenId === undefined) {
    where.and("kind = 'project_hour' AND from_ms >= $since", { since });
    const ids = groups.map((group) => group.projectId);
    const from = { table: 'usage_sums', index: 'usage_sums_project', column: 'project_id', hour: 'from_ms' };
    return { ...from, failed: FAILED_OF_SUMS, where, ids };
  }
  where.and('hour_ms >= $since', { since });
  if (projectId !== undefined) where.and('project_id = $projectId', { projectId });
  const ids = groups.flatMap((group) => group.tokenId ?? tokenId ?? []);
  const from = { table: 'usage_hourly', index: 'usage_hourly_token', column: 'token_id', hour: 'hour_ms' };
  return { ...from, failed: FAILED, where, ids };
}

type RowColumns = Required<KeyColumns> & Record<`n${number}`, number> & { id: string; hour_ms: number };

/** See `TopDayStore`. */
export async function topHourRows(on: Reader, afterId: string, untilMs: number, limit: number): Promise<TopHourRow[]> {
  const rows = await on.select<RowColumns>(
    `SELECT id, hour_ms, token_id, project_id, model, ${EACH} FROM usage_hourly
     WHERE id > $after AND id < $until ORDER BY id LIMIT ${limit}`,
    { after: afterId, until: firstIdOf(untilMs) },
  );
  return rows.map((row) => ({
    id: row.id,
    hourMs: row.hour_ms,
    tokenId: row.token_id,
    projectId: row.project_id,
    model: row.model,
    counts: countsIn(row),
  }));
}

/** See `TopDayStore`. In the order of an index. */
export async function lastUses(on: Reader, sinceMs: number, after: LastUse, limit: number): Promise<LastUse[]> {
  const rows = await on.select<{ id: string; last_used_at: number }>(
    `SELECT id, last_used_at FROM tokens ${on.dialect.indexHint('tokens_last_used_at')}
     WHERE last_used_at >= $since AND (last_used_at > $after OR id > $id) ORDER BY last_used_at, id LIMIT ${limit}`,
    { since: Math.max(sinceMs, after.lastUsedAtMs), after: after.lastUsedAtMs, id: after.tokenId },
  );
  return rows.map(({ id, last_used_at: lastUsedAtMs }) => ({ tokenId: id, lastUsedAtMs }));
}

const groupOf = (row: GroupRow): TopGroup => ({
  tokenId: row.token_id ?? null,
  projectId: row.project_id,
  model: row.model ?? null,
  counts: countsIn(row),
  times: [],
  lastMs: row.last_ms,
  history: Array.from({ length: TOP_DAY_STEPS }, () => 0),
  failureHistory: Array.from({ length: TOP_DAY_STEPS }, () => 0),
});
