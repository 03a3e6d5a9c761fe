/**
 * A list of which only some pages are known, looked at through a window. The API pages by cursor and knows no offsets, so
 * pages hang in a chain from an end of the list; and as it can sort the other way round, there is a chain from each end.
 *
 * What is shown comes from one chain alone, from the end that the view was last sent to (`g`, `G`): so between what is known from
 * the head and what is known from the tail there is nothing to mend, neither a gap nor rows that are there twice. Who walks
 * from one end to the other finds the other end in the same chain.
 *
 * Everything here is pure: a window is never changed, each function gives another one.
 */
import {
  type Chain,
  covered,
  emptyChain,
  firstPageOf,
  hasPlace,
  type Identified,
  isWhole,
  missing,
  offsetOf,
  outdated,
  type Place,
  rowIn,
  shed,
  withPage,
  withRow,
} from './chain.js';

/** The rows of one page; whoever asks passes it on as `limit`. */
export const PAGE_ROWS = 100;

const MOST_ASKED = 2;
// Of rows above and below the cursor, where there are any.
const SCROLL_MARGIN = 2;
// On both sides of the view.
const KEPT_ROWS = 800;

/** Where reading begins: `tail` is the first page of the reverse order. */
export type End = 'head' | 'tail';

/** A page that is to be asked for. Handed back once, with its answer (`received`) or without (`failed`). */
export interface PageWanted extends Place {
  /** Tells it from all others of the list: an answer that nobody waits for any more says how things were before. */
  readonly number: number;
  /** The list it belongs to, as `emptyWindow` was told. */
  readonly of: string;
  readonly end: End;
  /** How often `aged` was said when it was wanted. */
  readonly round: number;
}

export interface PageAnswer<T> {
  readonly items: readonly T[];
  readonly next: string | null;
  /** Of all pages; null where they are not counted. */
  readonly total: number | null;
}

export interface Window<T extends Identified> {
  /** Which list this is: its path, filters and order. Answers for another one are ignored. */
  readonly of: string;
  readonly isReversible: boolean;
  /** What the daemon said last; it may be a little old, and is null where rows are not counted. For display: rows end at `lengthOf`. */
  readonly total: number | null;
  /** The row under the cursor, from 0. */
  readonly cursorIndex: number;
  /** Its id; null while nothing is known of it. */
  readonly cursorId: string | null;
  /** The first row that is shown. */
  readonly top: number;
  /** Where the rows that are shown hang from. */
  readonly end: End;
  readonly head: Chain<T>;
  readonly tail: Chain<T>;
  readonly round: number;
  /** The round of the answer that `total` came with. */
  readonly countedIn: number;
  /** On their way. */
  readonly asked: readonly PageWanted[];
  /** The number of the last one that was asked for. */
  readonly lastAsked: number;
}

/**
 * @param of which list this is: path, filters and order.
 * @param isReversible whether the API can sort it the other way round as well.
 */
export function emptyWindow<T extends Identified>(of: string, isReversible: boolean): Window<T> {
  return {
    of,
    isReversible,
    total: null,
    cursorIndex: 0,
    cursorId: null,
    top: 0,
    end: 'head',
    head: emptyChain,
    tail: emptyChain,
    round: 0,
    countedIn: 0,
    asked: [],
    lastAsked: 0,
  };
}

/** How many rows there are, as far as can be told: those not known yet are counted, and one for "there are more" where nobody counts them. */
export function lengthOf(window: Window<Identified>): number {
  const chain = window[window.end];
  const rows = covered(chain);
  if (isWhole(chain)) return rows;
  if (chain.pages.length === 0) return window.total ?? 0;
  const atLeast = rows + Math.max(1, chain.beyond.length);
  return window.total === null ? rows + chain.beyond.length + 1 : Math.max(window.total, atLeast);
}

/** Undefined while it is not known: shown as `…`. */
export function rowAt<T extends Identified>(window: Window<T>, index: number): T | undefined {
  if (window.end === 'head') return rowIn(window.head, index);
  return rowIn(window.tail, lengthOf(window) - 1 - index);
}

/** The row that a key acts on; undefined while it is not known. */
export function cursorRow<T extends Identified>(window: Window<T>): T | undefined {
  return rowAt(window, window.cursorIndex);
}

/** Whether anything was heard of the list yet. */
export const isHeardOf = ({ head, tail }: Window<Identified>): boolean => head.pages.length + tail.pages.length > 0;

/** Whether every row in view is known, as it was when it was last asked for. */
export function isSettled(window: Window<Identified>, visibleRows: number): boolean {
  const { from, to } = viewOf(window, visibleRows);
  return missing(window[window.end], from, to).length === 0;
}

/** Moves the cursor, and the view with it as far as that takes. `move(window, 0, rows)` after the height has changed. */
export function move<T extends Identified>(window: Window<T>, by: number, visibleRows: number): Window<T> {
  const index = clamped(window.cursorIndex + by, lengthOf(window));
  return lookedAt(window, index, window.top, visibleRows);
}

/** To an end of the list. From there it is read from that end. */
export function moveTo<T extends Identified>(
  window: Window<T>,
  where: 'first' | 'last',
  visibleRows: number,
): Window<T> {
  if (where === 'first') return lookedAt(hungFrom(window, 'head'), 0, 0, visibleRows);
  // Where all is known from the one end, there is nothing to ask for from the other.
  const isFurther = window.isReversible && !isWhole(window[window.end]);
  const there = isFurther ? hungFrom(window, 'tail') : window;
  const length = lengthOf(there);
  return lookedAt(there, Math.max(0, length - 1), length - visibleRows, visibleRows);
}

/** Everything that is known is of before: what is visible will be asked for anew. */
export function aged<T extends Identified>(window: Window<T>): Window<T> {
  return { ...window, round: window.round + 1 };
}

/**
 * Which pages to ask for now: those that are missing in the view first, then those in view that are to be looked at again, then
 * what comes before and behind it. With those asked for already never more than two.
 */
export function needed(window: Window<Identified>, visibleRows: number): PageWanted[] {
  const free = MOST_ASKED - window.asked.length;
  if (free <= 0) return [];
  const { of, end, round, lastAsked } = window;
  const chain = window[end];
  const { from, to } = viewOf(window, visibleRows);
  const ahead = Math.min(visibleRows, PAGE_ROWS);
  const wanted: PageWanted[] = [];
  for (const place of [
    ...missing(chain, from, to),
    ...outdated(chain, from, to, round),
    ...missing(chain, Math.max(0, from - ahead), to + ahead),
  ]) {
    const page = { of, end, round, number: lastAsked + 1 + wanted.length, ...place };
    if (![...window.asked, ...wanted].some((other) => isSamePlace(page, other))) wanted.push(page);
  }
  return wanted.slice(0, free);
}

const isSamePlace = (one: PageWanted, other: PageWanted) =>
  one.end === other.end && one.page === other.page && one.cursor === other.cursor;

/** These are on their way: `needed` does not name them until they were received or have failed. */
export function asked<T extends Identified>(window: Window<T>, pages: readonly PageWanted[]): Window<T> {
  const last = pages.at(-1);
  return last ? { ...window, asked: [...window.asked, ...pages], lastAsked: last.number } : window;
}

/** No answer came for this one: `needed` names it again. */
export function failed<T extends Identified>(window: Window<T>, page: PageWanted): Window<T> {
  if (!isAwaited(window, page)) return window;
  return { ...window, asked: window.asked.filter(({ number }) => number !== page.number) };
}

const isAwaited = ({ of, asked }: Window<Identified>, page: PageWanted) =>
  page.of === of && asked.some(({ number }) => number === page.number);

/** Takes an answer in. One that nobody waits for any more, or that no longer has a place, changes nothing that is shown. */
export function received<T extends Identified>(
  window: Window<T>,
  page: PageWanted,
  { items, next, total }: PageAnswer<T>,
  visibleRows: number,
): Window<T> {
  if (!isAwaited(window, page)) return window;
  const before = failed(window, page);
  const chain = before[page.end];
  if (!hasPlace(chain, page)) return before;
  const isNewest = page.round >= before.countedIn;
  const after = {
    ...before,
    [page.end]: withPage(chain, page, { rows: items, next, round: page.round }),
    ...(isNewest && { total, countedIn: page.round }),
  };
  return withCursorKept(before, after, visibleRows);
}

/** A row that is known to be otherwise now, such as by the answer to a change; it keeps its place until it is asked for anew. */
export function updated<T extends Identified>(window: Window<T>, row: T): Window<T> {
  return { ...window, head: withRow(window.head, row), tail: withRow(window.tail, row) };
}

/** The row under the cursor stays there, and where it is on the screen; if it is gone, the next one takes its place. */
function withCursorKept<T extends Identified>(before: Window<T>, after: Window<T>, visibleRows: number): Window<T> {
  const { cursorId, cursorIndex } = before;
  const place = cursorIndex - before.top;
  const found = cursorId === null ? null : offsetOf(after[after.end], cursorId);
  const offset = found ?? turned(before, cursorIndex);
  const index = clamped(turned(after, offset), lengthOf(after));
  const there = lookedAt(after, index, index - place, visibleRows);
  // It may have gone to a page that is still on its way.
  const isLookedFor = cursorId !== null && found === null && !isSettled(there, visibleRows);
  return isLookedFor ? { ...there, cursorId } : there;
}

/** From an index to how far from its end the view's chain has it, and back. */
function turned(window: Window<Identified>, index: number): number {
  return window.end === 'head' ? index : Math.max(0, lengthOf(window) - 1 - index);
}

/** The rows in view, counted from the end that they hang from, the last one excluded. */
function viewOf(window: Window<Identified>, visibleRows: number): { from: number; to: number } {
  const { end, top } = window;
  if (end === 'head') return { from: top, to: top + visibleRows };
  const to = lengthOf(window) - top;
  return { from: Math.max(0, to - visibleRows), to };
}

function hungFrom<T extends Identified>(window: Window<T>, end: End): Window<T> {
  if (window.end === end) return window;
  return { ...window, end, [window.end]: firstPageOf(window[window.end]) };
}

/** With the cursor there, in view, and only rows that are not far from it. */
function lookedAt<T extends Identified>(window: Window<T>, index: number, top: number, visibleRows: number): Window<T> {
  const there = { ...window, cursorIndex: index, top: scrolled(top, index, lengthOf(window), visibleRows) };
  const { from, to } = viewOf(there, visibleRows);
  return {
    ...there,
    cursorId: rowAt(there, index)?.id ?? null,
    [there.end]: shed(there[there.end], from - KEPT_ROWS, to + KEPT_ROWS),
  };
}

function scrolled(top: number, index: number, length: number, visibleRows: number): number {
  const margin = Math.max(0, Math.min(SCROLL_MARGIN, Math.floor((visibleRows - 1) / 2)));
  const lowest = index + margin - visibleRows + 1;
  const inSight = Math.max(lowest, Math.min(top, index - margin));
  return Math.max(0, Math.min(inSight, length - visibleRows));
}

const clamped = (index: number, length: number) => Math.max(0, Math.min(index, length - 1));
