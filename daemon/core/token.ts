import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type {
  Allow,
  AuditActor,
  Budget,
  Limits,
  MissingUsage,
  Policies,
  TokenState,
  UpstreamAuth,
} from '../api/vocabulary.js';

/** A project. Its upstream key is not included: only admission reads it. */
export interface Project extends Policies {
  id: string;
  name: string;
  isActive: boolean;
  /** The last four characters of the upstream key. */
  apiKeyHint: string;
  /** Where its requests are forwarded to, without a trailing slash; null: UPSTREAM_BASE_URL. */
  upstreamBaseUrl: string | null;
  /** How the provider receives the key. */
  upstreamAuth: UpstreamAuth;
  /** What happens with a streamed chat completion that does not ask for its usage. */
  missingUsage: MissingUsage;
  createdAtMs: number;
  updatedAtMs: number;
  deactivatedAtMs: number | null;
}

/** Terms of a token: set when it is created, never changed. */
export interface TokenTerms {
  projectId: string;
  name: string | null;
  /** 0 = unlimited. */
  maxRequests: number;
}

/** Default terms. */
export const DEFAULT_TERMS: Omit<TokenTerms, 'projectId'> = { name: null, maxRequests: 0 };

/** Names of the terms in the API and the audit log. */
export const TERM_NAMES = {
  name: 'name',
  maxRequests: 'max_requests',
} as const satisfies Record<keyof typeof DEFAULT_TERMS, string>;

/** When, by whom and why a token was revoked. Null for a token that is active, or was revoked by a release that did not record it. */
export interface Revocation {
  revokedAtMs: number | null;
  /** Who is verified, or else the user of the front end, or else the front end. */
  revokedBy: string | null;
  revokeReason: string | null;
}

export const NOT_REVOKED: Revocation = { revokedAtMs: null, revokedBy: null, revokeReason: null };

export interface Token extends TokenTerms, Policies, Revocation {
  id: string;
  isActive: boolean;
  expiresAtMs: number;
  requestCount: number;
  cacheHitCount: number;
  createdAtMs: number;
  lastUsedAtMs: number | null;
  /** The operator, the person or the trust that has issued it; null: the holder of the management token. */
  issuedBy: AuditActor | null;
  /** For people to read; null if `issuedBy` is. */
  issuedByName: string | null;
  /** For display: `sk-wt-`, the first 4 and the last 4 characters of the secret. */
  obfuscated: string;
}

/** Counts of a token that was never used. */
export const UNUSED = { requestCount: 0, cacheHitCount: 0, lastUsedAtMs: null } satisfies Partial<Token>;

/** A token with the counts that are not yet written to the database. */
export const withUnsettled = (token: Token, uses: number, hits: number, lastUsedAtMs: number): Token => ({
  ...token,
  requestCount: token.requestCount + uses,
  cacheHitCount: token.cacheHitCount + hits,
  lastUsedAtMs: Math.max(token.lastUsedAtMs ?? 0, lastUsedAtMs) || null,
});

export type { Allow, Budget, Limits, Policies, TokenState };

/** If several states apply, the first in this order is shown. A token is expired from `expiresAtMs` on, inclusive. */
export function stateOf(token: Token, projectIsActive: boolean, nowMs: number): TokenState {
  if (!token.isActive) return 'revoked';
  if (nowMs >= token.expiresAtMs) return 'expired';
  if (!projectIsActive) return 'project_inactive';
  if (token.maxRequests > 0 && token.requestCount >= token.maxRequests) return 'rate_limited';
  return 'active';
}

/** Beginnings of secrets, by what they are of: a token, an operator, or a session of a command line. All have the same length. */
export const SECRET_PREFIXES = { token: 'sk-wt-', operator: 'sk-op-', session: 'sk-ss-' } as const;
export type SecretKind = keyof typeof SECRET_PREFIXES;
export const SECRET_PREFIX = SECRET_PREFIXES.token;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 43; // 62^43 > 2^256
const CHECKSUM_LENGTH = 6;
const CHECKED_LENGTH = SECRET_PREFIX.length + RANDOM_LENGTH;
export const SECRET_LENGTH = CHECKED_LENGTH + CHECKSUM_LENGTH;
/** What follows the prefix of a secret, as the source of a regular expression. */
export const SECRET_REST = `[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}`;
const shapeOf = (prefix: string) => new RegExp(`^${prefix}${SECRET_REST}$`);
const SHAPES: Record<SecretKind, RegExp> = {
  token: shapeOf(SECRET_PREFIXES.token),
  operator: shapeOf(SECRET_PREFIXES.operator),
  session: shapeOf(SECRET_PREFIXES.session),
};

/** Generates the secret of a token. */
export const mintSecret = (): string => mintSecretOf('token');

/** Generates a secret: its prefix, 256 random bits in base62, and a CRC-32 of the preceding characters in base62. */
export function mintSecretOf(kind: SecretKind): string {
  const checked = SECRET_PREFIXES[kind] + base62(BigInt(`0x${randomBytes(32).toString('hex')}`), RANDOM_LENGTH);
  return checked + base62(BigInt(crc32(checked)), CHECKSUM_LENGTH);
}

/** Whether `text` has the format and checksum of the secret of a token. Typos and guesses fail. */
export const isWellFormedSecret = (text: string): boolean => isWellFormedSecretOf('token', text);

/** The same for another kind of secret. */
export function isWellFormedSecretOf(kind: SecretKind, text: string): boolean {
  if (!SHAPES[kind].test(text)) return false;
  let rest = crc32(text.slice(0, CHECKED_LENGTH));
  for (let i = text.length - 1; i >= CHECKED_LENGTH; i--) {
    if (text.charCodeAt(i) !== BASE62.charCodeAt(rest % 62)) return false;
    rest = Math.floor(rest / 62);
  }
  return true; // 62^6 > 2^32, so six digits hold the whole checksum.
}

/** SHA-256 of a secret in hex, stored instead of the secret. */
export function digestOf(secret: string): string {
  return hash('sha256', secret, 'hex');
}

export function obfuscate(secret: string): string {
  return `${secret.slice(0, SECRET_PREFIX.length + 4)}…${secret.slice(-4)}`;
}

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; rest > 0n; rest /= 62n) text = BASE62.charAt(Number(rest % 62n)) + text;
  return text.padStart(length, '0');
}
