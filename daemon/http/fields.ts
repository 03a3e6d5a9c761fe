/** A request's headers, parsed in one pass: those that the proxy itself interprets, and those to forward to the upstream. */
import { boundedMemo } from '../core/bounded-memo.js';
import { SECRET_LENGTH } from '../core/token.js';
import { holdsToken } from '../core/token-in-text.js';

export interface RequestFields {
  host: string | undefined;
  authorization: string | undefined;
  requestId: string | undefined;
  /** Several headers are joined, since they are one list. */
  forwardedFor: string | undefined;
  cacheControl: string | undefined;
  /** Marks of the proxies that the request passed; several headers are joined, since they are one list. */
  cdnLoop: string | undefined;
  contentLength: string | undefined;
  /** Several headers are joined, since they are one list. */
  transferEncoding: string | undefined;
  hostCount: number;
  /** Values of the carriers other than `Authorization`; null if the request has none. */
  otherCredentials: string[] | null;
  /** A carrier that the request has twice; null if none. */
  repeatedCarrier: string | null;
  /** Size of all headers on the wire. */
  bytes: number;
  /** Headers to forward: names and values in turn. */
  forwarded: string[];
}

type FieldKind =
  | 'forwarded'
  | 'dropped'
  | 'host'
  | 'authorization'
  | 'connection'
  | 'content-length'
  | 'transfer-encoding'
  | 'x-request-id'
  | 'cache-control'
  | 'cdn-loop'
  | 'x-forwarded-for'
  | 'carrier';

/** For the next hop only (RFC 9110, 7.6.1). */
export const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
];

const INTERPRETED: ReadonlySet<string> = new Set<FieldKind>([
  'host',
  'authorization',
  'connection',
  'content-length',
  'transfer-encoding',
  'x-request-id',
  'cache-control',
  'cdn-loop',
  'x-forwarded-for',
]);

/**
 * Headers in which a client may send its token, beside `Authorization: Bearer`: those of the SDKs of Anthropic, Azure, Google and
 * ElevenLabs. This list decides where a token is read, and what is removed from a forwarded request, whatever its value: the upstream
 * request is authenticated with the project's key.
 */
export const OTHER_CARRIERS = ['x-api-key', 'api-key', 'x-goog-api-key', 'xi-api-key'] as const;
const CARRIERS: ReadonlySet<string> = new Set(OTHER_CARRIERS);

/** For `Vary`: so that a cache in front of this proxy cannot serve a response after its token was revoked. */
export const VARY_BY_CARRIER = ['Authorization', ...OTHER_CARRIERS].join(', ');

/** Other headers in which APIs accept a credential. Tokens are not read from them. */
export const OTHER_CREDENTIAL_FIELDS = ['ocp-apim-subscription-key', 'x-auth-token'];

/** All of them beside `Authorization`. Neither a provider nor a client ever gets one from this proxy. */
export const CREDENTIAL_FIELDS = [...OTHER_CARRIERS, ...OTHER_CREDENTIAL_FIELDS];

const NOT_SENT_UPSTREAM = new Set([
  ...HOP_BY_HOP,
  ...OTHER_CREDENTIAL_FIELDS,
  'openai-organization', // The project decides who pays.
  'openai-project',
  'cookie',
  'expect',
  'forwarded',
  'x-real-ip',
  'constructor',
  'prototype',
]);

/**
 * Memoizes `classify` by a header's spelling on the wire: lower-casing and classifying each name would take longer than all other
 * parsing. Clients use few names in few spellings.
 */
export const memoizedByName = <Kind>(classify: (lowerCaseName: string) => Kind): ((name: string) => Kind) =>
  boundedMemo((name) => classify(name.toLowerCase()));

const kindOf = memoizedByName<FieldKind>((lower) => {
  if (INTERPRETED.has(lower)) return lower as FieldKind;
  if (CARRIERS.has(lower)) return 'carrier';
  // Some servers treat `_` as `-`, so a name with `_` could stand for a header that is dropped here.
  if (NOT_SENT_UPSTREAM.has(lower) || lower.includes('_')) return 'dropped';
  // Headers of WebSocket handshakes are rebuilt in handshake.ts. In other requests one could carry a credential, so they are dropped.
  if (lower.startsWith('sec-websocket-')) return 'dropped';
  return lower.startsWith('x-forwarded-') || lower.startsWith('proxy-') ? 'dropped' : 'forwarded';
});

/** Parses the headers of a request. @param rawHeaders names and values in turn. */
export function readFields(rawHeaders: readonly string[]): RequestFields {
  const forwarded: string[] = [];
  const fields: RequestFields = {
    host: undefined,
    authorization: undefined,
    requestId: undefined,
    forwardedFor: undefined,
    cacheControl: undefined,
    cdnLoop: undefined,
    contentLength: undefined,
    transferEncoding: undefined,
    hostCount: 0,
    otherCredentials: null,
    repeatedCarrier: null,
    bytes: 0,
    forwarded,
  };
  let connection: string | undefined;
  let carriers: string[] | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    fields.bytes += name.length + value.length + 4; // ": " and CRLF
    switch (kindOf(name)) {
      case 'forwarded':
        forwarded.push(name, value);
        break;
      case 'content-length':
        fields.contentLength = value;
        forwarded.push(name, value);
        break;
      case 'host':
        fields.host = value;
        fields.hostCount += 1;
        break;
      case 'authorization':
        if (fields.authorization !== undefined) fields.repeatedCarrier = name;
        fields.authorization = value;
        break;
      case 'carrier':
        carriers ??= [];
        if (carriers.includes(name.toLowerCase())) fields.repeatedCarrier = name;
        carriers.push(name.toLowerCase());
        (fields.otherCredentials ??= []).push(value);
        break;
      case 'transfer-encoding':
        fields.transferEncoding = joinValues(fields.transferEncoding, value);
        break;
      case 'x-request-id':
        fields.requestId = joinValues(fields.requestId, value);
        break;
      case 'cache-control':
        fields.cacheControl = joinValues(fields.cacheControl, value);
        forwarded.push(name, value);
        break;
      case 'cdn-loop':
        fields.cdnLoop = joinValues(fields.cdnLoop, value);
        break;
      case 'x-forwarded-for':
        fields.forwardedFor = joinValues(fields.forwardedFor, value);
        break;
      case 'connection':
        connection = joinValues(connection, value);
        break;
      case 'dropped':
    }
  }
  const named = connectionOptions(connection);
  if (named) fields.forwarded = without(forwarded, named);
  return fields;
}

/**
 * The fields without any header that contains a withering token in its name or value: wherever else a client sends its token, the
 * upstream never gets it. Called for admitted requests only, since others are not forwarded.
 */
export function withoutTokens(fields: RequestFields): RequestFields {
  const { forwarded, cacheControl, cdnLoop } = fields;
  let isClean = cdnLoop === undefined || !holdsToken(cdnLoop);
  // `forwarded` includes Cache-Control. Most names and values are too short to contain a token.
  for (const text of forwarded) if (text.length >= SECRET_LENGTH && holdsToken(text)) isClean = false;
  if (isClean) return fields;
  const rest: string[] = [];
  for (let i = 0; i < forwarded.length; i += 2) {
    const [name = '', value = ''] = forwarded.slice(i, i + 2);
    if (!holdsToken(name) && !holdsToken(value)) rest.push(name, value);
  }
  const clean = (value: string | undefined) => (value !== undefined && holdsToken(value) ? undefined : value);
  return { ...fields, forwarded: rest, cacheControl: clean(cacheControl), cdnLoop: clean(cdnLoop) };
}

/** Joins the values of several headers of one name, which are one list. */
export const joinValues = (before: string | undefined, value: string) =>
  before === undefined ? value : `${before}, ${value}`;

/** The headers that a `Connection` header lists as for this hop only; null if it lists none. */
export function connectionOptions(value: string | undefined): ReadonlySet<string> | null {
  if (value === undefined || /^(?:keep-alive|close)$/i.test(value)) return null;
  return new Set(value.split(',').map((name) => name.trim().toLowerCase()));
}

function without(fields: readonly string[], named: ReadonlySet<string>): string[] {
  const rest: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const lower = name.toLowerCase();
    // The client must not remove the framing in this way.
    if (!named.has(lower) || lower === 'content-length') rest.push(name, fields[i + 1] ?? '');
  }
  return rest;
}
