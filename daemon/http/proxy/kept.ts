/** Answers on their way into the cache and out of it: their header fields. */
import type { AnswerHead } from '../../core/cache/caching.js';
import { fieldsOf } from '../../core/cache/field-values.js';
import type { KeptAnswer } from '../../core/ports.js';
import type { Ages } from '../../core/cache/wish.js';
import { namedByConnection, remembering } from '../fields.js';
import { connectionOf, EVENT_STREAM, latin1, type OwnFacts, pushOwn, staysHere } from './headers.js';

// Of the answer as it came, or of the moment; the rest of what is not kept is not sent back either.
const OF_ITS_TIME = new Set(['age', 'content-length', 'server-timing', 'x-request-id']);

const isKept = remembering<boolean>((lower) => !staysHere(lower) && !OF_ITS_TIME.has(lower));

export interface Keepable {
  head: AnswerHead;
  /** Those to keep, names and values in turn. */
  headers: string[];
}

/**
 * @param rawHeaders names and values in turn, as the upstream sent them.
 * @param nowMs wall time: the date of an answer without one (RFC 9110, 6.6.1).
 */
export function keepableOf(status: number, rawHeaders: readonly Buffer[], nowMs: number): Keepable {
  const all = rawHeaders.map((bytes) => latin1(bytes));
  const fields = fieldsOf(all);
  const named = namedByConnection(connectionOf(rawHeaders));
  const headers: string[] = [];
  for (let i = 0; i < all.length; i += 2) {
    const name = all[i] ?? '';
    if (isKept(name) && !named?.has(name.toLowerCase())) headers.push(name, all[i + 1] ?? '');
  }
  // A hit repeats it: with today's date, caches behind us would add its age to the lifetime that `Expires` states.
  if (!fields.has('date')) headers.push('Date', new Date(nowMs).toUTCString());
  return {
    head: { status, fields, isFramed: fields.has('content-length') || fields.has('transfer-encoding') },
    headers,
  };
}

/** A kept answer as if the upstream had sent it just now. */
export const asSent = ({ headers, body }: KeptAnswer): Buffer[] =>
  [...headers, 'Content-Length', String(body.length)].map((text) => Buffer.from(text, 'latin1'));

// What a 304 says; the rest belongs to the body that it does not bring (RFC 9110, 15.4.5).
const OF_NOT_MODIFIED = new Set([
  'cache-control',
  'content-location',
  'date',
  'etag',
  'expires',
  'last-modified',
  'vary',
]);

/** What a client gets of a kept answer. @param status 304 when it holds it already. @returns names and values in turn. */
export function replayHeaders(answer: KeptAnswer, status: number, ages: Ages, facts: OwnFacts): string[] {
  const { headers, body } = answer;
  const list: string[] = [];
  let vary = '';
  let cacheStatus = '';
  let isEventStream = false;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    const kind = kindOf(name);
    if (kind === 'dropped' || (status === 304 && (kind === 'entity' || kind === 'content-type'))) continue;
    if (kind === 'vary') vary += `${value}, `;
    else if (kind === 'cache-status') cacheStatus += `${value}, `;
    else list.push(name, value);
    if (kind === 'content-type') isEventStream = EVENT_STREAM.test(value);
  }
  if (status !== 304) list.push('Content-Length', String(body.length));
  list.push('X-PROXY-CACHE', 'hit', 'Age', seconds(ages.ageMs));
  list.push('Cache-Status', `${cacheStatus}llmp; hit; ttl=${seconds(ages.freshForMs)}`);
  pushOwn(list, facts, vary, isEventStream && status !== 304);
  return list;
}

const kindOf = remembering((lower) => {
  if (staysHere(lower)) return 'dropped'; // An older release, with which Redis is shared, may have kept it.
  if (lower === 'vary' || lower === 'cache-status') return lower;
  if (OF_NOT_MODIFIED.has(lower)) return 'any';
  return lower === 'content-type' ? 'content-type' : 'entity';
});

const seconds = (ms: number) => String(Math.max(0, Math.floor(ms / 1000)));
