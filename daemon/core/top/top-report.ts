/** Combines the parts of a top report: of this instance, of others, or from the hourly usage. */
import { AdaptiveMemo } from '../adaptive-memo.js';
import { quantile } from '../histogram.js';
import type { Clock, RecentTopQuery, TopGroup, TopGroupHour, TopPart, TopQuery, TopSums } from '../ports.js';
import { orUnavailable } from '../refusal.js';
import { HOUR_MS, type HourlyUsage } from '../usage.js';
import { BOUNDS_MS, failuresIn, modelTokensIn, TOP_DAY_STEPS } from './counts.js';
import type { DayTop } from './day-top.js';
import { RECENT_STEPS, type RecentTop } from './recent-top.js';
import { QUANTILES } from './sort-keys.js';

/** What was included, and how. */
export interface TopReport extends TopPart {
  toMs: number;
  stepMs: number;
  instances: { included: number; missing: number };
}

/** The other instances with the same database. */
export interface TopPeers {
  /** Number of other running instances. @throws {StoreUnavailable} */
  count(): Promise<number>;
  /** Their parts, of those that answer in time. */
  parts(query: RecentTopQuery, nowMs: number, expected: number): Promise<TopPart[]>;
}

export interface TopReportsOptions {
  recent: RecentTop;
  day: Pick<DayTop, 'part'>;
  /** For a day without sums, and for hours that are not in memory. */
  usage: Pick<HourlyUsage, 'top' | 'topHours'>;
  /** Null if this instance does not share its database. */
  peers: TopPeers | null;
  clock: Pick<Clock, 'now' | 'monotonic' | 'after'>;
}

/** Rows of each instance in a report of several. A token that is in no instance among the first ones can be missing from the result. */
export const MAX_PEER_ROWS = 2_000;
/** Results of different queries that are stored for the next request. */
const MAX_MEMOS = 32;
/** A result that nobody has asked for in this time is too old, even as a stale value. */
const MAX_IDLE_MS = 15_000;

export class TopReports {
  readonly #options: TopReportsOptions;
  readonly #ofDay = new Map<string, { memo: AdaptiveMemo<TopPart>; askedAtMs: number }>();

  constructor(options: TopReportsOptions) {
    this.#options = options;
  }

  /** @throws {Refusal} `unavailable` if the database does not respond. */
  async report(query: TopQuery): Promise<TopReport> {
    const { window } = query;
    const nowMs = this.#options.clock.now();
    const others = (await orUnavailable(this.#options.peers?.count() ?? Promise.resolve(0))) || 0;
    if (window === '24h') return this.#dayReport(query, nowMs, others);
    const { recent, peers } = this.#options;
    const parts = others > 0 && peers ? await peers.parts({ ...query, window }, nowMs, others) : [];
    const limit = parts.length > 0 ? MAX_PEER_ROWS : query.limit;
    const part = merged([await recent.part({ ...query, window, limit }, nowMs), ...parts], query);
    const instances = { included: 1 + parts.length, missing: Math.max(0, others - parts.length) };
    return { ...part, toMs: nowMs, stepMs: RECENT_STEPS[window].stepMs, instances };
  }

  async #dayReport(query: TopQuery, nowMs: number, others: number): Promise<TopReport> {
    const instances = { included: 1 + others, missing: 0 };
    const { day, usage } = this.#options;
    const part = await orUnavailable(day.part(query));
    if (part) {
      const { readAtMs: toMs, hasHours, ...top } = part;
      const hours = hasHours ? null : await orUnavailable(usage.topHours(query, top.fromMs, top.groups));
      return { ...(hours ? withHours(top, hours) : top), toMs, stepMs: HOUR_MS, instances };
    }
    const firstMs = nowMs - (nowMs % HOUR_MS) - (TOP_DAY_STEPS - 1) * HOUR_MS;
    const memo = this.#memoOf(`${firstMs} ${JSON.stringify(query)}`);
    const read = async () => {
      const top = await usage.top(query, firstMs);
      return withHours(top, await usage.topHours(query, firstMs, top.groups));
    };
    return { ...(await orUnavailable(memo.current(read))), toMs: nowMs, stepMs: HOUR_MS, instances };
  }

  #memoOf(key: string): AdaptiveMemo<TopPart> {
    const { clock } = this.#options;
    const known = this.#ofDay.get(key);
    const askedAtMs = clock.monotonic();
    const isRecent = known !== undefined && askedAtMs - known.askedAtMs <= MAX_IDLE_MS;
    const memo = isRecent ? known.memo : new AdaptiveMemo<TopPart>(clock);
    this.#ofDay.delete(key);
    this.#ofDay.set(key, { memo, askedAtMs });
    for (const oldest of this.#ofDay.keys()) {
      if (this.#ofDay.size <= MAX_MEMOS) break;
      this.#ofDay.delete(oldest);
    }
    return memo;
  }
}

/** Of a day: with the hours of its groups. */
function withHours(part: TopPart, hours: readonly TopGroupHour[]): TopPart {
  const empty = () => Array.from({ length: TOP_DAY_STEPS }, () => 0);
  const groups = part.groups.map((group) => ({ ...group, history: empty(), failureHistory: empty() }));
  const byKey = new Map(groups.map((group) => [keyOf(group), group]));
  for (const hour of hours) {
    const group = byKey.get(keyOf(hour));
    const at = Math.round((hour.hourMs - part.fromMs) / HOUR_MS);
    if (!group || at >= TOP_DAY_STEPS) continue;
    group.history[at] = hour.requests;
    group.failureHistory[at] = hour.failures;
  }
  return { ...part, groups };
}

const keyOf = ({ tokenId, projectId, model }: Pick<TopGroup, 'tokenId' | 'projectId' | 'model'>) =>
  `${tokenId ?? ''}\n${projectId}\n${model ?? ''}`;

/** Approximate quantiles of times; null without any. */
export const quantileOf = ({ times }: TopSums, part: keyof typeof QUANTILES): number | null =>
  quantile(BOUNDS_MS, times, QUANTILES[part]);

function sortKeyOf(group: TopGroup, sort: TopQuery['sort']): number {
  switch (sort) {
    case 'errors':
      return failuresIn(group.counts);
    case 'requests':
      return group.counts[0] ?? 0;
    case 'tokens':
      return modelTokensIn(group.counts);
    case 'p50':
    case 'p95':
      return quantileOf(group, sort) ?? -1;
    case 'last_used':
      return group.lastMs;
  }
}

/** Adds up the parts, and sorts their groups. */
export function merged(parts: readonly TopPart[], { sort, limit }: Pick<TopQuery, 'sort' | 'limit'>): TopPart {
  const [first, ...others] = parts;
  if (!first) throw new Error('there is no part');
  if (others.length === 0) return first;
  const groups = new Map<string, TopGroup>();
  for (const group of parts.flatMap((part) => part.groups)) {
    const key = keyOf(group);
    const known = groups.get(key);
    if (!known) {
      groups.set(key, group);
      continue;
    }
    addSums(known, group);
    addAll(known.history, group.history);
    addAll(known.failureHistory, group.failureHistory);
    known.lastMs = Math.max(known.lastMs, group.lastMs);
  }
  const total: TopSums = { counts: [...first.total.counts], times: [...first.total.times] };
  for (const part of others) addSums(total, part.total);
  const keyed = [...groups.values()].map((group) => ({ group, key: sortKeyOf(group, sort) }));
  keyed.sort((a, b) => b.key - a.key || (b.group.counts[0] ?? 0) - (a.group.counts[0] ?? 0));
  return {
    // The earliest time from which on all of them are complete.
    fromMs: Math.max(...parts.map(({ fromMs }) => fromMs)),
    groups: keyed.slice(0, limit).map(({ group }) => group),
    groupCount: Math.max(groups.size, ...parts.map(({ groupCount }) => groupCount)),
    untracked: parts.reduce((sum, { untracked }) => sum + untracked, 0),
    total,
  };
}

function addSums(to: TopSums, more: TopSums): void {
  addAll(to.counts, more.counts);
  addAll(to.times, more.times);
}

function addAll(to: number[], more: readonly number[]): void {
  for (const [at, number] of more.entries()) to[at] = (to[at] ?? 0) + number;
}
