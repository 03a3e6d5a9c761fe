import type {
  KnownToken,
  Moment,
  PageOf,
  PageRequest,
  Selection,
  TokenFilter,
  TokenLookup,
  TokenRow,
  TokenSort,
  TokenSortField,
} from '../../core/ports.js';
import { NOT_REVOKED, type TokenState } from '../../core/token.js';
import type { SecretBox } from '../secrets.js';
import type { Bind, Reader } from './database.js';
import type { Dialect } from './dialect.js';
import { liveFirst } from './live-first.js';
import { Conditions, pageOf } from './lists.js';
import type { ListTotals } from './list-totals.js';
import { ALIVE, OF_INACTIVE_PROJECT, tokensInStates } from './population.js';
import { upstreamKeyContext } from './projects.js';
import { TOKEN, type TokenColumns } from './tables.js';

// The token, and the name and state of its project. Not a join, so that lists are counted in an index of tokens alone.
const ROW_COLUMNS = `${TOKEN.list},
  (SELECT p.name FROM projects p WHERE p.id = t.project_id) AS project_name,
  (SELECT p.is_active FROM projects p WHERE p.id = t.project_id) AS project_is_active`;

type TokenRowColumns = TokenColumns & { project_name: string; project_is_active: boolean | number };

const rowOf = (row: TokenRowColumns): TokenRow => ({
  // An older release that shares the database reactivates a token without clearing these columns.
  token: { ...TOKEN.of(row), ...(row.is_active && NOT_REVOKED) },
  projectName: row.project_name,
  projectIsActive: Boolean(row.project_is_active),
});

export function tokenById(on: Reader, id: string): Promise<TokenRow | null> {
  return oneToken(on, 't.id = $value', id);
}

export function tokenByDigest(on: Reader, digest: string): Promise<TokenRow | null> {
  return oneToken(on, 't.digest = $value', digest);
}

async function oneToken(on: Reader, condition: string, value: string): Promise<TokenRow | null> {
  const [row] = await on.select<TokenRowColumns>(
    `SELECT ${ROW_COLUMNS} FROM tokens t WHERE ${condition}`,
    { value },
    'usual',
  );
  return row ? rowOf(row) : null;
}

export class SqlTokenLookup implements TokenLookup {
  readonly #database: Reader;
  readonly #box: SecretBox;

  constructor(database: Reader, box: SecretBox) {
    this.#database = database;
    this.#box = box;
  }

  async byDigest(digest: string): Promise<KnownToken | null> {
    const [row] = await this.#database.select<
      TokenRowColumns & { reserved: number; api_key: string; api_key_id: string; change_seq: number }
    >(
      // One statement, so that all values are from the same moment.
      `SELECT ${ROW_COLUMNS}, t.reserved, p.api_key, p.api_key_id,
         (SELECT seq FROM change_seq WHERE id = 1) AS change_seq
       FROM tokens t JOIN projects p ON p.id = t.project_id WHERE t.digest = $digest`,
      { digest },
      'usual',
    );
    if (!row) return null;
    const known = rowOf(row);
    const sealed = { text: row.api_key, keyId: row.api_key_id };
    const upstreamKey = this.#box.open(sealed, upstreamKeyContext(known.token.projectId));
    return { ...known, reserved: row.reserved, upstreamKey, changeSeq: row.change_seq };
  }
}

/** Sort fields are column names. Each has an index named `tokens_` and the column. */
type SortColumn = Exclude<TokenSortField, 'live'> & keyof TokenColumns;

const OF_ACTIVE_PROJECT = 't.project_id IN (SELECT id FROM projects WHERE is_active = $yes)';

/** The states as defined by `stateOf`; each excludes the ones before it. */
const IN_STATE: Record<TokenState, string> = {
  revoked: 't.is_active = $no',
  expired: 't.is_active = $yes AND t.expires_at <= $now',
  project_inactive: `${ALIVE} AND ${OF_INACTIVE_PROJECT}`,
  rate_limited: `${ALIVE} AND t.max_requests > 0 AND t.request_count >= t.max_requests AND ${OF_ACTIVE_PROJECT}`,
  active: `${ALIVE} AND ${OF_ACTIVE_PROJECT} AND (t.max_requests = 0 OR t.request_count < t.max_requests)`,
};

// How many IDs can be passed back to the database. With more matches, walking an ordered index soon finds a page.
const FEW = 4_000;
const OF_PROJECT = 'tokens_project';
const BY_STATE = 'tokens_state'; // Covers all columns that a filter uses.
const BY_NAME = 'tokens_name_folded';
const OF_CAP = 'tokens_capped';

export function listTokens(
  on: Reader,
  filter: TokenFilter,
  { field, descending }: TokenSort,
  page: PageRequest,
  nowMs: number,
  totals: ListTotals | null,
): Promise<PageOf<TokenRow>> {
  const listed = (of: Omit<Listing, 'filter' | 'nowMs' | 'totals'>) =>
    tokensInOrder(on, { ...of, filter, nowMs, totals });
  if (field !== 'live') return listed({ field, descending, page });
  return liveFirst(page, descending, ({ isLive, ...part }) =>
    listed({ ...part, field: 'expires_at', states: selected(filter.states, isLive) }),
  );
}

interface Listing {
  filter: TokenFilter;
  /** Restricts the page to these states, but not the total. */
  states?: readonly TokenState[];
  /** If already known. */
  total?: number | null;
  field: SortColumn;
  descending: boolean;
  page: PageRequest;
  nowMs: number;
  totals: ListTotals | null;
}

async function tokensInOrder(on: Reader, listing: Listing): Promise<PageOf<TokenRow>> {
  const { filter, states, field: column, descending, page, nowMs, totals, total } = listing;
  const { dialect } = on;
  const counted = tokenConditions(filter, nowMs, dialect);
  const part = states && { ...filter, states: { among: states, isExcluded: false } };
  const where = part ? tokenConditions(part, nowMs, dialect) : counted;
  const sought = longestText(filter);
  const found = sought === undefined ? null : await findFew(on, sought);
  if (found) for (const conditions of [where, counted]) conditions.bind.found = JSON.stringify(found);
  const by = (index: string | null) => (index === null || found ? '' : dialect.indexHint(index));
  return pageOf<TokenRowColumns, TokenRow>(on, {
    columns: ROW_COLUMNS,
    from: found ? dialect.rowsIn('tokens t', 't.id', '$found') : 'tokens t',
    where,
    counted,
    sortColumn: `t.${column}`,
    idColumn: 't.id',
    descending,
    page,
    hint: by(pageIndexOf(filter, column)),
    countHint: by(countIndexOf(filter)),
    total: typeof total === 'number' ? () => Promise.resolve(total) : countOf(on, filter, nowMs),
    totals: totals && ((count) => totals.of(JSON.stringify(filter), count)),
    rowOf,
    positionOf: (row) => ({ value: row[column], id: row.id }),
  });
}

const STATES = Object.keys(IN_STATE) as TokenState[];

/** The selected states, each once. @param isLive true: only `active`; false: all others. */
const selected = (selection: Selection<TokenState> | undefined, isLive?: boolean) =>
  STATES.filter((state) => selection === undefined || selection.among.includes(state) !== selection.isExcluded).filter(
    (state) => isLive === undefined || (state === 'active') === isLive,
  );

/** A faster total for a filter on states alone. */
function countOf(on: Reader, { states, ...others }: TokenFilter, nowMs: number): (() => Promise<number>) | undefined {
  if (states === undefined || Object.values(others).some((value) => value !== undefined)) return undefined;
  return () => tokensInStates(on, selected(states), nowMs);
}

/** The index to count the matches of a filter in. */
function countIndexOf({
  projects,
  text,
  words,
  usedOverPercent,
  usedUnderPercent,
  ...rest
}: TokenFilter): string | null {
  if (projects && !projects.isExcluded) return OF_PROJECT;
  const isOfCap = (usedOverPercent ?? usedUnderPercent) !== undefined;
  const isNothingElse = Object.values(rest).every((value) => value === undefined) && projects === undefined;
  if ((text ?? words) !== undefined) return isNothingElse && !isOfCap ? BY_NAME : BY_STATE;
  if (projects) return OF_PROJECT; // The smallest index that contains the project.
  return isNothingElse && isOfCap ? OF_CAP : null;
}

/** The index to walk, in order, to read a page. */
function pageIndexOf({ projects }: TokenFilter, field: SortColumn): string | null {
  if (projects?.among.length !== 1 || projects.isExcluded) return `tokens_${field}`;
  return field === 'created_at' ? OF_PROJECT : null;
}

function tokenConditions(filter: TokenFilter, nowMs: number, dialect: Dialect): Conditions {
  const where = new Conditions();
  const { text, words = [], projects, states, expiresAfter, expiresBefore, usedOverPercent, usedUnderPercent } = filter;
  if (text !== undefined) where.and(...textCondition(text, dialect));
  words.forEach((word, i) => {
    const [condition, bind] = textCondition(word.text, dialect, `_${i}`);
    where.and(word.isExcluded ? `NOT (${condition})` : condition, bind);
  });
  if (projects !== undefined) where.and(...projectCondition(projects));
  if (states !== undefined) where.and(stateCondition(selected(states)), { yes: true, no: false, now: nowMs });
  if (expiresAfter !== undefined) where.and('t.expires_at > $after', { after: atMs(expiresAfter, nowMs) });
  if (expiresBefore !== undefined) where.and('t.expires_at < $before', { before: atMs(expiresBefore, nowMs) });
  if (usedOverPercent !== undefined) {
    where.and('t.max_requests > 0 AND t.request_count * 100 > t.max_requests * $over', { over: usedOverPercent });
  }
  if (usedUnderPercent !== undefined) {
    where.and('t.max_requests > 0 AND t.request_count * 100 < t.max_requests * $under', { under: usedUnderPercent });
  }
  return where;
}

const atMs = (moment: Moment, nowMs: number) => ('atMs' in moment ? moment.atMs : nowMs + moment.inMs);

function projectCondition({ among, isExcluded }: Selection<string>): [string, Bind] {
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

const nameContains = ({ contains }: Dialect, of = '') => contains('t.name_folded', `$part${of}`);
const idStartsWith = (of = '') => `t.id >= $text${of} AND t.id < $textEnd${of}`;

/**
 * Condition that the name contains the text, ignoring case, or that the ID starts with it.
 *
 * @param of suffix for the bind names, if there are several texts.
 */
function textCondition(text: string, dialect: Dialect, of = ''): [string, Bind] {
  const named = nameContains(dialect, of);
  return [canStartId(text) ? `${named} OR (${idStartsWith(of)})` : named, textBind(text, of)];
}

/** The longest text that every match must contain, if any: it probably has the fewest matches. */
function longestText({ text, words = [] }: TokenFilter): string | undefined {
  const wanted = words.filter(({ isExcluded }) => !isExcluded).map((word) => word.text);
  if (text !== undefined) wanted.push(text);
  return wanted.sort((a, b) => b.length - a.length)[0];
}

/**
 * IDs of all tokens that match `text`, if they are few; null if they are many. Finding few matches means scanning all names, so it
 * is done once and not again for the page. Many matches are found quickly.
 */
async function findFew(on: Reader, text: string): Promise<string[] | null> {
  const first = (condition: string) => `SELECT * FROM (SELECT t.id FROM tokens t ${condition} LIMIT ${FEW + 1}) few`;
  const named = first(`${on.dialect.indexHint(BY_NAME)} WHERE ${nameContains(on.dialect)}`);
  // Not as one condition: comparing each ID as well would take longest.
  const sql = canStartId(text) ? `${named} UNION ${first(`WHERE ${idStartsWith()}`)}` : named;
  const found = await on.select<{ id: string }>(sql, textBind(text));
  return found.length > FEW ? null : found.map(({ id }) => id);
}

const canStartId = (text: string) => /^[0-9a-f-]{1,36}$/i.test(text);

function textBind(text: string, of = ''): Bind {
  const lower = text.toLowerCase();
  const part = { [`part${of}`]: lower };
  // `~` sorts after every character of an ID.
  return canStartId(text) ? { ...part, [`text${of}`]: lower, [`textEnd${of}`]: `${lower}~` } : part;
}
