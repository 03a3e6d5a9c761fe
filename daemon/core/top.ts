/**
 * # The busiest and most failing tokens, projects and models
 *
 * For `GET /manage/top`: from the usage in the database, which contains what all instances have written, and what this one has not
 * written yet. With a hundred thousand tokens a report takes longer than the rest of a page, so reports of many rows are reused for a
 * moment.
 */
import type { TopWindow } from '../api/vocabulary.js';
import { AdaptiveMemo } from './adaptive-memo.js';
import { quantile } from './histogram.js';
import type { Clock, Scope, TopPart, TopQuery, TopSums } from './ports.js';
import { orUnavailable } from './refusal.js';
import { HOUR_MS, MINUTE_MS, TIME_BOUNDS_MS, type UsageStatistics } from './usage.js';

/** The steps of a window are aligned to the clock, and the last one is not over yet. */
export const TOP_STEPS: Readonly<Record<TopWindow, { stepMs: number; steps: number }>> = {
  '5m': { stepMs: MINUTE_MS, steps: 5 },
  '1h': { stepMs: 3 * MINUTE_MS, steps: 20 },
  '24h': { stepMs: HOUR_MS, steps: 24 },
};

export const QUANTILES = { p50: 0.5, p95: 0.95 } as const;

/** Reports of fewer rows are read each time, so that they are never out of date. */
const MANY_ROWS = 500;
/** Reports of different queries that are reused. */
const MAX_REUSED = 32;

export interface TopReport extends TopPart {
  toMs: number;
  stepMs: number;
}

export interface TopReportsOptions {
  usage: Pick<UsageStatistics, 'top'>;
  clock: Pick<Clock, 'now' | 'monotonic' | 'after'>;
}

export class TopReports {
  readonly #options: TopReportsOptions;
  readonly #memos: AdaptiveMemo<TopReport>;

  constructor(options: TopReportsOptions) {
    this.#options = options;
    this.#memos = new AdaptiveMemo(options.clock, MAX_REUSED, ({ groupCount }) => groupCount > MANY_ROWS);
  }

  /** @throws {Refusal} `unavailable` if the database does not respond. */
  report(asked: TopQuery, scope: Scope): Promise<TopReport> {
    const query = { ...asked, scope };
    // A report of an earlier minute has other steps, and may be of long ago.
    const minute = Math.floor(this.#options.clock.now() / MINUTE_MS);
    return orUnavailable(this.#memos.current(`${minute} ${JSON.stringify(query)}`, () => this.#read(query)));
  }

  async #read(query: TopQuery): Promise<TopReport> {
    const { usage, clock } = this.#options;
    const toMs = clock.now();
    return { ...(await usage.top(query)), toMs, stepMs: TOP_STEPS[query.window].stepMs };
  }
}

/** Approximate quantiles of times; null without any. */
export const quantileOf = ({ times }: Pick<TopSums, 'times'>, part: keyof typeof QUANTILES): number | null =>
  quantile(TIME_BOUNDS_MS, times, QUANTILES[part]);
