/** What came from elsewhere, made fit to be shown. A token's name must drive neither the terminal nor a spreadsheet. */
import { csvCell as cellOf } from '../daemon/api/csv.js';

// Controls (ESC and the 8-bit CSI among them), line and paragraph separators, and what turns the writing direction.
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** `text` on one line, with every control and bidi character spelt out: ESC becomes `\x1b`. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
  });
}

/** JSON that shows nothing of what `visible` hides: the same value, with more of it escaped than JSON demands. */
export function visibleJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(UNSEEN, (character) =>
    character === '\n' ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** One field as text for a machine: null is empty. */
export function plain(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? visible(value) : visibleJson(value);
}

/** A cell of CSV that neither a terminal nor a spreadsheet runs. */
export const csvCell = (value: unknown): string => cellOf(plain(value));

const MASK = '********';
// Masking a shorter one would garble every other word, and it is no secret anyway.
const SHORTEST_MASKED = 6;

/** Masks what looks like a secret or an upstream key, and everything in `known`. For text that may quote the command line. */
export function withoutSecrets(text: string, known: readonly (string | undefined)[]): string {
  let masked = text.replace(/\bsk-[\w-]{6,}/g, `sk-${MASK}`);
  for (const secret of known) {
    if (secret && secret.length >= SHORTEST_MASKED) masked = masked.replaceAll(secret, MASK);
  }
  return masked;
}

/** One word for a POSIX shell, whatever is in it. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
