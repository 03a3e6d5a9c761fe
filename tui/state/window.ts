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
import type { Chain } from './chain.js';

/** The rows of one page; whoever asks passes it on as `limit`. */
export const PAGE_ROWS = 100;

/** Where reading begins: `tail` is the first page of the reverse order. */
export type End = 'head' | 'tail';

/** A page that is to be asked for. Handed back with its answer. */
export interface PageWanted {
  /** The list it belongs to, as `emptyWindow` was told. */
  readonly of: string;
  readonly end: End;
  /** How many pages stand before it, from that end. */
  readonly page: number;
  /** Null for the first. */
  readonly cursor: string | null;
  /** How often `aged` was said when it was wanted. */
  readonly round: number;
}

export interface PageAnswer<T> {
  readonly items: readonly T[];
  readonly next: string | null;
  /** Of all pages; null where they are not counted. */
  readonly total: number | null;
}

export interface Window<T extends { id: string }> {
  /** Which list this is: its path and query, but for order, limit and cursor. Answers for another one are ignored. */
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
  readonly head: Chain<T>;
  readonly tail: Chain<T>;
}

/**
 * @param of which list this is: path and query, but for order, limit and cursor.
 * @param isReversible whether the API can sort it the other way round as well.
 */
export declare function emptyWindow<T extends { id: string }>(of: string, isReversible: boolean): Window<T>;

/** How many rows there are, as far as can be told: those not known yet are counted, and one for "there are more" where nobody counts them. */
export declare function lengthOf(window: Window<{ id: string }>): number;

/** Undefined while it is not known: shown as `…`. */
export declare function rowAt<T extends { id: string }>(window: Window<T>, index: number): T | undefined;

/** The row that a key acts on; undefined while it is not known. */
export declare function cursorRow<T extends { id: string }>(window: Window<T>): T | undefined;

/** Whether anything was heard of the list yet. */
export declare function isHeardOf(window: Window<{ id: string }>): boolean;

/** Moves the cursor, and the view with it as far as that takes. `move(window, 0, rows)` after the height has changed. */
export declare function move<T extends { id: string }>(window: Window<T>, by: number, visibleRows: number): Window<T>;

/** To an end of the list. From there it is read from that end. */
export declare function moveTo<T extends { id: string }>(
  window: Window<T>,
  where: 'first' | 'last',
  visibleRows: number,
): Window<T>;

/** Everything that is known is of before: what is visible will be asked for anew. */
export declare function aged<T extends { id: string }>(window: Window<T>): Window<T>;

/**
 * Which pages to ask for now: those that are missing in the view first, then what comes behind it, then those in view that are
 * to be looked at again. With those asked for already never more than two.
 */
export declare function needed(window: Window<{ id: string }>, visibleRows: number): PageWanted[];

/** These are on their way: `needed` does not name them until they were received or have failed. */
export declare function asked<T extends { id: string }>(window: Window<T>, pages: readonly PageWanted[]): Window<T>;

/** No answer came for this one: `needed` names it again. */
export declare function failed<T extends { id: string }>(window: Window<T>, page: PageWanted): Window<T>;

/** Takes an answer in; one that is no longer of use, or older than what is known, changes nothing. */
export declare function received<T extends { id: string }>(
  window: Window<T>,
  page: PageWanted,
  answer: PageAnswer<T>,
  visibleRows: number,
): Window<T>;

/** A row that is known to be otherwise now, such as by the answer to a change; it keeps its place until it is asked for anew. */
export declare function updated<T extends { id: string }>(window: Window<T>, row: T): Window<T>;
