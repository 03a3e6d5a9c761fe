/** The list of tokens: every filter in every order, by pages. */
import type { PageOf, PageRequest, TokenFilter, TokenRow, TokenSort, TokenSortField } from '../../core/ports.js';
import type { TokenState } from '../../core/token.js';
import type { Bind, Reader } from './database.js';
import { pageOf } from './lists.js';
import type { ListTotals } from './list-totals.js';
import { liveFirst } from './live-first.js';
import { tokensInStates } from './population.js';
import type { TokenColumns } from './tables.js';
import { countIndexOf, idsOfTimes, pageIndexOf, selected, tokenConditions } from './token-filter.js';
import { idsWithText, longestText } from './token-search.js';
import { useQueries } from './token-use.js';
import { ROW_COLUMNS, rowOf, type TokenRowColumns } from './tokens.js';

/** Sort fields are column names. */
type SortColumn = Exclude<TokenSortField, 'live'> & keyof TokenColumns;

// How many IDs can be passed back to the database. With more matches, walking an ordered index soon finds a page.
const FEW = 4_000;

export async function listTokens(
  on: Reader,
  filter: TokenFilter,
  { field, descending }: TokenSort,
  page: PageRequest,
  nowMs: number,
  totals: ListTotals | null,
): Promise<PageOf<TokenRow>> {
  const few = await findFew(on, filter, nowMs);
  const listed = (of: Pick<Listing, 'field' | 'descending' | 'page' | 'states' | 'total'>) =>
    tokensInOrder(on, { ...of, filter, few, nowMs, totals });
  if (field !== 'live') return listed({ field, descending, page });
  return liveFirst(page, descending, ({ isLive, ...part }) =>
    listed({ ...part, field: 'expires_at', states: selected(filter.states, isLive) }),
  );
}

/** IDs of all matches of a part of the filter, if they are few. */
interface Few {
  ids: readonly string[];
  /** The other parts of the filter. */
  rest: TokenFilter;
}

interface Listing {
  filter: TokenFilter;
  few: Few | null;
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
  const { filter, few, states, field: column, descending, page, nowMs, totals, total } = listing;
  const { dialect } = on;
  const conditions = few?.rest ?? filter;
  const counted = tokenConditions(conditions, nowMs, dialect);
  const part = states && { ...conditions, states: { among: states, isExcluded: false } };
  const where = part ? tokenConditions(part, nowMs, dialect) : counted;
  if (few) for (const { bind } of [where, counted]) bind.found = JSON.stringify(few.ids);
  const by = (index: string | null) => (index === null || few ? '' : dialect.indexHint(index));
  return pageOf<TokenRowColumns, TokenRow>(on, {
    columns: ROW_COLUMNS,
    from: few ? dialect.rowsIn('tokens t', 't.id', '$found') : 'tokens t',
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

/** A faster total for a filter on states alone. */
function countOf(on: Reader, { states, ...others }: TokenFilter, nowMs: number): (() => Promise<number>) | undefined {
  if (states === undefined || Object.values(others).some((value) => value !== undefined)) return undefined;
  return () => tokensInStates(on, selected(states), nowMs);
}

/**
 * The tokens that match a part of the filter, if they are few; null if they are many. Finding few matches means scanning all names, or
 * the usage of some days, so it is done once and not again for the total and the page. Many matches are found quickly.
 */
async function findFew(on: Reader, filter: TokenFilter, nowMs: number): Promise<Few | null> {
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
  const text = longestText(filter);
  if (text === undefined) return null;
  const { sql, bind } = idsWithText(text, on.dialect, FEW + 1);
  const ids = await idsIfFew(on, sql, bind);
  return ids && { ids, rest: filter };
}

async function idsIfFew(on: Reader, sql: string, bind: Bind): Promise<string[] | null> {
  const found = await on.select<{ id: string }>(sql, bind);
  return found.length > FEW ? null : found.map(({ id }) => id);
}
