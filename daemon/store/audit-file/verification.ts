/** Verification of a chain: whether all lines are the original ones, complete and in order; if not, which line is the first fault. */
import type { Anchor } from './anchors.js';
import type { FoundLine } from './lines.js';

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
  /** Number of the first affected line; if several were removed, of the first removed one. */
  line: number;
  /** Where the fault is visible; null after the last line. */
  file: string | null;
  at: number | null;
  /** Details: a record's sequence number, or why a file cannot be read. */
  detail?: string;
}

export interface Checked {
  fault: Fault | null;
  /** Lines that were cut by a crash and chained over, which is not a fault. Limited to the first `MAX_TORN`. */
  torn: { line: number; file: string; at: number }[];
  first: number | null;
  last: number | null;
  lines: number;
  /** Number of lines that were compared with anchors. */
  anchored: number;
}

export interface CheckOptions {
  /** Reads the lines from the beginning. Can be called several times. */
  read: () => AsyncIterable<FoundLine>;
  /** The number that the first line must have. */
  begins: number;
  /** Digest of the line before the first one; null: take it from the first line. */
  before: string | null;
  /** In the order of their lines. */
  anchors: readonly Anchor[];
  /** Whether these lines reach the end of the chain, so that anchors of later lines reveal removed ones. */
  isToEnd: boolean;
  /** Called for each correct line, with its number. */
  onLine?: ((number: number, line: FoundLine) => Promise<void> | void) | undefined;
}

const MAX_TORN = 1_000;

/** Reads the lines once, and again to classify a fault. Holds only a few lines in memory. */
export async function check({ read, begins, before, anchors, isToEnd, onLine }: CheckOptions): Promise<Checked> {
  const torn: Checked['torn'] = [];
  const byAnchors = new AnchorCheck(anchors, begins);
  let count = 0;
  const found: { fault: Fault | null } = { fault: null };
  const window: LineWindow = { beforePrevious: undefined, previous: undefined, line: undefined, next: undefined };
  const take = async (): Promise<void> => {
    const { previous, line, next } = window;
    if (!line || found.fault) return;
    const expected = begins + count;
    const follows = previous?.digest ?? before ?? (line.number === null ? (line.torn?.prev ?? '') : line.prev);
    if (line.number === null && isChainedOver(line, expected, follows, next)) {
      if (torn.length < MAX_TORN) torn.push({ line: expected, file: line.file, at: line.at });
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
  const next = begins + count;
  return {
    fault: found.fault ?? byAnchors.fault(next, isToEnd),
    torn,
    first: count === 0 && !found.fault ? null : begins,
    last: count === 0 ? null : next - 1,
    lines: count,
    anchored: byAnchors.compared,
  };
}

interface LineWindow {
  beforePrevious: FoundLine | undefined;
  previous: FoundLine | undefined;
  line: FoundLine | undefined;
  next: FoundLine | undefined;
}

/** Whether the next line continues from an incomplete one. The last line may be being written at this moment. */
function isChainedOver(line: FoundLine, expected: number, follows: string, next: FoundLine | undefined): boolean {
  const { torn } = line;
  // Its remaining link must be right.
  if (torn && (torn.line !== expected || torn.prev !== follows)) return false;
  return next === undefined || (next.number === expected + 1 && next.prev === line.digest) || next.number === null;
}

/** Classifies the fault at `line`, the first line that is not as expected. */
async function faultAt(
  { beforePrevious, previous, line, next }: LineWindow & { line: FoundLine },
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
  // The next line is the one that was expected here.
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
    // It continues from the line before the previous one, so the previous one is not part of the chain.
    const isPreviousForeign =
      previous !== undefined && line.number === expected - 1 && line.prev === beforePrevious?.digest;
    return isPreviousForeign ? at('inserted', expected - 1, previous) : at('inserted', line.number, line);
  }
  // Its number is right, but it does not follow from the previous line. The next line shows which of the two was changed.
  const isIntact = next === undefined || next.prev === line.digest;
  return previous && isIntact ? at('changed', expected - 1, previous) : at('changed', expected, line);
}

/** Whether another line, after the index `after`, has this number, and the highest number among them. */
async function elsewhere(
  number: number | null,
  index: number,
  read: CheckOptions['read'],
  after = -1,
): Promise<{ isAlone: boolean; most: number }> {
  let each = 0;
  let most = 0;
  let isAlone = true;
  for await (const line of read()) {
    if (each !== index && each > after) {
      most = Math.max(most, line.number ?? 0);
      if (line.number === number) isAlone = false;
    }
    each += 1;
  }
  return { isAlone, most };
}

/** Comparison with anchors. A chain that was rewritten from some line on is consistent in itself, but does not match the anchors. */
class AnchorCheck {
  readonly #anchors: readonly Anchor[];
  readonly #begins: number;
  #next = 0;
  compared = 0;
  #proved: number;
  /** The first line after those that are proved. */
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

  /** @param next the number that the next line would have. */
  fault(next: number, isToEnd: boolean): Fault | null {
    if (this.#fault) return this.#fault;
    const isShort = isToEnd && this.#next < this.#anchors.length;
    return isShort ? { kind: 'cut_off', line: Math.max(next, this.#begins), file: null, at: null } : null;
  }
}
