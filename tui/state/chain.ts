/** Pages that hang together from one end of a list. */

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
  /** As `PageWanted.round`. */
  readonly round: number;
}

export interface Chain<T> {
  readonly pages: readonly KnownPage<T>[];
  /** What was known behind the last page before that one changed: shown until what is there now is known. */
  readonly beyond: readonly T[];
}
