/** Escapes untrusted text for output: a token's name must not control the terminal, a spreadsheet or a shell. */
import { csvCell as cellOf } from '../daemon/api/escape.js';
import { INVISIBLE, visible } from '../daemon/api/escape.js';

export { visible };

/** Text of several lines and columns, whose line ends and tabs the caller put there. Other control characters are escaped. */
export const visibleLines = (text: string): string =>
  text.replace(INVISIBLE, (character) => (character === '\n' || character === '\t' ? character : visible(character)));

/** JSON without raw control and bidirectional characters. The value is the same, but more characters are escaped than JSON requires. */
export const visibleJson = (value: unknown, indent?: number): string =>
  escapedQuotes(JSON.stringify(value, null, indent));

/** Escapes what is invisible in JSON or YAML, where such characters occur only in double quotes. */
export const escapedQuotes = (json: string): string =>
  json.replace(INVISIBLE, (character) =>
    character === '\n' ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** A field as text for machines; null becomes an empty string. */
export function plain(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? visible(value) : visibleJson(value);
}

/** A CSV cell without control characters, and that a spreadsheet does not evaluate as a formula. */
export const csvCell = (value: unknown): string => cellOf(plain(value));

const MASK = '********';
// Masking shorter text would garble ordinary words, and it is too short to be a secret.
const SHORTEST_MASKED = 6;

/** Masks text that looks like a secret or an upstream key, and all `known` secrets. For text that may quote the command line. */
export function withoutSecrets(text: string, known: readonly (string | undefined)[]): string {
  let masked = text.replace(/\bsk-[\w-]{6,}/g, `sk-${MASK}`);
  for (const secret of known) {
    if (secret && secret.length >= SHORTEST_MASKED) masked = masked.replaceAll(secret, MASK);
  }
  return masked;
}

/** Quotes `text` as one word for a POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The same, but only if it is needed: for people to read. */
export const shortShellWord = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : shellWord(text));
