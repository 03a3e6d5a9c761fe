/**
 * CORS for /v1 and /manage (the protocol of the Fetch standard). A page of a listed origin may send any request and read the response.
 * Pages of other origins can do no more than browsers allow without CORS.
 *
 * A page must itself know the credential for `Authorization`. Credentials that a browser adds by itself
 * (`Access-Control-Allow-Credentials`) are not used here and never allowed.
 */
import type { IncomingMessage } from 'node:http';
import type { Reloadable } from '../../config/settings.js';

export type CorsSettings = Pick<Reloadable, 'corsAllowedOrigins'>;
export type CorsFields = Readonly<Record<string, string>>;

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const EXPOSED = [
  'X-PROXY-CACHE',
  'X-Request-ID',
  'X-Upstream-Request-ID',
  'Retry-After',
  'X-Should-Retry',
  'RateLimit',
  'RateLimit-Policy',
  'X-Token-Expires-At',
  'X-Token-Requests-Remaining',
  'X-Token-Warning',
  // Lists of the management API.
  'ETag',
  'Link',
  'X-Total-Count',
].join(', ');
// Also how long a page may keep sending requests after its origin was removed from the list.
const MAX_AGE_SECONDS = 600;

// No origin is listed: no response depends on the origin.
const NO_CORS: CorsFields = {};
// Also on responses to requests without an origin; otherwise a cache could serve them to requests that have one.
const VARY_BY_ORIGIN: CorsFields = { Vary: 'Origin' };

/** CORS headers of a response, also of a refusal. */
export function corsFields(settings: CorsSettings, req: IncomingMessage): CorsFields {
  if (!settings.corsAllowedOrigins) return NO_CORS;
  const origin = allowedOrigin(settings, req);
  if (origin === null) return VARY_BY_ORIGIN;
  return { ...VARY_BY_ORIGIN, 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': EXPOSED };
}

/** CORS headers of the response to a preflight. Its status is always 204; browsers decide by these headers. */
export function preflightFields(settings: CorsSettings, req: IncomingMessage): CorsFields {
  const vary = { Vary: 'Origin, Access-Control-Request-Headers' };
  const origin = allowedOrigin(settings, req);
  if (origin === null) return vary;
  const names = validNames(req.headers['access-control-request-headers']);
  return {
    ...vary,
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Allow-Methods': METHODS,
    // Listed one by one: `*` would not include `Authorization`.
    ...(names.length > 0 && { 'Access-Control-Allow-Headers': names.join(', ') }),
    'Access-Control-Max-Age': String(MAX_AGE_SECONDS),
  };
}

// Compared byte for byte: a prefix or suffix match would accept https://app.example.evil.example.
function allowedOrigin({ corsAllowedOrigins }: CorsSettings, { headers: { origin } }: IncomingMessage): string | null {
  return origin !== undefined && corsAllowedOrigins?.includes(origin) ? origin : null;
}

// `*` is a valid name, but would mean any header.
const NAME = /^(?!\*$)[\w!#$%&'*+.^`|~-]+$/;

function validNames(requested: string | undefined): string[] {
  return (requested ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => NAME.test(name));
}
