/** Converts a strip to the text for the terminal. */
import { asciiOf } from './ascii.js';
import { ROLES } from './roles.js';
import type { Strip } from './strip.js';

/** Adds SGR sequences, and converts to ASCII of the same width if needed. */
export function painted(line: Strip, { ascii, hasColor }: { ascii: boolean; hasColor: boolean }): string {
  let out = '';
  let now = '';
  for (const { text, role } of line) {
    const style = ROLES[role][hasColor ? 0 : 1];
    if (style !== now) out += (now === '' ? '' : '\x1b[0m') + (style === '' ? '' : `\x1b[${style}m`);
    now = style;
    out += ascii ? asciiOf(text) : text;
  }
  return now === '' ? out : `${out}\x1b[0m`;
}
