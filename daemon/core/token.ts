import { hash, randomBytes } from 'node:crypto';
import type { TokenState } from '../api/vocabulary.js';

/** A project as the core knows it. The upstream key is not part of it: only admission asks for that. */
export interface Project {
  id: string;
  name: string;
  isActive: boolean;
  /** The last four characters of the upstream key. */
  apiKeyHint: string;
  createdAtMs: number;
  updatedAtMs: number;
  deactivatedAtMs: number | null;
}

/** What is said of a token when it is created, and stays. */
export interface TokenTerms {
  projectId: string;
  name: string | null;
  /** 0 = unlimited. */
  maxRequests: number;
}

/** What holds where nothing is said. */
export const DEFAULT_TERMS: Omit<TokenTerms, 'projectId'> = { name: null, maxRequests: 0 };

/** What the API and the audit log call these terms. */
export const TERM_NAMES = {
  name: 'name',
  maxRequests: 'max_requests',
} as const satisfies Record<keyof typeof DEFAULT_TERMS, string>;

export interface Token extends TokenTerms {
  id: string;
  isActive: boolean;
  expiresAtMs: number;
  requestCount: number;
  cacheHitCount: number;
  createdAtMs: number;
  lastUsedAtMs: number | null;
  /** `sk-wt-` + 4 … 4, for people. */
  obfuscated: string;
}

/** What is counted of a token that nobody has used yet. */
export const UNUSED = { requestCount: 0, cacheHitCount: 0, lastUsedAtMs: null } satisfies Partial<Token>;

export type { TokenState };

/** Where several states hold, the first of this order is the one shown. `now >= expiresAtMs` is expired. */
export function stateOf(token: Token, projectIsActive: boolean, nowMs: number): TokenState {
  if (!token.isActive) return 'revoked';
  if (nowMs >= token.expiresAtMs) return 'expired';
  if (!projectIsActive) return 'project_inactive';
  if (token.maxRequests > 0 && token.requestCount >= token.maxRequests) return 'rate_limited';
  return 'active';
}

export const SECRET_PREFIX = 'sk-wt-';
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 43; // 62^43 > 2^256
const CHECKSUM_LENGTH = 6;
const CHECKED_LENGTH = SECRET_PREFIX.length + RANDOM_LENGTH;
export const SECRET_LENGTH = CHECKED_LENGTH + CHECKSUM_LENGTH;
/** What follows the prefix of a secret, as the source of a regular expression. */
export const SECRET_REST = `[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}`;
const SHAPE = new RegExp(`^${SECRET_PREFIX}${SECRET_REST}$`);

/** A new secret: `sk-wt-`, 256 random bits in base62, and the CRC-32 of all before it in base62. */
export function mintSecret(): string {
  const checked = SECRET_PREFIX + base62(BigInt(`0x${randomBytes(32).toString('hex')}`), RANDOM_LENGTH);
  return checked + base62(BigInt(crc32(checked, checked.length)), CHECKSUM_LENGTH);
}

/** Whether `text` can be a secret at all: neither a typo nor a guess is. */
export function isWellFormedSecret(text: string): boolean {
  if (!SHAPE.test(text)) return false;
  let rest = crc32(text, CHECKED_LENGTH);
  for (let i = text.length - 1; i >= CHECKED_LENGTH; i--) {
    if (text.charCodeAt(i) !== BASE62.charCodeAt(rest % 62)) return false;
    rest = Math.floor(rest / 62);
  }
  return true; // 62^6 > 2^32: nothing is left of the checksum.
}

/** SHA-256 of a secret in hex: what is stored and remembered in the secret's place. */
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

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** CRC-32 (IEEE) of the first `length` characters, which must be ASCII. */
function crc32(text: string, length: number): number {
  let crc = 0xffffffff;
  for (let i = 0; i < length; i++) crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ text.charCodeAt(i)) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}
