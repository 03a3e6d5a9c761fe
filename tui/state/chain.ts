/**
 * Pages that hang together from one end of a list: each is asked for with the cursor that the one before it ended with. So
 * they join without a gap, and as soon as a page ends elsewhere than it did, those behind it do not belong there any more.
 */

export interface Identified {
  readonly id: string;
}

export interface KnownPage<T> {
  /** What it is asked for with; null for the first. */
  readonly cursor: string | null;
  /** How many rows stand before it. */
  readonly start: number;
  /** How many it has. */
  readonly count: number;
  /** Null when they were let go: they are far from what is looked at. */
  readonly rows: readonly T[] | null;
  /** The cursor of the page behind it; null when it is the last. */
  readonly next: string | null;
  /** The higher, the later it was asked for. */
  readonly round: number;
}

export interface Chain<T> {
  readonly pages: readonly KnownPage<T>[];
  /** What was known behind the last page before that one changed: shown until what is there now is known. */
  readonly beyond: readonly T[];
  /** How many pages were read since, in which none of it was found. */
  readonly beyondAge: number;
}

/** The place of a page in a chain. */
export interface Place {
  readonly page: number;
  readonly cursor: string | null;
}

// More than any screen shows.
const MOST_BEYOND = 500;
// Rows inserted before what is beyond, as many as that many pages hold, do not make anybody lose it.
const OLDEST_BEYOND = 3;

export const emptyChain: Chain<never> = { pages: [], beyond: [], beyondAge: 0 };

/** How many rows its pages have. */
export function covered({ pages }: Chain<unknown>): number {
  const last = pages.at(-1);
  return last ? last.start + last.count : 0;
}

/** Whether it reaches to the other end. */
export const isWhole = ({ pages }: Chain<unknown>): boolean => pages.at(-1)?.next === null;

export function rowIn<T>(chain: Chain<T>, offset: number): T | undefined {
  const rest = offset - covered(chain);
  if (rest >= 0) return chain.beyond[rest];
  const page = chain.pages[pageAt(chain, offset)];
  return page?.rows?.[offset - page.start];
}

/** The last page that begins at `offset` or before it; -1 if there is none. */
function pageAt({ pages }: Pick<Chain<unknown>, 'pages'>, offset: number): number {
  let low = 0;
  let high = pages.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((pages[middle]?.start ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Where a row stands, if it is known; otherwise null. */
export function offsetOf(chain: Chain<Identified>, id: string): number | null {
  const isIt = (row: Identified) => row.id === id;
  for (const { rows, start } of chain.pages) {
    const at = rows?.findIndex(isIt) ?? -1;
    if (at >= 0) return start + at;
  }
  const at = chain.beyond.findIndex(isIt);
  return at < 0 ? null : covered(chain) + at;
}

/** Whether an answer for this place still belongs into the chain. */
export function hasPlace({ pages }: Chain<unknown>, { page, cursor }: Place): boolean {
  const known = pages[page];
  if (known) return known.cursor === cursor;
  return page === pages.length && (page === 0 ? cursor === null : cursor !== null && pages.at(-1)?.next === cursor);
}

/** Those of the rows from `from` to before `to` that are not known, as the pages to ask for. */
export function missing(chain: Chain<unknown>, from: number, to: number): Place[] {
  const places = inRange(chain, from, to).flatMap((page) => {
    const known = chain.pages[page];
    return known && !known.rows ? [{ page, cursor: known.cursor }] : [];
  });
  const last = chain.pages.at(-1);
  if (!last) return [{ page: 0, cursor: null }];
  if (to > covered(chain) && last.next !== null) places.push({ page: chain.pages.length, cursor: last.next });
  return places;
}

/** The pages with rows from `from` to before `to` that were asked for before `round`. */
export function outdated(chain: Chain<unknown>, from: number, to: number, round: number): Place[] {
  return inRange(chain, from, to).flatMap((page) => {
    const known = chain.pages[page];
    return known?.rows && known.round < round ? [{ page, cursor: known.cursor }] : [];
  });
}

function inRange({ pages }: Chain<unknown>, from: number, to: number): number[] {
  const found: number[] = [];
  for (let page = Math.max(0, pageAt({ pages }, from)); page < pages.length; page++) {
    const { start, count } = pages[page] as KnownPage<unknown>;
    if (start >= to && !(count === 0 && start === to)) break;
    // One that has no row may get some.
    if (start + count > from || count === 0) found.push(page);
  }
  return found;
}

/**
 * Puts a page into its place, for which `hasPlace` is true. Where it ends elsewhere than it did, the pages behind it go, but
 * what is known of them stays in sight until they were read anew. A row that it has is taken out of every other page.
 */
export function withPage<T extends Identified>(
  chain: Chain<T>,
  { page, cursor }: Place,
  { rows, next, round }: { rows: readonly T[]; next: string | null; round: number },
): Chain<T> {
  const ids = new Set(rows.map(({ id }) => id));
  const without = (one: KnownPage<T>) => withoutRows(one, ids);
  const known = chain.pages[page];
  const follower = chain.pages[page + 1];
  const before = chain.pages.slice(0, page).map(without);
  const fresh: KnownPage<T> = { cursor, start: 0, count: rows.length, rows, next, round };
  if (follower && follower.cursor === next) {
    const behind = chain.pages.slice(page + 1).map(without);
    return {
      ...chain,
      pages: numbered([...before, fresh, ...behind]),
      beyond: chain.beyond.filter(({ id }) => !ids.has(id)),
    };
  }
  const pages = numbered([...before, fresh]);
  if (next === null) return { ...emptyChain, pages };
  return { pages, ...stillBeyond([...(known?.rows ?? []), ...rowsBehind(chain, page)], rows, ids, chain.beyondAge) };
}

/** The rows known behind a page, as far as they hang together with it. */
function rowsBehind<T>({ pages, beyond }: Chain<T>, page: number): T[] {
  const behind: T[] = [];
  for (const { rows } of pages.slice(page + 1)) {
    if (!rows || behind.length >= MOST_BEYOND) return behind;
    behind.push(...rows);
  }
  return [...behind, ...beyond];
}

/**
 * What is left of rows that were known before: those behind the last row of the page that is found among them. What stands before that
 * and is not in the page is gone, or went elsewhere.
 */
function stillBeyond<T extends Identified>(
  old: readonly T[],
  rows: readonly T[],
  ids: ReadonlySet<string>,
  age: number,
): Pick<Chain<T>, 'beyond' | 'beyondAge'> {
  const places = new Map(old.map(({ id }, at) => [id, at]));
  const lastShared = rows.findLast(({ id }) => places.has(id));
  const from = lastShared ? (places.get(lastShared.id) ?? -1) + 1 : 0;
  const beyond = old.slice(from).filter(({ id }) => !ids.has(id));
  const beyondAge = lastShared ? 0 : age + 1;
  if (beyond.length === 0 || beyondAge > OLDEST_BEYOND) return { beyond: [], beyondAge: 0 };
  return { beyond: beyond.slice(0, MOST_BEYOND), beyondAge };
}

function withoutRows<T extends Identified>(page: KnownPage<T>, ids: ReadonlySet<string>): KnownPage<T> {
  if (!page.rows?.some(({ id }) => ids.has(id))) return page;
  const rows = page.rows.filter(({ id }) => !ids.has(id));
  return { ...page, rows, count: rows.length };
}

function numbered<T>(pages: readonly KnownPage<T>[]): KnownPage<T>[] {
  let start = 0;
  return pages.map((page) => {
    const placed = page.start === start ? page : { ...page, start };
    start += page.count;
    return placed;
  });
}

/** Lets go of the rows of all pages that have none from `from` to before `to`. */
export function shed<T>(chain: Chain<T>, from: number, to: number): Chain<T> {
  const isFar = ({ start, count }: KnownPage<T>) => start + count <= from || start >= to;
  if (!chain.pages.some((page) => page.rows && isFar(page))) return chain;
  return { ...chain, pages: chain.pages.map((page) => (page.rows && isFar(page) ? { ...page, rows: null } : page)) };
}

/** Only its first page is of use: somebody may come back to the end that it hangs from. */
export function firstPageOf<T>({ pages }: Chain<T>): Chain<T> {
  return { ...emptyChain, pages: pages.slice(0, 1) };
}

/** Puts a row in the place of the one with its id. */
export function withRow<T extends Identified>(chain: Chain<T>, row: T): Chain<T> {
  if (offsetOf(chain, row.id) === null) return chain;
  const put = (one: T) => (one.id === row.id ? row : one);
  return {
    ...chain,
    pages: chain.pages.map((page) => (page.rows ? { ...page, rows: page.rows.map(put) } : page)),
    beyond: chain.beyond.map(put),
  };
}
