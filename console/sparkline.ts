/** Sparklines: a character per step, as in the command line and the terminal UI. */

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
