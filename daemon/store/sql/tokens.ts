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
import type { TokenState } from '../../core/token.js';
import type { SecretBox } from '../secrets.js';
import type { Bind, Reader } from './database.js';
import type { Dialect } from './dialect.js';
import { liveFirst } from './live-first.js';
import { Conditions, pageOf } from './lists.js';
import type { Totals } from './totals.js';
import { ALIVE, OF_INACTIVE_PROJECT, tokensInStates } from './population.js';
import { placeOfKey } from './projects.js';
import { TOKEN, type TokenColumns } from './tables.js';

// Beside the token: whether its project is active. Not a join, so that lists are counted in an index of tokens alone.
const ROW_COLUMNS = `${TOKEN.list},
  (SELECT p.is_active FROM projects p WHERE p.id = t.project_id) AS project_is_active`;

type TokenRowColumns = TokenColumns & { project_is_active: boolean | number };

const rowOf = (row: TokenRowColumns): TokenRow => ({
  token: TOKEN.of(row),
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
      // In the same statement, so that all of it is of one moment.
      `SELECT ${ROW_COLUMNS}, t.reserved, p.api_key, p.api_key_id,
         (SELECT seq FROM change_seq WHERE id = 1) AS change_seq
       FROM tokens t JOIN projects p ON p.id = t.project_id WHERE t.digest = $digest`,
      { digest },
      'usual',
    );
    if (!row) return null;
    const { token, projectIsActive } = rowOf(row);
    const sealed = { text: row.api_key, keyId: row.api_key_id };
    const upstreamKey = this.#box.open(sealed, placeOfKey(token.projectId));
    return { token, projectIsActive, reserved: row.reserved, upstreamKey, changeSeq: row.change_seq };
  }
}

/** What tokens are sorted by is the name of a column. There is an index of each, `tokens_` and its name. */
type Column = Exclude<TokenSortField, 'live'> & keyof TokenColumns;

const OF_ACTIVE_PROJECT = 't.project_id IN (SELECT id FROM projects WHERE is_active = $yes)';

/** The states as `stateOf` tells them apart; each excludes those before it. */
const IN_STATE: Record<TokenState, string> = {
  revoked: 't.is_active = $no',
  expired: 't.is_active = $yes AND t.expires_at <= $now',
  project_inactive: `${ALIVE} AND ${OF_INACTIVE_PROJECT}`,
  rate_limited: `${ALIVE} AND t.max_requests > 0 AND t.request_count >= t.max_requests AND ${OF_ACTIVE_PROJECT}`,
  active: `${ALIVE} AND ${OF_ACTIVE_PROJECT} AND (t.max_requests = 0 OR t.request_count < t.max_requests)`,
};

// Tokens of which the ids can go back and forth; of more, a page is soon met by walking an index that is in order.
const FEW = 4_000;
const OF_PROJECT = 'tokens_project';
const BY_STATE = 'tokens_state'; // Holds all that a filter looks at.
const BY_NAME = 'tokens_name_folded';
const OF_CAP = 'tokens_capped';

export function listTokens(
  on: Reader,
  filter: TokenFilter,
  { field, descending }: TokenSort,
  page: PageRequest,
  nowMs: number,
  totals: Totals | null,
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
  /** The page is of those in these states alone; the total is of the whole filter all the same. */
  states?: readonly TokenState[];
  /** Known already. */
  total?: number | null;
  field: Column;
  descending: boolean;
  page: PageRequest;
  nowMs: number;
  totals: Totals | null;
}

async function tokensInOrder(on: Reader, listing: Listing): Promise<PageOf<TokenRow>> {
  const { filter, states, field: column, descending, page, nowMs, totals, total } = listing;
  const { dialect } = on;
  const counted = tokenConditions(filter, nowMs, dialect);
  const part = states && { ...filter, states: { among: states, isExcluded: false } };
  const where = part ? tokenConditions(part, nowMs, dialect) : counted;
  const sought = rarest(filter);
  const found = sought === undefined ? null : await find(on, sought);
  if (found) for (const conditions of [where, counted]) conditions.bind.found = JSON.stringify(found);
  const by = (index: string | null) => (index === null || found ? '' : dialect.by(index));
  return pageOf<TokenRowColumns, TokenRow>(on, {
    columns: ROW_COLUMNS,
    from: found ? dialect.among('tokens t', 't.id', '$found') : 'tokens t',
    where,
    counted,
    sortColumn: `t.${column}`,
    idColumn: 't.id',
    descending,
    page,
    hint: by(orderOf(filter, column)),
    countHint: by(indexOf(filter)),
    total: typeof total === 'number' ? () => Promise.resolve(total) : countOf(on, filter, nowMs),
    totals: totals && ((count) => totals.of(JSON.stringify(filter), count)),
    rowOf,
    positionOf: (row) => ({ value: row[column], id: row.id }),
  });
}

const STATES = Object.keys(IN_STATE) as TokenState[];

/** Those that are selected, each once. @param isLive only the one of live tokens, or all but that. */
const selected = (selection: Selection<TokenState> | undefined, isLive?: boolean) =>
  STATES.filter((state) => selection === undefined || selection.among.includes(state) !== selection.isExcluded).filter(
    (state) => isLive === undefined || (state === 'active') === isLive,
  );

/** Of states and nothing else. */
function countOf(on: Reader, { states, ...others }: TokenFilter, nowMs: number): (() => Promise<number>) | undefined {
  if (states === undefined || Object.values(others).some((value) => value !== undefined)) return undefined;
  return () => tokensInStates(on, selected(states), nowMs);
}

/** The index to look for all tokens of a filter in. */
function indexOf({ projects, text, words, usedOverPercent, usedUnderPercent, ...rest }: TokenFilter): string | null {
  if (projects && !projects.isExcluded) return OF_PROJECT;
  const isOfCap = (usedOverPercent ?? usedUnderPercent) !== undefined;
  const isNothingElse = Object.values(rest).every((value) => value === undefined) && projects === undefined;
  if ((text ?? words) !== undefined) return isNothingElse && !isOfCap ? BY_NAME : BY_STATE;
  if (projects) return OF_PROJECT; // The smallest in which the project stands.
  return isNothingElse && isOfCap ? OF_CAP : null;
}

/** The index to walk, in order, to a page of a filter. */
function orderOf({ projects }: TokenFilter, field: Column): string | null {
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

/** By the states, or by those that are left, whichever are fewer. */
function stateCondition(states: readonly TokenState[]): string {
  const others = STATES.filter((state) => !states.includes(state));
  const anyOf = (them: readonly TokenState[]) => them.map((state) => `(${IN_STATE[state]})`).join(' OR ') || '1 = 0';
  return states.length <= others.length ? anyOf(states) : `NOT (${anyOf(others)})`;
}

const isNamed = ({ contains }: Dialect, of = '') => contains('t.name_folded', `$part${of}`);
const begins = (of = '') => `t.id >= $text${of} AND t.id < $textEnd${of}`;

/**
 * A part of the name in any case, or the beginning of the id.
 *
 * @param of goes behind the names of its values, where there are several.
 */
function textCondition(text: string, dialect: Dialect, of = ''): [string, Bind] {
  const named = isNamed(dialect, of);
  return [canBeginId(text) ? `${named} OR (${begins(of)})` : named, textBind(text, of)];
}

/** A text that all that is sought holds, so that few do, if there is one. */
function rarest({ text, words = [] }: TokenFilter): string | undefined {
  const wanted = words.filter(({ isExcluded }) => !isExcluded).map((word) => word.text);
  if (text !== undefined) wanted.push(text);
  return wanted.sort((a, b) => b.length - a.length)[0];
}

/**
 * The ids of all tokens that fit `text`, if they are few; null if they are many. All names must be looked through to find
 * the few, so it is done once, and not again for the page; the many are found soon enough.
 */
async function find(on: Reader, text: string): Promise<string[] | null> {
  const first = (condition: string) => `SELECT * FROM (SELECT t.id FROM tokens t ${condition} LIMIT ${FEW + 1}) few`;
  const named = first(`${on.dialect.by(BY_NAME)} WHERE ${isNamed(on.dialect)}`);
  // Not as one condition: to compare each id as well takes longer than all else.
  const sql = canBeginId(text) ? `${named} UNION ${first(`WHERE ${begins()}`)}` : named;
  const found = await on.select<{ id: string }>(sql, textBind(text));
  return found.length > FEW ? null : found.map(({ id }) => id);
}

const canBeginId = (text: string) => /^[0-9a-f-]{1,36}$/.test(text);

function textBind(text: string, of = ''): Bind {
  const part = { [`part${of}`]: text.toLowerCase() };
  // `~` comes after whatever an id goes on with.
  return canBeginId(text) ? { ...part, [`text${of}`]: text, [`textEnd${of}`]: `${text}~` } : part;
}
