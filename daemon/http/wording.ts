/** How a refusal is worded for a client of /v1: in its dialect, and with what it can do about it. */
import type { IncomingMessage } from 'node:http';
import type { Reloadable } from '../../config/settings.js';
import type { Refusal } from '../core/refusal.js';
import { isWellFormedSecret, SECRET_PREFIX } from '../core/token.js';
import { holdsToken } from '../core/token-in-text.js';
import { bearerOf, subprotocolsOf } from './credentials.js';
import { type Dialect, dialectFor, goesByStatus } from './dialect.js';

export type WordingSettings = Pick<Reloadable, 'errorShape'>;

export interface Wording {
  dialect: Dialect;
  /** What the client can do about it. */
  hint: string | undefined;
  /** Whether only another status keeps the client from repeating what has no use. */
  goesByStatus: boolean;
  /** Whether a token was sent where a token belongs, whatever it is worth. */
  hasToken: boolean;
}

export function wordingFor(refusal: Refusal, req: IncomingMessage, { errorShape }: WordingSettings): Wording {
  const client = {
    dialect: dialectFor(errorShape, req.rawHeaders),
    goesByStatus: goesByStatus(errorShape, req.rawHeaders),
  };
  if (refusal.kind !== 'unauthorized') return { ...client, hint: refusal.hint, hasToken: false };
  const token = presentedBy(req);
  return { ...client, hint: refusal.hint ?? credentialHint(req, token), hasToken: token !== null };
}

/** For a request that could not be read: nothing is known of its client. */
export const wordingOfUnread = (refusal: Refusal, { errorShape }: WordingSettings): Wording => ({
  dialect: errorShape === 'auto' ? 'plain' : errorShape,
  goesByStatus: false,
  hint: refusal.hint,
  hasToken: false,
});

function presentedBy({ headers }: IncomingMessage): string | null {
  const { authorization } = headers;
  return authorization === undefined
    ? subprotocolsOf(headers['sec-websocket-protocol']).credential
    : bearerOf(authorization);
}

const SEND_IT = 'Send it as `Authorization: Bearer sk-wt-…`.';
const SEND_ONE = 'Send one as `Authorization: Bearer sk-wt-…`.';

/**
 * Why a credential was refused, by its form and its place alone. A whole token always gets the same words, so that
 * nobody learns from them which tokens there are.
 */
function credentialHint(req: IncomingMessage, token: string | null): string {
  if (token !== null && isWellFormedSecret(token)) return `the token is unknown, expired or revoked. ${SEND_IT}`;
  const place = placeOfToken(req.rawHeaders, token === null);
  if (place !== null) return `the token was sent in ${place}. ${SEND_IT}`;
  const key = token ?? credentialElsewhere(req) ?? '';
  if (key.startsWith(SECRET_PREFIX)) return `the token is not whole: characters are missing or wrong. ${SEND_IT}`;
  const beginning = PROVIDER_KEYS.find((it) => key.startsWith(it));
  if (beginning !== undefined) {
    return `a provider's key (\`${beginning}…\`) is not accepted, a withering token is needed. ${SEND_ONE}`;
  }
  if (token !== null) return `this is not a withering token. ${SEND_ONE}`;
  if (req.headers.authorization !== undefined) return `the Authorization header has no bearer token. ${SEND_ONE}`;
  return `the request has no token. ${SEND_ONE}`;
}

/** How the keys of providers begin, the longer ones first. */
const PROVIDER_KEYS = ['sk-proj-', 'sk-svcacct-', 'sk-ant-', 'sk-or-', 'sk-', 'AIza', 'gsk_', 'xai-', 'pplx-', 'hf_'];

/** Where the SDKs of other providers put a key. */
const KEY_FIELDS = [
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'xi-api-key',
  'ocp-apim-subscription-key',
  'x-auth-token',
];

/**
 * @param inAuthorization whether a token in `Authorization` is misplaced too, because it is no bearer token there.
 * @returns where a token stands that does not belong there, as it is told to the client.
 */
function placeOfToken(rawHeaders: readonly string[], inAuthorization: boolean): string | null {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (!holdsToken(rawHeaders[i + 1] ?? '')) continue;
    if (name === 'authorization') {
      if (inAuthorization) return 'another form';
      continue;
    }
    return KEY_FIELDS.includes(name) ? `the header \`${name}\`` : 'another header';
  }
  return null;
}

function credentialElsewhere({ headers }: IncomingMessage): string | null {
  for (const name of KEY_FIELDS) {
    const value = headers[name];
    if (typeof value === 'string') return value;
  }
  return null;
}
