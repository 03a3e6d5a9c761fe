/** Escapes untrusted text: characters that control a terminal or change how the text around them is shown, and formulas. */

// Control characters (including ESC and the 8-bit CSI), line and paragraph separators, and characters that change the writing direction:
// Cc, Zl, Zp and Bidi_Control of Unicode. A pattern with these names takes ten times as long to create, at each start of the program.
// eslint-disable-next-line no-control-regex -- They are what it looks for.
export const INVISIBLE = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** `text` on one line, with control and bidirectional characters as escape sequences: ESC becomes `\x1b`. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
  });
}

// Spreadsheets execute cells that look like formulas (CSV injection). Some treat full-width characters like their ASCII forms, and some skip leading spaces.
const FORMULA = /^(?:[\t\r\n]|\s*[=+\-@＝＋－＠])/;

/**
 * @returns `text` as a cell by RFC 4180. An apostrophe turns a formula into text. A text with `;` is quoted, because spreadsheets in
 * some locales use `;` as the separator.
 */
export function csvCell(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",;\s]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
