/** Bars and sparklines drawn with characters, as in the command line and the terminal UI. */

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

// Those of sparklines, which have a character per step.
const LEVELS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_LEVELS = ['_', '.', '-', '=', '+', '*', '%', '#'];

/** Sums neighbouring steps, until there are at most `columns` of them. The newest is the last one. */
export function merged(steps: readonly number[], columns: number): number[] {
  const each = Math.max(1, Math.ceil(steps.length / columns));
  const first = steps.length % each === 0 ? each : steps.length % each;
  const sums: number[] = [];
  for (let from = 0, to = first; from < steps.length; from = to, to += each) {
    sums.push(steps.slice(from, to).reduce((sum, step) => sum + step, 0));
  }
  return sums;
}

/** The character of each step, scaled to the highest; a space for a step without a value. */
export function sparkline(steps: readonly number[], ascii = false): string[] {
  const levels = ascii ? ASCII_LEVELS : LEVELS;
  const most = Math.max(0, ...steps);
  return steps.map((step) =>
    step > 0 ? (levels[Math.min(levels.length - 1, Math.ceil((step / most) * levels.length) - 1)] ?? ' ') : ' ',
  );
}
