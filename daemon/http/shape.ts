/**
 * Whether a request on /v1 has a shape that can be forwarded without two readers reading it differently. What Node's
 * parser accepts and another might not, or might read otherwise, ends here.
 */
import type { IncomingMessage } from 'node:http';
import { Refusal } from '../core/refusal.js';

export const LONGEST_TARGET = 8 * 1024;
export const MOST_HEADERS = 100;
export const LARGEST_HEADERS = 32 * 1024;

const ALLOW = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

const malformed = (what: string) => new Refusal('malformed_request', what);

/** @throws {Refusal} */
export function checkShape(req: IncomingMessage, maxBodyBytes: number): void {
  if (req.httpVersion !== '1.1' && req.httpVersion !== '1.0') {
    throw new Refusal('http_version_not_supported', 'HTTP version not supported');
  }
  if (req.method === 'TRACE' || req.method === 'CONNECT') throw methodNotAllowed();
  checkTarget(req.url ?? '');
  checkHeaders(req);
  checkFraming(req, maxBodyBytes);
}

export const methodNotAllowed = () => new Refusal('method_not_allowed', 'method not allowed', { allow: ALLOW });

const PLAIN_TARGET = /^\/v1(?:\/[\w-]+)*$/;
const VISIBLE_ASCII = /^[\x21-\x7e]*$/;
// A segment of dots only, in plain or in hexadecimal, perhaps with parameters (`..;x`).
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?:;[^/]*)?(?=\/|$)/i;

/** One plain form, so that what is routed, cached and forwarded is the same thing. `%2F` is data and stays as it is. */
function checkTarget(target: string): void {
  if (target.length > LONGEST_TARGET) throw new Refusal('uri_too_long', 'request target too long');
  if (PLAIN_TARGET.test(target)) return;
  const path = pathOf(target);
  if (
    !VISIBLE_ASCII.test(target) ||
    !/^\/v1(?:\/|$)/.test(path) ||
    /[\\#]/.test(target) ||
    path.includes('//') ||
    DOT_SEGMENT.test(path) ||
    /%(?![0-9a-f]{2})/i.test(path)
  ) {
    throw targetNotPlain();
  }
}

export const targetNotPlain = () => malformed('the request target is not in its plain form');

/** A target without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

const HOST = /^(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

function checkHeaders(req: IncomingMessage): void {
  const { rawHeaders } = req;
  if (rawHeaders.length > 2 * MOST_HEADERS) throw headersTooLarge();
  let bytes = 0;
  let hosts = 0;
  let credentials = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    bytes += name.length + (rawHeaders[i + 1]?.length ?? 0) + 4; // ": " and CRLF
    // By length first: most fields are neither, and lower-casing each costs.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    else if (name.length === 13 && name.toLowerCase() === 'authorization') credentials += 1;
  }
  if (bytes > LARGEST_HEADERS) throw headersTooLarge();
  // Node keeps the first of two and says nothing.
  if (credentials > 1) throw malformed('more than one Authorization header');
  if (hosts > 1 || (hosts === 0 && req.httpVersion === '1.1')) throw malformed('exactly one Host header is needed');
  if (hosts === 1 && !HOST.test(req.headers.host ?? '')) throw malformed('the Host header is not a host');
}

export const headersTooLarge = () => new Refusal('headers_too_large', 'too many or too large headers');

function checkFraming(req: IncomingMessage, maxBodyBytes: number): void {
  const coding = req.headers['transfer-encoding'];
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked') {
      throw new Refusal('transfer_coding_not_supported', 'transfer coding not supported');
    }
    if (req.httpVersion === '1.0') throw malformed('HTTP/1.0 has no transfer codings');
  }
  if (Number(req.headers['content-length'] ?? 0) > maxBodyBytes) throw bodyTooLarge();
}

export const bodyTooLarge = () => new Refusal('body_too_large', 'request body too large');
