/**
 * Reads events from the stream while there is capacity for pending deliveries: first the events that are pending for this consumer since an
 * earlier run, then events that another dispatcher took and did not acknowledge in time, then new ones.
 */
import { type Clock, type Log, StoreUnavailable } from '../core/ports.js';
import { RedisErrorReply } from '../store/redis/connection.js';
import { Backoff } from '../core/backoff.js';
import { deliveryOf } from './stream.js';
import type { PendingDelivery, PendingDeliveries } from './pending-deliveries.js';
import type { DispatcherMetrics } from './metrics.js';
import type { EventStream } from './stream.js';

const BLOCK_MS = 500;
const PAGE = 100;
const MAX_SWEEP_MS = 5_000;

export interface EventReaderOptions {
  stream: EventStream;
  pending: PendingDeliveries;
  metrics: DispatcherMetrics;
  clock: Clock;
  log: Log;
  /** How long an event may be idle before it is taken over from another dispatcher. */
  claimIdleMs: number;
  /** Ends when the stream has no more events. */
  isOnce: boolean;
}

type Progress = 'continue' | 'finished';

export class EventReader {
  readonly #options: EventReaderOptions;
  readonly #backoff = new Backoff(100, 5_000);
  /** What prevents reading events; null if nothing does. */
  #problem: 'redis' | 'stream' | null = 'redis';
  #isStopping = false;
  #hasEnded = false;
  #hadGroup = false;
  #needsGroup = true;
  /** The ID after which to list own pending entries; null when all are listed. */
  #ownAfter: string | null = '-';
  #alone: string[] = [];
  #cursor = '0-0';
  #sweepAtMs = 0;
  #isSweptOnce = false;

  constructor(options: EventReaderOptions) {
    this.#options = options;
  }

  /** Whether `run` has ended because the stream has no more events. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get problem(): 'redis' | 'stream' | null {
    return this.#options.stream.connection.isReady ? this.#problem : 'redis';
  }

  /** Reads until `stop` is called, or with `isOnce` until the stream has no more events. */
  async run(): Promise<void> {
    const { pending } = this.#options;
    while (!this.#isStopping) {
      try {
        const progress = await this.#readOnce();
        this.#problem = null;
        this.#backoff.reset();
        this.#hasEnded = progress === 'finished';
        if (this.#hasEnded) return;
      } catch (error) {
        this.#handleFailure(error);
        await pending.changed.wait(this.#backoff.next());
      }
    }
  }

  stop(): void {
    this.#isStopping = true;
    this.#options.stream.stopReading();
    this.#options.pending.changed.wake();
  }

  async #readOnce(): Promise<Progress> {
    const { stream, pending, clock, isOnce } = this.#options;
    if (this.#needsGroup) await this.#createGroup();
    const { capacity } = pending;
    if (capacity === 0) {
      await pending.changed.wait(BLOCK_MS);
      return 'continue';
    }
    const [nextAlone] = this.#alone;
    if (nextAlone !== undefined) {
      await this.#takeAlone(nextAlone);
      this.#alone.shift();
      return 'continue';
    }
    if (this.#ownAfter !== null) {
      await this.#takeOwn(this.#ownAfter, Math.min(capacity, PAGE));
      return 'continue';
    }
    if (clock.monotonic() >= this.#sweepAtMs) {
      await this.#claim(Math.min(capacity, PAGE));
      return 'continue';
    }
    const entries = await stream.readNew(capacity, isOnce ? 0 : BLOCK_MS);
    for (const { id, fields } of entries) if (fields) await this.#admit(id, fields, 1, 'together');
    pending.changed.wake();
    return isOnce && entries.length === 0 && this.#isSweptOnce ? 'finished' : 'continue';
  }

  async #createGroup(): Promise<void> {
    const { stream, log, metrics } = this.#options;
    const isNew = await stream.createGroup();
    if (isNew && this.#hadGroup) {
      metrics.groupRecreated.inc();
      log.error(
        'consumer group was missing and has been created again; all events in the stream will be delivered again',
      );
    } else if (isNew) log.info('consumer group created');
    this.#needsGroup = false;
    this.#hadGroup = true;
  }

  async #takeOwn(after: string, count: number): Promise<void> {
    const { stream } = this.#options;
    const ids = await stream.listOwn(after, count);
    await this.#take(ids);
    const last = ids.at(-1);
    this.#ownAfter = last !== undefined && ids.length === count ? `(${last}` : null;
  }

  async #claim(count: number): Promise<void> {
    const { stream, clock, claimIdleMs, metrics } = this.#options;
    const { next, ids, trimmed } = await stream.claim(claimIdleMs, this.#cursor, count);
    metrics.trimmed.inc({ state: 'pending' }, trimmed);
    this.#cursor = next;
    await this.#take(ids);
    if (next !== '0-0') return;
    this.#isSweptOnce = true;
    this.#sweepAtMs = clock.monotonic() + Math.min(claimIdleMs / 4, MAX_SWEEP_MS);
  }

  async #take(ids: readonly string[]): Promise<void> {
    const { stream, pending } = this.#options;
    const unknown = ids.filter((id) => !pending.has(id));
    if (unknown.length === 0) return;
    for (const it of await stream.take(unknown, 'together')) {
      if (it.kind === 'taken') await this.#admit(it.id, it.fields, it.deliveries, 'together');
      else if (it.kind === 'alone') this.#alone.push(it.id);
      else this.#recordNotTaken(it);
    }
    pending.changed.wake();
  }

  /** Reads no other events until this one was attempted: if the attempt ends this process, no other event is involved. */
  async #takeAlone(id: string): Promise<void> {
    const { stream, pending } = this.#options;
    const [it] = await stream.take([id], 'alone');
    if (it?.kind !== 'taken') {
      if (it) this.#recordNotTaken(it);
      return;
    }
    const item = await this.#admit(it.id, it.fields, it.deliveries, 'alone');
    while (item && pending.find(id) === item && isUntried(item) && !this.#isStopping)
      await pending.changed.wait(BLOCK_MS);
  }

  #recordNotTaken(it: Parameters<DispatcherMetrics['notTaken']>[0]): void {
    const { metrics, log } = this.#options;
    metrics.notTaken(it);
    if (it.kind === 'dead')
      log.error('event moved to dead letters: no dispatcher that took it acknowledged it', { entry: it.id });
    if (it.kind === 'trimmed') log.warn('event trimmed from the stream before it was delivered', { entry: it.id });
  }

  async #admit(
    id: string,
    fields: readonly string[],
    deliveries: number,
    how: 'together' | 'alone',
  ): Promise<PendingDelivery | null> {
    const { stream, pending, metrics, log } = this.#options;
    const delivery = deliveryOf(fields);
    if (delivery) return pending.add(id, delivery, deliveries, how);
    metrics.deadLettered(await stream.moveToDeadLetters(id, deliveries, 'not an event', ''));
    log.error('stream entry is not an event, moved to dead letters', { entry: id });
    return null;
  }

  /** Logs why reading failed, and prepares the next attempt. */
  #handleFailure(error: unknown): void {
    if (this.#isStopping) return; // `stop` ends a blocking read with an error.
    const { log } = this.#options;
    // The failed read may have made entries pending for this consumer, so list them again.
    this.#ownAfter = '-';
    this.#alone = [];
    const code = error instanceof RedisErrorReply ? error.code : null;
    if (code === 'NOGROUP' || code === 'UNBLOCKED') {
      this.#needsGroup = true;
      return;
    }
    const problem = code === 'WRONGTYPE' ? 'stream' : 'redis';
    if (problem === 'stream' && this.#problem !== 'stream') {
      log.error('cannot read events: the Redis key named by REDIS_STREAM_KEY is not a stream');
    } else if (!(error instanceof StoreUnavailable) && this.#problem === null) {
      log.error('cannot read the event stream, retrying', { error });
    }
    this.#problem = problem;
  }
}

const isUntried = (item: PendingDelivery): boolean => item.triedAtMs === null || item.isInFlight;
