/** Shows the place of a problem in a query. */
import widthOf from 'string-width';
import { visible } from '../escape.js';
import { SECRET } from './filter.js';
import type { FilterProblem } from './types.js';

const WIDTH = 72;
const CONTEXT = 24;

/** The line and a mark below the place of the problem. Of a long line, only the part around it. Nothing of a line with a secret. */
export function placeOf({ at, length }: FilterProblem, line: string): string[] {
  if (SECRET.test(line)) return [];
  const from = line.length <= WIDTH ? 0 : Math.max(0, at - CONTEXT);
  const cut = (start: number, end: number) => visible(line.slice(start, end));
  const before = (from > 0 ? '...' : '') + cut(from, at);
  const marked = cut(at, Math.min(at + length, from + WIDTH));
  const after = cut(at + length, from + WIDTH) + (line.length > from + WIDTH ? '...' : '');
  const mark = '^'.repeat(Math.max(1, widthOf(marked)));
  return [before + marked + after, ' '.repeat(widthOf(before)) + mark];
}
