/** The filter of the list of tokens, and the token in the filters of other lists. */
import { isSameName, MS_PER_UNIT, SPAN_PATTERN, spanMs, UUID_PATTERN } from '../api/vocabulary.js';
import { hoursOf, invalidRequest, parametersOf } from './page-request.js';
import { type Box, combined } from './query-box.js';
import type { ManagementClient } from '../api/client.js';

const FIELDS = ['project_id', 'state', 'used_over', 'idle_over', 'errors_over', 'model', 'left_under'] as const;
/** What a query can select by besides. */
const QUERIED = [
  'q',
  'words',
  'used_under',
  'allows',
  'limited',
  'budget',
  'spent_over',
  'spent_under',
  'left_over',
  'issued_by',
] as const;
const TIMES = ['expires_before', 'expires_after', 'created_before', 'created_after'] as const;

/** A query of the API. */
export type TokenFilter = Record<string, string>;

/**
 * @param query of the page. Its relative times stay relative: a cursor is valid for the same filter only.
 * @param box the query box of the page.
 * @throws {ApiError} if a time or the query is invalid. The API checks the rest.
 */
export function tokenFilterOf(query: URLSearchParams, box: Box<'tokens'>): TokenFilter {
  const fields = { ...parametersOf(query, FIELDS), ...expiryOf(query), ...creationOf(query) };
  return combined<'tokens', TokenFilter>(box, fields);
}

/** `24`: tokens that expire within 24 hours, but have not expired yet. */
function expiryOf(query: URLSearchParams): TokenFilter {
  const within = hoursOf(query, 'expires_within');
  return within === undefined ? {} : { expires_before: within, expires_after: '0s' };
}

const CREATED = new RegExp(`^([<>])(${SPAN_PATTERN})$`);

/** `<7d`: tokens that were created in the last 7 days; `>30d`: more than 30 days ago. The terminal UI writes it in the same way. */
function creationOf(query: URLSearchParams): TokenFilter {
  const { created } = parametersOf(query, ['created']);
  if (created === undefined) return {};
  const [, side, span] = CREATED.exec(created) ?? [];
  if (side === undefined || span === undefined) throw invalidRequest('created must be like <7d or >30d');
  return side === '<' ? { created_after: span } : { created_before: span };
}

/** The filter with absolute times, so that it means the same tokens later. Only `idle_over` is always relative. */
export function asOf(filter: TokenFilter, nowMs: number): TokenFilter {
  return Object.fromEntries(
    Object.entries(filter).map(([name, value]) => {
      const ms = TIMES.some((time) => time === name) ? spanMs(value) : undefined;
      if (ms === undefined) return [name, value];
      return [name, timeShown(nowMs + (name.startsWith('created') ? -ms : ms))];
    }),
  );
}

/** @throws {ApiError} if the time is so far away that it has no date. */
function timeShown(ms: number): string {
  if (Math.abs(ms) > MAX_YEARS * 366 * MS_PER_UNIT.d) throw invalidRequest('the time is too far away');
  return new Date(ms).toISOString();
}
const MAX_YEARS = 1_000;

/** A filter as one field of a form, so that a confirmation means the same tokens as the page before it. */
export const asField = (filter: TokenFilter): string => new URLSearchParams(filter).toString();

export const fromField = (field: string): TokenFilter =>
  parametersOf(new URLSearchParams(field), [...FIELDS, ...QUERIED, ...TIMES]);

/**
 * Lets people name a token in a filter, where the API wants an ID.
 *
 * @param filter may have a `token_id` that is a name, a part of one, or the beginning of an ID.
 * @returns the filter with the ID of that token. @throws {ApiError} if no token matches, or several do.
 */
export async function withTokenId<T extends Record<string, string>>(client: ManagementClient, filter: T): Promise<T> {
  const { token_id: given } = filter;
  if (given === undefined || UUID_PATTERN.test(given)) return filter;
  const { items, next } = await client.tokens({ q: given });
  const named = items.filter(({ name }) => isSameName(name, given));
  const [token, ...others] = named.length > 0 ? named : items;
  if (!token) throw invalidRequest('no token has this name or ID');
  if (others.length > 0 || next !== null) {
    throw invalidRequest('several tokens match this name or ID: enter the whole name, or more of the ID');
  }
  return { ...filter, token_id: token.id };
}
