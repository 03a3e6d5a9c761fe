/** Bars and charts drawn with characters. */
import { barText } from '../../console/bars.js';
import type { Role } from './roles.js';
import { strip, type Strip, text } from './strip.js';

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
