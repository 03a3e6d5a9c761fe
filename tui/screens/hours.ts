/** Requests per hour in the last 24 hours. */
import type { WireUsageLine } from '../../daemon/api/contract.js';
import { failuresShown, type FailuresByKind } from '../../daemon/api/failure-words.js';
import { costShown, nanoOfCost, sumOfCosts } from '../../daemon/api/money.js';
import { FAILURE_KINDS } from '../../daemon/api/vocabulary.js';
import { columnChart } from '../parts/charts.js';
import { counted, exact } from '../../daemon/api/formats.js';
import { count } from '../parts/figures.js';
import { between, strip, type Strip, text, widthOf } from '../parts/strip.js';

const HOUR_MS = 3_600_000;
const HOURS = 24;

const NONE = {
  requests: 0,
  hits: 0,
  errors: 0,
  refused: 0,
  upstream_refused: 0,
  failed: 0,
  cut: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cache_read_tokens: 0,
  cost_usd: '0.00' as string | null,
  unpriced_requests: 0,
};

export type Hour = Pick<WireUsageLine, keyof typeof NONE> & { atMs: number };

/** One entry per hour, the current hour last. Hours without usage data had no requests. */
export function hoursOf(usage: readonly WireUsageLine[], nowMs: number): Hour[] {
  const told = new Map(usage.map((line) => [Date.parse(line.hour ?? ''), line]));
  const last = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  return Array.from({ length: HOURS }, (_, at) => {
    const atMs = last - (HOURS - 1 - at) * HOUR_MS;
    return { ...NONE, ...told.get(atMs), atMs };
  });
}

/** Totals, in one line: what is left out first stands last, and then the kinds of failures. */
export function totals(hours: readonly Hour[], columns: number): Strip {
  const sum = (of: (hour: Hour) => number) => hours.reduce((all, hour) => all + of(hour), 0);
  const [errors, hits] = [sum((it) => it.errors), sum((it) => it.hits)];
  const kinds = Object.fromEntries(FAILURE_KINDS.map((kind) => [kind, sum((it) => it[kind])])) as FailuresByKind;
  const cached = sum((it) => it.cache_read_tokens);
  const begin = (failures: string) =>
    strip(text(exact(sum((it) => it.requests)), 'strong'), ' requests  ', text(failures, errors > 0 ? 'bad' : 'plain'));
  const rest = [
    strip(hits > 0 && `  ${exact(hits)} hits`),
    strip(
      text(`  ${count(sum((it) => it.prompt_tokens))} in, ${count(sum((it) => it.completion_tokens))} out`, 'faint'),
      cached > 0 && text(`, ${count(cached)} cached`, 'faint'),
    ),
  ];
  const cost = sumOfCosts(hours);
  if (nanoOfCost(cost) > 0 || cost.unpriced_requests > 0) rest.push(strip(`  cost ${costShown(cost)}`));
  const fitting = (line: Strip) =>
    rest.reduce((shown, part) => (widthOf(shown) + widthOf(part) <= columns ? strip(shown, part) : shown), line);
  const whole = begin(failuresShown({ errors, ...kinds }));
  return fitting(widthOf(whole) <= columns ? whole : begin(counted(errors, 'failure')));
}

const LABELLED = 3;

/** A chart of the hours, with the first and last one. */
export const hourChart = (hours: readonly Hour[], columns: number, rows: number): Strip[] =>
  stepChart(hours, [hourShown(hours.at(0)), hourShown(hours.at(-1))], columns, rows);

/** A chart: columns, and from three `rows` on a mark below steps with failures, and labels of the first and last step. */
export function stepChart(
  steps: readonly { requests: number; errors: number }[],
  [first, last]: readonly [string, string],
  columns: number,
  rows: number,
): Strip[] {
  if (steps.length === 0 || rows < 1) return [];
  const each = Math.max(1, Math.min(6, Math.floor((columns + 1) / steps.length)));
  const gap = each > 1 ? 1 : 0;
  const wide = (sign: string, width = each - gap) => sign.repeat(width) + ' '.repeat(gap);
  const bars = columnChart(
    steps.map(({ requests }) => requests),
    rows < LABELLED ? rows : rows - 2,
    'accent',
  ).map((line) =>
    strip(text(line.map((piece) => Array.from(piece.text, (sign) => wide(sign)).join('')).join(''), 'accent')),
  );
  if (rows < LABELLED) return bars;
  const signs = steps.map(({ errors }) => (errors > 0 ? `!${' '.repeat(each - 1)}` : ' '.repeat(each))).join('');
  const width = Math.min(columns, each * steps.length);
  return [...bars, strip(text(signs, 'bad')), between(strip(text(first, 'faint')), strip(text(last, 'faint')), width)];
}

const hourShown = (hour: Hour | undefined) =>
  hour ? `${String(new Date(hour.atMs).getHours()).padStart(2, '0')}:00` : '';
