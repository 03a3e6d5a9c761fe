/**
 * The head of a request. Its headers are parsed in one pass: those that the proxy itself interprets, and those to forward to the upstream. Its
 * shape is checked, which refuses what Node's parser accepts but another server might reject or read differently, so that no two servers on
 * the way read a request differently (request smuggling).
 */
import type { IncomingMessage } from 'node:http';
import { boundedMemo } from '../core/bounded-memo.js';
import { percentDecodedForms } from '../core/percent.js';
import { Refusal } from '../core/refusal.js';
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

type Framing = Pick<RequestFields, 'contentLength' | 'transferEncoding'>;

export const framingOf = ({ headers }: IncomingMessage): Framing => ({
  contentLength: headers['content-length'],
  transferEncoding: headers['transfer-encoding'],
});

export function hasBody({ contentLength, transferEncoding }: Framing): boolean {
  return transferEncoding !== undefined || (contentLength !== undefined && contentLength !== '0');
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

// ---- its shape

export const MAX_TARGET_LENGTH = 8 * 1024;
export const MAX_HEADERS = 100;
export const MAX_HEADER_BYTES = 32 * 1024;

const ALLOW = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

const malformed = (what: string) => new Refusal('malformed_request', what);

/**
 * Checks that apply to every request, whatever its target.
 *
 * @returns the headers, parsed on the way.
 * @throws {Refusal}
 */
export function checkMessage(req: IncomingMessage): RequestFields {
  const { httpVersion, rawHeaders } = req;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    throw new Refusal('http_version_not_supported', 'HTTP version not supported: use HTTP/1.1');
  }
  if (rawHeaders.length > 2 * MAX_HEADERS) throw headersTooLarge();
  const fields = readFields(rawHeaders);
  if (fields.bytes > MAX_HEADER_BYTES) throw headersTooLarge();
  checkHost(httpVersion, fields);
  checkTransferCoding(httpVersion, fields);
  return fields;
}

/**
 * Checks that apply to requests for a provider.
 *
 * @returns the headers.
 * @throws {Refusal}
 */
export function checkShape(req: IncomingMessage, maxBodyBytes: number): RequestFields {
  const fields = checkMessage(req);
  if (req.method === 'TRACE' || req.method === 'CONNECT') throw methodNotAllowed();
  checkTarget(req.url ?? '');
  // Node silently keeps the first of two.
  if (fields.repeatedCarrier !== null)
    throw malformed(`the request has more than one ${fields.repeatedCarrier} header`);
  if (Number(fields.contentLength ?? 0) > maxBodyBytes) throw bodyTooLarge();
  return fields;
}

export const methodNotAllowed = () => new Refusal('method_not_allowed', 'method not allowed', { allow: ALLOW });

// A segment that begins with another character than a dot is no dot segment.
const SIMPLE_TARGET = /^(?:\/[\w-][\w.:-]*)+$/;
const VISIBLE_ASCII = /^[\x21-\x7e]*$/;
// A segment of one or two dots, including forms where some servers strip a suffix: parameters (`..;x`), a query, a fragment, spaces.
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:[\0-\x20;?#][^/\\]*)?(?=[/\\]|$)/;
// `.`, `/` and `\` in overlong UTF-8, which lenient decoders accept.
const OVERLONG = /\xc0[\xae\xaf]|\xc1\x9c|\xe0\x80[\xae\xaf]|\xe0\x81\x9c/;

function checkTarget(target: string): void {
  if (target.length > MAX_TARGET_LENGTH)
    throw new Refusal('uri_too_long', 'request target too long: the limit is 8 KiB');
  if (!isNormalizedTarget(target)) throw targetNotNormalized(target);
}

/**
 * Whether a target is normalized, so that routing, cache and upstream see the same path. An encoded slash in a segment (`%2F`) is data
 * and stays as it is. A path that could leave its prefix on an upstream that decodes it first is refused, even if it is encoded several times.
 */
export function isNormalizedTarget(target: string): boolean {
  if (SIMPLE_TARGET.test(target)) return true;
  const path = pathOf(target);
  return (
    VISIBLE_ASCII.test(target) &&
    path.startsWith('/') &&
    !/[\\#]/.test(target) &&
    !path.includes('//') &&
    !/%(?![0-9a-f]{2})/i.test(path) &&
    !percentDecodedForms(path).some((form) => DOT_SEGMENT.test(form) || OVERLONG.test(form))
  );
}

export const targetNotNormalized = (target: string) =>
  new Refusal(
    'malformed_request',
    'the request target is not a normalized path (no absolute URL, "//", "\\", "#", dot segments or invalid percent-encoding)',
    {
      ...(pathOf(target).includes('//') && { hint: 'the base URL of the client must not end with a slash' }),
    },
  );

/** The path of a target, without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

/** Whether a text is a host name or an address, with or without a port. */
export const isHost = (text: string) => HOST.test(text);

const HOST = /^(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

function checkHost(httpVersion: string, { hostCount, host }: RequestFields): void {
  // Node silently keeps the first of two.
  if (hostCount > 1 || (hostCount === 0 && httpVersion === '1.1'))
    throw malformed('the request must have exactly one Host header');
  if (host !== undefined && !isHost(host)) throw malformed('the Host header is not a valid host name or address');
}

export const headersTooLarge = () => new Refusal('headers_too_large', 'too many or too large headers');

function checkTransferCoding(httpVersion: string, { transferEncoding }: RequestFields): void {
  if (transferEncoding === undefined) return;
  // Node 22 and later refuse this themselves.
  if (transferEncoding === '') throw malformed('the Transfer-Encoding header is empty');
  if (transferEncoding.toLowerCase() !== 'chunked') {
    throw new Refusal('transfer_coding_not_supported', 'transfer coding not supported: use chunked, or Content-Length');
  }
  if (httpVersion === '1.0') throw malformed('an HTTP/1.0 request must not have a Transfer-Encoding header');
}

/**
 * Checks the `Expect` header of a request that has one. Only 100-continue is supported.
 *
 * @throws {Refusal}
 */
export function checkExpectation({ headers }: IncomingMessage): void {
  if (headers.expect?.toLowerCase() !== '100-continue') {
    throw new Refusal('expectation_failed', 'the value of Expect is not supported: use 100-continue');
  }
}

export const bodyTooLarge = () => new Refusal('body_too_large', 'request body too large');
