/** What comes one after the other, in its frame: the newest at the bottom, one of them open below. */
import { cells, type Column, laid, titles } from '../parts/columns.js';
import { exact } from '../parts/figures.js';
import { framed } from '../parts/frame.js';
import { type Area, selected } from '../parts/list.js';
import { cut, fitted, joined, strip, type Strip, text } from '../parts/strip.js';
import { type Feed, type Happened, indexOf, seen } from '../state/feed.js';
import { feedRows } from '../state/rows.js';
import type { State } from '../state/state.js';

interface Fed<T extends Happened> {
  feed: Feed<T>;
  columns: readonly Column<T>[];
  /** All of one item, a line each. */
  linesOf: (item: T, columns: number) => Strip[];
  nothing: readonly (string | Strip)[];
}

const BEFORE = 2;

export function fed<T extends Happened>(state: State, list: Fed<T>, area: Area): Strip[] {
  const { feed } = list;
  const columns = laid(list.columns, area.columns - BEFORE - 3);
  const rows = feedRows(state, feed);
  const { items, from } = seen(feed, rows);
  const index = indexOf(feed);
  const head = strip(' '.repeat(BEFORE), titles(columns));
  const lines = items.map((item, at) => {
    const line = strip(from + at === index ? '> ' : '  ', cells(columns, item));
    return from + at === index ? selected(fitted(line, area.columns - 2)) : line;
  });
  const empty = [[], ...list.nothing.map((line) => strip('   ', line))];
  const inside = [head, ...(items.length === 0 ? empty : lines)];
  return framed([...inside, ...open(list, inside.length, rows, area)], area.columns, area.rows, {
    foot: foot(feed),
    scroll: { top: from, shown: rows, of: feed.items.length, fixed: 1, rows },
  });
}

/** The one that is looked at closely, in what is left of the frame. */
function open<T extends Happened>({ feed, linesOf }: Fed<T>, above: number, rows: number, area: Area): Strip[] {
  const item = feed.opened;
  if (!item) return [];
  const columns = area.columns - 4;
  const gap = Array.from({ length: Math.max(0, rows + 1 - above) }, () => []);
  const rule = strip(' ', text('─'.repeat(columns), 'faint'));
  return [...gap, rule, ...linesOf(item, columns).map((line) => strip(' ', cut(line, columns)))];
}

function foot({ items, aside, isFollowing, unseen, stream, isReadingOlder }: Feed<{ id: string }>): Strip {
  const said = [
    stream === 'lost' && strip(text('the stream is lost', 'warning')),
    isReadingOlder && strip('reading what is older …'),
    unseen > 0 && strip(text(`${exact(unseen)} new below, G`, 'accent')),
    unseen === 0 && isFollowing && items.length > 0 && strip('following'),
    items.length > 0 && strip(`${exact(items.length)} read`),
    aside.length > 0 && strip(`${exact(aside.length)} filtered out`),
  ].filter((it) => it !== false);
  return joined(said, ' · ');
}
