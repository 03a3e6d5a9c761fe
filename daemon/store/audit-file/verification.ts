/** Whether lines are those that were written, all of them and in their order; and if not, which is the first that is not. */
import { createReadStream } from 'node:fs';
import { type Anchor, BEGINNING, digestOfLine, linkOf } from './chain.js';
import { linesOf, NEWLINE } from './tail.js';

/** A line as it was found. */
export interface FoundLine {
  /** What it says its number is; null for what is no line of a chain. */
  number: number | null;
  prev: string;
  digest: string;
  file: string;
  /** Its place in the file, from 1. */
  at: number;
}

export type FaultKind = 'changed' | 'removed' | 'inserted' | 'reordered' | 'cut_off' | 'rewritten';

export interface Fault {
  kind: FaultKind;
  /** The number of the first line that is affected; of several that were removed the first. */
  line: number;
  /** Where that shows; null behind the last line. */
  file: string | null;
  at: number | null;
}

export interface Checked {
  fault: Fault | null;
  /** Lines that were torn by a crash and chained over, which is no fault. */
  torn: { line: number; file: string; at: number }[];
  first: number | null;
  last: number | null;
}

/** Whole lines, and what may stand behind the last of them. */
export async function* linesIn(file: string): AsyncGenerator<FoundLine> {
  // Of a line that goes on. Put together once it ends: what is no audit file may be one long line.
  let rest: Buffer[] = [];
  let at = 0;
  const found = (bytes: Buffer): FoundLine => {
    const link = linkOf(bytes);
    return { number: link?.line ?? null, prev: link?.prev ?? '', digest: digestOfLine(bytes), file, at: (at += 1) };
  };
  for await (const piece of createReadStream(file, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
    const end = piece.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      for (const line of linesOf(Buffer.concat([...rest, piece.subarray(0, end)]))) yield found(line);
      rest = [];
    }
    rest.push(piece.subarray(end));
  }
  const last = Buffer.concat(rest);
  if (last.length > 0) yield found(last);
}

/**
 * @param isWhole whether the chain is to begin with its first line, so that files that are missing in front are a fault.
 * @param anchors in the order of their lines.
 */
export function check(lines: readonly FoundLine[], anchors: readonly Anchor[], isWhole: boolean): Checked {
  const first = firstNumber(lines);
  const torn: Checked['torn'] = [];
  const fault = faultIn(lines, isWhole ? 1 : (first ?? 1), isWhole, torn) ?? faultByAnchors(lines, first ?? 1, anchors);
  return { fault, torn, first, last: first === null ? null : first + lines.length - 1 };
}

function firstNumber(lines: readonly FoundLine[]): number | null {
  const index = lines.findIndex(({ number }) => number !== null);
  const number = lines[index]?.number ?? null;
  return number === null ? null : number - index;
}

function faultIn(lines: readonly FoundLine[], begins: number, isWhole: boolean, torn: Checked['torn']): Fault | null {
  for (const [index, line] of lines.entries()) {
    const expected = begins + index;
    const before = lines[index - 1]?.digest ?? (isWhole ? BEGINNING.digest : line.prev);
    const next = lines[index + 1];
    if (line.number === expected && line.prev === before) continue;
    if (line.number === null && isChainedOver(line, expected, next)) {
      torn.push({ line: expected, file: line.file, at: line.at });
      continue;
    }
    return faultAt(lines, line, index, expected, before);
  }
  return null;
}

/** By the line behind it; the last may be being written just now. */
const isChainedOver = (line: FoundLine, expected: number, next: FoundLine | undefined) =>
  next === undefined || (next.number === expected + 1 && next.prev === line.digest) || next.number === null;

/** `line`, which is `lines[index]`, is the first that is not as it should be. */
function faultAt(lines: readonly FoundLine[], line: FoundLine, index: number, expected: number, before: string): Fault {
  const [previous, next] = [lines[index - 1], lines[index + 1]];
  const at = (kind: FaultKind, number: number, where: FoundLine): Fault => ({
    kind,
    line: number,
    file: where.file,
    at: where.at,
  });
  // The one behind it is what should be here.
  if (next?.number === expected && next.prev === before) {
    return isMissing(lines, index) ? at('reordered', line.number ?? expected, line) : at('inserted', expected, line);
  }
  if (line.number === null) return at('changed', expected, line);
  if (line.number > expected) {
    const isElsewhere = lines.slice(index + 1).some(({ number }) => number === expected);
    return isElsewhere ? at('reordered', line.number, line) : at('removed', expected, line);
  }
  if (line.number < expected) {
    // It follows on the one before the one before it: that in between is not of the chain.
    const isPreviousForeign =
      previous !== undefined && line.number === expected - 1 && line.prev === lines[index - 2]?.digest;
    return isPreviousForeign ? at('inserted', expected - 1, previous) : at('inserted', line.number, line);
  }
  // Its number is right, and it does not follow on the one before. What follows on it tells which of the two is another.
  const isIntact = next === undefined || next.prev === line.digest;
  return previous && isIntact ? at('changed', expected - 1, previous) : at('changed', expected, line);
}

/** Whether the others lack the number of this line, so that it is one of them. */
function isMissing(lines: readonly FoundLine[], index: number): boolean {
  const number = lines[index]?.number ?? null;
  const others = lines.filter((_, each) => each !== index);
  const last = others.reduce((most, line) => Math.max(most, line.number ?? 0), 0);
  return number !== null && number <= last + 1 && others.every((line) => line.number !== number);
}

/** A chain that is made anew from some line on agrees with itself, and not with what was noted elsewhere. */
function faultByAnchors(lines: readonly FoundLine[], first: number, anchors: readonly Anchor[]): Fault | null {
  let proved = first - 1;
  for (const { line, head } of anchors) {
    if (line < first) continue;
    const found = lines[line - first];
    if (!found) return { kind: 'cut_off', line: first + lines.length, file: null, at: null };
    if (found.digest !== head) {
      const from = lines[proved + 1 - first] ?? found;
      return { kind: 'rewritten', line: proved + 1, file: from.file, at: from.at };
    }
    proved = line;
  }
  return null;
}
