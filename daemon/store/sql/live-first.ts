/**
 * The sort order `live` of tokens: two parts, each in the order of an index. First the live tokens, those that expire next on top;
 * then all others, those that expired last on top. Descending order is the exact reverse.
 *
 * A position is the time of expiry: as it is for the first part, negated for the second.
 */
import type { PageOf, PageRequest, Position, TokenRow } from '../../core/ports.js';

interface Part {
  isLive: boolean;
  descending: boolean;
  page: PageRequest;
  /** Of both parts together, once known. */
  total?: number | null;
}

/** @param list reads a page of one part. */
export async function liveFirst(
  { limit, after }: PageRequest,
  isReverse: boolean,
  list: (part: Part) => Promise<PageOf<TokenRow>>,
): Promise<PageOf<TokenRow>> {
  const isLive = !isReverse;
  const isInSecond = after !== null && isLivePosition(after) !== isLive;
  const from = after && { ...after, value: Math.abs(Number(after.value)) };
  const read = (of: boolean, page: PageRequest, total?: number | null) =>
    list({ isLive: of, descending: of === isReverse, page, ...(total !== undefined && { total }) });

  if (isInSecond) return placed(await read(!isLive, { limit, after: from }), !isLive);
  const first = placed(await read(isLive, { limit, after: from }), isLive);
  if (first.next !== null || first.total === 0) return first;
  const room = limit - first.rows.length;
  // If the first part exactly fills the page, one more row is read only to know whether there is a second part.
  const rest = placed(await read(!isLive, { limit: Math.max(1, room), after: null }, first.total), !isLive);
  if (room > 0) return { ...rest, rows: [...first.rows, ...rest.rows] };
  const last = first.rows.at(-1);
  return rest.rows.length === 0 || !last ? first : { ...first, next: positionOf(last, isLive) };
}

const isLivePosition = ({ value }: Position) => Number(value) >= 0;

const positionOf = ({ token: { id, expiresAtMs } }: TokenRow, isLive: boolean): Position => ({
  value: isLive ? expiresAtMs : -expiresAtMs,
  id,
});

/** Converts the next position of a part to a position in the whole list. */
function placed(page: PageOf<TokenRow>, isLive: boolean): PageOf<TokenRow> {
  const last = page.rows.at(-1);
  return page.next === null || !last ? page : { ...page, next: positionOf(last, isLive) };
}
