/**
 * Whether a request on /v1 has a shape that can be forwarded without two readers reading it differently. What Node's
 * parser accepts and another might not, or might read otherwise, ends here.
 */
import type { IncomingMessage } from 'node:http';
import { percentDecodedForms } from '../core/percent.js';
import { Refusal } from '../core/refusal.js';
import { readFields, type RequestFields } from './fields.js';

export const LONGEST_TARGET = 8 * 1024;
export const MOST_HEADERS = 100;
export const LARGEST_HEADERS = 32 * 1024;

const ALLOW = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

const malformed = (what: string) => new Refusal('malformed_request', what);

/**
 * What holds for every request, whatever its target.
 *
 * @returns the header fields, which are read on the way.
 * @throws {Refusal}
 */
export function checkMessage(req: IncomingMessage): RequestFields {
  const { httpVersion, rawHeaders } = req;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    throw new Refusal('http_version_not_supported', 'HTTP version not supported');
  }
  if (rawHeaders.length > 2 * MOST_HEADERS) throw headersTooLarge();
  const fields = readFields(rawHeaders);
  if (fields.bytes > LARGEST_HEADERS) throw headersTooLarge();
  checkHost(httpVersion, fields);
  checkCoding(httpVersion, fields);
  return fields;
}

/**
 * What holds on /v1.
 *
 * @returns the header fields.
 * @throws {Refusal}
 */
export function checkShape(req: IncomingMessage, maxBodyBytes: number): RequestFields {
  const fields = checkMessage(req);
  if (req.method === 'TRACE' || req.method === 'CONNECT') throw methodNotAllowed();
  checkTarget(req.url ?? '');
  // Node keeps the first of two and says nothing.
  if (fields.authorizations > 1) throw malformed('more than one Authorization header');
  if (Number(fields.contentLength ?? 0) > maxBodyBytes) throw bodyTooLarge();
  return fields;
}

export const methodNotAllowed = () => new Refusal('method_not_allowed', 'method not allowed', { allow: ALLOW });

const PLAIN_TARGET = /^\/v1(?:\/[\w-]+)*$/;
const VISIBLE_ASCII = /^[\x21-\x7e]*$/;
// A segment of one or two dots, perhaps with what some servers cut off a segment: parameters (`..;x`), a query, a fragment, spaces.
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:[\0-\x20;?#][^/\\]*)?(?=[/\\]|$)/;
// `.`, `/` and `\` in more bytes than UTF-8 allows, which lenient decoders take for the character.
const OVERLONG = /\xc0[\xae\xaf]|\xc1\x9c|\xe0\x80[\xae\xaf]|\xe0\x81\x9c/;

function checkTarget(target: string): void {
  if (target.length > LONGEST_TARGET) throw new Refusal('uri_too_long', 'request target too long');
  if (!isPlainTarget(target)) throw targetNotPlain(target);
}

/**
 * One plain form, so that what is routed, cached and forwarded is the same thing. An encoded slash in a segment (`%2F`) is
 * data and stays as it is; but what an upstream that decodes the path first would read as a way out of it is refused, even
 * if it is encoded several times over.
 */
export function isPlainTarget(target: string): boolean {
  if (PLAIN_TARGET.test(target)) return true;
  const path = pathOf(target);
  return (
    VISIBLE_ASCII.test(target) &&
    /^\/v1(?:\/|$)/.test(path) &&
    !/[\\#]/.test(target) &&
    !path.includes('//') &&
    !/%(?![0-9a-f]{2})/i.test(path) &&
    !percentDecodedForms(path).some((form) => DOT_SEGMENT.test(form) || OVERLONG.test(form))
  );
}

export const targetNotPlain = (target: string) =>
  new Refusal('malformed_request', 'the request target is not in its plain form', {
    ...(pathOf(target).includes('//') && { hint: 'does the base URL end with a slash?' }),
  });

/** A target without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

/** A name or an address, perhaps with a port. */
export const isHost = (text: string) => HOST.test(text);

const HOST = /^(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

function checkHost(httpVersion: string, { hosts, host }: RequestFields): void {
  // Node keeps the first of two and says nothing.
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) throw malformed('exactly one Host header is needed');
  if (host !== undefined && !isHost(host)) throw malformed('the Host header is not a host');
}

export const headersTooLarge = () => new Refusal('headers_too_large', 'too many or too large headers');

function checkCoding(httpVersion: string, { transferEncoding }: RequestFields): void {
  if (transferEncoding === undefined) return;
  // Node from 22 on says so itself.
  if (transferEncoding === '') throw malformed('Transfer-Encoding without a coding');
  if (transferEncoding.toLowerCase() !== 'chunked') {
    throw new Refusal('transfer_coding_not_supported', 'transfer coding not supported');
  }
  if (httpVersion === '1.0') throw malformed('HTTP/1.0 has no transfer codings');
}

/**
 * Of a request that expects something before it goes on: there is one thing a server can give.
 *
 * @throws {Refusal}
 */
export function checkExpectation({ headers }: IncomingMessage): void {
  if (headers.expect?.toLowerCase() !== '100-continue') {
    throw new Refusal('expectation_failed', 'expectation not supported');
  }
}

export const bodyTooLarge = () => new Refusal('body_too_large', 'request body too large');
