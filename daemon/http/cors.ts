/**
 * What pages of other origins may do on /v1 and /manage (the CORS protocol of the Fetch standard). A page of a listed
 * origin may send any request and read the answer; any other may do no more than it could without being asked.
 *
 * A page must itself know the credential it puts into `Authorization`. What a browser would add of its own accord
 * (`Access-Control-Allow-Credentials`) means nothing here and is never allowed.
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
  // of the management API's lists
  'ETag',
  'Link',
  'X-Total-Count',
].join(', ');
// How long a page may go on sending what it asked about, after its origin was taken off the list.
const MAX_AGE_SECONDS = 600;

// Nobody is listed: no answer depends on the origin.
const SAME_FOR_ALL: CorsFields = {};
// Also on the answer to a request without an origin, which a cache could otherwise keep for those that have one.
const BY_ORIGIN: CorsFields = { Vary: 'Origin' };

/** What an answer carries, a refusal too. */
export function corsFields(settings: CorsSettings, req: IncomingMessage): CorsFields {
  if (!settings.corsAllowedOrigins) return SAME_FOR_ALL;
  const origin = allowedOrigin(settings, req);
  if (origin === null) return BY_ORIGIN;
  return { ...BY_ORIGIN, 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': EXPOSED };
}

/** What the answer to a preflight carries. Its status is 204 whoever asks: the browser goes by these. */
export function preflightFields(settings: CorsSettings, req: IncomingMessage): CorsFields {
  const vary = { Vary: 'Origin, Access-Control-Request-Headers' };
  const origin = allowedOrigin(settings, req);
  if (origin === null) return vary;
  const names = validNames(req.headers['access-control-request-headers']);
  return {
    ...vary,
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Allow-Methods': METHODS,
    // Named one by one: `*` would leave out `Authorization`.
    ...(names.length > 0 && { 'Access-Control-Allow-Headers': names.join(', ') }),
    'Access-Control-Max-Age': String(MAX_AGE_SECONDS),
  };
}

// Byte for byte: no list of beginnings or endings that https://app.example.evil.example would match.
function allowedOrigin({ corsAllowedOrigins }: CorsSettings, { headers: { origin } }: IncomingMessage): string | null {
  return origin !== undefined && corsAllowedOrigins?.includes(origin) ? origin : null;
}

// `*` is a name by the grammar, but would be read as "any".
const NAME = /^(?!\*$)[\w!#$%&'*+.^`|~-]+$/;

function validNames(requested: string | undefined): string[] {
  return (requested ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => NAME.test(name));
}
