/** A frame around lines, with a title above, a word below, and a bar at its right edge where there is more than fits. */
import { blank, cut, fitted, strip, type Strip, text, widthOf } from './strip.js';

export interface Framed {
  title?: Strip;
  /** In the lower edge, at the right. */
  foot?: Strip;
  /** What part of a whole is seen. */
  scroll?: Scroll;
}

export interface Scroll {
  top: number;
  shown: number;
  of: number;
  /** Lines above those that scroll, such as the titles of columns. */
  fixed?: number;
}

/** Exactly `rows` lines of `columns` columns; what does not fit inside is cut off. */
export function framed(lines: readonly Strip[], columns: number, rows: number, frame: Framed = {}): Strip[] {
  if (rows < 2 || columns < 4) return Array.from({ length: Math.max(0, rows) }, () => [blank(columns)]);
  const inside = Array.from({ length: rows - 2 }, (_, row) =>
    strip(text('│', 'faint'), fitted(lines[row] ?? [], columns - 2), edge(row, rows - 2, frame.scroll)),
  );
  return [above(columns, frame.title ?? []), ...inside, below(columns, frame.foot ?? [])];
}

function above(columns: number, title: Strip): Strip {
  const words = title.length === 0 ? [] : strip(' ', cut(title, columns - 6), ' ');
  return strip(text('┌', 'faint'), words, rule(columns - 2 - widthOf(words)), text('┐', 'faint'));
}

function below(columns: number, foot: Strip): Strip {
  const words = foot.length === 0 ? [] : strip(' ', cut(foot, columns - 8), ' ');
  const after = words.length === 0 ? 0 : 1;
  return strip(
    text('└', 'faint'),
    rule(columns - 2 - after - widthOf(words)),
    words,
    rule(after),
    text('┘', 'faint'),
  );
}

const rule = (columns: number) => text('─'.repeat(Math.max(0, columns)), 'faint');

function edge(row: number, rows: number, scroll: Scroll | undefined) {
  if (!scroll || scroll.of <= scroll.shown) return text('│', 'faint');
  const at = row - (scroll.fixed ?? 0);
  const length = rows - (scroll.fixed ?? 0);
  const size = Math.max(1, Math.round((length * scroll.shown) / scroll.of));
  const most = Math.max(1, scroll.of - scroll.shown);
  const start = Math.round(((length - size) * Math.min(scroll.top, most)) / most);
  return at >= start && at < start + size ? text('█') : text('│', 'faint');
}
