/**
 * What tokens are used for, hour by hour.
 *
 * **Gathered.** Each request that is over is added to a row in memory: of its hour, token, result and model. The rows are written
 * every few seconds, each flush one transaction that happens once or not at all, whatever is heard of it.
 *
 * **Bounded.** A row costs the database some hundred bytes for as long as usage is kept, and whoever holds a token could make
 * up models. So only so many models that the provider has answered for count under their names in a day, and far fewer that
 * it has not, of them a few for each token: what fails says of which model, and nobody takes the names away from others. The
 * rest are `other`. All that is known of requests without a known token is how they were refused. While the database is
 * away so many rows wait; what finds no room then is lost, and counted.
 */
import { createHash } from 'node:crypto';
import { MS_PER_UNIT } from '../api/vocabulary.js';
import type { Outcome, RequestEnded } from './events.js';
import type { Clock, Log, UsageCounts, UsageFlush, UsageLine, UsageQuery, UsageRow, UsageStore } from './ports.js';
import { reading, Refusal } from './refusal.js';
import { SingleRun } from './single-run.js';

export const HOUR_MS = MS_PER_UNIT.h;
export const DAY_MS = MS_PER_UNIT.d;
/** We said no, unless it was cut. */
export const REFUSED: readonly Outcome[] = ['refused', 'revoked'];
/** Nobody got what they asked for. A client that left is none of them, nor one whom the upstream refused. */
export const FAILED: readonly Outcome[] = ['upstream_error', 'timeout', 'truncated', 'drained'];

const FLUSH_EVERY_MS = 5_000; // A hard kill forgets the usage of at most this long.
// One transaction keeps the others waiting, the ticks of capped tokens among them.
const MOST_IN_A_FLUSH = 1_000;
/** Rows that may wait while the database is away. */
const MOST_WAITING = 20_000;
const MOST_MODELS = 500;
const MOST_UNANSWERED = 100;
const MOST_UNANSWERED_OF_A_TOKEN = 10;
const OTHER = 'other';
const FORGET_EVERY_MS = HOUR_MS;
// Not while a start keeps the database busy.
const FORGET_FIRST_AFTER_MS = 600_000;
// More lines than anybody reads, and about what an answer may weigh.
const MOST_LINES = 50_000;

export interface HourlyUsageOptions {
  store: UsageStore;
  clock: Clock;
  log: Log;
  instanceId: string;
  /** Before it the tables may be missing. */
  isReady: () => boolean;
  /** How long usage is kept; 0: for ever. */
  retentionMs: number;
  /** Rows that may wait. Requests beyond them are not counted, and that is logged. */
  mostWaiting?: number;
}

export class HourlyUsage {
  readonly #options: HourlyUsageOptions;
  readonly #mostWaiting: number;
  /** By what tells them apart. */
  #rows = new Map<string, UsageRow>();
  /** Of unknown outcome. */
  #sent: UsageFlush | null = null;
  #seq = 0;
  readonly #flushing = new SingleRun();
  #cancelFlush: (() => void) | null = null;
  #cancelForgetting: (() => void) | null = null;
  #isClosed = false;
  /** Those that the provider has answered for today. */
  readonly #models = new Set<string>();
  /** Those that it was asked for today and has not answered for. */
  readonly #unanswered = new Set<string>();
  /** How many of them each token asked for first. */
  readonly #unansweredOf = new Map<string, number>();
  #modelsDayMs = 0;
  /** Requests that found no room. */
  #lost = 0;

  constructor(options: HourlyUsageOptions) {
    this.#options = options;
    this.#mostWaiting = options.mostWaiting ?? MOST_WAITING;
  }

  /** Rows that wait to be written. */
  get waiting(): number {
    return this.#rows.size + (this.#sent?.rows.length ?? 0);
  }

  /** From when on there are tables: forgets what is old, every hour. */
  begin(): void {
    this.#forgetIn(FORGET_FIRST_AFTER_MS);
  }

  #forgetIn(ms: number): void {
    this.#cancelForgetting = this.#options.clock.after(ms, () => {
      void this.#forget();
      this.#forgetIn(FORGET_EVERY_MS);
    });
  }

  readonly keep = (ended: RequestEnded): void => {
    // A preflight, which is no use of anything.
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
    }
    if (ended.outcome === 'upstream_refused') row.upstreamRefused += 1;
    if (ended.outcome === 'upstream_error' && ended.code !== 'internal') row.upstreamErrors += 1;
    if (ended.outcome === 'revoked' && (ended.isForwarded || ended.cache === 'hit')) row.cut += 1;
    this.#flushLater();
  };

  #rowOf(ended: RequestEnded): UsageRow | undefined {
    const hourMs = ended.timeMs - (ended.timeMs % HOUR_MS);
    const tokenId = ended.tokenId ?? '';
    const code = ended.code ?? '';
    const model = tokenId === '' ? '' : this.#modelOf(ended, tokenId, hourMs);
    const { outcome } = ended;
    // None of the parts but the last can hold a line break, so no two lists of them are the same text.
    const key = `${hourMs}\n${tokenId}\n${outcome}\n${code}\n${model}`;
    const known = this.#rows.get(key);
    if (known || this.#rows.size >= this.#mostWaiting) return known;
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
    return row;
  }

  #modelOf({ model, status }: RequestEnded, tokenId: string, hourMs: number): string {
    if (model === null) return '';
    const dayMs = hourMs - (hourMs % DAY_MS);
    if (dayMs !== this.#modelsDayMs) {
      this.#modelsDayMs = dayMs;
      this.#models.clear();
      this.#unanswered.clear();
      this.#unansweredOf.clear();
    }
    if (this.#models.has(model)) return model;
    const isNamed = status < 400 ? this.#nameAnswered(model) : this.#nameUnanswered(model, tokenId);
    return isNamed ? model : OTHER;
  }

  #nameAnswered(model: string): boolean {
    if (this.#models.size >= MOST_MODELS) return false;
    this.#models.add(model);
    return true;
  }

  #nameUnanswered(model: string, tokenId: string): boolean {
    if (this.#unanswered.has(model)) return true;
    const asked = this.#unansweredOf.get(tokenId) ?? 0;
    if (this.#unanswered.size >= MOST_UNANSWERED || asked >= MOST_UNANSWERED_OF_A_TOKEN) return false;
    this.#unanswered.add(model);
    this.#unansweredOf.set(tokenId, asked + 1);
    return true;
  }

  // ---- writing

  #flushLater(): void {
    if (this.#isClosed) return;
    this.#cancelFlush ??= this.#options.clock.after(FLUSH_EVERY_MS, () => {
      this.#cancelFlush = null;
      this.flush().catch((error: unknown) => {
        this.#options.log.warn('usage cannot be written now', { waiting: this.waiting, error });
        this.#flushLater(); // Which tries again.
      });
    });
  }

  /** Writes all that there is. @throws {StoreUnavailable} when some of it still waits. */
  async flush(): Promise<void> {
    // Who calls while another flush is under way may have added to what that one did not take.
    await this.#flushing.current?.catch(() => undefined);
    await this.#flushing.run(() => this.#flushAll());
  }

  async #flushAll(): Promise<void> {
    const { store, clock, log, instanceId, isReady } = this.#options;
    if (this.waiting === 0 || !isReady()) return;
    if (this.#sent && (await store.lastFlush(instanceId)) >= this.#sent.seq) this.#sent = null;
    for (;;) {
      const flush = this.#sent ?? { instanceId, seq: (this.#seq += 1), nowMs: clock.now(), rows: this.#take() };
      this.#sent = flush;
      await store.add(flush);
      this.#sent = null;
      if (this.#rows.size === 0) break;
    }
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    if (this.#lost > 0) log.warn('usage is missing: more than there was room for', { requests: this.#lost });
    this.#lost = 0;
  }

  #take(): UsageRow[] {
    const taken: UsageRow[] = [];
    for (const [key, row] of this.#rows) {
      if (taken.length === MOST_IN_A_FLUSH) break;
      taken.push(row);
      this.#rows.delete(key);
    }
    return taken;
  }

  /** At shutdown: writes what is not written yet, if that can be done. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelFlush?.();
    this.#cancelForgetting?.();
    await this.flush().catch((error: unknown) => {
      this.#options.log.warn('usage is lost', { waiting: this.waiting, error });
    });
  }

  // ---- reading, and forgetting

  /**
   * Adds up, what is not written yet included. Times are in order, and within each whoever had most requests comes first.
   *
   * @throws {Refusal} `invalid_request` when that is too long a list, `unavailable` when the database is away.
   */
  async report(query: UsageQuery): Promise<UsageLine[]> {
    await reading(this.flush());
    const lines = await reading(this.#options.store.report(query, MOST_LINES));
    if (lines.length > MOST_LINES) {
      throw new Refusal(
        'invalid_request',
        `more than ${MOST_LINES} lines: choose a shorter time, or less to tell apart`,
      );
    }
    return lines.sort(inOrder);
  }

  /** Whole days only, so that what is left of the hours adds up to what is left of the sums. */
  async #forget(): Promise<void> {
    const { store, clock, log, retentionMs } = this.#options;
    if (retentionMs === 0) return;
    const beforeMs = clock.now() - retentionMs;
    try {
      // In small steps, between which others have their turn.
      while (!this.#isClosed && (await store.forgetBefore(beforeMs - (beforeMs % DAY_MS))));
    } catch (error) {
      log.warn('old usage cannot be removed now', { error });
    }
  }
}

const noUsage = (): UsageCounts => ({
  requests: 0,
  hits: 0,
  promptTokens: 0,
  completionTokens: 0,
  upstreamRefused: 0,
  upstreamErrors: 0,
  cut: 0,
});

const timeOf = ({ hourMs, dayMs }: UsageLine) => hourMs ?? dayMs ?? 0;
const nameOf = ({ tokenId, projectId, model }: UsageLine) => `${projectId ?? ''}\n${tokenId ?? ''}\n${model ?? ''}`;

function inOrder(a: UsageLine, b: UsageLine): number {
  return timeOf(a) - timeOf(b) || b.requests - a.requests || (nameOf(a) < nameOf(b) ? -1 : 1);
}

/** The ids of an hour's rows are not below this one, and those of earlier hours are. */
export function firstIdOf(hourMs: number): string {
  const hex = hourMs.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-`;
}

/** A UUID (RFC 9562, version 8) with the hour in front, where version 7 has the time. The rest is a digest. */
function idOf(hourMs: number, key: string): string {
  const digest = createHash('sha256').update(key).digest('hex');
  return `${firstIdOf(hourMs)}8${digest.slice(0, 3)}-8${digest.slice(3, 6)}-${digest.slice(6, 18)}`;
}
