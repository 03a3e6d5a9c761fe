/**
 * Usage statistics: sums per token, outcome and model, of each minute of the last hour, and of each hour.
 *
 * **Collection.** Each completed request is added to the row of its minute in memory. The rows are written every few seconds. Each flush
 * is one transaction that adds them to the stored minutes, hours and days. It is applied exactly once, even if its result is lost. So
 * nothing is added up later: old minutes are only removed.
 *
 * **Limits.** A row takes a few hundred bytes in the database until it is removed, so the number of model names is limited
 * (model-names.ts). For requests without a known token only the refusal is counted. While the database is unavailable, a bounded number
 * of rows waits in memory. When there are more, earlier minutes are added to their hours; requests beyond that are lost, and their number
 * is logged.
 */
import { createHash } from 'node:crypto';
import { causeOf, KEY_REFUSED } from '../api/request-outcome.js';
import { addedNano } from '../api/money.js';
import { MS_PER_UNIT } from '../api/vocabulary.js';
import type { RequestEnded } from './events.js';
import { failureKindOf, wasCut } from './failure-kind.js';
import { bucketOf } from './histogram.js';
import type { ModelNames } from './model-names.js';
import type {
  Clock,
  IncidentFigures,
  Log,
  TopPart,
  TopQuery,
  UsageCounts,
  UsageFlush,
  UsageLine,
  Scope,
  UsageQuery,
  UsageRow,
  UsageStore,
} from './ports.js';
import { orUnavailable, Refusal } from './refusal.js';
import { SingleRun } from './single-run.js';

export const MINUTE_MS = MS_PER_UNIT.m;
export const HOUR_MS = MS_PER_UNIT.h;
export const DAY_MS = MS_PER_UNIT.d;

/** Upper bounds of the counts of response times: 10 ms to 328 s. Percentiles are off by up to a factor of two, typically by a quarter of it. */
export const TIME_BOUNDS_MS: readonly number[] = Array.from({ length: 16 }, (_, power) => 10 * 2 ** power);

const FLUSH_EVERY_MS = 5_000; // A killed process loses the usage of up to this period.
// Bounds the transaction, because others wait for it, among them ticks that lease units.
const MAX_ROWS_PER_FLUSH = 1_000;
/** Maximum number of rows waiting while the database is unavailable. */
const MAX_WAITING_ROWS = 20_000;
// Delayed, because the database is busy during startup.
const FIRST_REMOVAL_AFTER_MS = 600_000;
/** The minutes in which something fails now, with the current one. */
export const RECENT_MINUTES = 15;
/** Minutes are removed some time after they are last read, because the clocks of instances differ. */
const REMOVED_AFTER_MS = 10 * MINUTE_MS;
const REMOVE_MINUTES_EVERY_MS = 5 * MINUTE_MS;
// More lines than a person reads, and about the maximum size of a response.
const MAX_LINES = 50_000;

export interface UsageStatisticsOptions {
  store: UsageStore;
  clock: Clock;
  log: Log;
  instanceId: string;
  models: ModelNames;
  /** Whether migrations are applied; before that the tables may be missing. */
  isReady: () => boolean;
  /** How long usage is stored; 0: without limit. */
  retentionMs: number;
  /** Maximum number of rows waiting in memory. Requests beyond it are not counted, which is logged. */
  maxWaiting?: number;
}

export class UsageStatistics {
  readonly #options: UsageStatisticsOptions;
  readonly #maxWaiting: number;
  /** Rows to write, by minute, token, outcome, code and model. */
  #rows = new Map<string, UsageRow>();
  /** The row of each token's latest request, among them: most requests of a token belong to the same row. */
  readonly #latest = new Map<string, UsageRow>();
  /** A flush of unknown outcome. */
  #sent: UsageFlush | null = null;
  #seq = 0;
  readonly #flushing = new SingleRun();
  #cancelFlush: (() => void) | null = null;
  readonly #cancelRemovals: Record<'days' | 'minutes', () => void> = { days: noop, minutes: noop };
  #isClosed = false;
  /** The minute in which earlier minutes were last added to their hours, because too many rows were waiting. */
  #coarsenedMs = 0;
  /** Requests not counted because too many rows were waiting. */
  #lost = 0;

  constructor(options: UsageStatisticsOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING_ROWS;
  }

  /** Number of rows waiting to be written. */
  get waiting(): number {
    return this.#rows.size + (this.#sent?.rows.length ?? 0);
  }

  /** Call when the tables exist. Removes old usage from time to time. */
  begin(): void {
    this.#scheduleRemoval('days', FIRST_REMOVAL_AFTER_MS);
    this.#scheduleRemoval('minutes', REMOVE_MINUTES_EVERY_MS);
  }

  #scheduleRemoval(of: 'days' | 'minutes', ms: number): void {
    this.#cancelRemovals[of] = this.#options.clock.after(ms, () => {
      void (of === 'days' ? this.#removeOld() : this.#removeMinutes());
      this.#scheduleRemoval(of, of === 'days' ? HOUR_MS : REMOVE_MINUTES_EVERY_MS);
    });
  }

  readonly record = (ended: RequestEnded): void => {
    // A CORS preflight is not usage.
    if (ended.tokenId === null && ended.outcome === 'ok') return;
    const row = this.#rowOf(ended);
    if (!row) {
      this.#lost += 1;
      return;
    }
    row.requests += 1;
    if (ended.cache === 'hit') row.hits += 1;
    if (ended.usage) {
      row.withTokens += 1;
      row.promptTokens += ended.usage.promptTokens ?? 0;
      row.completionTokens += ended.usage.completionTokens ?? 0;
      row.cacheReadTokens += ended.usage.cacheReadTokens ?? 0;
      row.cacheWriteTokens += ended.usage.cacheWriteTokens ?? 0;
    }
    if (ended.costNano === null) row.unpriced += 1;
    else row.costNano = addedNano(row.costNano, ended.costNano);
    if (ended.outcome === 'upstream_refused') row.upstreamRefused += 1;
    if (wasCut(ended)) row.cut += 1;
    if (ended.upstreamMs !== null) {
      const bucket = Math.min(TIME_BOUNDS_MS.length - 1, bucketOf(TIME_BOUNDS_MS, ended.upstreamMs));
      row.times[bucket] = (row.times[bucket] ?? 0) + 1;
    }
    this.#flushLater();
  };

  #rowOf(ended: RequestEnded): UsageRow | undefined {
    const minuteMs = ended.timeMs - (ended.timeMs % MINUTE_MS);
    const tokenId = ended.tokenId ?? '';
    // A provider may have any number of codes.
    const code = ended.outcome === 'provider_error' ? '' : (ended.code ?? '');
    const model = this.#options.models.nameFor(ended);
    const { outcome } = ended;
    const cause = causeIn(ended);
    const latest = this.#latest.get(tokenId);
    const isOfLatest =
      latest?.minuteMs === minuteMs && latest.outcome === outcome && latest.code === code && latest.model === model;
    if (isOfLatest && latest.cause === cause) return latest;
    const hourMs = minuteMs - (minuteMs % HOUR_MS);
    // Only the last part can contain a line break, so the key is unambiguous.
    const hourKey = `${hourMs}\n${tokenId}\n${outcome}\n${code}\n${model}`;
    const key = `${minuteMs}\n${cause}\n${hourKey}`;
    let row = this.#rows.get(key);
    if (!row) {
      if (this.#rows.size >= this.#maxWaiting) this.#coarsen(minuteMs);
      if (this.#rows.size >= this.#maxWaiting) return undefined;
      const id = idOf(hourMs, hourKey);
      const subject = { tokenId, projectId: ended.projectId ?? '', outcome, code, model };
      row = {
        id,
        minuteMs,
        hourMs,
        cause,
        ...subject,
        withTokens: 0,
        ...noUsage(),
        times: TIME_BOUNDS_MS.map(() => 0),
      };
      this.#rows.set(key, row);
    }
    this.#latest.set(tokenId, row);
    return row;
  }

  /** Adds the rows of earlier minutes to those of their hours, which have no minute. Once in a minute. */
  #coarsen(minuteMs: number): void {
    if (this.#coarsenedMs === minuteMs) return;
    this.#coarsenedMs = minuteMs;
    const rows = [...this.#rows];
    this.#rows = new Map(rows.filter(([, row]) => row.minuteMs === minuteMs));
    this.#latest.clear();
    for (const [, row] of rows) {
      if (row.minuteMs === minuteMs) continue;
      const known = this.#rows.get(row.id);
      if (known) for (const count of COUNTS) known[count] += row[count];
      else this.#rows.set(row.id, { ...row, minuteMs: null });
    }
  }

  // ---- writing

  #flushLater(): void {
    if (this.#isClosed) return;
    this.#cancelFlush ??= this.#options.clock.after(FLUSH_EVERY_MS, () => {
      this.#cancelFlush = null;
      this.flush().catch((error: unknown) => {
        this.#options.log.warn('cannot write usage to the database, retrying', { waiting: this.waiting, error });
        this.#flushLater(); // Tries again.
      });
    });
  }

  /** Writes all rows that wait now. @throws {StoreUnavailable} if it cannot. */
  async flush(): Promise<void> {
    // The caller may have added rows that a flush in progress does not include.
    await this.#flushing.current?.catch(() => undefined);
    await this.#flushing.run(() => this.#flushAll());
  }

  async #flushAll(): Promise<void> {
    const { store, clock, log, instanceId, isReady } = this.#options;
    if (this.waiting === 0 || !isReady()) return;
    if (this.#sent && (await store.lastFlush(instanceId)) >= this.#sent.seq) this.#sent = null;
    // Under load requests add rows all the time: those wait for the next flush, or this one would not end.
    let unwritten = this.waiting;
    while (unwritten > 0) {
      const flush = this.#sent ?? { instanceId, seq: (this.#seq += 1), nowMs: clock.now(), rows: this.#take() };
      this.#sent = flush;
      await store.add(flush);
      this.#sent = null;
      unwritten -= flush.rows.length;
    }
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    if (this.#rows.size > 0) this.#flushLater();
    if (this.#lost > 0)
      log.warn('usage of some requests was lost: too many rows waiting for the database', { requests: this.#lost });
    this.#lost = 0;
  }

  #take(): UsageRow[] {
    this.#latest.clear();
    const taken: UsageRow[] = [];
    for (const [key, row] of this.#rows) {
      if (taken.length === MAX_ROWS_PER_FLUSH) break;
      taken.push(row);
      this.#rows.delete(key);
    }
    return taken;
  }

  /** At shutdown: writes the waiting rows if possible. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelFlush?.();
    for (const cancel of Object.values(this.#cancelRemovals)) cancel();
    await this.flush().catch((error: unknown) => {
      this.#options.log.warn('usage lost: cannot write it at shutdown', { waiting: this.waiting, error });
    });
  }

  // ---- reports and removal

  /**
   * Usage report, including rows not written yet. Sorted by time, then by number of requests, highest first.
   *
   * @throws {Refusal} `invalid_request` when the report is too long, `unavailable` when the database is.
   */
  async report(query: UsageQuery, scope: Scope): Promise<UsageLine[]> {
    await orUnavailable(this.flush());
    const lines = await orUnavailable(this.#options.store.report({ ...query, scope }, MAX_LINES));
    if (lines.length > MAX_LINES) {
      throw new Refusal(
        'invalid_request',
        `the report has more than ${MAX_LINES} lines: choose a shorter period or fewer groups`,
      );
    }
    return lines.sort(byTimeAndRequests);
  }

  /** The first tokens, projects or models, including rows not written yet. @throws {StoreUnavailable} */
  async top(query: TopQuery): Promise<TopPart> {
    await this.flush();
    return this.#options.store.top(query, this.#options.clock.now());
  }

  /** What fails and what is slow now, including what is not written yet. @throws {StoreUnavailable} */
  async incidents(scope: Scope): Promise<IncidentFigures> {
    await this.flush();
    return this.#options.store.incidents(this.#options.clock.now(), KEY_REFUSED, scope);
  }

  /** Removes whole days only, so that the remaining hours still add up to the remaining totals. */
  async #removeOld(): Promise<void> {
    const { store, clock, log, retentionMs } = this.#options;
    if (retentionMs === 0) return;
    const beforeMs = clock.now() - retentionMs;
    try {
      // In small steps, so that other transactions can run in between.
      while (!this.#isClosed && (await store.removeBefore(beforeMs - (beforeMs % DAY_MS))));
    } catch (error) {
      log.warn('cannot remove old usage from the database, retrying in an hour', { error });
    }
  }

  async #removeMinutes(): Promise<void> {
    const { store, clock, log } = this.#options;
    const beforeMs = clock.now() - REMOVED_AFTER_MS;
    const [minuteMs, causeMs] = [beforeMs - HOUR_MS, beforeMs - RECENT_MINUTES * MINUTE_MS];
    try {
      while (!this.#isClosed && (await store.removeMinutesBefore(minuteMs, causeMs)));
    } catch (error) {
      log.warn('cannot remove the usage of old minutes from the database, retrying in five minutes', { error });
    }
  }
}

function causeIn(ended: RequestEnded): string {
  if (failureKindOf(ended) === null) return '';
  const { outcome, problem: error, status } = ended;
  // A provider may have any number of codes.
  const code = outcome === 'provider_error' ? null : ended.code;
  return causeOf({ outcome, code, error, status })?.why ?? '';
}

const noop = () => undefined;

const noUsage = (): UsageCounts => ({
  requests: 0,
  hits: 0,
  promptTokens: 0,
  completionTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  upstreamRefused: 0,
  cut: 0,
  costNano: 0,
  unpriced: 0,
});
/** What rows of the same hour add up. */
const COUNTS = [...(Object.keys(noUsage()) as (keyof UsageCounts)[]), 'withTokens'] as const;

const timeOf = ({ hourMs, dayMs }: UsageLine) => hourMs ?? dayMs ?? 0;
const nameOf = ({ tokenId, projectId, model }: UsageLine) => `${projectId ?? ''}\n${tokenId ?? ''}\n${model ?? ''}`;

function byTimeAndRequests(a: UsageLine, b: UsageLine): number {
  return timeOf(a) - timeOf(b) || b.requests - a.requests || (nameOf(a) < nameOf(b) ? -1 : 1);
}

/** Lower bound of the row IDs of an hour; IDs of earlier hours are below it. */
export function firstIdOf(hourMs: number): string {
  const hex = hourMs.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-`;
}

/** A UUID (RFC 9562, version 8) that begins with the hour, as version 7 begins with the time. The rest is a digest of the key. */
function idOf(hourMs: number, key: string): string {
  const digest = createHash('sha256').update(key).digest('hex');
  return `${firstIdOf(hourMs)}8${digest.slice(0, 3)}-8${digest.slice(3, 6)}-${digest.slice(6, 18)}`;
}
