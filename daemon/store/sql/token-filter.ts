/** Conditions of the list of tokens, and the indexes that contain all of their columns. */
import type { Moment, Selection, TokenFilter } from '../../core/ports.js';
import type { TokenState } from '../../core/token.js';
import type { Bind } from './database.js';
import type { Dialect } from './dialect.js';
import { Conditions } from './lists.js';
import { ALIVE, OF_INACTIVE_PROJECT } from './population.js';
import { policyConditions, type Usable } from './token-policies.js';
import { spendingConditions } from './token-spending.js';
import { BY_ISSUER } from './scopes.js';
import { useQueries } from './token-use.js';

const OF_ACTIVE_PROJECT = 't.project_id IN (SELECT id FROM projects WHERE is_active = $yes)';

/** The states as defined by `stateOf`; each excludes the ones before it. */
const IN_STATE: Record<TokenState, string> = {
  revoked: 't.is_active = $no',
  expired: 't.is_active = $yes AND t.expires_at <= $now',
  project_inactive: `${ALIVE} AND ${OF_INACTIVE_PROJECT}`,
  rate_limited: `${ALIVE} AND t.max_requests > 0 AND t.request_count >= t.max_requests AND ${OF_ACTIVE_PROJECT}`,
  active: `${ALIVE} AND ${OF_ACTIVE_PROJECT} AND (t.max_requests = 0 OR t.request_count < t.max_requests)`,
};

const STATES = Object.keys(IN_STATE) as TokenState[];

/** The selected states, each once. @param isLive true: only `active`; false: all others. */
export const selected = (selection: Selection<TokenState> | undefined, isLive?: boolean): TokenState[] =>
  STATES.filter((state) => selection === undefined || selection.among.includes(state) !== selection.isExcluded).filter(
    (state) => isLive === undefined || (state === 'active') === isLive,
  );

const OF_PROJECT = 'tokens_project';
const BY_STATE = 'tokens_state'; // Covers all columns that a filter uses.
const OF_CAP = 'tokens_capped';
const BY_LAST_USE = 'tokens_last_used_at';
const BY_CREATION = 'tokens_created_at';

/** The index to count the matches of a filter in. Each contains all columns of the filter. */
export function countIndexOf(filter: TokenFilter): string | null {
  const { projects, text, words, usedOverPercent, usedUnderPercent, createdAfter, createdBefore, ...rest } = filter;
  const { idleSince, ...others } = rest;
  if (filter.issuedBy !== undefined) return filter.issuedBy === null ? null : BY_ISSUER;
  if (projects && !projects.isExcluded) return OF_PROJECT;
  const isOfTime = (idleSince ?? createdAfter ?? createdBefore) !== undefined;
  const isOfCap = (usedOverPercent ?? usedUnderPercent) !== undefined;
  const isNothingElse =
    Object.values(others).every((value) => value === undefined) && projects === undefined && !isOfTime;
  if ((text ?? words) !== undefined) return isNothingElse && !isOfCap ? BY_NAME : BY_STATE;
  if (isOfTime) return idleSince === undefined ? BY_CREATION : BY_LAST_USE;
  if (projects) return OF_PROJECT; // The smallest index that contains the project.
  if (filter.allows) return BY_STATE;
  return isNothingElse && isOfCap ? OF_CAP : null;
}

/** The index to walk, in order, to read a page. */
export function pageIndexOf({ projects }: TokenFilter, sortColumn: string): string | null {
  if (sortColumn === 'spent') return null; // It is not a column of tokens.
  // Each sort column has an index named `tokens_` and the column.
  if (projects?.among.length !== 1 || projects.isExcluded) return `tokens_${sortColumn}`;
  return sortColumn === 'created_at' ? OF_PROJECT : null;
}

/** A filter with what was determined for it. */
export interface DeterminedFilter extends TokenFilter {
  usable: Usable | null;
}

/** @param isOfFew whether they are compared with few tokens, such as in the order of a page, or with all. */
export function tokenConditions(filter: DeterminedFilter, nowMs: number, dialect: Dialect, isOfFew = true): Conditions {
  const where = new Conditions();
  const {
    text,
    words = [],
    projects,
    issuedBy,
    states,
    expiresAfter,
    expiresBefore,
    usedOverPercent,
    usedUnderPercent,
  } = filter;
  if (text !== undefined) where.and(...textCondition(text, dialect));
  words.forEach((word, i) => {
    const [condition, bind] = textCondition(word.text, dialect, `_${i}`);
    where.and(word.isExcluded ? `NOT (${condition})` : condition, bind);
  });
  if (projects !== undefined) where.and(...projectCondition(projects));
  if (issuedBy !== undefined) where.and(...issuerCondition(issuedBy));
  if (states !== undefined) where.and(stateCondition(selected(states)), { yes: true, no: false, now: nowMs });
  if (expiresAfter !== undefined) where.and('t.expires_at > $after', { after: atMs(expiresAfter, nowMs) });
  if (expiresBefore !== undefined) where.and('t.expires_at < $before', { before: atMs(expiresBefore, nowMs) });
  for (const [condition, bind] of timesOf(filter, nowMs)) where.and(condition, bind);
  for (const { sql, bind, isExcluded } of useQueries(filter, nowMs, dialect)) {
    // A table of its own, so that MySQL reads it once and not for each token.
    where.and(`t.id ${isExcluded ? 'NOT IN' : 'IN'} (SELECT * FROM (${sql}) used)`, bind);
  }
  for (const [condition, bind] of policyConditions(filter, filter.usable, dialect)) where.and(condition, bind);
  for (const [condition, bind] of spendingConditions(filter, nowMs, dialect, isOfFew)) where.and(condition, bind);
  if (usedOverPercent !== undefined) {
    where.and('t.max_requests > 0 AND t.request_count * 100 > t.max_requests * $over', { over: usedOverPercent });
  }
  if (usedUnderPercent !== undefined) {
    where.and('t.max_requests > 0 AND t.request_count * 100 < t.max_requests * $under', { under: usedUnderPercent });
  }
  return where;
}

/** Conditions on the times of creation and last use, each a range of an index. */
function timesOf({ createdAfter, createdBefore, idleSince }: TokenFilter, nowMs: number): [string, Bind][] {
  const times: [string, Bind][] = [];
  if (createdAfter) times.push(['t.created_at > $createdAfter', { createdAfter: atMs(createdAfter, nowMs) }]);
  if (createdBefore) times.push(['t.created_at < $createdBefore', { createdBefore: atMs(createdBefore, nowMs) }]);
  // The last use is 0 for a token that was never used, and never earlier than the creation of another.
  if (idleSince) {
    times.push(['t.last_used_at < $idleSince AND t.created_at < $idleSince', { idleSince: atMs(idleSince, nowMs) }]);
  }
  return times;
}

/** The query for the IDs of up to `most` tokens with these times of creation and last use; null for a filter without times. */
export function idsOfTimes(
  filter: TokenFilter,
  nowMs: number,
  { indexHint }: Dialect,
  most: number,
): { sql: string; bind: Bind } | null {
  const times = timesOf(filter, nowMs);
  if (times.length === 0) return null;
  const hint = indexHint(filter.idleSince ? BY_LAST_USE : BY_CREATION);
  const where = times.map(([condition]) => condition).join(' AND ');
  const bind = Object.assign({}, ...times.map(([, values]) => values)) as Bind;
  return { sql: `SELECT t.id FROM tokens t ${hint} WHERE ${where} LIMIT ${most}`, bind };
}

/** The query for the IDs of up to `most` tokens of an issuer, or of several projects; null for another filter. */
export function idsOfOwners(
  { issuedBy, projects }: TokenFilter,
  { indexHint }: Dialect,
  most: number,
): { sql: string; bind: Bind } | null {
  const ids = (index: string, condition: string, bind: Bind) => ({
    sql: `SELECT t.id FROM tokens t ${indexHint(index)} WHERE ${condition} LIMIT ${most}`,
    bind,
  });
  if (issuedBy !== undefined) return ids(BY_ISSUER, ...issuerCondition(issuedBy));
  // Those of one project have an index in the order of a page.
  if (!projects || projects.isExcluded || projects.among.length === 1) return null;
  return ids(OF_PROJECT, ...projectCondition(projects));
}

const atMs = (moment: Moment, nowMs: number) => ('atMs' in moment ? moment.atMs : nowMs + moment.inMs);

/** Whether it selects the tokens of some projects or of a named issuer, which are few of all tokens. */
export const isOfSome = ({ projects, issuedBy }: TokenFilter): boolean =>
  projects?.isExcluded === false || typeof issuedBy === 'string';

/** @param issuedBy null: the holder of the management token, whose tokens have an empty text. */
export const issuerCondition = (issuedBy: string | null): [string, Bind] => [
  't.issued_by = $issuedBy',
  { issuedBy: issuedBy ?? '' },
];

export function projectCondition({ among, isExcluded }: Selection<string>): [string, Bind] {
  const bind = Object.fromEntries(among.map((id, i) => [`project_${i}`, id]));
  const ids = Object.keys(bind).map((name) => `$${name}`);
  if (ids.length === 1) return [`t.project_id ${isExcluded ? '<>' : '='} $project_0`, bind];
  return [`t.project_id ${isExcluded ? 'NOT IN' : 'IN'} (${ids.join(', ')})`, bind];
}

/** Tests for the selected states or against the others, whichever are fewer. */
function stateCondition(states: readonly TokenState[]): string {
  const others = STATES.filter((state) => !states.includes(state));
  const anyOf = (them: readonly TokenState[]) => them.map((state) => `(${IN_STATE[state]})`).join(' OR ') || '1 = 0';
  return states.length <= others.length ? anyOf(states) : `NOT (${anyOf(others)})`;
}

// ---- words: a part of the name, or the beginning of the ID

/** The index with the names of all tokens. */
export const BY_NAME = 'tokens_name_folded';

const nameContains = ({ contains }: Dialect, of = '') => contains('t.name_folded', `$part${of}`);
const idStartsWith = (of = '') => `t.id >= $text${of} AND t.id < $textEnd${of}`;
const canStartId = (text: string) => /^[0-9a-f-]{1,36}$/i.test(text);

/**
 * Condition that the name contains the text, ignoring case, or that the ID starts with it.
 *
 * @param of suffix for the bind names, if there are several texts.
 */
export function textCondition(text: string, dialect: Dialect, of = ''): [string, Bind] {
  const named = nameContains(dialect, of);
  return [canStartId(text) ? `${named} OR (${idStartsWith(of)})` : named, textBind(text, of)];
}

function textBind(text: string, of = ''): Bind {
  const lower = text.toLowerCase();
  const part = { [`part${of}`]: lower };
  // `~` sorts after every character of an ID.
  return canStartId(text) ? { ...part, [`text${of}`]: lower, [`textEnd${of}`]: `${lower}~` } : part;
}

/** The longest text that every match must contain, if any: it probably has the fewest matches. */
export function longestText({ text, words = [] }: TokenFilter): string | undefined {
  const wanted = words.filter(({ isExcluded }) => !isExcluded).map((word) => word.text);
  if (text !== undefined) wanted.push(text);
  return wanted.sort((a, b) => b.length - a.length)[0];
}

/** The query for the IDs of up to `most` tokens that match `text`. Without a text with few matches it reads all names. */
export function idsWithText(text: string, dialect: Dialect, most: number): { sql: string; bind: Bind } {
  const first = (condition: string) => `SELECT * FROM (SELECT t.id FROM tokens t ${condition} LIMIT ${most}) few`;
  const named = first(`${dialect.indexHint(BY_NAME)} WHERE ${nameContains(dialect)}`);
  // Not as one condition: comparing each ID as well would take longest.
  const sql = canStartId(text) ? `${named} UNION ${first(`WHERE ${idStartsWith()}`)}` : named;
  return { sql, bind: textBind(text) };
}
