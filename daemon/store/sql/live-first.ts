/**
 * The order `live` of tokens: a list of two parts, each of which an index holds in order. First the live tokens, those that expire
 * next on top; then all others, those that expired last on top. Backwards it is the exact reverse.
 *
 * A position is the time of expiry: of the first part as it is, of the second below zero.
 */
import type { PageOf, PageRequest, Position, TokenRow } from '../../core/ports.js';

interface Part {
  isLive: boolean;
  descending: boolean;
  page: PageRequest;
  /** Of both parts together, once it is known. */
  total?: number | null;
}

/** @param list a page of one part. */
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
  // Where the first part fills the page to its end, one more row is read only to know whether there is a second part.
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

/** With its next position as one of the whole list. */
function placed(page: PageOf<TokenRow>, isLive: boolean): PageOf<TokenRow> {
  const last = page.rows.at(-1);
  return page.next === null || !last ? page : { ...page, next: positionOf(last, isLive) };
}
