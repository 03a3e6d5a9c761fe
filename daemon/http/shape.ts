/**
 * Checks the shape of requests on /v1. Refuses what Node's parser accepts but another server might reject or read differently, so that no
 * two servers on the way read a request differently (request smuggling).
 */
import type { IncomingMessage } from 'node:http';
import { percentDecodedForms } from '../core/percent.js';
import { Refusal } from '../core/refusal.js';
import { readFields, type RequestFields } from './fields.js';

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
