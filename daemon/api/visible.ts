/** Escapes characters that control a terminal or change how the text around them is shown. */

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
