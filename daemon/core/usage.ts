/**
 * Usage statistics: sums per hour, token, outcome and model.
 *
 * **Collection.** Each completed request is added to a row in memory. The rows are written every few seconds. Each flush is one
 * transaction that is applied exactly once, even if its result is lost.
 *
 * **Limits.** A row takes a few hundred bytes in the database until it is removed, so the number of model names is limited
 * (model-names.ts). For requests without a known token only the refusal is counted. While the database is unavailable, a bounded number of rows waits in memory; requests
 * beyond that are lost, and their number is logged.
 */
import { createHash } from 'node:crypto';
import { MS_PER_UNIT } from '../api/vocabulary.js';
import type { Outcome, RequestEnded } from './events.js';
import { wasCut } from './failure-kind.js';
import type { ModelNames } from './model-names.js';
import type {
  Clock,
  Log,
  TopGroup,
  TopGroupHour,
  TopPart,
  TopQuery,
  UsageCounts,
  UsageFlush,
  UsageLine,
  UsageQuery,
  UsageRow,
  UsageStore,
} from './ports.js';
import { orUnavailable, Refusal } from './refusal.js';
import { SingleRun } from './single-run.js';

export const HOUR_MS = MS_PER_UNIT.h;
export const DAY_MS = MS_PER_UNIT.d;
/** Outcomes counted as refused by this proxy, unless the response was cut off after it began. */
export const REFUSED: readonly Outcome[] = ['refused', 'revoked'];
/** Outcomes counted as errors. Client disconnects and refusals by the upstream are not among them. */
export const FAILED: readonly Outcome[] = ['upstream_error', 'provider_error', 'timeout', 'truncated', 'drained'];

const FLUSH_EVERY_MS = 5_000; // A killed process loses the usage of up to this period.
// Bounds the transaction, because others wait for it, among them ticks that lease units.
const MAX_ROWS_PER_FLUSH = 1_000;
/** Maximum number of rows waiting while the database is unavailable. */
const MAX_WAITING_ROWS = 20_000;
const REMOVE_EVERY_MS = HOUR_MS;
// Delayed, because the database is busy during startup.
const FIRST_REMOVAL_AFTER_MS = 600_000;
// More lines than a person reads, and about the maximum size of a response.
const MAX_LINES = 50_000;

export interface HourlyUsageOptions {
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

export class HourlyUsage {
  readonly #options: HourlyUsageOptions;
  readonly #maxWaiting: number;
  /** Rows to write, by hour, token, outcome, code and model. */
  #rows = new Map<string, UsageRow>();
  /** The row of each token's latest request, among them: most requests of a token belong to the same row. */
  readonly #latest = new Map<string, UsageRow>();
  /** A flush of unknown outcome. */
  #sent: UsageFlush | null = null;
  #seq = 0;
  readonly #flushing = new SingleRun();
  #cancelFlush: (() => void) | null = null;
  #cancelRemoval: (() => void) | null = null;
  #isClosed = false;
  /** Requests not counted because too many rows were waiting. */
  #lost = 0;

  constructor(options: HourlyUsageOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING_ROWS;
  }

  /** Number of rows waiting to be written. */
  get waiting(): number {
    return this.#rows.size + (this.#sent?.rows.length ?? 0);
  }

  /** Call when the tables exist. Removes old usage every hour. */
  begin(): void {
    this.#scheduleRemoval(FIRST_REMOVAL_AFTER_MS);
  }

  #scheduleRemoval(ms: number): void {
    this.#cancelRemoval = this.#options.clock.after(ms, () => {
      void this.#removeOld();
      this.#scheduleRemoval(REMOVE_EVERY_MS);
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
    if (ended.outcome === 'upstream_refused') row.upstreamRefused += 1;
    if ((ended.outcome === 'upstream_error' && ended.code !== 'internal') || ended.outcome === 'provider_error')
      row.upstreamErrors += 1;
    if (wasCut(ended)) row.cut += 1;
    this.#flushLater();
  };

  #rowOf(ended: RequestEnded): UsageRow | undefined {
    const hourMs = ended.timeMs - (ended.timeMs % HOUR_MS);
    const tokenId = ended.tokenId ?? '';
    // A provider may have any number of codes.
    const code = ended.outcome === 'provider_error' ? '' : (ended.code ?? '');
    const model = this.#options.models.nameFor(ended);
    const { outcome } = ended;
    const latest = this.#latest.get(tokenId);
    if (latest?.hourMs === hourMs && latest.outcome === outcome && latest.code === code && latest.model === model)
      return latest;
    // Only the last part can contain a line break, so the key is unambiguous.
    const key = `${hourMs}\n${tokenId}\n${outcome}\n${code}\n${model}`;
    const known = this.#rows.get(key);
    if (known) this.#latest.set(tokenId, known);
    if (known || this.#rows.size >= this.#maxWaiting) return known;
    const projectId = ended.projectId ?? '';
    const row = {
      id: idOf(hourMs, key),
      hourMs,
      tokenId,
      projectId,
      outcome,
      code,
      model,
      withTokens: 0,
      ...noUsage(),
    };
    this.#rows.set(key, row);
    this.#latest.set(tokenId, row);
    return row;
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
    this.#cancelRemoval?.();
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
  async report(query: UsageQuery): Promise<UsageLine[]> {
    await orUnavailable(this.flush());
    const lines = await orUnavailable(this.#options.store.report(query, MAX_LINES));
    if (lines.length > MAX_LINES) {
      throw new Refusal(
        'invalid_request',
        `the report has more than ${MAX_LINES} lines: choose a shorter period or fewer groups`,
      );
    }
    return lines.sort(byTimeAndRequests);
  }

  /** Like `report`, for the top rows since `firstMs`, without their hours. @throws {StoreUnavailable} */
  async top(query: TopQuery, firstMs: number): Promise<TopPart> {
    await this.flush();
    return this.#options.store.top(query, firstMs);
  }

  /** The hours of top rows since `firstMs`. @throws {StoreUnavailable} */
  topHours(query: TopQuery, firstMs: number, groups: readonly TopGroup[]): Promise<TopGroupHour[]> {
    return this.#options.store.topGroupHours(query, firstMs, groups);
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
}

const noUsage = (): UsageCounts => ({
  requests: 0,
  hits: 0,
  promptTokens: 0,
  completionTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  upstreamRefused: 0,
  upstreamErrors: 0,
  cut: 0,
});

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
