/** Escaping of CSV cells. Names and reasons are untrusted, and spreadsheets execute cells that look like formulas (CSV injection). */

// Some spreadsheets treat full-width characters like their ASCII forms, and some skip leading spaces.
const FORMULA = /^(?:[\t\r\n]|\s*[=+\-@＝＋－＠])/;

/**
 * @returns `text` as a cell by RFC 4180. An apostrophe turns a formula into text. A text with `;` is quoted, because spreadsheets in
 * some locales use `;` as the separator.
 */
export function csvCell(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",;\s]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
