/** Requests per hour in the last 24 hours. */
import type { WireUsageLine } from '../../daemon/api/contract.js';
import { columnChart } from '../parts/charts.js';
import { exact } from '../../daemon/api/formats.js';
import { count } from '../parts/figures.js';
import { between, strip, type Strip, text } from '../parts/strip.js';

const HOUR_MS = 3_600_000;
const HOURS = 24;

const NONE = {
  requests: 0,
  hits: 0,
  refused: 0,
  errors: 0,
  upstream_refused: 0,
  cut: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cache_read_tokens: 0,
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

/** Totals, in one line. */
export function totals(hours: readonly Hour[]): Strip {
  const sum = (of: (hour: Hour) => number) => hours.reduce((all, hour) => all + of(hour), 0);
  const [refused, errors] = [sum((it) => it.refused), sum((it) => it.errors)];
  const [upstream, cut, hits] = [sum((it) => it.upstream_refused), sum((it) => it.cut), sum((it) => it.hits)];
  const cached = sum((it) => it.cache_read_tokens);
  return strip(
    text(exact(sum((it) => it.requests)), 'strong'),
    ' requests  ',
    text(`${exact(errors)} errors  `, errors > 0 ? 'bad' : 'plain'),
    // What is rare is shown only when it occurs, because the line has little room.
    refused > 0 && text(`${exact(refused)} refused  `, 'warning'),
    upstream > 0 && text(`${exact(upstream)} refused upstream  `, 'warning'),
    cut > 0 && text(`${exact(cut)} cut  `, 'warning'),
    hits > 0 && `${exact(hits)} hits  `,
    text(`${count(sum((it) => it.prompt_tokens))} in, ${count(sum((it) => it.completion_tokens))} out`, 'faint'),
    cached > 0 && text(`, ${count(cached)} cached`, 'faint'),
  );
}

/** A chart of at least three `rows`: columns, a mark below hours with errors, and the first and last hour. */
export function hourChart(hours: readonly Hour[], columns: number, rows: number): Strip[] {
  const each = Math.max(1, Math.min(6, Math.floor((columns + 1) / HOURS)));
  const gap = each > 1 ? 1 : 0;
  const wide = (sign: string, width = each - gap) => sign.repeat(width) + ' '.repeat(gap);
  const bars = columnChart(
    hours.map(({ requests }) => requests),
    Math.max(1, rows - 2),
    'accent',
  ).map((line) =>
    strip(text(line.map((piece) => Array.from(piece.text, (sign) => wide(sign)).join('')).join(''), 'accent')),
  );
  const signs = hours.map(({ errors }) => (errors > 0 ? `!${' '.repeat(each - 1)}` : ' '.repeat(each))).join('');
  const width = Math.min(columns, each * HOURS);
  return [
    ...bars,
    strip(text(signs, 'bad')),
    between(strip(text(hourShown(hours.at(0)), 'faint')), strip(text(hourShown(hours.at(-1)), 'faint')), width),
  ];
}

const hourShown = (hour: Hour | undefined) =>
  hour ? `${String(new Date(hour.atMs).getHours()).padStart(2, '0')}:00` : '';
