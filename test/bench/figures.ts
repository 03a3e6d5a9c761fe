/** Figures, their goals, and how both are printed. */

export interface Figure {
  what: string;
  value: number;
  unit: string;
  goal?: Goal;
}

export type Goal = { atMost: number } | { atLeast: number };

/** A line of a table of measurements, by the names of its columns. */
export type Row = Record<string, string | number | null>;

export function isReached({ value, goal }: Figure): boolean | null {
  if (goal === undefined || Number.isNaN(value)) return null;
  return 'atMost' in goal ? value <= goal.atMost : value >= goal.atLeast;
}

export function figureTable(figures: readonly Figure[]): string {
  const lines = figures.map((figure) => {
    const { what, value, unit, goal } = figure;
    return [
      what,
      amount(value, unit),
      goal ? goalText(goal, unit) : '',
      { true: 'yes', false: 'no' }[String(isReached(figure))] ?? '',
    ];
  });
  return table(['', '', 'goal', 'reached'], lines);
}

export function rowTable(rows: readonly Row[]): string {
  const columns = Object.keys(rows[0] ?? {});
  return table(
    columns,
    rows.map((row) => columns.map((column) => cell(row[column] ?? null))),
  );
}

/** Markdown, aligned as prettier does it. */
function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(3, title.length, ...lines.map((line) => (line[column] ?? '').length)),
  );
  const rule = widths.map((width) => '-'.repeat(width));
  return [head, rule, ...lines]
    .map((line) => `| ${widths.map((width, column) => (line[column] ?? '').padEnd(width)).join(' | ')} |`)
    .join('\n');
}

const cell = (value: string | number | null) => (typeof value === 'number' ? amount(value, '') : (value ?? 'unknown'));
const amount = (value: number, unit: string) => (Number.isNaN(value) ? 'unknown' : `${number(value)} ${unit}`.trim());
const goalText = (goal: Goal, unit: string) =>
  'atMost' in goal ? `≤ ${amount(goal.atMost, unit)}` : `≥ ${amount(goal.atLeast, unit)}`;

/** Three significant digits. */
function number(value: number): string {
  const rounded = Number(value.toPrecision(3));
  return Math.abs(rounded) < 1000 ? String(rounded) : String(Math.round(value));
}

export function median(values: readonly number[]): number {
  const sorted = sortedNumbers(values);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? NaN) + (sorted[Math.floor(middle)] ?? NaN)) / 2;
}

/** Null if one of them is. */
export function medianOrNull(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length < values.length ? null : median(known);
}

/** @param q from 0 to 1: this share of the values is at most the result. */
export function quantile(values: readonly number[], q: number): number {
  return sortedNumbers(values)[Math.max(0, Math.ceil(values.length * q) - 1)] ?? NaN;
}

const sortedNumbers = (values: readonly number[]) => [...values].sort((a, b) => a - b);
