/** What lies above a screen: lines in a frame of their own, in the middle. */
import { type Framed, framed } from '../parts/frame.js';
import { type Area } from '../parts/list.js';
import { indent } from '../parts/columns.js';
import { over, type Strip, widthOf } from '../parts/strip.js';

export interface Panel extends Framed {
  lines: readonly Strip[];
  /** So wide where there is room; as wide as the widest line unless given. */
  columns?: number;
}

/** Over what is below, of which as much stays in sight as there is room for. */
export function above(below: readonly Strip[], { lines, columns, ...frame }: Panel, area: Area): Strip[] {
  const widest = Math.max(columns ?? 0, ...lines.map(widthOf), widthOf(frame.title ?? []) + 4);
  const width = Math.min(area.columns, widest + 4);
  const height = Math.min(area.rows, lines.length + 2);
  const at = { x: Math.floor((area.columns - width) / 2), y: Math.floor((area.rows - height) / 3) };
  const panel = framed(
    lines.map((line) => indent(line)),
    width,
    height,
    { role: 'plain', ...frame },
  );
  return over(below.map(quiet), panel, at);
}

/** What is below is not what has the keys. */
const quiet = (line: Strip): Strip => line.map((piece) => ({ ...piece, role: 'faint' }));
