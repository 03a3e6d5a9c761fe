/**
 * A chain of consecutive pages from one end of a list. Each page is requested with the cursor that the previous page returned, so
 * they join without a gap. When a page returns another cursor than before, the pages after it are no longer valid.
 */

export interface Identified {
  readonly id: string;
}

export interface KnownPage<T> {
  /** The cursor to request the page with; null for the first. */
  readonly cursor: string | null;
  /** Number of rows before the page. */
  readonly start: number;
  /** Number of rows in the page. */
  readonly count: number;
  /** Null when the rows were dropped because they are far from the view. */
  readonly rows: readonly T[] | null;
  /** The cursor of the next page; null for the last page. */
  readonly next: string | null;
  /** The round of the request: higher means later. */
  readonly round: number;
}

export interface PageChain<T> {
  readonly pages: readonly KnownPage<T>[];
  /** Rows that followed the last page before that page changed. They are shown until the current rows are loaded. */
  readonly staleRows: readonly T[];
  /** Number of pages loaded since then that contained none of these rows. */
  readonly staleRowsAge: number;
}

/** The position of a page in a chain. */
export interface PagePosition {
  readonly page: number;
  readonly cursor: string | null;
}

// More than any screen shows.
const MAX_STALE_ROWS = 500;
// So many pages of newly inserted rows may be loaded before the stale rows are given up.
const MAX_STALE_AGE = 3;

export const emptyPageChain: PageChain<never> = { pages: [], staleRows: [], staleRowsAge: 0 };

/** Number of rows in all pages. */
export function rowCount({ pages }: PageChain<unknown>): number {
  const last = pages.at(-1);
  return last ? last.start + last.count : 0;
}

/** Whether the chain reaches the other end of the list. */
export const reachesEnd = ({ pages }: PageChain<unknown>): boolean => pages.at(-1)?.next === null;

export function rowIn<T>(chain: PageChain<T>, offset: number): T | undefined {
  const rest = offset - rowCount(chain);
  if (rest >= 0) return chain.staleRows[rest];
  const page = chain.pages[pageAt(chain, offset)];
  return page?.rows?.[offset - page.start];
}

/** Index of the last page that starts at or before `offset`; -1: none. */
function pageAt({ pages }: Pick<PageChain<unknown>, 'pages'>, offset: number): number {
  let low = 0;
  let high = pages.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((pages[middle]?.start ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Offset of a row; null if the row is not known. */
export function offsetOf(chain: PageChain<Identified>, id: string): number | null {
  const isIt = (row: Identified) => row.id === id;
  for (const { rows, start } of chain.pages) {
    const at = rows?.findIndex(isIt) ?? -1;
    if (at >= 0) return start + at;
  }
  const at = chain.staleRows.findIndex(isIt);
  return at < 0 ? null : rowCount(chain) + at;
}

/** Whether a response for this position still fits into the chain. */
export function accepts({ pages }: PageChain<unknown>, { page, cursor }: PagePosition): boolean {
  const known = pages[page];
  if (known) return known.cursor === cursor;
  return page === pages.length && (page === 0 ? cursor === null : cursor !== null && pages.at(-1)?.next === cursor);
}

/** The pages to request for the unknown rows from `from` up to, but not including, `to`. */
export function missingPages(chain: PageChain<unknown>, from: number, to: number): PagePosition[] {
  const places = inRange(chain, from, to).flatMap((page) => {
    const known = chain.pages[page];
    return known && !known.rows ? [{ page, cursor: known.cursor }] : [];
  });
  const last = chain.pages.at(-1);
  if (!last) return [{ page: 0, cursor: null }];
  if (to > rowCount(chain) && last.next !== null) places.push({ page: chain.pages.length, cursor: last.next });
  return places;
}

/** The pages with rows from `from` up to, but not including, `to` that were requested before `round`. */
export function outdatedPages(chain: PageChain<unknown>, from: number, to: number, round: number): PagePosition[] {
  return inRange(chain, from, to).flatMap((page) => {
    const known = chain.pages[page];
    return known?.rows && known.round < round ? [{ page, cursor: known.cursor }] : [];
  });
}

function inRange({ pages }: PageChain<unknown>, from: number, to: number): number[] {
  const found: number[] = [];
  for (let page = Math.max(0, pageAt({ pages }, from)); page < pages.length; page++) {
    const { start, count } = pages[page] as KnownPage<unknown>;
    if (start >= to && !(count === 0 && start === to)) break;
    // An empty page may have rows by now.
    if (start + count > from || count === 0) found.push(page);
  }
  return found;
}

/**
 * Inserts a page at a position that `accepts` allows. If its next cursor differs from before, the pages after it are removed, and
 * their rows stay visible as stale rows until they are loaded again. A row of the page is removed from every other page.
 */
export function withPage<T extends Identified>(
  chain: PageChain<T>,
  { page, cursor }: PagePosition,
  { rows, next, round }: { rows: readonly T[]; next: string | null; round: number },
): PageChain<T> {
  const ids = new Set(rows.map(({ id }) => id));
  const without = (one: KnownPage<T>) => withoutRows(one, ids);
  const known = chain.pages[page];
  const follower = chain.pages[page + 1];
  const before = chain.pages.slice(0, page).map(without);
  const fresh: KnownPage<T> = { cursor, start: 0, count: rows.length, rows, next, round };
  if (follower && follower.cursor === next) {
    const following = chain.pages.slice(page + 1).map(without);
    return {
      ...chain,
      pages: withStarts([...before, fresh, ...following]),
      staleRows: chain.staleRows.filter(({ id }) => !ids.has(id)),
    };
  }
  const pages = withStarts([...before, fresh]);
  if (next === null) return { ...emptyPageChain, pages };
  return {
    pages,
    ...remainingStaleRows([...(known?.rows ?? []), ...rowsAfter(chain, page)], rows, ids, chain.staleRowsAge),
  };
}

/** The known rows after a page, up to the first gap. */
function rowsAfter<T>({ pages, staleRows }: PageChain<T>, page: number): T[] {
  const following: T[] = [];
  for (const { rows } of pages.slice(page + 1)) {
    if (!rows || following.length >= MAX_STALE_ROWS) return following;
    following.push(...rows);
  }
  return [...following, ...staleRows];
}

/**
 * The old rows that remain as stale rows: those after the last old row that the page contains. Old rows before it that the page
 * does not contain were deleted or moved.
 */
function remainingStaleRows<T extends Identified>(
  old: readonly T[],
  rows: readonly T[],
  ids: ReadonlySet<string>,
  age: number,
): Pick<PageChain<T>, 'staleRows' | 'staleRowsAge'> {
  const places = new Map(old.map(({ id }, at) => [id, at]));
  const lastShared = rows.findLast(({ id }) => places.has(id));
  const from = lastShared ? (places.get(lastShared.id) ?? -1) + 1 : 0;
  const staleRows = old.slice(from).filter(({ id }) => !ids.has(id));
  const staleRowsAge = lastShared ? 0 : age + 1;
  if (staleRows.length === 0 || staleRowsAge > MAX_STALE_AGE) return { staleRows: [], staleRowsAge: 0 };
  return { staleRows: staleRows.slice(0, MAX_STALE_ROWS), staleRowsAge };
}

function withoutRows<T extends Identified>(page: KnownPage<T>, ids: ReadonlySet<string>): KnownPage<T> {
  if (!page.rows?.some(({ id }) => ids.has(id))) return page;
  const rows = page.rows.filter(({ id }) => !ids.has(id));
  return { ...page, rows, count: rows.length };
}

function withStarts<T>(pages: readonly KnownPage<T>[]): KnownPage<T>[] {
  let start = 0;
  return pages.map((page) => {
    const placed = page.start === start ? page : { ...page, start };
    start += page.count;
    return placed;
  });
}

/** Drops the rows of all pages that lie outside of `from` up to, but not including, `to`. */
export function withoutDistantRows<T>(chain: PageChain<T>, from: number, to: number): PageChain<T> {
  const isFar = ({ start, count }: KnownPage<T>) => start + count <= from || start >= to;
  if (!chain.pages.some((page) => page.rows && isFar(page))) return chain;
  return { ...chain, pages: chain.pages.map((page) => (page.rows && isFar(page) ? { ...page, rows: null } : page)) };
}

/** Keeps the first page only, for a later return to this end of the list. */
export function firstPageOf<T>({ pages }: PageChain<T>): PageChain<T> {
  return { ...emptyPageChain, pages: pages.slice(0, 1) };
}

/** Replaces the row with the same id. */
export function withRow<T extends Identified>(chain: PageChain<T>, row: T): PageChain<T> {
  if (offsetOf(chain, row.id) === null) return chain;
  const put = (one: T) => (one.id === row.id ? row : one);
  return {
    ...chain,
    pages: chain.pages.map((page) => (page.rows ? { ...page, rows: page.rows.map(put) } : page)),
    staleRows: chain.staleRows.map(put),
  };
}
