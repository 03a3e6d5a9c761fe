/** Number of tokens in each state, as defined by `stateOf`. All counts use small indexes. */
import type { Population, Scope } from '../../core/ports.js';
import type { TokenState } from '../../core/token.js';
import type { Reader } from './database.js';
import type { Dialect } from './dialect.js';
import { Conditions } from './lists.js';
import { BY_ISSUER, inProjects } from './scopes.js';

export const ALIVE = 't.is_active = $yes AND t.expires_at > $now';
// Must match the condition of the index `tokens_spent`.
const SPENT = 't.max_requests > 0 AND t.request_count >= t.max_requests';
export const OF_INACTIVE_PROJECT = 't.project_id IN (SELECT id FROM projects WHERE is_active = $no)';

type Part = 'revoked' | 'expired' | 'alive' | 'spent' | 'off' | 'offAndSpent';

function conditionsOf({ indexHint }: Dialect): Record<Part, string> {
  const tokens = (index: string, condition: string) =>
    `SELECT COUNT(*) FROM tokens t ${indexHint(index)} WHERE ${condition}`;
  return {
    revoked: tokens('tokens_alive', 't.is_active = $no'),
    expired: tokens('tokens_alive', 't.is_active = $yes AND t.expires_at <= $now'),
    alive: tokens('tokens_alive', ALIVE),
    spent: tokens('tokens_spent', `${ALIVE} AND ${SPENT}`),
    // Tokens of inactive projects, which are few, are found by project: to look up the project of each token would take longest.
    off: tokens('tokens_project', `${OF_INACTIVE_PROJECT} AND ${ALIVE}`),
    offAndSpent: tokens('tokens_spent', `${ALIVE} AND ${SPENT} AND ${OF_INACTIVE_PROJECT}`),
  };
}

type Counts = Partial<Record<Part, number>>;

/** Each state excludes the ones before it: revoked, expired, project inactive, cap reached. */
const STATES: Record<TokenState, { of: readonly Part[]; count: (counts: Required<Counts>) => number }> = {
  revoked: { of: ['revoked'], count: ({ revoked }) => revoked },
  expired: { of: ['expired'], count: ({ expired }) => expired },
  project_inactive: { of: ['off'], count: ({ off }) => off },
  rate_limited: { of: ['spent', 'offAndSpent'], count: ({ spent, offAndSpent }) => spent - offAndSpent },
  active: {
    of: ['alive', 'off', 'spent', 'offAndSpent'],
    count: ({ alive, off, spent, offAndSpent }) => alive - off - (spent - offAndSpent),
  },
};

/** Counts everything in one statement, so that all numbers are from the same moment. */
async function counted(
  on: Reader,
  parts: readonly Part[],
  nowMs: number,
  more: Readonly<Record<string, string>> = {},
): Promise<Record<string, number>> {
  const conditions = conditionsOf(on.dialect);
  const questions = { ...Object.fromEntries(parts.map((part) => [part, conditions[part]])), ...more };
  const columns = Object.entries(questions).map(([name, sql]) => `(${sql}) AS ${name.toLowerCase()}`);
  const asked = columns.join(', ');
  const all = { yes: true, no: false, now: nowMs };
  // SQLite rejects bind values that the statement does not use.
  const bind = Object.fromEntries(Object.entries(all).filter(([name]) => new RegExp(`\\$${name}\\b`).test(asked)));
  const [row] = await on.select<Record<string, number>>(`SELECT ${asked}`, bind);
  return Object.fromEntries(Object.keys(questions).map((name) => [name, row?.[name.toLowerCase()] ?? 0]));
}

export async function tokensInStates(on: Reader, states: readonly TokenState[], nowMs: number): Promise<number> {
  if (states.length === 0) return 0;
  const parts = new Set(states.flatMap((state) => STATES[state].of));
  const counts = (await counted(on, [...parts], nowMs)) as Required<Counts>;
  return states.reduce((sum, state) => sum + STATES[state].count(counts), 0);
}

export async function population(on: Reader, nowMs: number): Promise<Population> {
  const parts = Object.keys(conditionsOf(on.dialect)) as Part[];
  const counts = await counted(on, parts, nowMs, {
    projects: 'SELECT COUNT(*) FROM projects',
    activeProjects: 'SELECT COUNT(*) FROM projects WHERE is_active = $yes',
  });
  const tokens = Object.entries(STATES).map(([state, { count }]) => [state, count(counts as Required<Counts>)]);
  return {
    projects: { active: counts.activeProjects ?? 0, all: counts.projects ?? 0 },
    tokens: Object.fromEntries(tokens) as Population['tokens'],
  };
}

/** The state of a token, as SQL. */
const STATE = `CASE WHEN t.is_active = $no THEN 'revoked' WHEN t.expires_at <= $now THEN 'expired'
  WHEN ${OF_INACTIVE_PROJECT} THEN 'project_inactive' WHEN ${SPENT} THEN 'rate_limited' ELSE 'active' END`;

/** The same for what is in scope, which is little: it is counted token by token. */
export async function populationWithin(on: Reader, nowMs: number, { projects, issuedBy }: Scope): Promise<Population> {
  const where = inProjects(new Conditions(), 't.project_id', projects);
  if (issuedBy !== null) where.and('t.issued_by = $issuedBy', { issuedBy });
  const hint = on.dialect.indexHint(issuedBy === null ? 'tokens_project' : BY_ISSUER);
  const ofProjects = inProjects(new Conditions(), 'id', projects);
  const [states, [counted]] = await Promise.all([
    on.select<{ state: TokenState; tokens: number }>(
      `SELECT state, COUNT(*) AS tokens FROM (SELECT ${STATE} AS state FROM tokens t ${hint} ${where.sql}) t GROUP BY state`,
      { ...where.bind, no: false, now: nowMs },
    ),
    on.select<{ active: number | null; found: number }>(
      `SELECT COUNT(*) AS found, SUM(CASE WHEN is_active = $yes THEN 1 ELSE 0 END) AS active FROM projects ${ofProjects.sql}`,
      { ...ofProjects.bind, yes: true },
    ),
  ]);
  const tokensIn = (state: TokenState) => states.find((row) => row.state === state)?.tokens ?? 0;
  return {
    projects: { active: counted?.active ?? 0, all: counted?.found ?? 0 },
    tokens: Object.fromEntries(
      (Object.keys(STATES) as TokenState[]).map((state) => [state, tokensIn(state)]),
    ) as Population['tokens'],
  };
}
