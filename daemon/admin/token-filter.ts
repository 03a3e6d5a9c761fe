/** The filter of the list of tokens. */
import { parametersOf, timeFromHours } from './page-request.js';

const NAMES = ['q', 'project_id', 'state', 'used_over'] as const;
const TIMES = ['expires_before', 'expires_after'] as const;

/** A query of the API. */
export type TokenFilter = Record<string, string>;

/** @param query of the page. Its relative times become absolute. */
export function tokenFilterOf(query: URLSearchParams, nowMs: number): TokenFilter {
  const expiresBefore = timeFromHours(nowMs, query.get('expires_within'), 1);
  return {
    ...parametersOf(query, NAMES),
    ...(expiresBefore && { expires_before: expiresBefore, expires_after: new Date(nowMs).toISOString() }),
  };
}

/** A filter as one field of a form, so that a confirmation means the same tokens as the page before it. */
export const asField = (filter: TokenFilter): string => new URLSearchParams(filter).toString();

export const fromField = (field: string): TokenFilter => parametersOf(new URLSearchParams(field), [...NAMES, ...TIMES]);
