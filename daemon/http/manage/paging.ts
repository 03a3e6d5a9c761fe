/** Paging of lists: `Link` has the next page, `X-Total-Count` the total number of entries. */
import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import type { PageOf, PageRequest, Position } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';

/** The paging parameters of a list's query; its other parameters filter or sort. */
export interface ListQuery {
  limit: number;
  cursor?: string | undefined;
  sort?: string | undefined;
}

/** Identity of a list with its order and filters. */
interface Listing {
  digest: string;
  sortsText: boolean;
}

export function pageRequest(path: string, query: ListQuery): PageRequest {
  const after = query.cursor === undefined ? null : positionOf(query.cursor, listing(path, query));
  return { limit: query.limit, after };
}

/** Sets the paging headers. The body of a page is a plain array. */
export function setPaging(req: Request, res: Response, path: string, query: ListQuery, page: PageOf<unknown>): void {
  if (page.total !== null) res.setHeader('X-Total-Count', String(page.total));
  if (!page.next) return;
  const next = new URL(req.originalUrl, 'http://daemon');
  next.searchParams.set('cursor', cursorOf(page.next, listing(path, query)));
  res.setHeader('Link', `<${next.pathname}${next.search}>; rel="next"`);
}

/**
 * A cursor is valid only for its list, order and filters; only `limit` may change between pages. With other filters, it would silently
 * skip entries before its position.
 */
function listing(path: string, { limit: _limit, cursor: _cursor, ...rest }: ListQuery): Listing {
  const what = JSON.stringify([path, ...Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1))]);
  const digest = createHash('sha256').update(what).digest('base64url').slice(0, 16);
  // All other sort fields are numbers: counts, and times in milliseconds.
  return { digest, sortsText: rest.sort?.replace(/^-/, '') === 'name' };
}

function cursorOf({ value, id }: Position, { digest }: Listing): string {
  return Buffer.from(JSON.stringify([digest, value, id])).toString('base64url');
}

function positionOf(cursor: string, { digest, sortsText }: Listing): Position {
  const parts = parsedCursor(cursor);
  if (Array.isArray(parts) && parts.length === 3) {
    const [of, value, id] = parts as unknown[];
    const isValue = sortsText ? typeof value === 'string' : Number.isSafeInteger(value);
    if (of === digest && isValue && typeof id === 'string') return { value: value as string | number, id };
  }
  throw new Refusal(
    'invalid_request',
    'cursor must be the cursor of a Link header of the same list, with the same filters and order',
  );
}

function parsedCursor(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown;
  } catch {
    return null;
  }
}
