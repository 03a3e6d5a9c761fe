/** Error texts for clients of /v1: the format that the client reads, and a hint what to do. */
import type { IncomingMessage } from 'node:http';
import type { Reloadable } from '../../config/settings.js';
import type { Refusal } from '../core/refusal.js';
import { isWellFormedSecret, SECRET_PREFIX } from '../core/token.js';
import { holdsToken } from '../core/token-in-text.js';
import { bearerOf, subprotocolsOf } from './client-identity.js';
import { OTHER_CARRIERS, OTHER_CREDENTIAL_FIELDS } from './request-head.js';
import { type Client, clientOf } from './client-families.js';

export type WordingSettings = Pick<Reloadable, 'errorShape'>;

export interface Wording extends Client {
  /** What the client can do about the error. */
  hint: string | undefined;
  /** Whether a token was sent in the right place, valid or not. */
  hasToken: boolean;
}

export function wordingFor(refusal: Refusal, req: IncomingMessage, { errorShape }: WordingSettings): Wording {
  const client = clientOf(errorShape, req.rawHeaders);
  if (refusal.kind !== 'unauthorized') return { ...client, hint: refusal.hint, hasToken: false };
  const token = presentedToken(req);
  return { ...client, hint: refusal.hint ?? credentialHint(req, token), hasToken: token !== null };
}

/** For a request that could not be parsed: nothing is known of its client. */
export const wordingForUnreadable = (refusal: Refusal, { errorShape }: WordingSettings): Wording => ({
  ...clientOf(errorShape, []),
  hint: refusal.hint,
  hasToken: false,
});

/** For a hint only: of several credentials any one. It must not throw, because it words a refusal. */
function presentedToken({ headers }: IncomingMessage): string | null {
  const { credential } = subprotocolsOf(headers['sec-websocket-protocol']);
  const presented = [
    bearerOf(headers.authorization),
    ...OTHER_CARRIERS.map((name) => headers[name]),
    credential,
  ].filter((text) => typeof text === 'string');
  return presented.find(isWellFormedSecret) ?? presented[0] ?? null;
}

const HOW_TO_SEND_IT = 'Send it as `Authorization: Bearer sk-wt-…`.';
const HOW_TO_SEND_ONE = 'Send one as `Authorization: Bearer sk-wt-…`.';

/**
 * Hint why a credential was refused, by its form and its place only. All well-formed tokens get the same text, so that clients cannot
 * find out which tokens exist.
 */
function credentialHint(req: IncomingMessage, token: string | null): string {
  if (token !== null && isWellFormedSecret(token))
    return 'the token is unknown, expired or revoked. Ask its issuer for a new one.';
  const place = locationOfToken(req.rawHeaders, token === null);
  if (place !== null) return `the token was sent in ${place}. ${HOW_TO_SEND_IT}`;
  const key = token ?? credentialElsewhere(req) ?? '';
  if (key.startsWith(SECRET_PREFIX)) return `the token is incomplete or mistyped: copy it again. ${HOW_TO_SEND_IT}`;
  const beginning = PROVIDER_KEYS.find((it) => key.startsWith(it));
  if (beginning !== undefined) {
    return `this is a provider's API key (\`${beginning}…\`), but a withering token is needed. ${HOW_TO_SEND_ONE}`;
  }
  if (token !== null) return `this is not a withering token. ${HOW_TO_SEND_ONE}`;
  if (req.headers.authorization !== undefined)
    return `the Authorization header has no bearer token. ${HOW_TO_SEND_ONE}`;
  return `the request has no token. ${HOW_TO_SEND_ONE}`;
}

/** Prefixes of providers' keys, the longer ones first. */
const PROVIDER_KEYS = ['sk-proj-', 'sk-svcacct-', 'sk-ant-', 'sk-or-', 'sk-', 'AIza', 'gsk_', 'xai-', 'pplx-', 'hf_'];

const CARRIERS: ReadonlySet<string> = new Set(OTHER_CARRIERS);

/**
 * @param inAuthorization whether a token in `Authorization` is misplaced too, because it is not a bearer token there.
 * @returns the wrong place of a token, worded for the client; null if there is none.
 */
function locationOfToken(rawHeaders: readonly string[], inAuthorization: boolean): string | null {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (!holdsToken(rawHeaders[i + 1] ?? '')) continue;
    if (CARRIERS.has(name)) continue;
    if (name === 'authorization') {
      if (inAuthorization) return 'the Authorization header without `Bearer`';
      continue;
    }
    return OTHER_CREDENTIAL_FIELDS.includes(name) ? `the header \`${name}\`` : 'another header';
  }
  return null;
}

function credentialElsewhere({ headers }: IncomingMessage): string | null {
  for (const name of OTHER_CREDENTIAL_FIELDS) {
    const value = headers[name];
    if (typeof value === 'string') return value;
  }
  return null;
}
