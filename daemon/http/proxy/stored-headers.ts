/** Headers of responses that are written to the cache or read from it. */
import type { ResponseHead } from '../../core/cache/caching.js';
import { fieldsOf } from '../../core/cache/field-values.js';
import type { StoredResponse } from '../../core/ports.js';
import type { Ages } from '../../core/cache/request-directives.js';
import { connectionOptions, memoizedByName } from '../request-head.js';
import {
  connectionOf,
  EVENT_STREAM,
  latin1,
  namesKey,
  type ProxyHeaderValues,
  pushProxyHeaders,
  isStripped,
  withoutKey,
} from './headers.js';

// These describe one transfer or one moment. Headers that are never sent to clients are not stored either (`isStripped`).
const NOT_STORED = new Set(['age', 'content-length', 'server-timing', 'x-request-id']);

const isStored = memoizedByName<boolean>((lower) => !isStripped(lower) && !NOT_STORED.has(lower));

export interface StorableHead {
  head: ResponseHead;
  /** Headers to store: names and values in turn. */
  headers: string[];
}

/**
 * @param rawHeaders names and values in turn, as the upstream sent them.
 * @param upstreamKey the project's key, masked in all values.
 * @param nowMs wall-clock time, used as the date of a response without `Date` (RFC 9110, 6.6.1).
 */
export function storableHeadOf(
  status: number,
  rawHeaders: readonly Buffer[],
  upstreamKey: string,
  nowMs: number,
): StorableHead {
  const all = rawHeaders.map((bytes) => withoutKey(latin1(bytes), upstreamKey));
  const fields = fieldsOf(all);
  const named = connectionOptions(connectionOf(rawHeaders));
  const headers: string[] = [];
  for (let i = 0; i < all.length; i += 2) {
    const name = all[i] ?? '';
    if (!isStored(name) || named?.has(name.toLowerCase()) || namesKey(latin1(rawHeaders[i]), upstreamKey)) continue;
    headers.push(name, all[i + 1] ?? '');
  }
  // A cache hit repeats this date. With the current date, caches in front of this proxy would add the response's age to the lifetime that
  // `Expires` states.
  if (!fields.has('date')) headers.push('Date', new Date(nowMs).toUTCString());
  return {
    head: { status, fields, isFramed: fields.has('content-length') || fields.has('transfer-encoding') },
    headers,
  };
}

/** Headers of a stored response as if the upstream had just sent it. */
export const asUpstreamHeaders = ({ headers, body }: StoredResponse): Buffer[] =>
  [...headers, 'Content-Length', String(body.length)].map((text) => Buffer.from(text, 'latin1'));

// Headers that a 304 repeats. The others describe the body, which it does not have (RFC 9110, 15.4.5).
const SENT_WITH_304 = new Set([
  'cache-control',
  'content-location',
  'date',
  'etag',
  'expires',
  'last-modified',
  'vary',
]);

/** Headers of a response from the cache. @param status 304 if the client already has the body. @returns names and values in turn. */
export function replayHeaders(stored: StoredResponse, status: number, ages: Ages, facts: ProxyHeaderValues): string[] {
  const { headers, body } = stored;
  const list: string[] = [];
  let vary = '';
  let cacheStatus = '';
  let isEventStream = false;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    const kind = kindOf(name);
    if (status === 304 && (kind === 'entity' || kind === 'content-type')) continue;
    if (kind === 'vary') vary += `${value}, `;
    else if (kind === 'cache-status') cacheStatus += `${value}, `;
    else list.push(name, value);
    if (kind === 'content-type') isEventStream = EVENT_STREAM.test(value);
  }
  if (status !== 304) list.push('Content-Length', String(body.length));
  list.push('X-PROXY-CACHE', 'hit', 'Age', seconds(ages.ageMs));
  list.push('Cache-Status', `${cacheStatus}llmp; hit; ttl=${seconds(ages.freshForMs)}`);
  pushProxyHeaders(list, facts, vary, isEventStream && status !== 304);
  return list;
}

const kindOf = memoizedByName((lower) => {
  if (lower === 'vary' || lower === 'cache-status') return lower;
  if (SENT_WITH_304.has(lower)) return 'any';
  return lower === 'content-type' ? 'content-type' : 'entity';
});

const seconds = (ms: number) => String(Math.max(0, Math.floor(ms / 1000)));
