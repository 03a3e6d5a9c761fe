/**
 * Secrets that give themselves away wherever they turn up. Every secret of a test is made here or is a withering token,
 * so that one search finds them all, those of a test not yet written among them.
 */
import { randomBytes } from 'node:crypto';

/** What a secret is for. `client`: what a client sends besides a withering token, such as a cookie. */
export const KINDS = ['upstream', 'management', 'encryption', 'password', 'client', 'dispatcher'] as const;
export type Kind = (typeof KINDS)[number];

const CANARY = '-canary-';
const TOKEN = 'sk-wt-';

/** A new secret. It does not begin with `sk-`: the log masks those by their look, and would hide from us that one got there. */
export const canary = (kind: Kind): string => `${kind}${CANARY}${randomBytes(8).toString('hex')}`;

/** 32 bytes in base64, as ENCRYPTION_KEY has them. */
export const canaryEncryptionKey = (): string =>
  Buffer.from(`encryption${CANARY}${randomBytes(7).toString('hex')}`).toString('base64');

export interface Found {
  /** `unknown` where it is encoded. */
  kind: Kind | 'token' | 'unknown';
  /** Enough to recognise it by, and to tell how it was written; not the secret. */
  shown: string;
}

/** A mark in one writing, and what follows it in a secret. */
interface Mark {
  text: string;
  isToken: boolean;
  writing: string;
  rest: RegExp;
}

const HEX = '[0-9a-fA-F]{2}';

/** @param least how many characters after the mark make it a secret, or too much of one: fewer, such as a hint, may be shown. */
function marksOf(text: string, character: string, least: number): Mark[] {
  const each = (write: (hex: string) => string) =>
    Array.from(text, (it) => write(Buffer.from(it).toString('hex'))).join('');
  const percent = each((hex) => `%${hex}`);
  const hex = each((it) => it);
  const rest = (one: string, count = least) => new RegExp(`${one}{${count}}`, 'y');
  const mark = (writing: string, written: string, its: RegExp): Mark => ({
    text: written,
    isToken: text === TOKEN,
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

/** A text in base64 at each of three places; the characters that depend on what stands beside it are left out. */
const inBase64 = (text: string) =>
  [0, 1, 2].map((before) =>
    Buffer.from('\0'.repeat(before) + text)
      .toString('base64')
      .slice(Math.ceil((before * 8) / 6), Math.floor(((before + text.length) * 8) / 6)),
  );

const MARKS = [...marksOf(CANARY, '[0-9a-f]', 6), ...marksOf(TOKEN, '[0-9A-Za-z]', 12)];

/** Any mark at all. Nearly all texts have none, and this says so twenty times as quickly as a look for each of them. */
const ANY_MARK = new RegExp(MARKS.map(({ text }) => text.replaceAll('\\', '\\\\')).join('|'));

/** How long a secret can be in any of these writings: so much must be kept of what comes in pieces. */
export const LONGEST_WRITTEN = 6 * 64;

/**
 * The secrets, or large parts of one, that stand in a text or in bytes: as they are or in base64, hexadecimal,
 * percent-encoded or escaped as in JSON. Costs some ms a megabyte.
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

function describe({ text, isToken, writing }: Mark, readable: string, at: number): Found {
  const rest = readable.slice(at + text.length, at + text.length + 4);
  if (isToken) return { kind: 'token', shown: `${text}${rest}… (${writing})` };
  const kind = KINDS.find((it) => readable.endsWith(it, at)) ?? 'unknown';
  return { kind, shown: `${kind === 'unknown' ? '' : kind}${text}${rest}… (${writing})` };
}
