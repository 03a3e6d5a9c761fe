/**
 * Secrets that can be recognised wherever they appear. Every secret of a test is made here, or is one of a token, an operator or a session, so
 * one search finds them all, including those of future tests.
 */
import { randomBytes } from 'node:crypto';
import { SECRET_PREFIXES, type SecretKind } from '../../daemon/core/token.js';

/** What a secret is for. `client`: anything that a client sends besides a withering token, such as a cookie. */
export const KINDS = ['upstream', 'management', 'encryption', 'password', 'client', 'dispatcher'] as const;
export type Kind = (typeof KINDS)[number];

const CANARY = '-canary-';

/** A new secret. It does not begin with `sk-`: the log masks those, which would hide that the secret got there. */
export const canary = (kind: Kind): string => `${kind}${CANARY}${randomBytes(8).toString('hex')}`;

/** 32 bytes in base64, the form of ENCRYPTION_KEY. */
export const canaryEncryptionKey = (): string =>
  Buffer.from(`encryption${CANARY}${randomBytes(7).toString('hex')}`).toString('base64');

export interface Found {
  /** `unknown` if it is encoded. */
  kind: Kind | SecretKind | 'unknown';
  /** Enough to recognise it and its encoding; not the secret itself. */
  shown: string;
}

/** A mark in one encoding, and the characters that follow it in a secret. */
interface Mark {
  text: string;
  /** Of secrets that the daemon has made; null for canaries. */
  of: SecretKind | null;
  writing: string;
  rest: RegExp;
}

const HEX = '[0-9a-fA-F]{2}';

/** @param least the number of characters after the mark from which it counts as a secret. Fewer, such as a hint, may be displayed. */
function marksOf(text: string, character: string, least: number, of: SecretKind | null = null): Mark[] {
  const each = (write: (hex: string) => string) =>
    Array.from(text, (it) => write(Buffer.from(it).toString('hex'))).join('');
  const percent = each((hex) => `%${hex}`);
  const hex = each((it) => it);
  const rest = (one: string, count = least) => new RegExp(`${one}{${count}}`, 'y');
  const mark = (writing: string, written: string, its: RegExp): Mark => ({
    text: written,
    of,
    writing,
    rest: its,
  });
  return [
    mark('plain', text, rest(character)),
    ...['%2d', '%2D'].map((hyphen) => mark('percent-encoded', text.replaceAll('-', hyphen), rest(character))),
    ...[percent, percent.toUpperCase()].map((it) => mark('percent-encoded', it, rest(`(?:%${HEX})`))),
    mark(
      'escaped',
      each((it) => `\\u00${it}`),
      rest(`(?:\\\\u00${HEX})`),
    ),
    ...[hex, hex.toUpperCase()].map((it) => mark('hexadecimal', it, rest(`(?:${HEX})`))),
    ...inBase64(text).map((it) => mark('base64', it, rest('[A-Za-z0-9+/_-]', Math.floor((least * 4) / 3)))),
  ];
}

/** A text in base64 at each of three offsets, without the characters that depend on its neighbours. */
const inBase64 = (text: string) =>
  [0, 1, 2].map((before) =>
    Buffer.from('\0'.repeat(before) + text)
      .toString('base64')
      .slice(Math.ceil((before * 8) / 6), Math.floor(((before + text.length) * 8) / 6)),
  );

const MARKS = [
  ...marksOf(CANARY, '[0-9a-f]', 6),
  ...Object.entries(SECRET_PREFIXES).flatMap(([kind, prefix]) =>
    marksOf(prefix, '[0-9A-Za-z]', 12, kind as SecretKind),
  ),
];

/** Any mark at all. Nearly all texts have none, and this is twenty times as fast as a search for each of them. */
const ANY_MARK = new RegExp(MARKS.map(({ text }) => text.replaceAll('\\', '\\\\')).join('|'));

/** The longest encoding of a secret. This much must be kept of a stream that arrives in pieces. */
export const MAX_ENCODED_LENGTH = 6 * 64;

/**
 * The secrets, or large parts of one, in a text or in bytes: plain, or in base64, hexadecimal, percent-encoding or JSON escapes. Costs some
 * ms per megabyte.
 */
export function secretsIn(text: string | Uint8Array): Found[] {
  const readable =
    typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.length).toString('latin1');
  if (!ANY_MARK.test(readable)) return [];
  return MARKS.flatMap((mark) => {
    const found: Found[] = [];
    for (let at = readable.indexOf(mark.text); at !== -1; at = readable.indexOf(mark.text, at + 1)) {
      mark.rest.lastIndex = at + mark.text.length;
      if (mark.rest.test(readable)) found.push(describe(mark, readable, at));
    }
    return found;
  });
}

function describe({ text, of, writing }: Mark, readable: string, at: number): Found {
  const rest = readable.slice(at + text.length, at + text.length + 4);
  if (of) return { kind: of, shown: `${text}${rest}… (${writing})` };
  const kind = KINDS.find((it) => readable.endsWith(it, at)) ?? 'unknown';
  return { kind, shown: `${kind === 'unknown' ? '' : kind}${text}${rest}… (${writing})` };
}
