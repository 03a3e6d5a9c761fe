/**
 * A strip: a line of the screen, made of pieces with one role each. All text goes through `text`, so that data cannot contain
 * control sequences for the terminal, and through `cut`, so that no line wraps.
 */
import stringWidth from 'string-width';
import { visible } from '../../console/escape.js';
import type { Role } from './roles.js';

export interface Piece {
  readonly text: string;
  readonly role: Role;
  /** In terminal columns. */
  readonly width: number;
}

export type Strip = readonly Piece[];

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const isPlainAscii = (words: string) => /^[\x20-\x7e]*$/.test(words);

/** Spells out characters of zero width. They would make two names look alike, and terminals render them differently. */
function seen(words: string): string {
  const shown = visible(words);
  let out = '';
  for (const { segment } of graphemes.segment(shown)) {
    out += stringWidth(segment) > 0 ? segment : Array.from(segment, spelt).join('');
  }
  return out;
}
const spelt = (character: string) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

/** @param words untrusted text: control characters are made visible. */
export function text(words: string, role: Role = 'plain'): Piece {
  if (isPlainAscii(words)) return { text: words, role, width: words.length };
  let known = measured.get(words);
  if (!known) {
    const shown = seen(words);
    known = { text: shown, width: stringWidth(shown) };
    if (measured.size >= MAX_MEASURED) measured.clear();
    measured.set(words, known);
  }
  return { ...known, role };
}

/** Cache of measured texts: signs, frames and names recur, and measuring each character is expensive. */
const measured = new Map<string, Pick<Piece, 'text' | 'width'>>();
const MAX_MEASURED = 2_000;

export const blank = (columns: number): Piece => text(' '.repeat(Math.max(0, columns)));

/** Joins words, pieces and strips; null, false and empty parts are skipped. */
export function strip(...parts: readonly (string | Piece | Strip | null | false | undefined)[]): Strip {
  return parts.flatMap((part) => {
    if (part === null || part === false || part === undefined || part === '') return [];
    if (typeof part === 'string') return [text(part)];
    return part;
  });
}

export const widthOf = (line: Strip): number => line.reduce((sum, { width }) => sum + width, 0);

/** The columns from `from` up to `to`. A wide character cut in half becomes a space. */
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

/** Limits the width; an ellipsis marks a cut. */
export function cut(line: Strip, columns: number): Strip {
  if (widthOf(line) <= columns) return line;
  if (columns <= 0) return [];
  const kept = slice(line, 0, columns - 1);
  return [...kept, text('…', kept.at(-1)?.role ?? 'plain')];
}

/** Cuts or pads to the exact width. */
export function fitted(line: Strip, columns: number, align: 'left' | 'right' = 'left'): Strip {
  const short = cut(line, columns);
  const space = columns - widthOf(short);
  if (space <= 0) return short;
  return align === 'left' ? [...short, blank(space)] : [blank(space), ...short];
}

/** Exact width with a part at each end; the left one is cut if both do not fit. */
export function between(left: Strip, right: Strip, columns: number): Strip {
  const end = cut(right, columns);
  const room = columns - widthOf(end);
  const gap = end.length > 0 ? 2 : 0;
  return [...fitted(cut(left, room - gap), room), ...end];
}

export function joined(parts: readonly Strip[], gap: string): Strip {
  return parts.flatMap((part, at) => (at === 0 ? part : [text(gap), ...part]));
}

/** Sets one role for the whole line. */
export const inRole = (line: Strip, role: Role): Strip => line.map((piece) => ({ ...piece, role }));

/** Draws `above` over `below` from a column on. */
export function over(below: Strip, above: Strip, x: number): Strip {
  const end = x + widthOf(above);
  const width = widthOf(below);
  if (x >= width) return strip(below, x > width && blank(x - width), above);
  return [...slice(below, 0, x), ...above, ...slice(below, end, Math.max(end, width))];
}

/** Wraps text at spaces. A word longer than the line is left for the caller to cut. */
export function wrapped(words: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && text(`${last} ${word}`).width <= columns) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(...broken(word, columns));
  }
  return lines;
}

/** A word in parts of the width, such as a URL that is longer than a line. */
function broken(word: string, columns: number): string[] {
  const parts: string[] = [];
  let part = '';
  let width = 0;
  for (const char of word) {
    const own = text(char).width;
    if (width > 0 && width + own > columns) {
      parts.push(part);
      part = '';
      width = 0;
    }
    part += char;
    width += own;
  }
  return [...parts, part];
}
