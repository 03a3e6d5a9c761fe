/**
 * # The busiest and most failing tokens, projects and models
 *
 * For `GET /manage/top`: from the usage in the database, which contains what all instances have written, and what this one has not
 * written yet. With a hundred thousand tokens a report takes longer than the rest of a page, so reports of many rows are reused for a
 * moment.
 */
import type { TopWindow } from '../api/vocabulary.js';
import { AdaptiveMemo } from './adaptive-memo.js';
import { FAILURE_KINDS } from './failure-kind.js';
import { quantile } from './histogram.js';
import type { Clock, TopPart, TopQuery, TopSums } from './ports.js';
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
const MANY_ROWS = 2_000;
/** Reports of different queries that are reused. */
const MAX_MEMOS = 32;
/** A report that nobody has asked for in this time is too old, even while a new one is read. */
const MAX_IDLE_MS = 15_000;

export interface TopReport extends TopPart {
  toMs: number;
  stepMs: number;
  /** Number of instances with the same database. All of them are included. */
  instances: number;
}

export interface TopReportsOptions {
  usage: Pick<UsageStatistics, 'top'>;
  /** Number of other running instances. @throws {StoreUnavailable} */
  countOthers: () => Promise<number>;
  clock: Pick<Clock, 'now' | 'monotonic' | 'after'>;
}

export class TopReports {
  readonly #options: TopReportsOptions;
  readonly #memos = new Map<string, { memo: AdaptiveMemo<TopReport>; askedAtMs: number }>();

  constructor(options: TopReportsOptions) {
    this.#options = options;
  }

  /** @throws {Refusal} `unavailable` if the database does not respond. */
  report(query: TopQuery): Promise<TopReport> {
    return orUnavailable(this.#memoOf(query).current(() => this.#read(query)));
  }

  async #read(query: TopQuery): Promise<TopReport> {
    const { usage, countOthers, clock } = this.#options;
    const toMs = clock.now();
    const [part, others] = [await usage.top(query), await countOthers()];
    return { ...part, toMs, stepMs: TOP_STEPS[query.window].stepMs, instances: 1 + others };
  }

  #memoOf(query: TopQuery): AdaptiveMemo<TopReport> {
    const { clock } = this.#options;
    const key = JSON.stringify(query);
    const known = this.#memos.get(key);
    const askedAtMs = clock.monotonic();
    const isRecent = known !== undefined && askedAtMs - known.askedAtMs <= MAX_IDLE_MS;
    const memo = isRecent ? known.memo : new AdaptiveMemo(clock, ({ groupCount }: TopReport) => groupCount > MANY_ROWS);
    this.#memos.delete(key);
    this.#memos.set(key, { memo, askedAtMs });
    for (const oldest of this.#memos.keys()) {
      if (this.#memos.size <= MAX_MEMOS) break;
      this.#memos.delete(oldest);
    }
    return memo;
  }
}

/** Failed requests. */
export const failuresIn = ({ counts }: Pick<TopSums, 'counts'>): number =>
  FAILURE_KINDS.reduce((sum, kind) => sum + counts[kind], 0);

/** Approximate quantiles of times; null without any. */
export const quantileOf = ({ times }: Pick<TopSums, 'times'>, part: keyof typeof QUANTILES): number | null =>
  quantile(TIME_BOUNDS_MS, times, QUANTILES[part]);
