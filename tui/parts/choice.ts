/** A list of which one is chosen: as much of it as there is room for, around the one that is selected. */
import { fitted, strip, type Strip } from './strip.js';
import { selected as bar } from './list.js';

/** @param at which is selected; the list scrolls so that it is to be seen. */
export function choiceLines(lines: readonly Strip[], at: number, columns: number, rows: number): Strip[] {
  const top = topOf(lines.length, at, rows);
  return lines.slice(top, top + rows).map((line, row) => {
    const isSelected = top + row === at;
    const whole = fitted(strip(isSelected ? '> ' : '  ', line), columns);
    return isSelected ? bar(whole) : whole;
  });
}

/** The first that is seen. */
export const topOf = (length: number, at: number, rows: number) =>
  Math.max(0, Math.min(length - rows, at - Math.floor(rows / 2)));
