/** A feed in a frame: the newest item at the bottom, the details of an item below. */
import { cells, type ListColumn, sizedColumns, titles } from '../parts/columns.js';
import { exact } from '../../daemon/api/formats.js';
import { framed } from '../parts/frame.js';
import { type Area, selected } from '../parts/list.js';
import { cut, fitted, joined, strip, type Strip, text } from '../parts/strip.js';
import { type Feed, type FeedItem, indexOf, visibleItems } from '../state/feed.js';
import { feedRows } from '../state/rows.js';
import type { State } from '../state/state.js';

interface FeedOptions<T extends FeedItem> {
  feed: Feed<T>;
  columns: readonly ListColumn<T>[];
  /** The details of an item. */
  linesOf: (item: T, columns: number) => Strip[];
  emptyLines: readonly (string | Strip)[];
}

const BEFORE = 2;

export function feedFrame<T extends FeedItem>(state: State, list: FeedOptions<T>, area: Area): Strip[] {
  const { feed, linesOf } = list;
  const rows = feedRows(state, feed);
  if (rows === 0 && feed.opened !== null) {
    const lines = linesOf(feed.opened, area.columns - 4).map((line) => strip(' ', cut(line, area.columns - 4)));
    return framed(lines, area.columns, area.rows, { foot: foot(feed) });
  }
  const columns = sizedColumns(list.columns, area.columns - BEFORE - 3, feed.items);
  const { items, from } = visibleItems(feed, rows);
  const index = indexOf(feed);
  const head = strip(' '.repeat(BEFORE), titles(columns));
  const lines = items.map((item, at) => {
    const line = strip(from + at === index ? '> ' : '  ', cells(columns, item));
    return from + at === index ? selected(fitted(line, area.columns - 2)) : line;
  });
  const empty = [[], ...list.emptyLines.map((line) => strip('   ', line))];
  const inside = [head, ...(items.length === 0 ? empty : lines)];
  return framed([...inside, ...detail(list, inside.length, rows, area)], area.columns, area.rows, {
    foot: foot(feed),
    scroll: { top: from, shown: rows, of: feed.items.length, fixed: 1, rows },
  });
}

/** The details of the open item, in the rest of the frame. */
function detail<T extends FeedItem>(
  { feed, linesOf }: FeedOptions<T>,
  above: number,
  rows: number,
  area: Area,
): Strip[] {
  const item = feed.opened;
  if (!item) return [];
  const columns = area.columns - 4;
  const gap = Array.from({ length: Math.max(0, rows + 1 - above) }, () => []);
  const rule = strip(' ', text('─'.repeat(columns), 'faint'));
  return [...gap, rule, ...linesOf(item, columns).map((line) => strip(' ', cut(line, columns)))];
}

function foot({ items, isFollowing, unseen, stream, isReadingOlder }: Feed<{ id: string }>): Strip {
  const said = [
    stream === 'lost' && strip(text('stream disconnected', 'warning')),
    isReadingOlder && strip('loading older entries …'),
    unseen > 0 && strip(text(`${exact(unseen)} new below (G)`, 'accent')),
    unseen === 0 && isFollowing && items.length > 0 && strip('following'),
    items.length > 0 && strip(`${exact(items.length)} loaded`),
  ].filter((it) => it !== false);
  return joined(said, ' · ');
}
