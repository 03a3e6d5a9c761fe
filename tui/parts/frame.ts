/** A frame around lines, with a title at the top, a note at the bottom, and a scroll bar at the right edge. */
import type { Role } from './roles.js';
import { blank, cut, fitted, strip, type Strip, text, widthOf } from './strip.js';

export interface Framed {
  title?: Strip;
  /** Note in the lower edge, at the right. */
  foot?: Strip;
  /** The visible part, for the scroll bar. */
  scroll?: Scroll;
  /** Role of the frame itself. */
  role?: Role;
}

export interface Scroll {
  top: number;
  shown: number;
  of: number;
  /** Number of fixed lines above the scrolling ones, such as column titles. */
  fixed?: number;
  /** Number of lines that scroll, if other lines follow them. */
  rows?: number;
}

/** Returns exactly `rows` lines of `columns` columns; content that does not fit is cut off. */
export function framed(lines: readonly Strip[], columns: number, rows: number, frame: Framed = {}): Strip[] {
  if (rows < 2 || columns < 4) return Array.from({ length: Math.max(0, rows) }, () => [blank(columns)]);
  const role = frame.role ?? 'faint';
  const inside = Array.from({ length: rows - 2 }, (_, row) =>
    strip(text('│', role), fitted(lines[row] ?? [], columns - 2), edge(row, rows - 2, frame)),
  );
  return [above(columns, frame.title ?? [], role), ...inside, below(columns, frame.foot ?? [], role)];
}

function above(columns: number, title: Strip, role: Role): Strip {
  const words = title.length === 0 ? [] : strip(' ', cut(title, columns - 6), ' ');
  return strip(text('┌', role), words, rule(columns - 2 - widthOf(words), role), text('┐', role));
}

function below(columns: number, foot: Strip, role: Role): Strip {
  const words = foot.length === 0 ? [] : strip(' ', cut(foot, columns - 8), ' ');
  const after = words.length === 0 ? 0 : 1;
  return strip(
    text('└', role),
    rule(columns - 2 - after - widthOf(words), role),
    words,
    rule(after, role),
    text('┘', role),
  );
}

const rule = (columns: number, role: Role) => text('─'.repeat(Math.max(0, columns)), role);

function edge(row: number, rows: number, { scroll, role = 'faint' }: Framed) {
  if (!scroll || scroll.of <= scroll.shown) return text('│', role);
  const at = row - (scroll.fixed ?? 0);
  const length = scroll.rows ?? rows - (scroll.fixed ?? 0);
  const size = Math.max(1, Math.round((length * scroll.shown) / scroll.of));
  const most = Math.max(1, scroll.of - scroll.shown);
  const start = Math.round(((length - size) * Math.min(scroll.top, most)) / most);
  return at >= start && at < start + size ? text('█') : text('│', role);
}
