/**
 * A window on a list of which only some pages are loaded. The API pages by cursor and has no offsets, so the pages form a
 * chain from one end of the list. As the API can reverse the order, there is a chain from each end.
 *
 * Only one chain is shown: that of the end which the view last jumped to (`g`, `G`). So rows of the two chains are never joined, and
 * there can be no gap and no duplicate between them. Moving from one end to the other row by row extends the same chain.
 *
 * All functions are pure: they never change a window, but return a new one.
 */
import {
  type PageChain,
  rowCount,
  emptyPageChain,
  firstPageOf,
  accepts,
  type Identified,
  reachesEnd,
  missingPages,
  offsetOf,
  outdatedPages,
  type PagePosition,
  rowIn,
  withoutDistantRows,
  withPage,
  withRow,
} from './page-chain.js';

/** Rows per page, passed to the API as `limit`. */
export const PAGE_ROWS = 100;

const MAX_IN_FLIGHT = 2;
// Rows to keep visible above and below the cursor, where there are any.
const SCROLL_MARGIN = 2;
// On each side of the view.
const RETAINED_ROWS = 800;

/** The end that a chain starts from: `tail` is the first page in reverse order. */
export type End = 'head' | 'tail';

/** A page to request. Each one is completed once, by `received` or by `failed`. */
export interface PageRequest extends PagePosition {
  /** Unique within the list. A response whose number is not pending is outdated and ignored. */
  readonly number: number;
  /** The list that the page belongs to, as passed to `emptyWindow`. */
  readonly of: string;
  readonly end: End;
  /** The window's round at the time of the request. */
  readonly round: number;
}

export interface PageResponse<T> {
  readonly items: readonly T[];
  readonly next: string | null;
  /** Number of rows in the list; null if the API does not count them. */
  readonly total: number | null;
}

export interface Window<T extends Identified> {
  /** Identifies the list: path, filters and order. Responses for another list are ignored. */
  readonly of: string;
  /** The latest total from the daemon, for display. It may be slightly outdated: rows end at `lengthOf`. Null until it is known. */
  readonly total: number | null;
  /** Index of the row under the cursor, from 0. */
  readonly cursorIndex: number;
  /** Id of the row under the cursor; null until it is loaded. */
  readonly cursorId: string | null;
  /** Index of the first visible row. */
  readonly top: number;
  /** The end whose chain is shown. */
  readonly end: End;
  readonly head: PageChain<T>;
  readonly tail: PageChain<T>;
  readonly round: number;
  /** The round of the response that `total` is from. */
  readonly totalRound: number;
  /** Page requests in flight. */
  readonly pending: readonly PageRequest[];
  /** Number of the latest page request. */
  readonly lastNumber: number;
}

/** @param of identifies the list: path, filters and order. */
export function emptyWindow<T extends Identified>(of: string): Window<T> {
  return {
    of,
    total: null,
    cursorIndex: 0,
    cursorId: null,
    top: 0,
    end: 'head',
    head: emptyPageChain,
    tail: emptyPageChain,
    round: 0,
    totalRound: 0,
    pending: [],
    lastNumber: 0,
  };
}

/** Length of the list as far as known, unloaded rows included: one more row stands for "there are more" than its total. */
export function lengthOf(window: Window<Identified>): number {
  const chain = window[window.end];
  const rows = rowCount(chain);
  if (reachesEnd(chain)) return rows;
  if (chain.pages.length === 0) return window.total ?? 0;
  return Math.max(window.total ?? 0, rows + Math.max(1, chain.staleRows.length));
}

/** Undefined until it is loaded, and then shown as `…`. */
export function rowAt<T extends Identified>(window: Window<T>, index: number): T | undefined {
  if (window.end === 'head') return rowIn(window.head, index);
  return rowIn(window.tail, lengthOf(window) - 1 - index);
}

/** The row that a key acts on; undefined until it is loaded. */
export function cursorRow<T extends Identified>(window: Window<T>): T | undefined {
  return rowAt(window, window.cursorIndex);
}

/** All rows in memory that are in the list. */
export const loadedRows = <T extends Identified>({ head, tail }: Window<T>): readonly T[] =>
  [...head.pages, ...tail.pages].flatMap(({ rows }) => rows ?? []);

/** Whether any page was loaded yet. */
export const isLoaded = ({ head, tail }: Window<Identified>): boolean => head.pages.length + tail.pages.length > 0;

/** Whether every visible row is loaded. */
export function isViewLoaded(window: Window<Identified>, visibleRows: number): boolean {
  const { from, to } = viewOf(window, visibleRows);
  return missingPages(window[window.end], from, to).length === 0;
}

/** Moves the cursor, and scrolls if needed. Call `move(window, 0, rows)` after the height has changed. */
export function move<T extends Identified>(window: Window<T>, by: number, visibleRows: number): Window<T> {
  const index = clamped(window.cursorIndex + by, lengthOf(window));
  return withView(window, index, window.top, visibleRows);
}

/** Jumps to an end of the list. The list is then loaded from that end. */
export function moveTo<T extends Identified>(
  window: Window<T>,
  where: 'first' | 'last',
  visibleRows: number,
): Window<T> {
  if (where === 'first') return withView(anchoredAt(window, 'head'), 0, 0, visibleRows);
  // If the chain is complete, the other end needs no request.
  const there = reachesEnd(window[window.end]) ? window : anchoredAt(window, 'tail');
  const length = lengthOf(there);
  return withView(there, Math.max(0, length - 1), length - visibleRows, visibleRows);
}

/** Marks all loaded pages as outdated, so that the visible ones are requested again. */
export function invalidated<T extends Identified>(window: Window<T>): Window<T> {
  return { ...window, round: window.round + 1 };
}

/**
 * The pages to request now: first those missing in the view, then outdated ones in the view, then those just before and after it.
 * Never more than MAX_IN_FLIGHT, counting those in flight.
 */
export function pagesToRequest(window: Window<Identified>, visibleRows: number): PageRequest[] {
  const free = MAX_IN_FLIGHT - window.pending.length;
  if (free <= 0) return [];
  const { of, end, round, lastNumber } = window;
  const chain = window[end];
  const { from, to } = viewOf(window, visibleRows);
  const ahead = Math.min(visibleRows, PAGE_ROWS);
  const wanted: PageRequest[] = [];
  for (const place of [
    ...missingPages(chain, from, to),
    ...outdatedPages(chain, from, to, round),
    ...missingPages(chain, Math.max(0, from - ahead), to + ahead),
  ]) {
    const page = { of, end, round, number: lastNumber + 1 + wanted.length, ...place };
    if (![...window.pending, ...wanted].some((other) => isSamePlace(page, other))) wanted.push(page);
  }
  return wanted.slice(0, free);
}

const isSamePlace = (one: PageRequest, other: PageRequest) =>
  one.end === other.end && one.page === other.page && one.cursor === other.cursor;

/** Records page requests as in flight. They are not requested again until they were received or have failed. */
export function withPending<T extends Identified>(window: Window<T>, pages: readonly PageRequest[]): Window<T> {
  const last = pages.at(-1);
  return last ? { ...window, pending: [...window.pending, ...pages], lastNumber: last.number } : window;
}

/** A page request failed, so the page may be requested again. */
export function failed<T extends Identified>(window: Window<T>, page: PageRequest): Window<T> {
  if (!isPending(window, page)) return window;
  return { ...window, pending: window.pending.filter(({ number }) => number !== page.number) };
}

const isPending = ({ of, pending }: Window<Identified>, page: PageRequest) =>
  page.of === of && pending.some(({ number }) => number === page.number);

/** Adds the rows of a response. A response that is no longer pending, or whose position is no longer valid, changes nothing visible. */
export function received<T extends Identified>(
  window: Window<T>,
  page: PageRequest,
  { items, next, total }: PageResponse<T>,
  visibleRows: number,
): Window<T> {
  if (!isPending(window, page)) return window;
  const before = failed(window, page);
  const chain = before[page.end];
  if (!accepts(chain, page)) return before;
  const isNewest = page.round >= before.totalRound;
  const after = {
    ...before,
    [page.end]: withPage(chain, page, { rows: items, next, round: page.round }),
    ...(isNewest && { total, totalRound: page.round }),
  };
  return withCursorRestored(before, after, visibleRows);
}

/** Replaces the rows of a list that is whole in memory. */
export function withAllRows<T extends Identified>(
  before: Window<T>,
  items: readonly T[],
  visibleRows: number,
): Window<T> {
  const window = invalidated(anchoredAt(before, 'head'));
  const [page] = pagesToRequest(window, visibleRows);
  if (!page) return before;
  const whole = { items, next: null, total: items.length };
  return received(withPending(window, [page]), page, whole, visibleRows);
}

/** Updates a row, for example from the response to a change. It keeps its position until its page is loaded again. */
export function updated<T extends Identified>(window: Window<T>, row: T): Window<T> {
  return { ...window, head: withRow(window.head, row), tail: withRow(window.tail, row) };
}

/** Keeps the cursor on its row and the row at its place on the screen. If the row is gone, the next one gets the cursor. */
function withCursorRestored<T extends Identified>(before: Window<T>, after: Window<T>, visibleRows: number): Window<T> {
  const { cursorId, cursorIndex } = before;
  const place = cursorIndex - before.top;
  const found = cursorId === null ? null : offsetOf(after[after.end], cursorId);
  const offset = found ?? mirroredIndex(before, cursorIndex);
  const index = clamped(mirroredIndex(after, offset), lengthOf(after));
  const there = withView(after, index, index - place, visibleRows);
  // The row may have moved to a page that is still in flight.
  const isLookedFor = cursorId !== null && found === null && !isViewLoaded(there, visibleRows);
  return isLookedFor ? { ...there, cursorId } : there;
}

/** Converts an index to the offset from the end of the visible chain, and back. */
function mirroredIndex(window: Window<Identified>, index: number): number {
  return window.end === 'head' ? index : Math.max(0, lengthOf(window) - 1 - index);
}

/** Offsets of the visible rows, counted from the end of their chain; `to` is exclusive. */
function viewOf(window: Window<Identified>, visibleRows: number): { from: number; to: number } {
  const { end, top } = window;
  if (end === 'head') return { from: top, to: top + visibleRows };
  const to = lengthOf(window) - top;
  return { from: Math.max(0, to - visibleRows), to };
}

function anchoredAt<T extends Identified>(window: Window<T>, end: End): Window<T> {
  if (window.end === end) return window;
  return { ...window, end, [window.end]: firstPageOf(window[window.end]) };
}

/** Sets the cursor, scrolls it into view, and drops distant rows. */
function withView<T extends Identified>(window: Window<T>, index: number, top: number, visibleRows: number): Window<T> {
  const there = { ...window, cursorIndex: index, top: scrolledTop(top, index, lengthOf(window), visibleRows) };
  const { from, to } = viewOf(there, visibleRows);
  return {
    ...there,
    cursorId: rowAt(there, index)?.id ?? null,
    [there.end]: withoutDistantRows(there[there.end], from - RETAINED_ROWS, to + RETAINED_ROWS),
  };
}

function scrolledTop(top: number, index: number, length: number, visibleRows: number): number {
  const margin = Math.max(0, Math.min(SCROLL_MARGIN, Math.floor((visibleRows - 1) / 2)));
  const lowest = index + margin - visibleRows + 1;
  const inSight = Math.max(lowest, Math.min(top, index - margin));
  return Math.max(0, Math.min(inSight, length - visibleRows));
}

const clamped = (index: number, length: number) => Math.max(0, Math.min(index, length - 1));
