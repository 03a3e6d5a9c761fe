/** Converts a strip to the text for the terminal. */
import { asciiOf } from './ascii.js';
import type { Styles } from './roles.js';
import type { Strip } from './strip.js';

/** Adds SGR sequences, and converts to ASCII of the same width if needed. */
export function painted(line: Strip, styles: Styles, ascii: boolean): string {
  let out = '';
  let now = '';
  for (const { text, role } of line) {
    const style = styles[role];
    if (style !== now) out += (now === '' ? '' : '\x1b[0m') + (style === '' ? '' : `\x1b[${style}m`);
    now = style;
    out += ascii ? asciiOf(text) : text;
  }
  return now === '' ? out : `${out}\x1b[0m`;
}
