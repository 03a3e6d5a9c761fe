/** A framed panel in the middle of the screen. */
import { type Framed, framed } from '../parts/frame.js';
import { type Area } from '../parts/list.js';
import { indent } from '../parts/columns.js';
import { over, type Strip, widthOf } from '../parts/strip.js';

export interface Panel extends Framed {
  lines: readonly Strip[];
  /** Width, if there is room. Default: that of the widest line. */
  columns?: number;
}

/** Draws the panel over the screen. */
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

/** The screen below is dimmed, because it does not receive the keys. */
const quiet = (line: Strip): Strip => line.map((piece) => ({ ...piece, role: 'faint' }));
