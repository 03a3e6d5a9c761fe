import { type Directives, directivesOf, firstOf } from './cache-control.js';
import type { FieldValues } from './field-values.js';
import type { StoredResponse } from '../ports.js';

/** How one request may use the cache, from its method, `Cache-Control` (RFC 9111, 5.2.1) and conditional headers. */
export interface RequestDirectives {
  /** A stored response may be used. */
  mayRead: boolean;
  /** Its response may be stored. */
  mayStore: boolean;
  /** It may wait for the response to an identical request (request coalescing). */
  mayCoalesce: boolean;
  /** `Cache-Control: only-if-cached`: the upstream must not be contacted. */
  isOnlyIfCached: boolean;
  /** `Cache-Control: public`: the client opts in to the default lifetime. */
  isOptedIn: boolean;
  /** Maximum age of a stored response that may be used. */
  maxAgeMs: number;
  /** Minimum time for which the stored response must stay fresh. */
  minFreshMs: number;
  /** Validators of the response that the client already has; if it is still current, the client gets a 304. */
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

/** Whether a POST opts in to caching. Its body is part of the cache key, so the caller must buffer it. */
export function isOptedIn({ cacheControl }: Pick<RequestHead, 'cacheControl'>): boolean {
  return cacheControl !== undefined && directivesOf(cacheControl).has('public');
}

/**
 * @param fields returns the request's header fields; called only if they are needed.
 * @returns null when the request does not use the cache.
 */
export function requestDirectivesOf(request: RequestHead, fields: () => FieldValues): RequestDirectives | null {
  const { method, hasBody, cacheControl } = request;
  const isRead = method === 'GET' || method === 'HEAD';
  if (!isRead && cacheControl === undefined) return null; // Most requests: POST for a chat, without `Cache-Control`.
  const directives = directivesOf(cacheControl);
  const isOptedIn = directives.has('public');
  const isOnlyIfCached = directives.has('only-if-cached');
  // The body of a GET has no defined meaning (RFC 9110, 9.3.1), so such a request is not cached.
  const mayUse = isRead ? !hasBody : method === 'POST' && isOptedIn;
  const values = mayUse && !directives.has('no-store') ? fields() : null;
  if (values === null || mustPass(method, values)) return isOnlyIfCached ? ONLY_IF_CACHED : null;

  const mustRevalidate = requiresRevalidation(directives, values);
  const condition = conditionOf(values);
  const mayStore = method !== 'HEAD';
  return {
    mayRead: !mustRevalidate,
    mayStore,
    mayCoalesce: mayStore && !mustRevalidate && condition === null,
    isOnlyIfCached,
    isOptedIn,
    maxAgeMs: firstOf(directives, 'max-age') ?? Infinity,
    minFreshMs: firstOf(directives, 'min-fresh') ?? 0,
    condition,
  };
}

/** For a request that cannot use stored responses and forbids contacting the upstream. */
const ONLY_IF_CACHED: RequestDirectives = {
  mayRead: false,
  mayStore: false,
  mayCoalesce: false,
  isOnlyIfCached: true,
  isOptedIn: false,
  maxAgeMs: Infinity,
  minFreshMs: 0,
  condition: null,
};

// Only the upstream can evaluate these.
const FOR_UPSTREAM = ['range', 'if-range', 'if-match', 'if-unmodified-since'];

const mustPass = (method: string, fields: FieldValues) =>
  FOR_UPSTREAM.some((name) => fields.has(name)) || (method === 'POST' && conditionOf(fields) !== null);

function requiresRevalidation(directives: Directives, fields: FieldValues): boolean {
  if (directives.has('no-cache') || firstOf(directives, 'max-age') === 0) return true;
  // RFC 9111, 5.4: `Pragma` counts only without `Cache-Control`, for HTTP/1.0 clients.
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

/** Whether a stored response may be used for this request. A response whose freshness ends exactly now may not. */
export function satisfies(
  directives: RequestDirectives,
  { isForOptedIn }: Pick<StoredResponse, 'isForOptedIn'>,
  { ageMs, freshForMs }: Ages,
): boolean {
  if (isForOptedIn && !directives.isOptedIn) return false;
  return freshForMs > 0 && freshForMs >= directives.minFreshMs && ageMs <= directives.maxAgeMs;
}
