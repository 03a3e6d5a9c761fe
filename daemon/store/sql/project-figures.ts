/** What lists show beside projects: their tokens, last use, and requests. Read for a whole page at once. */
import { AdaptiveMemo } from '../../core/adaptive-memo.js';
import type { Clock, ProjectFigures } from '../../core/ports.js';
import { HOUR_MS } from '../../core/usage.js';
import type { Reader } from './database.js';
import { BY_ISSUER, ofIssued } from './scopes.js';
import { FAILURES_IN_SUM } from './tables.js';
import { FAILURES_IN_HOUR } from './usage-report.js';

const HOURS = 24;
/** The figures of fewer tokens or projects are never reused: an operator may have just issued or revoked a token. */
const MANY_TOKENS = 20_000;
const MANY_PROJECTS = 200;
/** Pages whose figures are reused. */
const MAX_PAGES = 100;

type FiguresById = ReadonlyMap<string, ProjectFigures>;

/**
 * Figures of the projects of pages, by their IDs. Counting a hundred thousand tokens takes longer than the rest of a page, so the figures of
 * many tokens or many projects may be slightly out of date.
 */
export type FiguresOfPages = AdaptiveMemo<FiguresById>;

export const figuresOfPages = (clock: Pick<Clock, 'monotonic' | 'after'>): FiguresOfPages =>
  new AdaptiveMemo(clock, MAX_PAGES, areMany);

function areMany(figures: FiguresById): boolean {
  if (figures.size >= MANY_PROJECTS) return true;
  let tokens = 0;
  for (const { tokenCount } of figures.values()) tokens += tokenCount;
  return tokens >= MANY_TOKENS;
}

interface TokenColumns {
  id: string;
  tokens: number;
  active: number;
}

interface RequestColumns {
  id: string;
  requests: number;
  errors: number;
}

/** 1 if a token can be used, unless its project is inactive. */
const IS_USABLE = `CASE WHEN t.is_active = $yes AND t.expires_at > $now
  AND (t.max_requests = 0 OR t.request_count < t.max_requests) THEN 1 ELSE 0 END`;

const firstHourMs = (nowMs: number) => nowMs - (nowMs % HOUR_MS) - (HOURS - 1) * HOUR_MS;

/** Whether so many projects are at least half of all. */
async function areMost(on: Reader, count: number): Promise<boolean> {
  if (count < MANY_PROJECTS) return false;
  const [all] = await on.select<{ n: number }>('SELECT COUNT(*) AS n FROM projects');
  return 2 * count >= (all?.n ?? 0);
}

/** @returns an entry for each of the projects that exist. */
export async function projectFigures(on: Reader, ids: readonly string[], nowMs: number): Promise<FiguresById> {
  if (ids.length === 0) return new Map();
  const { dialect } = on;
  const listed = JSON.stringify(ids);
  const isMost = await areMost(on, ids.length);
  // All tokens in the order of an index are read several times as fast as those of one project after another.
  const of = (table: string, column: string) =>
    isMost ? { from: table, bind: {} } : { from: dialect.rowsIn(table, column, '$ids'), bind: { ids: listed } };
  // This index contains all columns of the condition.
  const ofTokens = of(`tokens t ${dialect.indexHint('tokens_project')}`, 't.project_id');
  const usageHint = isMost ? '' : dialect.indexHint('usage_sums_project');
  const ofUsage = of(`usage_sums u ${usageHint}`, 'u.project_id');
  const sinceMs = firstHourMs(nowMs);
  const [projects, tokens, requests] = await Promise.all([
    // With ORDER BY and LIMIT every database reads a single entry of the index; with MAX, MariaDB reads all of the project.
    on.select<{ id: string; is_active: boolean | number; last_used_at: number | null }>(
      `SELECT p.id, p.is_active, (SELECT t.last_used_at FROM tokens t WHERE t.project_id = p.id
         ORDER BY t.project_id DESC, t.last_used_at DESC LIMIT 1) AS last_used_at
       FROM ${dialect.rowsIn('projects p', 'p.id', '$ids')}`,
      { ids: listed },
    ),
    on.select<TokenColumns>(
      `SELECT t.project_id AS id, COUNT(*) AS tokens, SUM(${IS_USABLE}) AS active
       FROM ${ofTokens.from} GROUP BY t.project_id`,
      { ...ofTokens.bind, yes: true, now: nowMs },
    ),
    on.select<RequestColumns>(
      `SELECT u.project_id AS id, SUM(u.requests) AS requests,
         SUM(${FAILURES_IN_SUM}) AS errors
       FROM ${ofUsage.from} WHERE u.kind = 'project_hour' AND u.from_ms >= $since GROUP BY u.project_id`,
      { ...ofUsage.bind, since: sinceMs },
    ),
  ]);
  const tokensOf = new Map(tokens.map((row) => [row.id, row]));
  const requestsOf = new Map(requests.map((row) => [row.id, row]));
  return new Map(
    projects.map(({ id, is_active: isActive, last_used_at: lastUsedAtMs }) => [
      id,
      {
        tokenCount: tokensOf.get(id)?.tokens ?? 0,
        activeTokenCount: isActive ? (tokensOf.get(id)?.active ?? 0) : 0,
        lastUsedAtMs: lastUsedAtMs || null, // 0: never.
        requests24h: requestsOf.get(id)?.requests ?? 0,
        errors24h: requestsOf.get(id)?.errors ?? 0,
      },
    ]),
  );
}

/** The same for the tokens that an actor has issued, of all projects in which there are any. */
export async function figuresOfIssuer(on: Reader, issuedBy: string, nowMs: number): Promise<FiguresById> {
  const { dialect } = on;
  const sinceMs = firstHourMs(nowMs);
  const [tokens, requests] = await Promise.all([
    on.select<TokenColumns & { is_active: boolean | number; last_used_at: number }>(
      `SELECT t.project_id AS id, COUNT(*) AS tokens, SUM(${IS_USABLE}) AS active, MAX(t.last_used_at) AS last_used_at,
         (SELECT p.is_active FROM projects p WHERE p.id = t.project_id) AS is_active
       FROM tokens t ${dialect.indexHint(BY_ISSUER)} WHERE t.issued_by = $issuedBy GROUP BY t.project_id`,
      { issuedBy, yes: true, now: nowMs },
    ),
    on.select<RequestColumns>(
      `SELECT project_id AS id, SUM(requests) AS requests, SUM(${FAILURES_IN_HOUR}) AS errors
       FROM ${ofIssued(dialect, 'usage_hourly', 'usage_hourly_token')} WHERE hour_ms >= $since GROUP BY project_id`,
      { issuedBy, since: sinceMs },
    ),
  ]);
  const requestsOf = new Map(requests.map((row) => [row.id, row]));
  return new Map(
    tokens.map((row) => [
      row.id,
      {
        tokenCount: row.tokens,
        activeTokenCount: row.is_active ? row.active : 0,
        lastUsedAtMs: row.last_used_at || null,
        requests24h: requestsOf.get(row.id)?.requests ?? 0,
        errors24h: requestsOf.get(row.id)?.errors ?? 0,
      },
    ]),
  );
}
