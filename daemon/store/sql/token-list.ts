/** The list of tokens: every filter in every order, by pages. */
import type {
  PageOf,
  PageRequest,
  Position,
  TokenFilter,
  TokenRow,
  TokenSort,
  TokenSortField,
} from '../../core/ports.js';
import type { TokenState } from '../../core/token.js';
import type { Bind, Reader } from './database.js';
import { afterPosition, Conditions, type ListTotals, orderOf, pageOf } from './lists.js';
import { tokensInStates } from './population.js';
import type { TokenColumns } from './tables.js';
import {
  countIndexOf,
  type DeterminedFilter,
  idsOfOwners,
  idsOfTimes,
  isOfSome,
  issuerCondition,
  pageIndexOf,
  projectCondition,
  selected,
  tokenConditions,
} from './token-filter.js';
import { idsWithText, longestText } from './token-filter.js';
import { idsOfUsable, type Usable, usableBy } from './token-policies.js';
import {
  countOfSpending,
  firstBySpent,
  idsOfSpending,
  PURSE_OF_TOKEN,
  purseFilterIn,
  spentNano,
} from './token-spending.js';
import { useCondition, useQueries } from './token-use.js';
import { ROW_COLUMNS, rowOf, type TokenRowColumns } from './tokens.js';

/** Sort fields are column names, but for `spent`. */
type SortColumn = (Exclude<TokenSortField, 'live'> & keyof TokenColumns) | 'spent';

// How many IDs can be passed back to the database. With more matches, walking an ordered index soon finds a page.
const FEW = 4_000;
/** How many tokens are looked at one by one, in the order of the page, for each row of it. More take longer than to read all usage. */
const FIRST_PER_ROW = 5;

export async function listTokens(
  on: Reader,
  given: TokenFilter,
  { field, descending }: TokenSort,
  page: PageRequest,
  nowMs: number,
  totals: ListTotals | null,
): Promise<PageOf<TokenRow>> {
  const filter = { ...given, usable: await usableIn(on, given) };
  let few: Promise<Few | null> | undefined;
  const findFewOnce = () => (few ??= findFew(on, filter, nowMs));
  const listed = (of: Pick<Listing, 'field' | 'descending' | 'page' | 'states' | 'total'>) =>
    tokensInOrder(on, { ...of, given, filter, findFew: findFewOnce, nowMs, totals });
  if (field !== 'live') return listed({ field, descending, page });
  return liveFirst(page, descending, ({ isLive, ...part }) =>
    listed({ ...part, field: 'expires_at', states: selected(filter.states, isLive) }),
  );
}

async function usableIn(on: Reader, { allows, projects, issuedBy }: TokenFilter): Promise<Usable | null> {
  if (!allows) return null;
  const among = new Conditions();
  if (issuedBy !== undefined) among.and(...issuerCondition(issuedBy));
  if (projects && !projects.isExcluded) among.and(...projectCondition(projects));
  return usableBy(on, allows, among);
}

/** IDs of all matches of a part of the filter, if they are few. */
interface Few {
  ids: readonly string[];
  /** The other parts of the filter. */
  rest: DeterminedFilter;
}

interface Listing {
  /** What totals are known by. */
  given: TokenFilter;
  filter: DeterminedFilter;
  findFew: () => Promise<Few | null>;
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
  const { given, filter, states, field: column, descending, page, nowMs, totals, total } = listing;
  const { dialect } = on;
  const used = await firstUsed(on, listing);
  const few = used ? null : await listing.findFew();
  const found = used ?? (few ? null : await firstSpent(on, listing));
  const conditions = few?.rest ?? filter;
  const isOfFew = few !== null || isOfSome(conditions);
  const counted = tokenConditions(conditions, nowMs, dialect, isOfFew);
  const part = states ? { ...conditions, states: { among: states, isExcluded: false } } : conditions;
  const where = tokenConditions(part, nowMs, dialect);
  if (few) for (const { bind } of [where, counted]) bind.found = JSON.stringify(few.ids);
  const by = (index: string | null) => (index === null || few ? '' : dialect.indexHint(index));
  const spent = column === 'spent' ? spentNano(nowMs) : null;
  return pageOf<TokenRowColumns & { spent: number }, TokenRow>(on, {
    columns: spent === null ? ROW_COLUMNS : `${ROW_COLUMNS}, ${spent} AS spent`,
    from: few ? dialect.rowsIn('tokens t', 't.id', '$found') : 'tokens t',
    ...(spent !== null && { join: PURSE_OF_TOKEN }),
    where,
    counted,
    sortColumn: spent ?? `t.${column}`,
    idColumn: 't.id',
    descending,
    page,
    hint: by(pageIndexOf(filter, column)),
    countHint: by(countIndexOf(given)),
    found,
    total: typeof total === 'number' ? () => Promise.resolve(total) : few ? undefined : countOf(on, filter, nowMs),
    totals: totals && ((count) => totals.current(JSON.stringify(given), count)),
    rowOf,
    positionOf: (row) => ({ value: row[column], id: row.id }),
  });
}

/**
 * The IDs of the page and of one more token, for a filter by use that many tokens match: among the first ones in the order of the page
 * there are enough. Null if there are not.
 */
async function firstUsed(on: Reader, listing: Listing): Promise<string[] | null> {
  const { filter, states, field: column, descending, page, nowMs } = listing;
  const { errorsOver, models, ...others } = filter;
  const used = useCondition({ errorsOver, models }, nowMs, on.dialect);
  // Most tokens in the order of the page are of other issuers.
  if (!used || column === 'spent' || typeof filter.issuedBy === 'string') return null;
  const part = states ? { ...others, states: { among: states, isExcluded: false } } : others;
  const ordered = { sortColumn: `t.${column}`, idColumn: 't.id', descending };
  const where = afterPosition(tokenConditions(part, nowMs, on.dialect), ordered, page.after);
  const index = pageIndexOf(filter, column);
  const hint = index === null ? '' : on.dialect.indexHint(index);
  const first = `SELECT t.id, t.project_id, t.${column} FROM tokens t ${hint} ${where.sql} ${orderOf(ordered)} LIMIT ${FIRST_PER_ROW * (page.limit + 1)}`;
  const rows = await on.select<{ id: string }>(
    `SELECT t.id FROM (${first}) t WHERE ${used.sql} ${orderOf(ordered)} LIMIT ${page.limit + 1}`,
    { ...where.bind, ...used.bind },
  );
  return rows.length > page.limit ? rows.map(({ id }) => id) : null;
}

/**
 * The same for the order of what was spent: the first purses are read alone, and most are of tokens that match. Null if too few are.
 */
async function firstSpent(on: Reader, { filter, field, descending, page, nowMs }: Listing): Promise<string[] | null> {
  // Most tokens are of other projects than the given ones, and of other issuers.
  if (field !== 'spent' || isOfSome(filter)) return null;
  const where = tokenConditions(filter, nowMs, on.dialect);
  const first = firstBySpent(descending, page.after, FIRST_PER_ROW * (page.limit + 1), nowMs);
  const order = orderOf({ sortColumn: 'first.spent', idColumn: 'first.id', descending });
  const rows = await on.select<{ id: string }>(
    `SELECT t.id FROM (${first.sql}) first JOIN tokens t ON t.id = first.id ${where.sql} ${order} LIMIT ${page.limit + 1}`,
    { ...where.bind, ...first.bind },
  );
  return rows.length > page.limit ? rows.map(({ id }) => id) : null;
}

/** A faster total for a filter on states, use or models that must be allowed alone. */
function countOf(
  on: Reader,
  { usable, ...filter }: DeterminedFilter,
  nowMs: number,
): (() => Promise<number>) | undefined {
  const { states, errorsOver, models, ...rest } = filter;
  if (usable && Object.values({ ...filter, allows: undefined }).every((v) => v === undefined)) {
    return () => Promise.resolve(usable.tokens);
  }
  const [used, ...more] = useQueries({ errorsOver, models }, nowMs, on.dialect);
  if (
    used &&
    !used.isExcluded &&
    more.length === 0 &&
    Object.values({ states, ...rest }).every((v) => v === undefined)
  ) {
    return async () => {
      // Tokens are never deleted.
      const [row] = await on.select<{ total: number }>(
        `SELECT COUNT(DISTINCT id) AS total FROM (${used.sql}) used`,
        used.bind,
      );
      return row?.total ?? 0;
    };
  }
  return countOfPurses(on, filter, nowMs) ?? countOfStates(on, filter, nowMs);
}

function countOfPurses(on: Reader, filter: TokenFilter, nowMs: number) {
  const [ofPurses, others] = purseFilterIn(filter);
  if (Object.values(others).some((value) => value !== undefined)) return undefined;
  const counted = countOfSpending(ofPurses, nowMs);
  if (!counted) return undefined;
  return async () => {
    const [row] = await on.select<{ total: number }>(counted.sql, counted.bind);
    return row?.total ?? 0;
  };
}

function countOfStates(on: Reader, { states, ...others }: TokenFilter, nowMs: number) {
  if (states === undefined || Object.values(others).some((value) => value !== undefined)) return undefined;
  return () => tokensInStates(on, selected(states), nowMs);
}

/**
 * The tokens that match a part of the filter, if they are few; null if they are many. Finding few matches means scanning all names, or
 * the usage of some days, so it is done once and not again for the total and the page. Many matches are found quickly.
 */
async function findFew(on: Reader, filter: DeterminedFilter, nowMs: number): Promise<Few | null> {
  const owned = idsOfOwners(filter, on.dialect, FEW + 1);
  const ofOwners = owned && (await idsIfFew(on, owned.sql, owned.bind));
  if (ofOwners) return { ids: ofOwners, rest: filter };
  const { errorsOver, models, ...others } = filter;
  const isOfErrors = errorsOver !== undefined;
  if (isOfErrors || (models && !models.isExcluded)) {
    const [used] = useQueries(isOfErrors ? { errorsOver } : { models }, nowMs, on.dialect);
    const ids = used && (await idsIfFew(on, `SELECT DISTINCT id FROM (${used.sql}) used LIMIT ${FEW + 1}`, used.bind));
    if (ids) return { ids, rest: isOfErrors ? { ...others, models } : others };
  }
  const times = idsOfTimes(filter, nowMs, on.dialect, FEW + 1);
  const ofTimes = times && (await idsIfFew(on, times.sql, times.bind));
  if (ofTimes) return { ids: ofTimes, rest: filter };
  const [ofPurses, besidesPurses] = purseFilterIn(filter);
  const spending = idsOfSpending(ofPurses, nowMs, FEW + 1);
  const ofSpending = spending && (await idsIfFew(on, spending.sql, spending.bind));
  if (ofSpending) return { ids: ofSpending, rest: besidesPurses };
  const text = longestText(filter);
  const withText = text === undefined ? null : idsWithText(text, on.dialect, FEW + 1);
  const ofText = withText && (await idsIfFew(on, withText.sql, withText.bind));
  if (ofText) return { ids: ofText, rest: filter };
  if (!filter.usable || filter.usable.tokens > FEW) return null;
  const { sql, bind } = idsOfUsable(filter.usable, on.dialect);
  const ids = await idsIfFew(on, sql, bind);
  return ids && { ids, rest: { ...filter, usable: null } };
}

async function idsIfFew(on: Reader, sql: string, bind: Bind): Promise<string[] | null> {
  const found = await on.select<{ id: string }>(sql, bind);
  return found.length > FEW ? null : found.map(({ id }) => id);
}

/**
 * The sort order `live` of tokens: two parts, each in the order of an index. First the live tokens, those that expire next on top;
 * then all others, those that expired last on top. Descending order is the exact reverse.
 *
 * A position is the time of expiry: as it is for the first part, negated for the second.
 */

interface Part {
  isLive: boolean;
  descending: boolean;
  page: PageRequest;
  /** Of both parts together, once known. */
  total?: number | null;
}

/** @param list reads a page of one part. */
async function liveFirst(
  { limit, after }: PageRequest,
  isReverse: boolean,
  list: (part: Part) => Promise<PageOf<TokenRow>>,
): Promise<PageOf<TokenRow>> {
  const isLive = !isReverse;
  const isInSecond = after !== null && isLivePosition(after) !== isLive;
  const from = after && { ...after, value: Math.abs(Number(after.value)) };
  const read = (of: boolean, page: PageRequest, total?: number | null) =>
    list({ isLive: of, descending: of === isReverse, page, ...(total !== undefined && { total }) });

  if (isInSecond) return placed(await read(!isLive, { limit, after: from }), !isLive);
  const first = placed(await read(isLive, { limit, after: from }), isLive);
  if (first.next !== null || first.total === 0) return first;
  const room = limit - first.rows.length;
  // If the first part exactly fills the page, one more row is read only to know whether there is a second part.
  const rest = placed(await read(!isLive, { limit: Math.max(1, room), after: null }, first.total), !isLive);
  if (room > 0) return { ...rest, rows: [...first.rows, ...rest.rows] };
  const last = first.rows.at(-1);
  return rest.rows.length === 0 || !last ? first : { ...first, next: positionOf(last, isLive) };
}

const isLivePosition = ({ value }: Position) => Number(value) >= 0;

const positionOf = ({ token: { id, expiresAtMs } }: TokenRow, isLive: boolean): Position => ({
  value: isLive ? expiresAtMs : -expiresAtMs,
  id,
});

/** Converts the next position of a part to a position in the whole list. */
function placed(page: PageOf<TokenRow>, isLive: boolean): PageOf<TokenRow> {
  const last = page.rows.at(-1);
  return page.next === null || !last ? page : { ...page, next: positionOf(last, isLive) };
}
