/** What a request wants of the cache (RFC 9111, 5.2.1). */
import { type Directives, directivesOf, firstOf } from './cache-control.js';
import type { FieldValues } from './field-values.js';
import type { KeptAnswer } from '../ports.js';

/** What a request wants of the cache. */
export interface Wish {
  /** What is kept may answer it. */
  reads: boolean;
  /** Its answer may be kept. */
  fills: boolean;
  /** It may wait for the answer to another one like it. */
  joins: boolean;
  /** It does not want the upstream to be asked. */
  isOnlyIfCached: boolean;
  /** `Cache-Control: public`. */
  isOptedIn: boolean;
  /** An answer older than this will not do. */
  mostAgeMs: number;
  /** Nor one that is fresh for less than this. */
  leastFreshMs: number;
  /** What the client holds already: 304 if it is still that. */
  condition: Condition | null;
}

export interface Condition {
  ifNoneMatch: string | undefined;
  ifModifiedSince: string | undefined;
}

export interface RequestHead {
  method: string;
  hasBody: boolean;
  cacheControl: string | undefined;
}

/** Whether a POST asked for it: then its body must be held, which is part of the place. */
export function isOptedIn({ cacheControl }: Pick<RequestHead, 'cacheControl'>): boolean {
  return cacheControl !== undefined && directivesOf(cacheControl).has('public');
}

/**
 * @param fields gives the request's fields; called only where they matter.
 * @returns null when it has no business with the cache.
 */
export function wishOf(request: RequestHead, fields: () => FieldValues): Wish | null {
  const { method, hasBody, cacheControl } = request;
  const isRead = method === 'GET' || method === 'HEAD';
  if (!isRead && cacheControl === undefined) return null; // As most are: chats, and without a wish.
  const directives = directivesOf(cacheControl);
  const isOptedIn = directives.has('public');
  const isOnlyIfCached = directives.has('only-if-cached');
  // A body of a GET has no meaning that a cache could rely on.
  const mayUse = isRead ? !hasBody : method === 'POST' && isOptedIn;
  const values = mayUse && !directives.has('no-store') ? fields() : null;
  if (values === null || mustPass(method, values)) return isOnlyIfCached ? ONLY_IF_CACHED : null;

  const wantsNew = wantsAnew(directives, values);
  const condition = conditionOf(values);
  const fills = method !== 'HEAD';
  return {
    reads: !wantsNew,
    fills,
    joins: fills && !wantsNew && condition === null,
    isOnlyIfCached,
    isOptedIn,
    mostAgeMs: firstOf(directives, 'max-age') ?? Infinity,
    leastFreshMs: firstOf(directives, 'min-fresh') ?? 0,
    condition,
  };
}

/** Of a request that nothing kept can answer, and that forbids to ask the upstream. */
const ONLY_IF_CACHED: Wish = {
  reads: false,
  fills: false,
  joins: false,
  isOnlyIfCached: true,
  isOptedIn: false,
  mostAgeMs: Infinity,
  leastFreshMs: 0,
  condition: null,
};

// Of these only the upstream knows what they come to.
const FOR_UPSTREAM = ['range', 'if-range', 'if-match', 'if-unmodified-since'];

const mustPass = (method: string, fields: FieldValues) =>
  FOR_UPSTREAM.some((name) => fields.has(name)) || (method === 'POST' && conditionOf(fields) !== null);

function wantsAnew(directives: Directives, fields: FieldValues): boolean {
  if (directives.has('no-cache') || firstOf(directives, 'max-age') === 0) return true;
  // RFC 9111, 5.4: from clients of HTTP/1.0, who know no better.
  return directives.size === 0 && /\bno-cache\b/i.test(fields.get('pragma') ?? '');
}

function conditionOf(fields: FieldValues): Condition | null {
  const ifNoneMatch = fields.get('if-none-match');
  const ifModifiedSince = fields.get('if-modified-since');
  return ifNoneMatch === undefined && ifModifiedSince === undefined ? null : { ifNoneMatch, ifModifiedSince };
}

export interface Ages {
  ageMs: number;
  freshForMs: number;
}

/** Whether a kept answer will do for this request. Of one that is exactly as old as it may be, too late. */
export function suffices(
  wish: Wish,
  { isForOptedIn }: Pick<KeptAnswer, 'isForOptedIn'>,
  { ageMs, freshForMs }: Ages,
): boolean {
  if (isForOptedIn && !wish.isOptedIn) return false;
  return freshForMs > 0 && freshForMs >= wish.leastFreshMs && ageMs <= wish.mostAgeMs;
}
