/**
 * # Caching: the rules
 *
 * Which answer is kept, for how long, and where; which request it may answer is in wish.ts. The rules are those of a
 * private cache of RFC 9111, one for each project: its key is part of every place, so that two projects never share an
 * answer, nor two upstream keys of one. Where the RFC leaves a choice, less is kept.
 */
import { type Directives, directivesOf, firstOf, millisecondsOf } from './cache-control.js';
import type { FieldValues } from './field-values.js';
import { httpDateMs } from './http-date.js';
import type { CachePlace, Kept, KeptAnswer } from '../ports.js';
import type { Condition } from './wish.js';

export interface CachingSettings {
  httpCacheDefaultTtlSeconds: number;
  /** Paths; a `*` at the end stands for any rest. */
  httpCacheDefaultTtlPaths: readonly string[];
  httpCacheMaxObjectBytes: number;
}

// ---- places

/** What the answers of a resource are always told apart by, whether or not the upstream says that they differ. */
export const KEYED_FIELDS = ['accept', 'accept-encoding', 'accept-language', 'content-type', 'openai-beta'];

/** @param method HEAD asks for what GET gives. */
export const resourceOf = (method: string, target: string) => `${method === 'HEAD' ? 'GET' : method} ${target}`;

export interface PlaceFacts {
  projectId: string;
  /** Of the key that the upstream is asked with: what was given for one key is never given for another. */
  upstreamKeyDigest: string;
  method: string;
  /** Byte for byte as the upstream gets it. */
  target: string;
  /** '' without a body. */
  bodyDigest: string;
  fields: FieldValues;
}

export function placeOf({ projectId, upstreamKeyDigest, method, target, bodyDigest, fields }: PlaceFacts): CachePlace {
  const variant = tuple([upstreamKeyDigest, bodyDigest, ...KEYED_FIELDS.map((name) => fields.get(name))]);
  return { projectId, resource: resourceOf(method, target), variant };
}

/** The place of an answer that differs by these fields of the request too. */
export function placeWithin(place: CachePlace, names: readonly string[], fields: FieldValues): CachePlace {
  if (names.length === 0) return place;
  const more = tuple(names.flatMap((name) => [name, fields.get(name)]));
  return { ...place, variant: `${place.variant}|${more}` };
}

/** One text for several values that no other values have, whatever they hold. */
const tuple = (values: readonly (string | undefined)[]) =>
  values.map((value) => (value === undefined ? '-' : `${value.length}:${value}`)).join('');

/** A key for all places of a resource in a project. */
export const resourceText = ({ projectId, resource }: Pick<CachePlace, 'projectId' | 'resource'>) =>
  `${projectId}\n${resource}`;

/** A key for one place. */
export const placeText = (place: CachePlace) => `${resourceText(place)}\n${place.variant}`;

// ---- answers

export interface AnswerHead {
  status: number;
  fields: FieldValues;
  /** By a length or by chunks; of any other nobody can tell whether it is whole. */
  isFramed: boolean;
}

export interface AskedBy {
  method: string;
  path: string;
  isOptedIn: boolean;
}

/** For how long an answer is kept, and by which fields of the request it differs. */
export interface Keeping {
  freshMs: number;
  keepMs: number;
  ageMs: number;
  /** Beyond those that places always differ by. */
  vary: readonly string[];
  /** The upstream stated no lifetime: it has the one that is ours to give. */
  isByDefault: boolean;
  /** It has that only because its client opted in. */
  isForOptedIn: boolean;
}

const KEPT_STATUSES = new Set([200, 203, 301, 308, 404, 410]);
// So long an answer that is not fresh any more waits for somebody to ask whether it is still the right one.
const STALE_KEPT_MS = 24 * 3_600_000;

/** @param nowMs wall time. @returns null when the answer must not be kept. */
export function keepingOf(
  asked: AskedBy,
  answer: AnswerHead,
  settings: CachingSettings,
  nowMs: number,
): Keeping | null {
  const { status, fields } = answer;
  const isKept = asked.method === 'GET' ? KEPT_STATUSES.has(status) : asked.method === 'POST' && status === 200;
  if (!isKept || !answer.isFramed || fields.has('set-cookie') || fields.has('content-range')) return null;
  if (Number(fields.get('content-length') ?? 0) > settings.httpCacheMaxObjectBytes) return null;
  const directives = directivesOf(fields.get('cache-control'));
  if (directives.has('no-store') || directives.has('private')) return null;
  // Meant for the caches of CDNs (RFC 9213). It can forbid and shorten here, and never allow more than Cache-Control does.
  const targeted = directivesOf(fields.get('cdn-cache-control'));
  if (targeted.has('no-store') || targeted.has('private')) return null;
  const vary = varyOf(fields);
  if (vary === null) return null;

  // Of several the first is the nearest cache's (RFC 9111, 5.1).
  const ageMs = millisecondsOf(/^[^,\s]*/.exec(fields.get('age') ?? '')?.[0] ?? '');
  const statedMs = statedLifetimeOf(directives, fields, nowMs);
  const isForPath = settings.httpCacheDefaultTtlPaths.some((pattern) => fits(asked.path, pattern));
  const defaultMs = isForPath || asked.isOptedIn ? settings.httpCacheDefaultTtlSeconds * 1000 : 0;
  if (statedMs === null && defaultMs === 0) return null;
  const lifetimeMs = Math.min(statedMs ?? defaultMs, firstOf(targeted, 's-maxage', 'max-age') ?? Infinity);
  const isStale = mustBeAskedAbout(directives, fields) || targeted.has('no-cache');
  const freshMs = Math.max(0, isStale ? 0 : lifetimeMs - ageMs);
  // To ask on condition is defined for GET.
  const canBeAskedAbout = asked.method === 'GET' && (fields.has('etag') || fields.has('last-modified'));
  const staleMs = canBeAskedAbout ? STALE_KEPT_MS : 0;
  if (freshMs + staleMs === 0) return null;
  const isByDefault = statedMs === null;
  return { freshMs, keepMs: freshMs + staleMs, ageMs, vary, isByDefault, isForOptedIn: isByDefault && !isForPath };
}

const mustBeAskedAbout = (directives: Directives, fields: FieldValues) =>
  directives.has('no-cache') || (directives.size === 0 && /\bno-cache\b/i.test(fields.get('pragma') ?? ''));

/** @returns null when the answer states none. */
function statedLifetimeOf(directives: Directives, fields: FieldValues, nowMs: number): number | null {
  const stated = firstOf(directives, 's-maxage', 'max-age');
  if (stated !== undefined) return stated;
  const expires = fields.get('expires');
  if (expires !== undefined) {
    const expiresAtMs = httpDateMs(expires, nowMs);
    if (Number.isNaN(expiresAtMs)) return 0; // What is no date is in the past (RFC 9111, 5.3).
    const sentAtMs = httpDateMs(fields.get('date') ?? '', nowMs);
    // By whichever clock it is sooner: an old answer without an age may have been on its way for long.
    return expiresAtMs - (Number.isNaN(sentAtMs) ? nowMs : Math.max(sentAtMs, nowMs));
  }
  return mustBeAskedAbout(directives, fields) ? 0 : null;
}

const fits = (path: string, pattern: string) =>
  pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;

// The upstream gets these anew with every request, so answers that differ by them are all different.
const ALWAYS_NEW = new Set(['*', 'x-request-id', 'cdn-loop']);

/** @returns null when no other request will ever be the same. */
function varyOf(fields: FieldValues): string[] | null {
  const names = (fields.get('vary') ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !KEYED_FIELDS.includes(name));
  return names.some((name) => ALWAYS_NEW.has(name)) ? null : [...new Set(names)].sort();
}

/** Where an answer is kept: at its place, and if answers differ by more, a sign there to the places of each. */
export function entriesOf(
  place: CachePlace,
  request: FieldValues,
  { freshMs, keepMs, vary }: Keeping,
  answer: KeptAnswer,
): { place: CachePlace; kept: Kept }[] {
  const entry = { place: placeWithin(place, vary, request), kept: { content: answer, freshMs, keepMs } };
  if (vary.length === 0) return [entry];
  const sign: Kept = { content: { kind: 'vary', names: vary }, freshMs: Infinity, keepMs };
  return [{ place, kept: sign }, entry];
}

// ---- what a client or we hold already

/** Whether the client holds just this answer, so that a 304 will do (RFC 9110, 13.2.2). @param nowMs wall time. */
export function isHeldBy(
  { ifNoneMatch, ifModifiedSince }: Condition,
  { status, headers }: KeptAnswer,
  nowMs: number,
): boolean {
  if (status !== 200) return false;
  if (ifNoneMatch !== undefined) return isNamed(ifNoneMatch, valueIn(headers, 'etag'));
  const modifiedAtMs = httpDateMs(valueIn(headers, 'last-modified') ?? '', nowMs);
  return modifiedAtMs <= httpDateMs(ifModifiedSince ?? '', nowMs);
}

// A tag may hold commas; some are sent without their quotes.
const TAGS = /(?:W\/)?"[^"]*"|[^\s,"]+/g;

/** The weak comparison (RFC 9110, 8.8.3.2). */
function isNamed(ifNoneMatch: string, etag: string | undefined): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  return etag !== undefined && (ifNoneMatch.match(TAGS) ?? []).some((tag) => opaque(tag) === opaque(etag));
}

/** The header fields that ask whether an answer is still the right one. Names and values in turn. */
export function questionAbout({ headers }: KeptAnswer): string[] {
  const etag = valueIn(headers, 'etag');
  const lastModified = valueIn(headers, 'last-modified');
  return [
    ...(etag === undefined ? [] : ['if-none-match', etag]),
    ...(lastModified === undefined ? [] : ['if-modified-since', lastModified]),
  ];
}

/**
 * Whether a 304 to a client's own condition speaks of the answer that is kept: it may hold another one.
 *
 * @param fields of the 304.
 */
export function speaksOf({ ifNoneMatch }: Condition, fields: FieldValues, { headers }: KeptAnswer): boolean {
  const etag = valueIn(headers, 'etag');
  if (etag === undefined || ifNoneMatch === undefined || ifNoneMatch.includes(',')) return false;
  return isNamed(ifNoneMatch, etag) && isNamed(etag, fields.get('etag') ?? etag);
}

/** The value of the first field of that name. */
export function valueIn(headers: readonly string[], lowerCaseName: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) return headers[i + 1];
  }
  return undefined;
}

/** A kept answer's header fields after a 304: those that it names are as it says (RFC 9111, 3.2). */
export function refreshedHeaders(headers: readonly string[], by: readonly string[]): string[] {
  const isRepeated = (name: string) => valueIn(by, name.toLowerCase()) !== undefined;
  const kept = headers.filter((_, i) => !isRepeated(headers[i - (i % 2)] ?? ''));
  return [...kept, ...by];
}
