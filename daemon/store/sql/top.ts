/**
 * The tokens, projects and models with the most requests or failures, from the minutes and hours of usage. A hundred thousand tokens have
 * so many rows that adding up all of their counts takes several times as long as adding up what they are sorted by. So a report first
 * finds the groups that it shows, and then reads the counts of those. Projects and models, and the total, are read from the sums over
 * all tokens.
 */
import { EVERYTHING } from '../../core/authority.js';
import type { Scope, TopCount, TopFigures, TopGroup, TopPart, TopQuery, TopSums } from '../../core/ports.js';
import { QUANTILES, TOP_STEPS } from '../../core/top.js';
import { firstIdOf, MINUTE_MS, TIME_BOUNDS_MS } from '../../core/usage.js';
import type { Reader } from './database.js';
import type { Dialect } from './dialect.js';
import { Conditions } from './lists.js';
import { amongValues, BY_ISSUER, inProjects, IS_ISSUED, ofIssued } from './scopes.js';
import { USAGE_TIMES } from './tables.js';
import { FAILURES_BY_OUTCOME, summedIn } from './usage-report.js';

/** How each count is read from sums. */
const COUNTS: Readonly<Record<TopCount, string>> = {
  requests: 'requests',
  cacheHits: 'hits',
  refused: 'refused',
  upstreamRefused: 'upstream_refused',
  failed: 'failed',
  cut: 'cut',
  promptTokens: 'prompt_tokens',
  completionTokens: 'completion_tokens',
  costNano: 'cost_nano',
  unpriced: 'unpriced',
};
/** From hourly rows, which have an outcome instead. */
const COUNTS_OF_HOURS: typeof COUNTS = { ...COUNTS, ...FAILURES_BY_OUTCOME };
const COUNT_NAMES = Object.keys(COUNTS) as TopCount[];

const DIMENSIONS = {
  token: ['token_id', 'project_id'],
  project: ['project_id'],
  model: ['project_id', 'model'],
  model_total: ['model'],
} as const satisfies Record<TopQuery['by'], readonly (keyof KeyColumns)[]>;

interface KeyColumns {
  token_id?: string;
  project_id?: string;
  model?: string;
}

/** Rows of a table, and what they contain. */
interface Source {
  from: string;
  where: Conditions;
  time: string;
  counts: typeof COUNTS;
  /** Columns with counts of response times. */
  times: readonly string[];
}

/** Which rows of the window: those of tokens, or the sums over all tokens; null: of all tokens or projects. */
interface Rows {
  areOfTokens: boolean;
  tokens: readonly string[] | null;
  projects: readonly string[] | null;
  scope: Scope;
}

interface Steps {
  fromMs: number;
  stepMs: number;
  steps: number;
}

/** The window that ends at that time. */
export async function topOfUsage(on: Reader, query: TopQuery, nowMs: number): Promise<TopPart> {
  const { by, tokenId, projectId, scope = EVERYTHING } = query;
  const { stepMs, steps } = TOP_STEPS[query.window];
  const fromMs = nowMs - (nowMs % stepMs) - (steps - 1) * stepMs;
  const sourceOf = (rows: Rows) =>
    query.window === '24h' ? hours(on, rows, fromMs) : minutes(on.dialect, rows, fromMs, nowMs);
  const isOfSomeTokens = tokenId !== undefined || scope.issuedBy !== null;
  const areOfTokens = by === 'token' || isOfSomeTokens;
  const only = {
    tokens: tokenId === undefined ? null : [tokenId],
    projects: projectId === undefined ? null : [projectId],
    scope,
  };
  const ofTotal = sourceOf({ areOfTokens: isOfSomeTokens, ...only });
  const [all] = await sumsOf(on, [], ofTotal);
  const total: TopFigures = { ...sumsIn(all), ...noHistory(steps) };
  for (const row of await historyOf(on, [], ofTotal, stepMs)) addStep(total, row, { fromMs, stepMs, steps });
  const { groups, groupCount } = await firstGroups(on, query, sourceOf({ areOfTokens, ...only }), steps);
  if (groups.length > 0) {
    const chosen = sourceOf({
      areOfTokens,
      tokens: by === 'token' ? groups.map((group) => group.tokenId ?? '') : only.tokens,
      projects:
        by === 'token' || by === 'model_total'
          ? only.projects
          : [...new Set(groups.flatMap((group) => group.projectId ?? []))],
      scope,
    });
    chosen.where.and(IS_KNOWN);
    await addFigures(on, groups, DIMENSIONS[by], chosen, { fromMs, stepMs, steps });
  }
  return { fromMs, groups, groupCount, total };
}

// ---- where the rows are

function minutes(dialect: Dialect, rows: Rows, fromMs: number, nowMs: number): Source {
  const { areOfTokens, tokens, projects } = rows;
  // With the next one, because the clock of another instance may be ahead.
  const untilMs = nowMs + 2 * MINUTE_MS;
  const where = new Conditions();
  const { isByIssuer } = scoped(where, rows);
  if (areOfTokens && tokens === null && !isByIssuer) {
    where.and("from_ms >= $since AND from_ms < $until AND token_id <> ''", { since: fromMs, until: untilMs });
  } else {
    // Each minute is looked up by itself: the rows of all tokens in between are many more.
    const starts = Array.from({ length: Math.ceil((untilMs - fromMs) / MINUTE_MS) }, (_, n) => fromMs + n * MINUTE_MS);
    where.and(`from_ms IN (${starts.join(', ')})`);
    if (!isByIssuer) among(where, 'token_id', areOfTokens ? (tokens ?? []) : ['']);
  }
  if (projects) among(where, 'project_id', projects);
  const from = isByIssuer ? ofIssued(dialect, 'usage_minutes') : 'usage_minutes';
  return { from, where, time: 'from_ms', counts: COUNTS, times: USAGE_TIMES };
}

function hours(on: Reader, rows: Rows, since: number): Source {
  const { areOfTokens, tokens, projects } = rows;
  const where = new Conditions();
  const { isByIssuer, isByProject } = scoped(where, rows);
  if (areOfTokens) {
    // As in reports of usage: the indexes on tokens and projects continue with the hour, and the table is in the order of IDs.
    if (!tokens && !projects && !isByIssuer && !isByProject) where.and('id >= $since', { since: firstIdOf(since) });
    else where.and('hour_ms >= $since', { since });
    where.and("token_id <> ''");
    if (!tokens && projects) among(where, 'project_id', projects);
    const index = 'usage_hourly_token';
    const from = tokens
      ? listed(on, where, 'usage_hourly', 'token_id', tokens, index)
      : isByIssuer
        ? ofIssued(on.dialect, 'usage_hourly', index)
        : 'usage_hourly';
    return { from, where, time: 'hour_ms', counts: COUNTS_OF_HOURS, times: [] };
  }
  where.and("kind = 'project_hour' AND from_ms >= $since", { since });
  const from = projects ? listed(on, where, 'usage_sums', 'project_id', projects, 'usage_sums_project') : 'usage_sums';
  return { from, where, time: 'from_ms', counts: COUNTS, times: [] };
}

/** Adds what is in scope. @returns whether the rows are found by the issuer of the tokens, and whether by projects. */
function scoped(where: Conditions, { areOfTokens, tokens, scope: { projects, issuedBy } }: Rows) {
  inProjects(where, 'project_id', projects);
  const isByIssuer = areOfTokens && issuedBy !== null && tokens === null;
  if (issuedBy !== null && tokens !== null) where.and(IS_ISSUED, { issuedBy });
  if (isByIssuer) where.bind.issuedBy = issuedBy;
  return { isByIssuer, isByProject: projects !== null };
}

function among(where: Conditions, column: string, values: readonly string[]): void {
  where.and(...amongValues(column, values, column));
}

/** Rows found one by one. Without the hint SQLite reads those of all projects for each of the listed ones. */
function listed(
  on: Reader,
  where: Conditions,
  table: string,
  column: string,
  values: readonly string[],
  index: string,
): string {
  where.bind.listed = JSON.stringify(values);
  return on.dialect.rowsIn(`${table} ${on.dialect.indexHint(index)}`, column, '$listed');
}

// ---- which groups

/** Requests with an unknown token are in the total only. */
const IS_KNOWN = "project_id <> ''";

/** When a token or project was last used: the rows only say in which minute or hour. */
function lastUseOf(by: TopQuery['by'], { issuedBy }: Scope, dialect: Dialect): string {
  if (by !== 'project' || issuedBy === null) return LAST_USES[by];
  return `COALESCE((SELECT MAX(t.last_used_at) FROM tokens t ${dialect.indexHint(BY_ISSUER)}
    WHERE t.issued_by = $issuedBy AND t.project_id = g.project_id), 0)`;
}

const LAST_USES: Readonly<Record<TopQuery['by'], string>> = {
  token: 'COALESCE((SELECT t.last_used_at FROM tokens t WHERE t.id = g.token_id), 0)',
  // With ORDER BY and LIMIT every database reads a single entry of the index; with MAX, MariaDB reads all of the project.
  project: `COALESCE((SELECT t.last_used_at FROM tokens t WHERE t.project_id = g.project_id
    ORDER BY t.project_id DESC, t.last_used_at DESC LIMIT 1), 0)`,
  model: '0',
  model_total: '0',
};

type KeyRow = KeyColumns & { last_ms: number; used_ms: number; found: number };

/** The first groups, without their figures, and how many there are. */
async function firstGroups(on: Reader, query: TopQuery, source: Source, steps: number) {
  const { by, sort, limit, scope = EVERYTHING } = query;
  const lastUse = lastUseOf(by, scope, on.dialect);
  const { from, where, time } = source;
  where.and(IS_KNOWN);
  const keys = DIMENSIONS[by].join(', ');
  const order = `DESC, done DESC, ${keys} LIMIT ${limit}`;
  const isByUse = sort === 'last_used';
  const grouped = `SELECT ${keys}, ${keyOf(sort, source, on.dialect)} AS sorted_by, SUM(requests) AS done, MAX(${time}) AS last_ms, COUNT(*) OVER () AS found
    FROM ${from} ${where.sql} GROUP BY ${keys} ${isByUse ? '' : `ORDER BY sorted_by ${order}`}`;
  const rows = await on.select<KeyRow>(
    `SELECT ${keys}, last_ms, ${lastUse} AS used_ms, found FROM (${grouped}) g
     ORDER BY ${isByUse ? on.dialect.greatest('last_ms', lastUse) : 'sorted_by'} ${order}`,
    where.bind,
  );
  const groups = rows.map((row): TopGroup => ({
    tokenId: row.token_id ?? null,
    projectId: row.project_id ?? null,
    model: row.model ?? null,
    ...sumsIn(undefined),
    lastMs: Math.max(row.last_ms, row.used_ms),
    ...noHistory(steps),
  }));
  return { groups, groupCount: rows[0]?.found ?? 0 };
}

function keyOf(sort: TopQuery['sort'], { counts, time, times }: Source, dialect: Dialect): string {
  switch (sort) {
    case 'errors':
      return `SUM(${failuresOf(counts)})`;
    case 'cost':
      return summedIn(dialect, 'cost_nano');
    case 'tokens':
      return 'SUM(prompt_tokens + completion_tokens)';
    case 'last_used':
      return `MAX(${time})`;
    case 'p50':
    case 'p95':
      if (times.length > 0) return quantileOf(times, QUANTILES[sort]);
  }
  return 'SUM(requests)';
}

const failuresOf = ({ refused, upstreamRefused, failed, cut }: Source['counts']) =>
  [refused, upstreamRefused, failed, cut].join(' + ');

/** The same as `quantile` (core/histogram.ts) of the sums, and -1 without any. */
function quantileOf(times: readonly string[], part: number): string {
  const sums = times.map((column) => `SUM(${column})`);
  const until = (end: number) => `SUM(${['0', ...times.slice(0, end)].join(' + ')})`;
  const wanted = `${part} * ${until(times.length)}`;
  const cases = sums.map((sum, n) => {
    const [lower = 0, upper = lower] = [n === 0 ? 0 : TIME_BOUNDS_MS[n - 1], TIME_BOUNDS_MS[n]];
    return `WHEN ${until(n + 1)} >= ${wanted} THEN ${lower} + ${upper - lower} * (${wanted} - ${until(n)}) / ${sum}`;
  });
  return `CASE WHEN ${until(times.length)} = 0 THEN -1 ${cases.join(' ')} END`;
}

// ---- their figures

type SumRow = KeyColumns & Record<`n${number}`, number> & Record<`t${number}`, number>;

/** @param keys empty: of all rows together. */
function sumsOf(on: Reader, keys: readonly string[], { from, where, counts, times }: Source): Promise<SumRow[]> {
  const sums = [
    ...COUNT_NAMES.map((count, n) => `${summedIn(on.dialect, counts[count])} AS n${n}`),
    ...times.map((column) => `COALESCE(SUM(${column}), 0) AS ${column}`),
  ];
  const grouped = keys.length === 0 ? '' : `GROUP BY ${keys.join(', ')}`;
  return on.select(`SELECT ${[...keys, ...sums].join(', ')} FROM ${from} ${where.sql} ${grouped}`, where.bind);
}

function sumsIn(row: SumRow | undefined): TopSums {
  const counts = Object.fromEntries(COUNT_NAMES.map((count, n) => [count, row?.[`n${n}`] ?? 0])) as TopSums['counts'];
  return { counts, times: row && 't0' in row ? TIME_BOUNDS_MS.map((_, n) => row[`t${n}`] ?? 0) : [] };
}

async function addFigures(
  on: Reader,
  groups: readonly TopGroup[],
  keys: readonly string[],
  source: Source,
  steps: Steps,
): Promise<void> {
  const byKey = new Map(groups.map((group) => [textOf(group.tokenId, group.projectId, group.model), group]));
  const groupOf = (row: KeyColumns) =>
    byKey.get(textOf(row.token_id ?? null, row.project_id ?? null, row.model ?? null));
  for (const row of await sumsOf(on, keys, source)) Object.assign(groupOf(row) ?? {}, sumsIn(row));
  for (const row of await historyOf(on, keys, source, steps.stepMs)) {
    const group = groupOf(row);
    if (group) addStep(group, row, steps);
  }
}

type StepRow = KeyColumns & { step_ms: number; done: number; failures: number };

/** @param keys empty: of all rows together. */
function historyOf(
  on: Reader,
  keys: readonly string[],
  { from, where, time, counts }: Source,
  stepMs: number,
): Promise<StepRow[]> {
  const step = `${time} - ${time} % ${stepMs}`;
  return on.select<StepRow>(
    `SELECT ${[...keys, `${step} AS step_ms`].join(', ')}, SUM(requests) AS done, SUM(${failuresOf(counts)}) AS failures
     FROM ${from} ${where.sql} GROUP BY ${[...keys, step].join(', ')}`,
    where.bind,
  );
}

const noHistory = (steps: number): Pick<TopFigures, 'history' | 'failureHistory'> => ({
  history: Array.from({ length: steps }, () => 0),
  failureHistory: Array.from({ length: steps }, () => 0),
});

function addStep({ history, failureHistory }: TopFigures, row: StepRow, { fromMs, stepMs, steps }: Steps): void {
  const at = Math.min(steps - 1, Math.round((row.step_ms - fromMs) / stepMs));
  history[at] = (history[at] ?? 0) + row.done;
  failureHistory[at] = (failureHistory[at] ?? 0) + row.failures;
}

const textOf = (...key: (string | null)[]) => key.join('\n');
