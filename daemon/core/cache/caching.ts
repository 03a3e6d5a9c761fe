/**
 * # Cache keys and storage policy
 *
 * Decides which responses are stored, for how long, and under which key. request-directives.ts decides which requests may use them.
 * Each project has its own private cache (RFC 9111): project and upstream key are part of every cache key, so two projects never
 * share a response, and neither do two upstream keys of one project. Where the RFC leaves a choice, less is stored.
 */
import { type Directives, directivesOf, firstOf, millisecondsOf } from './cache-control.js';
import type { FieldValues } from './field-values.js';
import { httpDateMs } from './http-date.js';
import type { CacheKey, CacheEntry, StoredResponse } from '../ports.js';
import type { Condition } from './request-directives.js';

export interface CachingSettings {
  httpCacheDefaultTtlSeconds: number;
  /** Paths; a trailing `*` matches any suffix. */
  httpCacheDefaultTtlPaths: readonly string[];
  httpCacheMaxObjectBytes: number;
}

// ---- cache keys

/** Request header fields that are part of every cache key, whether or not the upstream lists them in `Vary`. */
export const KEYED_FIELDS = [
  'accept',
  'accept-encoding',
  'accept-language',
  'content-type',
  'openai-beta',
  'anthropic-version',
  'anthropic-beta',
];

/** @param method HEAD uses the resource of GET. */
export const resourceOf = (method: string, target: string) => `${method === 'HEAD' ? 'GET' : method} ${target}`;

export interface CacheKeyParts {
  projectId: string;
  /** Digest of the upstream key: a response obtained with one key is never served for another. */
  upstreamDigest: string;
  method: string;
  /** Byte for byte as it is sent to the upstream. */
  target: string;
  /** '' without a body. */
  bodyDigest: string;
  fields: FieldValues;
}

export function cacheKeyOf({ projectId, upstreamDigest, method, target, bodyDigest, fields }: CacheKeyParts): CacheKey {
  const variant = tuple([upstreamDigest, bodyDigest, ...KEYED_FIELDS.map((name) => fields.get(name))]);
  return { projectId, resource: resourceOf(method, target), variant };
}

/** Cache key of a response that also varies by these request header fields. */
export function variantKeyOf(cacheKey: CacheKey, names: readonly string[], fields: FieldValues): CacheKey {
  if (names.length === 0) return cacheKey;
  const more = tuple(names.flatMap((name) => [name, fields.get(name)]));
  return { ...cacheKey, variant: `${cacheKey.variant}|${more}` };
}

/** Encodes a list of values as one string, unambiguously for any contents. */
const tuple = (values: readonly (string | undefined)[]) =>
  values.map((value) => (value === undefined ? '-' : `${value.length}:${value}`)).join('');

/** Map key shared by all cache keys of a resource in a project. */
export const resourceKeyText = ({ projectId, resource }: Pick<CacheKey, 'projectId' | 'resource'>) =>
  `${projectId}\n${resource}`;

/** Map key for one cache key. */
export const cacheKeyText = (cacheKey: CacheKey) => `${resourceKeyText(cacheKey)}\n${cacheKey.variant}`;

// ---- storage policy

export interface ResponseHead {
  status: number;
  fields: FieldValues;
  /** Whether it has a length or is chunked. Otherwise a truncated response cannot be recognised. */
  isFramed: boolean;
}

export interface RequestToStore {
  method: string;
  path: string;
  isOptedIn: boolean;
}

/** How long a response is stored, and by which request header fields it varies. */
export interface StoragePolicy {
  /** As of now, when the response head has arrived. */
  freshMs: number;
  keepMs: number;
  /** The age that the upstream states. */
  ageMs: number;
  /** Since its `Date`: it may have been in other caches, or on its way, without an `Age` (RFC 9111, 4.2.3). */
  apparentAgeMs: number;
  /** In addition to `KEYED_FIELDS`. */
  vary: readonly string[];
  /** The upstream gave no lifetime, so the configured default applies. */
  usesDefaultLifetime: boolean;
  /** The default applies only because the client opted in. */
  isForOptedIn: boolean;
}

const STORABLE_STATUSES = new Set([200, 203, 301, 308, 404, 410]);
// How long a stale response with a validator is stored, waiting to be revalidated.
const STALE_RETENTION_MS = 24 * 3_600_000;

/** @param nowMs wall time. @returns null when the response must not be stored. */
export function storagePolicyOf(
  asked: RequestToStore,
  answer: ResponseHead,
  settings: CachingSettings,
  nowMs: number,
): StoragePolicy | null {
  const { status, fields } = answer;
  const isKept = asked.method === 'GET' ? STORABLE_STATUSES.has(status) : asked.method === 'POST' && status === 200;
  if (!isKept || !answer.isFramed || fields.has('set-cookie') || fields.has('content-range')) return null;
  if (Number(fields.get('content-length') ?? 0) > settings.httpCacheMaxObjectBytes) return null;
  const directives = directivesOf(fields.get('cache-control'));
  if (directives.has('no-store') || directives.has('private')) return null;
  // Meant for CDNs (RFC 9213). Here it may forbid storage or shorten the lifetime, but never allow more than Cache-Control does.
  const targeted = directivesOf(fields.get('cdn-cache-control'));
  if (targeted.has('no-store') || targeted.has('private')) return null;
  const vary = varyOf(fields);
  if (vary === null) return null;

  // If there are several values, the first counts (RFC 9111, 5.1).
  const ageMs = millisecondsOf(/^[^,\s]*/.exec(fields.get('age') ?? '')?.[0] ?? '');
  const sentAtMs = httpDateMs(fields.get('date') ?? '', nowMs);
  // Dates have whole seconds.
  const apparentAgeMs = Number.isNaN(sentAtMs) ? 0 : Math.max(0, 1000 * Math.floor((nowMs - sentAtMs) / 1000));
  const statedMs = statedLifetimeOf(directives, fields, Number.isNaN(sentAtMs) ? nowMs : sentAtMs, nowMs);
  const isForPath = settings.httpCacheDefaultTtlPaths.some((pattern) => fits(asked.path, pattern));
  const defaultMs = isForPath || asked.isOptedIn ? settings.httpCacheDefaultTtlSeconds * 1000 : 0;
  if (statedMs === null && defaultMs === 0) return null;
  const lifetimeMs = Math.min(statedMs ?? defaultMs, firstOf(targeted, 's-maxage', 'max-age') ?? Infinity);
  const isStale = mustBeAskedAbout(directives, fields) || targeted.has('no-cache');
  const usesDefaultLifetime = statedMs === null;
  // A default lifetime starts now, also if the clock of the upstream is late.
  const initialAgeMs = usesDefaultLifetime ? ageMs : Math.max(ageMs, apparentAgeMs);
  const freshMs = Math.max(0, isStale ? 0 : lifetimeMs - initialAgeMs);
  // Only GET can be revalidated.
  const canBeAskedAbout = asked.method === 'GET' && (fields.has('etag') || fields.has('last-modified'));
  const staleMs = canBeAskedAbout ? STALE_RETENTION_MS : 0;
  if (freshMs + staleMs === 0) return null;
  return {
    freshMs,
    keepMs: freshMs + staleMs,
    ageMs,
    apparentAgeMs,
    vary,
    usesDefaultLifetime,
    isForOptedIn: usesDefaultLifetime && !isForPath,
  };
}

const mustBeAskedAbout = (directives: Directives, fields: FieldValues) =>
  directives.has('no-cache') || (directives.size === 0 && /\bno-cache\b/i.test(fields.get('pragma') ?? ''));

/** @param sentAtMs its `Date`, or when it arrived. @returns null when the response gives no lifetime. */
function statedLifetimeOf(directives: Directives, fields: FieldValues, sentAtMs: number, nowMs: number): number | null {
  const stated = firstOf(directives, 's-maxage', 'max-age');
  if (stated !== undefined) return stated;
  const expires = fields.get('expires');
  if (expires !== undefined) {
    const expiresAtMs = httpDateMs(expires, nowMs);
    // An invalid date means "already expired" (RFC 9111, 5.3).
    return Number.isNaN(expiresAtMs) ? 0 : expiresAtMs - sentAtMs;
  }
  return mustBeAskedAbout(directives, fields) ? 0 : null;
}

const fits = (path: string, pattern: string) =>
  pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;

// The proxy sends a new value of these with every request, so no two requests match.
const NEVER_EQUAL = new Set(['*', 'x-request-id', 'cdn-loop']);

/** @returns null when no later request can match. */
function varyOf(fields: FieldValues): string[] | null {
  const names = (fields.get('vary') ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !KEYED_FIELDS.includes(name));
  return names.some((name) => NEVER_EQUAL.has(name)) ? null : [...new Set(names)].sort();
}

/** The entries to store: the response; and if it varies by more fields, a marker under the main key that names them. */
export function entriesOf(
  cacheKey: CacheKey,
  request: FieldValues,
  { freshMs, keepMs, vary }: StoragePolicy,
  response: StoredResponse,
): { key: CacheKey; entry: CacheEntry }[] {
  const stored = { key: variantKeyOf(cacheKey, vary, request), entry: { content: response, freshMs, keepMs } };
  if (vary.length === 0) return [stored];
  const marker: CacheEntry = { content: { kind: 'vary', names: vary }, freshMs: Infinity, keepMs };
  return [{ key: cacheKey, entry: marker }, stored];
}

// ---- conditional requests

/** Whether the client already has this response, so that it gets a 304 (RFC 9110, 13.2.2). @param nowMs wall time. */
export function isNotModified(
  { ifNoneMatch, ifModifiedSince }: Condition,
  { status, headers }: StoredResponse,
  nowMs: number,
): boolean {
  if (status !== 200) return false;
  if (ifNoneMatch !== undefined) return isNamed(ifNoneMatch, headerValue(headers, 'etag'));
  const modifiedAtMs = httpDateMs(headerValue(headers, 'last-modified') ?? '', nowMs);
  return modifiedAtMs <= httpDateMs(ifModifiedSince ?? '', nowMs);
}

// An entity tag may contain commas; some clients omit the quotes.
const TAGS = /(?:W\/)?"[^"]*"|[^\s,"]+/g;

/** Weak comparison of entity tags (RFC 9110, 8.8.3.2). */
function isNamed(ifNoneMatch: string, etag: string | undefined): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  return etag !== undefined && (ifNoneMatch.match(TAGS) ?? []).some((tag) => opaque(tag) === opaque(etag));
}

/** Header fields that revalidate a stored response; alternating names and values. */
export function conditionalHeadersOf({ headers }: StoredResponse): string[] {
  const etag = headerValue(headers, 'etag');
  const lastModified = headerValue(headers, 'last-modified');
  return [
    ...(etag === undefined ? [] : ['if-none-match', etag]),
    ...(lastModified === undefined ? [] : ['if-modified-since', lastModified]),
  ];
}

/**
 * Whether a 304 to the client's own condition also confirms the stored response. The client may have a different version.
 *
 * @param fields header fields of the 304.
 */
export function confirmsStored({ ifNoneMatch }: Condition, fields: FieldValues, { headers }: StoredResponse): boolean {
  const etag = headerValue(headers, 'etag');
  if (etag === undefined || ifNoneMatch === undefined || ifNoneMatch.includes(',')) return false;
  return isNamed(ifNoneMatch, etag) && isNamed(etag, fields.get('etag') ?? etag);
}

/** Value of the first field with this name. */
export function headerValue(headers: readonly string[], lowerCaseName: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) return headers[i + 1];
  }
  return undefined;
}

/** Headers of a stored response, updated with those of a 304 (RFC 9111, 3.2). */
export function mergedHeaders(headers: readonly string[], by: readonly string[]): string[] {
  const isRepeated = (name: string) => headerValue(by, name.toLowerCase()) !== undefined;
  const unchanged = headers.filter((_, i) => !isRepeated(headers[i - (i % 2)] ?? ''));
  return [...unchanged, ...by];
}
