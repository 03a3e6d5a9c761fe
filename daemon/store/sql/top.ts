/** The tokens, projects and models with the most requests or failures, from the hourly usage. */
import { FAILURE_KINDS, type FailureKind } from '../../core/failure-kind.js';
import type { TopGroup, TopPart, TopQuery } from '../../core/ports.js';
import { COUNTS, TOP_DAY_STEPS } from '../../core/top/counts.js';
import { firstIdOf, HOUR_MS } from '../../core/usage.js';
import type { Reader } from './database.js';
import { Conditions } from './lists.js';

const when = (condition: string) => `CASE WHEN ${condition} THEN requests ELSE 0 END`;

/** The rules of `failureKindOf`, for rows of `usage_hourly`. */
const FAILURES: Readonly<Record<FailureKind, string>> = {
  refused: `CASE WHEN outcome IN ('refused', 'drained') OR (outcome = 'upstream_error' AND code = 'internal')
    OR (outcome = 'timeout' AND code = 'request_timeout') THEN requests WHEN outcome = 'revoked' THEN requests - cut ELSE 0 END`,
  upstreamRefused: when(`outcome = 'upstream_refused'`),
  upstreamErrors: when(
    `outcome = 'truncated' OR (outcome = 'upstream_error' AND code <> 'internal') OR (outcome = 'timeout' AND code <> 'request_timeout')`,
  ),
  cut: 'cut',
};
const FAILED = FAILURE_KINDS.map((kind) => FAILURES[kind]).join(' + ');
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
type HourRow = KeyColumns & { hour: number; done: number; failed: number };

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
  const groups = new Map(rows.map((row) => [keyOf(row), groupOf(row)]));
  for (const row of await hoursOf(on, query, firstMs, rows)) {
    const group = groups.get(keyOf(row));
    const at = Math.round((row.hour - firstMs) / HOUR_MS);
    if (!group || at >= TOP_DAY_STEPS) continue;
    group.history[at] = row.done;
    group.failureHistory[at] = row.failed;
  }
  return {
    fromMs: firstMs,
    groups: [...groups.values()],
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

/** The requests per hour of the groups. */
function hoursOf(on: Reader, query: TopQuery, firstMs: number, rows: readonly GroupRow[]): Promise<HourRow[]> {
  if (rows.length === 0) return Promise.resolve([]);
  const { by, projectId, tokenId } = query;
  const keys = DIMENSIONS[by].join(', ');
  const ids = [...new Set(rows.map((row) => (by === 'token' ? row.token_id : row.project_id)))];
  const where = new Conditions().and("token_id <> '' AND hour_ms >= $since", { since: firstMs });
  if (tokenId !== undefined) where.and('token_id = $tokenId', { tokenId });
  if (projectId !== undefined) where.and('project_id = $projectId', { projectId });
  const from = on.dialect.rowsIn('usage_hourly', by === 'token' ? 'token_id' : 'project_id', '$ids');
  return on.select<HourRow>(
    `SELECT ${keys}, hour_ms AS hour, SUM(requests) AS done, SUM(${FAILED}) AS failed FROM ${from} ${where.sql}
     GROUP BY ${keys}, hour_ms`,
    { ...where.bind, ids: JSON.stringify(ids) },
  );
}

const keyOf = ({ token_id, project_id, model }: KeyColumns) => `${token_id ?? ''}\n${project_id}\n${model ?? ''}`;

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
