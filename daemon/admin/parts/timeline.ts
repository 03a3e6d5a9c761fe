/** Usage over time: one bucket for each hour or day of a period, and the marks on the axes of a chart. All times are in UTC. */
import type { WireUsageLine } from '../../api/contract.js';

export type Step = 'hour' | 'day';

const HOUR_MS = 3_600_000;
export const STEP_MS: Readonly<Record<Step, number>> = { hour: HOUR_MS, day: 24 * HOUR_MS };

/** A period in whole hours or days. */
export interface Timeline {
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  step: Step;
}

/** The last hours or days, including the current one. */
export function lastSteps(steps: number, step: Step, nowMs: number): Timeline {
  const stepMs = STEP_MS[step];
  const toMs = (Math.floor(nowMs / stepMs) + 1) * stepMs;
  return { fromMs: toMs - steps * stepMs, toMs, step };
}

/** The requests of an hour or day, and their model tokens. */
export interface Bucket extends Pick<WireUsageLine, keyof typeof NO_REQUESTS> {
  atMs: number;
  /** Requests to which the provider responded successfully, or that the client ended. */
  forwarded: number;
}

const NO_REQUESTS = {
  requests: 0,
  hits: 0,
  errors: 0,
  refused: 0,
  upstream_refused: 0,
  failed: 0,
  cut: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
};

/** One bucket for each hour or day of the period, including those without requests. */
export function bucketsOf(lines: readonly WireUsageLine[], { fromMs, toMs, step }: Timeline): Bucket[] {
  const found = new Map(lines.map((line) => [Date.parse(line[step] ?? ''), line]));
  const stepMs = STEP_MS[step];
  return Array.from({ length: Math.ceil((toMs - fromMs) / stepMs) }, (_, index) => {
    const atMs = fromMs + index * stepMs;
    return bucketOf(atMs, found.get(atMs));
  });
}

function bucketOf(atMs: number, line: Omit<Bucket, 'atMs' | 'forwarded'> = NO_REQUESTS): Bucket {
  // A response from the cache can be cut as well. Then it counts as both.
  return { ...line, atMs, forwarded: Math.max(0, line.requests - line.hits - line.errors) };
}

export const sumOf = (figures: readonly number[]): number => figures.reduce((sum, figure) => sum + figure, 0);

// ---- axes

const TICKS = 4;

/** Values on the y axis from 0: whole multiples of 1, 2 or 5 times a power of ten. The last one is at least `most`. */
export function ticksUpTo(most: number): number[] {
  const rough = Math.max(1, most / TICKS);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? 1;
  return Array.from({ length: Math.max(1, Math.ceil(most / step)) + 1 }, (_, index) => index * step);
}

const MAX_MARKS = 7;
const MARK_STEPS_MS = [1, 3, 6, 12, 24, 48, 7 * 24, 14 * 24, 28 * 24, 56 * 24].map((hours) => hours * HOUR_MS);

/** Times on the x axis: up to 7, at midnight or at whole hours. */
export function marksOf({ fromMs, toMs }: Timeline): { atMs: number; label: string }[] {
  const countOf = (stepMs: number) => Math.ceil(toMs / stepMs) - Math.ceil(fromMs / stepMs);
  const stepMs = MARK_STEPS_MS.find((ms) => countOf(ms) <= MAX_MARKS) ?? toMs - fromMs;
  const first = Math.ceil(fromMs / stepMs) * stepMs;
  return Array.from({ length: countOf(stepMs) }, (_, index) => {
    const atMs = first + index * stepMs;
    return { atMs, label: atMs % STEP_MS.day === 0 ? DAY.format(atMs) : TIME.format(atMs) };
  });
}

function inUtc(options: Intl.DateTimeFormatOptions) {
  return new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' });
}

const DAY = inUtc({ day: 'numeric', month: 'short' });
const TIME = inUtc({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

/** `2030-01-31 14:00` or `2030-01-31`. */
export const timeOf = (atMs: number, step: Step): string =>
  new Date(atMs)
    .toISOString()
    .slice(0, step === 'hour' ? 16 : 10)
    .replace('T', ' ');
