/** A list with a selected entry, scrolled so that the selected entry is visible. */
import { fitted, strip, type Strip, widthOf, wrapped } from './strip.js';
import { selected as bar } from './list.js';

/** Entries of one line each. @param at index of the selected entry. */
export const choiceLines = (entries: readonly Strip[], at: number, columns: number, rows: number): Strip[] =>
  choiceBlocks(
    entries.map((line) => [line]),
    at,
    columns,
    rows,
  );

/** Entries of one or more lines each. @param at index of the selected entry. */
export function choiceBlocks(
  entries: readonly (readonly Strip[])[],
  at: number,
  columns: number,
  rows: number,
): Strip[] {
  const before = entries.slice(0, at).reduce((sum, { length }) => sum + length, 0);
  const lines = entries.flatMap((block, index) => block.map((line, row) => ({ line, row, isSelected: index === at })));
  const last = before + Math.max(0, (entries[at]?.length ?? 1) - 1);
  // The first line of the selected entry is visible, and the others if there is room.
  const top = Math.min(before, Math.max(topOf(lines.length, before, rows), last - rows + 1));
  return lines.slice(top, top + rows).map(({ line, row, isSelected }) => {
    const whole = fitted(strip(isSelected && row === 0 ? '> ' : '  ', line), columns);
    return isSelected ? bar(whole) : whole;
  });
}

/** Below this width a wrapped text is harder to read than a cut one. */
const MIN_WRAPPED_COLUMNS = 16;

/** A text after a head. Its further lines are indented by the width of the head. */
export function hanging(head: Strip, words: string, columns: number, drawn: (line: string) => Strip): Strip[] {
  const indent = ' '.repeat(widthOf(head));
  const room = columns - indent.length;
  const lines = room < MIN_WRAPPED_COLUMNS ? [words] : wrapped(words, room);
  return lines.map((line, at) => strip(at === 0 ? head : indent, drawn(line)));
}

/** Index of the first visible line. */
export const topOf = (length: number, at: number, rows: number) =>
  Math.max(0, Math.min(length - rows, at - Math.floor(rows / 2)));
