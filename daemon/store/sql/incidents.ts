/** What fails and what is slow now, from the minutes of usage and the causes of failures. */
import { EVERYTHING } from '../../core/authority.js';
import type { FailureCause, IncidentFigures, RecentRequests, Scope } from '../../core/ports.js';
import { HOUR_MS, MINUTE_MS, RECENT_MINUTES, TIME_BOUNDS_MS } from '../../core/usage.js';
import type { Reader } from './database.js';
import { Conditions } from './lists.js';
import { amongValues, inProjects, ofIssued } from './scopes.js';
import { USAGE_TIMES } from './tables.js';

/** More than a person reads. */
const MAX_CAUSES = 50;

/** Added to a count so that counts sort like texts. */
const COUNT_BASE = 10 ** 15;
const COUNT_DIGITS = String(COUNT_BASE).length;

interface CauseRow {
  project_id: string;
  cause: string;
  failures: number;
  tokens: number;
  /** The count of the token that has most of them, beside `COUNT_BASE`, and its ID. */
  most: string;
}

type RequestRow = { project_id: string; token_id: string; is_recent: number; requests: number } & Record<
  `t${number}`,
  number
>;

export async function incidentFigures(
  on: Reader,
  nowMs: number,
  urgentCause: string,
  scope: Scope = EVERYTHING,
): Promise<IncidentFigures> {
  const minuteMs = nowMs - (nowMs % MINUTE_MS);
  const fromMs = minuteMs - (RECENT_MINUTES - 1) * MINUTE_MS;
  const { issuedBy } = scope;
  const from = issuedBy === null ? 'usage_causes' : ofIssued(on.dialect, 'usage_causes', 'usage_causes_time');
  const where = inProjects(new Conditions(), 'project_id', scope.projects);
  // The sign keeps SQLite from the index of times.
  where.and(`${issuedBy === null ? '+' : ''}from_ms >= $from`, { from: fromMs });
  const rows = await on.select<CauseRow>(
    // A hundred thousand tokens may fail. The rows are read in the order of the key, so that SQLite sorts nothing.
    `SELECT project_id, cause, SUM(of_token) AS failures, COUNT(*) AS tokens,
       MAX(CONCAT(${COUNT_BASE} + of_token, token_id)) AS most
     FROM (
       SELECT project_id, cause, token_id, SUM(requests) AS of_token
       FROM ${from} ${where.sql} GROUP BY project_id, cause, token_id
     ) t GROUP BY project_id, cause
     ORDER BY CASE WHEN cause = $urgent THEN 0 ELSE 1 END, failures DESC, project_id, cause LIMIT ${MAX_CAUSES}`,
    { ...where.bind, urgent: urgentCause, ...(issuedBy !== null && { issuedBy }) },
  );
  const causes = rows.map((row): FailureCause => ({
    projectId: row.project_id,
    cause: row.cause,
    failures: row.failures,
    tokens: row.tokens,
    tokenId: row.most.slice(COUNT_DIGITS),
    failuresOfToken: Number(row.most.slice(0, COUNT_DIGITS)) - COUNT_BASE,
  }));
  return { fromMs, causes, requests: await requestsOf(on, causes, minuteMs, fromMs, scope) };
}

async function requestsOf(
  on: Reader,
  causes: readonly FailureCause[],
  minuteMs: number,
  fromMs: number,
  { projects, issuedBy }: Scope,
): Promise<RecentRequests[]> {
  // Each minute is looked up by itself: the rows of all tokens in between are many more. With the next one, because the clock of
  // another instance may be ahead.
  const starts = Array.from({ length: HOUR_MS / MINUTE_MS + 1 }, (_, n) => minuteMs + MINUTE_MS - n * MINUTE_MS);
  const where = inProjects(new Conditions(), 'project_id', projects).and(`from_ms IN (${starts.join(', ')})`);
  const tokens = [...new Set(['', ...causes.map(({ tokenId }) => tokenId)])];
  if (issuedBy === null) where.and(...amongValues('token_id', tokens, 'token'));
  const from = issuedBy === null ? 'usage_minutes' : ofIssued(on.dialect, 'usage_minutes');
  const recent = `CASE WHEN from_ms >= ${fromMs} THEN 1 ELSE 0 END`;
  const rows = await on.select<RequestRow>(
    `SELECT project_id, token_id, ${recent} AS is_recent, SUM(requests) AS requests,
       ${USAGE_TIMES.map((column) => `SUM(${column}) AS ${column}`).join(', ')}
     FROM ${from} ${where.sql} GROUP BY project_id, token_id, ${recent}`,
    { ...where.bind, ...(issuedBy !== null && { issuedBy }) },
  );
  const found = new Map<string, RecentRequests>();
  const add = (row: RequestRow, projectId: string, tokenId: string) => {
    const key = `${projectId}\n${tokenId}`;
    const one = found.get(key) ?? { projectId, tokenId, requests: 0, times: NO_TIMES, earlierTimes: NO_TIMES };
    const added = (times: readonly number[]) => times.map((time, n) => time + (row[`t${n}`] ?? 0));
    found.set(
      key,
      row.is_recent
        ? { ...one, requests: one.requests + row.requests, times: added(one.times) }
        : { ...one, earlierTimes: added(one.earlierTimes) },
    );
  };
  for (const row of rows) {
    const { project_id: projectId, token_id: tokenId } = row;
    // For an issuer, the requests of a project are those of the own tokens.
    if (issuedBy !== null) add(row, projectId, '');
    if (issuedBy === null || tokens.includes(tokenId)) add(row, projectId, tokenId);
  }
  return [...found.values()];
}

const NO_TIMES: readonly number[] = TIME_BOUNDS_MS.map(() => 0);
