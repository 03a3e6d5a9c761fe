/** Bars and charts drawn with characters. */
import { barText } from '../../console/bars.js';
import type { Role } from './roles.js';
import { blank, strip, type Strip, text } from './strip.js';

const LEVELS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/** @param share from 0 to 1; any share above 0 is visible. */
export function bar(share: number, columns: number, role: Role, rest = '░'): Strip {
  const words = barText(share, columns);
  return strip(text(words, role), text(rest.repeat(Math.max(0, columns - words.length)), 'faint'));
}

/** A column chart: one column per value, scaled to the highest. Returns its lines from top to bottom. */
export function columnChart(said: readonly number[], rows: number, role: Role): Strip[] {
  const values = said.map((value) => value || 0);
  const most = Math.max(...values);
  return Array.from({ length: rows }, (_, row) => {
    const below = (rows - 1 - row) * 8;
    const signs = values.map((value) => {
      const height = most === 0 ? 0 : Math.round((value / most) * rows * 8);
      return LEVELS[Math.max(0, Math.min(8, Math.max(height, value > 0 ? 1 : 0) - below))] ?? ' ';
    });
    return strip(text(signs.join(''), role));
  });
}

// Bits of the dots of a braille character, from bottom to top, left and right.
const LEFT = [0x40, 0x04, 0x02, 0x01];
const RIGHT = [0x80, 0x20, 0x10, 0x08];

/** An area chart in braille: two values per column, the newest at the right. Returns its lines from top to bottom. */
export function brailleChart(values: readonly number[], columns: number, rows: number, role: Role): Strip[] {
  const shown = values.slice(-columns * 2);
  const most = Math.max(0, ...shown);
  const padded = [...Array.from({ length: columns * 2 - shown.length }, () => 0), ...shown];
  const heights = padded.map((value) =>
    most === 0 ? 0 : Math.max(value > 0 ? 1 : 0, Math.round((value / most) * rows * 4)),
  );
  return Array.from({ length: rows }, (_, row) => {
    const below = (rows - 1 - row) * 4;
    const signs = Array.from({ length: columns }, (__, column) => {
      const dots =
        filled(LEFT, (heights[column * 2] ?? 0) - below) | filled(RIGHT, (heights[column * 2 + 1] ?? 0) - below);
      return dots === 0 ? ' ' : String.fromCodePoint(0x2800 + dots);
    });
    return columns === 0 ? [blank(0)] : strip(text(signs.join(''), role));
  });
}

const filled = (dots: readonly number[], height: number) =>
  dots.reduce((sum, dot, at) => (at < height ? sum + dot : sum), 0);
