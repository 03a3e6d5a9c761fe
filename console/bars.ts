/** Bars drawn with characters, as in the command line and the terminal UI. */

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/**
 * The filled part of a bar, in eighths of a character; with `ascii` in whole ones.
 *
 * @param share from 0 to 1; any share above 0 is visible.
 */
export function barText(share: number, columns: number, ascii = false): string {
  const parts = ascii ? 1 : 8;
  const wanted = Math.round(Math.max(0, Math.min(1, share || 0)) * columns * parts);
  const filled = share > 0 ? Math.max(1, wanted) : 0;
  if (ascii) return '#'.repeat(filled);
  return '█'.repeat(Math.floor(filled / 8)) + (EIGHTHS[filled % 8] ?? '');
}
