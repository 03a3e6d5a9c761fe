/** What a cell of CSV may hold. Names and reasons come from strangers, and spreadsheets run cells that look like formulas. */

// Full-width forms too: some spreadsheets read them like the others. Leading blanks are skipped by some.
const FORMULA = /^(?:[\t\r\n]|\s*[=+\-@＝＋－＠])/;

/**
 * @returns `text` as a cell by RFC 4180. One that a spreadsheet would run as a formula is made text by an apostrophe. One with `;` is
 * quoted: where `;` separates cells, what follows it would be a cell of its own.
 */
export function csvCell(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",;\s]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
