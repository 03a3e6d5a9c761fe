/** A list with a selected line, scrolled so that the selected line is visible. */
import { fitted, strip, type Strip } from './strip.js';
import { selected as bar } from './list.js';

/** @param at index of the selected line. */
export function choiceLines(lines: readonly Strip[], at: number, columns: number, rows: number): Strip[] {
  const top = topOf(lines.length, at, rows);
  return lines.slice(top, top + rows).map((line, row) => {
    const isSelected = top + row === at;
    const whole = fitted(strip(isSelected ? '> ' : '  ', line), columns);
    return isSelected ? bar(whole) : whole;
  });
}

/** Index of the first visible line. */
export const topOf = (length: number, at: number, rows: number) =>
  Math.max(0, Math.min(length - rows, at - Math.floor(rows / 2)));
