/** Headers for the upstream and for the client. Both lists are built from scratch, never edited in place; the headers that are dropped are listed here and in request-head.ts. */
import type { UpstreamAuth } from '../../api/vocabulary.js';
import { MASK } from '../../core/masking.js';
import type { CorsFields } from '../cors.js';
import {
  CREDENTIAL_FIELDS,
  HOP_BY_HOP,
  joinValues,
  connectionOptions,
  memoizedByName,
  type RequestFields,
  VARY_BY_CARRIER,
} from '../request-head.js';

/** What a forwarded request gets from the project and from this proxy. */
export interface AddedHeaders {
  upstreamKey: string;
  upstreamAuth: UpstreamAuth;
  requestId: string;
  loopMark: string;
}

/** Headers of a forwarded request. @returns names and values in turn. */
export function upstreamRequestHeaders(
  { forwarded, cdnLoop }: Pick<RequestFields, 'forwarded' | 'cdnLoop'>,
  added: AddedHeaders,
): string[] {
  const { upstreamAuth, upstreamKey } = added;
  return [
    upstreamAuth === 'bearer' ? 'authorization' : upstreamAuth,
    upstreamAuth === 'bearer' ? `Bearer ${upstreamKey}` : upstreamKey,
    'x-request-id',
    added.requestId,
    'cdn-loop',
    joinValues(cdnLoop, added.loopMark),
    ...forwarded,
  ];
}

/**
 * Response headers that a browser would apply to the whole origin. That origin is this daemon, which also serves the Admin UI, so a
 * provider must not control it.
 */
const ACTS_ON_ORIGIN = [
  // State of the origin, and its deletion.
  'set-cookie',
  'set-cookie2',
  'clear-site-data',
  'set-login',
  'activate-storage-access',
  'sec-session-registration',
  'secure-session-registration',
  // Keys, protocols and servers of the origin from now on.
  'strict-transport-security',
  'public-key-pins',
  'public-key-pins-report-only',
  'expect-ct',
  'alt-svc',
  'alternate-protocol',
  // Where errors of the origin are reported.
  'nel',
  'report-to',
  'reporting-endpoints',
  // What later requests carry, and which pages share a process or a service worker.
  'accept-ch',
  'accept-ch-lifetime',
  'critical-ch',
  'use-as-dictionary',
  'origin-agent-cluster',
  'service-worker-allowed',
  'speculation-rules',
  // Navigation, and timing data for other origins. Redirects (`Location`) are for the client to follow.
  'refresh',
  'timing-allow-origin',
];

/**
 * Response headers that a reverse proxy in front of this daemon would take for instructions: nginx serves the file that
 * `X-Accel-Redirect` names.
 */
const SERVER_DIRECTIVES = [
  'x-accel-redirect',
  'x-accel-expires',
  'x-accel-charset',
  'x-accel-limit-rate',
  'x-sendfile',
  'x-lighttpd-send-file',
  'x-litespeed-location',
  'x-reproxy-url',
];

const SET_BY_PROXY = [
  'x-proxy-cache',
  'x-token-expires-at',
  'x-token-requests-remaining',
  'x-token-warning',
  'x-upstream-request-id',
];

const NOT_SENT_TO_CLIENT: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  // An upstream that reflects the request's headers must not reveal the project's key.
  'authorization',
  ...CREDENTIAL_FIELDS,
  ...ACTS_ON_ORIGIN,
  ...SERVER_DIRECTIVES,
  ...SET_BY_PROXY,
]);

/** Whether a header of an upstream response is not forwarded. @param name in lower case. */
export const isStripped = (name: string): boolean =>
  NOT_SENT_TO_CLIENT.has(name) || name.startsWith('proxy-') || name.startsWith('access-control-'); // CORS of this daemon is not the upstream's decision.

/** Headers about the token and the request that this proxy adds to a response. */
export interface ProxyHeaderValues {
  requestId: string;
  /** RFC 3339. */
  expiresAt: string;
  remaining: number | null;
  /** Null if the token lasts long enough. */
  warning: string | null;
  cors: CorsFields;
}

export interface ForwardedResponseValues extends ProxyHeaderValues {
  /** Masked in all values. */
  upstreamKey: string;
  status: number;
  upstreamMs: number;
  proxyMs: number;
}

export interface ClientHeaders {
  /** Names and values in turn. */
  list: string[];
  upstreamRequestId: string | null;
  contentType: string | null;
  contentEncoding: string | null;
}

export const EVENT_STREAM = /^text\/event-stream\b/i;

const INTERPRETED = [
  'vary',
  'x-request-id',
  'content-type',
  'content-encoding',
  'content-length',
  'transfer-encoding',
] as const;

type FieldKind = 'forwarded' | 'dropped' | (typeof INTERPRETED)[number];

const kindOf = memoizedByName<FieldKind>((lower) => {
  const lookedAt = INTERPRETED.find((name) => name === lower);
  if (lookedAt) return lookedAt;
  return isStripped(lower) ? 'dropped' : 'forwarded';
});

/**
 * Headers of a forwarded response.
 *
 * @param rawHeaders names and values in turn, as the upstream sent them.
 * @throws if the response cannot be forwarded.
 */
export function clientResponseHeaders(rawHeaders: readonly Buffer[], facts: ForwardedResponseValues): ClientHeaders {
  const named = connectionOptions(connectionOf(rawHeaders));
  const list: string[] = [];
  let vary = '';
  let upstreamRequestId: string | null = null;
  let contentType: string | null = null;
  let contentEncoding: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = latin1(rawHeaders[i]);
    const kind = kindOf(name);
    if (kind === 'dropped' || namesKey(name, facts.upstreamKey)) continue;
    const value = withoutKey(latin1(rawHeaders[i + 1]), facts.upstreamKey);
    if (kind === 'transfer-encoding') {
      // undici has decoded `chunked`. Other transfer codings were not requested, and without this header the client could not decode
      // them.
      if (value.toLowerCase() !== 'chunked') throw new Error('a transfer coding other than chunked');
    } else if (named?.has(name.toLowerCase())) {
      continue;
    } else if (kind === 'content-length' && facts.status === 204) {
      continue; // A 204 has no body, and some clients would wait for one.
    } else if (kind === 'vary') {
      vary += `${value}, `;
    } else if (kind === 'x-request-id') {
      upstreamRequestId = value;
    } else {
      if (kind === 'content-type') contentType = value;
      else if (kind === 'content-encoding') contentEncoding = value;
      list.push(name, value);
    }
  }

  list.push('X-PROXY-CACHE', 'miss');
  if (upstreamRequestId !== null) list.push('X-Upstream-Request-ID', upstreamRequestId);
  list.push('Server-Timing', `upstream;dur=${tenths(facts.upstreamMs)}, proxy;dur=${tenths(facts.proxyMs)}`);
  pushProxyHeaders(list, facts, vary, contentType !== null && EVENT_STREAM.test(contentType));
  return { list, upstreamRequestId, contentType, contentEncoding };
}

/**
 * Adds the proxy's own headers, which each response with an upstream status has, forwarded or cached. @param vary ends with a comma
 * unless it is empty.
 */
export function pushProxyHeaders(list: string[], facts: ProxyHeaderValues, vary: string, isEventStream: boolean): void {
  let varies = vary;
  list.push('X-Request-ID', facts.requestId);
  for (const name in facts.cors) {
    const value = facts.cors[name] ?? '';
    if (name === 'Vary') varies += `${value}, `;
    else list.push(name, value);
  }
  list.push('Vary', varies + VARY_BY_CARRIER);
  list.push('X-Token-Expires-At', facts.expiresAt);
  if (facts.remaining !== null) list.push('X-Token-Requests-Remaining', String(facts.remaining));
  if (facts.warning !== null) list.push('X-Token-Warning', facts.warning);
  if (isEventStream) list.push('X-Accel-Buffering', 'no');
}

// A shorter key is a placeholder for a provider that needs none, such as `ollama`, and may be part of any value.
const MIN_MASKED_KEY_LENGTH = 8;

/** A header's value with the project's key masked, which an upstream may repeat, for example in a redirect. */
export const withoutKey = (value: string, upstreamKey: string): string =>
  // Most values are shorter than a key.
  value.length >= upstreamKey.length && upstreamKey.length >= MIN_MASKED_KEY_LENGTH && value.includes(upstreamKey)
    ? value.replaceAll(upstreamKey, MASK)
    : value;

/** Whether the name of a header contains the project's key, in any letter case: names have none. */
export const namesKey = (name: string, upstreamKey: string): boolean =>
  name.length >= upstreamKey.length &&
  upstreamKey.length >= MIN_MASKED_KEY_LENGTH &&
  name.toLowerCase().includes(upstreamKey.toLowerCase());

// Otherwise the ID could be as long as all response headers together may be.
const MAX_RECORDED_ID_LENGTH = 200;

/** The upstream's request ID for records, masked if the upstream repeats the project's key in it. */
export const recordableId = (id: string | null, upstreamKey: string): string | null =>
  id?.includes(upstreamKey) ? MASK : (id?.slice(0, MAX_RECORDED_ID_LENGTH) ?? null);

/** The value of all `Connection` headers together. */
export function connectionOf(rawHeaders: readonly Buffer[]): string | undefined {
  let connection: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length !== 'connection'.length || latin1(rawHeaders[i]).toLowerCase() !== 'connection') continue;
    connection = joinValues(connection, latin1(rawHeaders[i + 1]));
  }
  return connection;
}

/** Formats milliseconds with one decimal. Built from two integers, whose strings V8 caches. */
function tenths(ms: number): string {
  const rounded = Math.round(ms * 10);
  return `${Math.floor(rounded / 10)}.${rounded % 10}`;
}

// latin1 maps each byte to one character and back, so header bytes stay unchanged.
export const latin1 = (bytes: Buffer | undefined) => bytes?.toString('latin1') ?? '';
