/** Header fields are rebuilt for each side, never passed along: what is not known to be harmless does not travel. */
import { MASK } from '../../core/masking.js';
import type { CorsFields } from '../cors.js';
import { HOP_BY_HOP, joined, namedByConnection, remembering, type RequestFields } from '../fields.js';

/** @returns names and values in turn, as the upstream shall see them. */
export function upstreamRequestHeaders(
  { forwarded, cdnLoop }: RequestFields,
  added: { upstreamKey: string; requestId: string; loopMark: string },
): string[] {
  return [
    'authorization',
    `Bearer ${added.upstreamKey}`,
    'x-request-id',
    added.requestId,
    'cdn-loop',
    joined(cdnLoop, added.loopMark),
    ...forwarded,
  ];
}

/**
 * What a browser would keep for, or do to, the whole origin of the answer. To a browser that is this daemon, on which the
 * Admin UI lives: not a provider's to decide.
 */
const ACTS_ON_ORIGIN = [
  // State of the origin, and its end.
  'set-cookie',
  'set-cookie2',
  'clear-site-data',
  'set-login',
  'activate-storage-access',
  'sec-session-registration',
  'secure-session-registration',
  // Which keys, protocols and servers belong to it from now on.
  'strict-transport-security',
  'public-key-pins',
  'public-key-pins-report-only',
  'expect-ct',
  'alt-svc',
  'alternate-protocol',
  // Where its errors are reported.
  'nel',
  'report-to',
  'reporting-endpoints',
  // What its later requests carry, and which of its pages share a process or a service worker.
  'accept-ch',
  'accept-ch-lifetime',
  'critical-ch',
  'use-as-dictionary',
  'origin-agent-cluster',
  'service-worker-allowed',
  'speculation-rules',
  // Leads away, and lets other origins measure. Redirects (`Location`) are the client's to follow.
  'refresh',
  'timing-allow-origin',
];

/** What a server in front of this daemon would take for an order of ours: nginx serves the file that `X-Accel-Redirect` names. */
const ORDERS_TO_SERVERS = [
  'x-accel-redirect',
  'x-accel-expires',
  'x-accel-charset',
  'x-accel-limit-rate',
  'x-sendfile',
  'x-lighttpd-send-file',
  'x-litespeed-location',
  'x-reproxy-url',
];

const OURS_TO_SAY = ['x-proxy-cache', 'x-token-expires-at', 'x-token-requests-remaining', 'x-upstream-request-id'];

const NOT_SENT_BACK: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...ACTS_ON_ORIGIN,
  ...ORDERS_TO_SERVERS,
  ...OURS_TO_SAY,
]);

/** Whether a header field of an upstream's answer stays here. @param name in lower case. */
export const staysHere = (name: string): boolean =>
  NOT_SENT_BACK.has(name) || name.startsWith('proxy-') || name.startsWith('access-control-'); // Which pages may read an answer of ours is not the upstream's to say.

/** What an answer says of the token that it was asked for with, and to whom. */
export interface OwnFacts {
  requestId: string;
  /** RFC 3339. */
  expiresAt: string;
  remaining: number | null;
  cors: CorsFields;
}

export interface AnswerFacts extends OwnFacts {
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

const LOOKED_AT = [
  'vary',
  'x-request-id',
  'content-type',
  'content-encoding',
  'content-length',
  'transfer-encoding',
] as const;

type FieldKind = 'forwarded' | 'dropped' | (typeof LOOKED_AT)[number];

const kindOf = remembering<FieldKind>((lower) => {
  const lookedAt = LOOKED_AT.find((name) => name === lower);
  if (lookedAt) return lookedAt;
  return staysHere(lower) ? 'dropped' : 'forwarded';
});

/**
 * @param rawHeaders names and values in turn, as the upstream sent them.
 * @throws when the answer cannot be passed on.
 */
export function clientResponseHeaders(rawHeaders: readonly Buffer[], facts: AnswerFacts): ClientHeaders {
  const named = namedByConnection(connectionOf(rawHeaders));
  const list: string[] = [];
  let vary = '';
  let upstreamRequestId: string | null = null;
  let contentType: string | null = null;
  let contentEncoding: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = latin1(rawHeaders[i]);
    const kind = kindOf(name);
    if (kind === 'dropped') continue;
    const value = latin1(rawHeaders[i + 1]);
    if (kind === 'transfer-encoding') {
      // undici has undone this one. Nobody asked for another, and without this field nobody could undo it.
      if (value.toLowerCase() !== 'chunked') throw new Error('a transfer coding other than chunked');
    } else if (named?.has(name.toLowerCase())) {
      continue;
    } else if (kind === 'content-length' && facts.status === 204) {
      continue; // It has no body, and some would wait for one.
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
  pushOwn(list, facts, vary, contentType !== null && EVENT_STREAM.test(contentType));
  return { list, upstreamRequestId, contentType, contentEncoding };
}

/** What is ours to say on every answer with a status of the upstream, forwarded or kept. @param vary ends with a comma, if it is not empty. */
export function pushOwn(list: string[], facts: OwnFacts, vary: string, isEventStream: boolean): void {
  let varies = vary;
  list.push('X-Request-ID', facts.requestId);
  for (const name in facts.cors) {
    const value = facts.cors[name] ?? '';
    if (name === 'Vary') varies += `${value}, `;
    else list.push(name, value);
  }
  // No cache in front of us may serve past a revocation.
  list.push('Vary', `${varies}Authorization`);
  list.push('X-Token-Expires-At', facts.expiresAt);
  if (facts.remaining !== null) list.push('X-Token-Requests-Remaining', String(facts.remaining));
  if (isEventStream) list.push('X-Accel-Buffering', 'no');
}

// The upstream could make one as long as all its fields may be together.
const LONGEST_RECORDED_ID = 200;

/** The upstream's request id as it may be written down: an upstream that repeats our key must not bring it there. */
export const recordedId = (id: string | null, upstreamKey: string): string | null =>
  id?.includes(upstreamKey) ? MASK : (id?.slice(0, LONGEST_RECORDED_ID) ?? null);

/** What all `Connection` fields say together. */
export function connectionOf(rawHeaders: readonly Buffer[]): string | undefined {
  let connection: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length !== 'connection'.length || latin1(rawHeaders[i]).toLowerCase() !== 'connection') continue;
    connection = joined(connection, latin1(rawHeaders[i + 1]));
  }
  return connection;
}

/** Put together from two whole numbers, for which V8 has the text at hand. */
function tenths(ms: number): string {
  const rounded = Math.round(ms * 10);
  return `${Math.floor(rounded / 10)}.${rounded % 10}`;
}

// Header bytes are kept as they are: latin1 maps each to one character and back.
export const latin1 = (bytes: Buffer | undefined) => bytes?.toString('latin1') ?? '';
