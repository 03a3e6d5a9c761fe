/** A feed in a pane: the newest item at the bottom, the details of an item below. */
import { exact } from '../../daemon/api/formats.js';
import { cells, type ListColumn, sizedColumns, titles } from '../parts/columns.js';
import { Drawing } from '../parts/drawing.js';
import { emptyListLines, selected } from '../parts/list.js';
import { Pane, rule } from '../parts/pane.js';
import { fitted, joined, strip, type Strip, text } from '../parts/strip.js';
import { type Feed, type FeedItem, indexOf, visibleItems } from '../state/feed.js';
import { feedRows } from '../state/rows.js';
import type { State } from '../state/state.js';

interface FeedProps<T extends FeedItem> {
  state: State;
  feed: Feed<T>;
  columns: readonly ListColumn<T>[];
  /** The details of an item. */
  linesOf: (item: T, columns: number) => Strip[];
  emptyLines: readonly (string | Strip)[];
}

const BEFORE = 2;

export function FeedPane<T extends FeedItem>({ state, feed, columns, linesOf, emptyLines }: FeedProps<T>) {
  const { opened } = feed;
  const rows = feedRows(state, feed);
  const details = opened && <Drawing flexGrow={1} marginX={1} draw={(width) => linesOf(opened, width)} />;
  // There is no room for both.
  if (rows === 0) return <Pane foot={foot(feed)}>{details}</Pane>;
  const { items, from } = visibleItems(feed, rows);
  const draw = (width: number): Strip[] => {
    const sized = sizedColumns(columns, width - BEFORE - 1, feed.items);
    const head = strip(' '.repeat(BEFORE), titles(sized));
    if (items.length === 0) return [head, ...emptyListLines(emptyLines)];
    const index = indexOf(feed) - from;
    const row = (item: T, at: number) =>
      at === index ? selected(fitted(strip('> ', cells(sized, item)), width)) : strip('  ', cells(sized, item));
    return [head, ...items.map(row)];
  };
  return (
    <Pane foot={foot(feed)} scroll={{ top: from, shown: rows, of: feed.items.length, fixed: 1, rows }}>
      <Drawing height={rows + 1} flexShrink={0} draw={draw} />
      {opened && <Drawing height={1} marginX={1} draw={(width) => [[rule(width)]]} />}
      {details}
    </Pane>
  );
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
