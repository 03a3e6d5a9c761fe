/**
 * A line of the screen, made of pieces in one role each. Everything that is shown goes through `text`, so nothing that came from
 * elsewhere can drive the terminal; and through `cut`, so nothing wraps.
 */
import stringWidth from 'string-width';
import { visible } from '../../console/escape.js';
import type { Role } from './roles.js';

export interface Piece {
  readonly text: string;
  readonly role: Role;
  /** In columns of the terminal. */
  readonly width: number;
}

export type Strip = readonly Piece[];

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const isPlainAscii = (words: string) => /^[\x20-\x7e]*$/.test(words);

/** What takes no column would make two names look alike, and terminals disagree about it: spelt out. */
function seen(words: string): string {
  const shown = visible(words);
  let out = '';
  for (const { segment } of graphemes.segment(shown)) {
    out += stringWidth(segment) > 0 ? segment : Array.from(segment, spelt).join('');
  }
  return out;
}
const spelt = (character: string) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

/** @param words from anywhere: what could drive the terminal is made visible. */
export function text(words: string, role: Role = 'plain'): Piece {
  if (isPlainAscii(words)) return { text: words, role, width: words.length };
  let known = measured.get(words);
  if (!known) {
    const shown = seen(words);
    known = { text: shown, width: stringWidth(shown) };
    if (measured.size >= MOST_MEASURED) measured.clear();
    measured.set(words, known);
  }
  return { ...known, role };
}

/** Signs, frames and names come again and again, and to look at each of their characters is what costs. */
const measured = new Map<string, Pick<Piece, 'text' | 'width'>>();
const MOST_MEASURED = 2_000;

export const blank = (columns: number): Piece => text(' '.repeat(Math.max(0, columns)));

/** Pieces from words, pieces and strips; what is null or false is left out. */
export function strip(...parts: readonly (string | Piece | Strip | null | false | undefined)[]): Strip {
  return parts.flatMap((part) => {
    if (part === null || part === false || part === undefined || part === '') return [];
    if (typeof part === 'string') return [text(part)];
    return part;
  });
}

export const widthOf = (line: Strip): number => line.reduce((sum, { width }) => sum + width, 0);

/** The columns from `from` up to `to`; of a wide character that is cut in half a space is left. */
export function slice(line: Strip, from: number, to: number): Strip {
  const out: Piece[] = [];
  let at = 0;
  for (const piece of line) {
    const end = at + piece.width;
    if (end > from && at < to) {
      out.push(at >= from && end <= to ? piece : partOf(piece, Math.max(0, from - at), Math.min(piece.width, to - at)));
    }
    at = end;
  }
  return out;
}

function partOf({ text: whole, role }: Piece, from: number, to: number): Piece {
  if (isPlainAscii(whole)) return { text: whole.slice(from, to), role, width: to - from };
  let kept = '';
  let at = 0;
  for (const { segment } of graphemes.segment(whole)) {
    const end = at + stringWidth(segment);
    if (at >= from && end <= to) kept += segment;
    else kept += ' '.repeat(Math.max(0, Math.min(end, to) - Math.max(at, from)));
    at = end;
  }
  return { text: kept, role, width: to - from };
}

/** At most so wide; where something is missing an ellipsis says so. */
export function cut(line: Strip, columns: number): Strip {
  if (widthOf(line) <= columns) return line;
  if (columns <= 0) return [];
  const kept = slice(line, 0, columns - 1);
  return [...kept, text('…', kept.at(-1)?.role ?? 'plain')];
}

/** Exactly so wide. */
export function fitted(line: Strip, columns: number, align: 'left' | 'right' = 'left'): Strip {
  const short = cut(line, columns);
  const space = columns - widthOf(short);
  if (space <= 0) return short;
  return align === 'left' ? [...short, blank(space)] : [blank(space), ...short];
}

/** Exactly so wide, one part at each end; the left one is cut where both do not fit. */
export function between(left: Strip, right: Strip, columns: number): Strip {
  const end = cut(right, columns);
  const room = columns - widthOf(end);
  const gap = end.length > 0 ? 2 : 0;
  return [...fitted(cut(left, room - gap), room), ...end];
}

export function joined(parts: readonly Strip[], gap: string): Strip {
  return parts.flatMap((part, at) => (at === 0 ? part : [text(gap), ...part]));
}

/** All in one role, such as the row under the cursor. */
export const inRole = (line: Strip, role: Role): Strip => line.map((piece) => ({ ...piece, role }));

/** `above` laid over `below`, at a place. */
export function over(below: readonly Strip[], above: readonly Strip[], at: { x: number; y: number }): Strip[] {
  return below.map((line, row) => {
    const laid = above[row - at.y];
    if (!laid) return line;
    const end = at.x + widthOf(laid);
    return [...fitted(slice(line, 0, at.x), at.x), ...laid, ...slice(line, end, Math.max(end, widthOf(line)))];
  });
}
