/** Whether lines are those that were written, all of them and in their order; and if not, which is the first that is not. */
import type { Anchor } from './chain.js';
import type { FoundLine } from './reading.js';

export type FaultKind =
  | 'changed'
  | 'removed'
  | 'inserted'
  | 'reordered'
  | 'cut_off'
  | 'rewritten'
  | 'unreadable'
  | 'unanchored'
  | 'missing_record'
  | 'foreign_record';

export interface Fault {
  kind: FaultKind;
  /** The number of the first line that is affected; of several that were removed the first. */
  line: number;
  /** Where that shows; null behind the last line. */
  file: string | null;
  at: number | null;
  /** What else there is to say: the number of a record, or why a file cannot be read. */
  detail?: string;
}

export interface Checked {
  fault: Fault | null;
  /** Lines that were torn by a crash and chained over, which is no fault. Of very many the first ones. */
  torn: { line: number; file: string; at: number }[];
  first: number | null;
  last: number | null;
  lines: number;
  /** Lines that were compared with their anchors. */
  anchored: number;
}

export interface CheckOptions {
  /** The lines, from the beginning, each time it is asked for. */
  read: () => AsyncIterable<FoundLine>;
  /** The number that the first line must have. */
  begins: number;
  /** The digest of the line before it; null: that is taken from the line itself. */
  before: string | null;
  /** In the order of their lines. */
  anchors: readonly Anchor[];
  /** Whether there are no lines behind these, so that anchors of later ones tell of lines that were cut off. */
  isToEnd: boolean;
  /** Is shown each line that is in its place, with its number. */
  onLine?: ((number: number, line: FoundLine) => Promise<void> | void) | undefined;
}

const MOST_TORN = 1_000;

/** Reads the lines once, and a second time for the words in which a fault is told. Holds a handful of them. */
export async function check({ read, begins, before, anchors, isToEnd, onLine }: CheckOptions): Promise<Checked> {
  const torn: Checked['torn'] = [];
  const byAnchors = new AnchorCheck(anchors, begins);
  let count = 0;
  const found: { fault: Fault | null } = { fault: null };
  const window: Neighbours = { beforePrevious: undefined, previous: undefined, line: undefined, next: undefined };
  const take = async (): Promise<void> => {
    const { previous, line, next } = window;
    if (!line || found.fault) return;
    const expected = begins + count;
    const follows = previous?.digest ?? before ?? (line.number === null ? (line.torn?.prev ?? '') : line.prev);
    if (line.number === null && isChainedOver(line, expected, follows, next)) {
      if (torn.length < MOST_TORN) torn.push({ line: expected, file: line.file, at: line.at });
    } else if (line.number !== expected || line.prev !== follows) {
      found.fault = await faultAt({ ...window, line }, count, expected, follows, read);
      return;
    }
    byAnchors.take(expected, line);
    await onLine?.(expected, line);
    count += 1;
  };
  for await (const line of read()) {
    window.next = line;
    await take();
    if (found.fault) break;
    Object.assign(window, { beforePrevious: window.previous, previous: window.line, line, next: undefined });
  }
  await take();
  const behind = begins + count;
  return {
    fault: found.fault ?? byAnchors.fault(behind, isToEnd),
    torn,
    first: count === 0 && !found.fault ? null : begins,
    last: count === 0 ? null : behind - 1,
    lines: count,
    anchored: byAnchors.compared,
  };
}

interface Neighbours {
  beforePrevious: FoundLine | undefined;
  previous: FoundLine | undefined;
  line: FoundLine | undefined;
  next: FoundLine | undefined;
}

/** By the line behind it; the last may be being written just now. */
function isChainedOver(line: FoundLine, expected: number, follows: string, next: FoundLine | undefined): boolean {
  const { torn } = line;
  // Whatever tore it, what it still says must be so.
  if (torn && (torn.line !== expected || torn.prev !== follows)) return false;
  return next === undefined || (next.number === expected + 1 && next.prev === line.digest) || next.number === null;
}

/** `line`, the one with that index, is the first that is not as it should be. */
async function faultAt(
  { beforePrevious, previous, line, next }: Neighbours & { line: FoundLine },
  index: number,
  expected: number,
  before: string,
  read: CheckOptions['read'],
): Promise<Fault> {
  const at = (kind: FaultKind, number: number, where: FoundLine): Fault => ({
    kind,
    line: number,
    file: where.file,
    at: where.at,
  });
  // The one behind it is what should be here.
  if (next?.number === expected && next.prev === before) {
    const { isAlone, most } = await elsewhere(line.number, index, read);
    const isMoved = line.number !== null && line.number <= most + 1 && isAlone;
    return isMoved ? at('reordered', line.number ?? expected, line) : at('inserted', expected, line);
  }
  if (line.number === null) return at('changed', expected, line);
  if (line.number > expected) {
    const { isAlone } = await elsewhere(expected, index, read, index);
    return isAlone ? at('removed', expected, line) : at('reordered', line.number, line);
  }
  if (line.number < expected) {
    // It follows on the one before the one before it: that in between is not of the chain.
    const isPreviousForeign =
      previous !== undefined && line.number === expected - 1 && line.prev === beforePrevious?.digest;
    return isPreviousForeign ? at('inserted', expected - 1, previous) : at('inserted', line.number, line);
  }
  // Its number is right, and it does not follow on the one before. What follows on it tells which of the two is another.
  const isIntact = next === undefined || next.prev === line.digest;
  return previous && isIntact ? at('changed', expected - 1, previous) : at('changed', expected, line);
}

/** What the other lines, or those behind an index, say of a number. */
async function elsewhere(
  number: number | null,
  index: number,
  read: CheckOptions['read'],
  behind = -1,
): Promise<{ isAlone: boolean; most: number }> {
  let each = 0;
  let most = 0;
  let isAlone = true;
  for await (const line of read()) {
    if (each !== index && each > behind) {
      most = Math.max(most, line.number ?? 0);
      if (line.number === number) isAlone = false;
    }
    each += 1;
  }
  return { isAlone, most };
}

/** A chain that is made anew from some line on agrees with itself, and not with what was noted elsewhere. */
class AnchorCheck {
  readonly #anchors: readonly Anchor[];
  readonly #begins: number;
  #next = 0;
  compared = 0;
  #proved: number;
  /** The first line behind those that are proved. */
  #from: FoundLine | null = null;
  #fault: Fault | null = null;

  constructor(anchors: readonly Anchor[], begins: number) {
    this.#anchors = anchors;
    this.#begins = begins;
    this.#proved = begins - 1;
    while ((this.#anchors[this.#next]?.line ?? Infinity) < begins) this.#next += 1;
  }

  take(number: number, line: FoundLine): void {
    if (this.#fault) return;
    this.#from ??= line;
    const anchor = this.#anchors[this.#next];
    if (anchor?.line !== number) return;
    this.#next += 1;
    this.compared += 1;
    if (anchor.head === line.digest) {
      this.#proved = number;
      this.#from = null;
    } else {
      const { file, at } = this.#from;
      this.#fault = { kind: 'rewritten', line: this.#proved + 1, file, at };
    }
  }

  /** @param behind the number of the line that would come next. */
  fault(behind: number, isToEnd: boolean): Fault | null {
    if (this.#fault) return this.#fault;
    const isShort = isToEnd && this.#next < this.#anchors.length;
    return isShort ? { kind: 'cut_off', line: Math.max(behind, this.#begins), file: null, at: null } : null;
  }
}
