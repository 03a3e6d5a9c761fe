/**
 * Delivers pending events. One loop sends batches, one after the other. Events that the backend refused or failed on are isolated: a second
 * loop sends each of them alone, with its own backoff, so that they do not delay other events.
 *
 * **`rejected`**: An event that was refused in a batch is sent alone at once, because another event may have been the cause. An event that was
 * refused alone is blamed: its next attempt is another delivery that Redis counts, and after `MAX_DELIVERIES` it moves to the dead letters.
 *
 * **`retry`** for a whole batch means that the backend is unavailable. All events wait and none is blamed. The next batch is half as large, so
 * that a single event on which the backend fails is found. An event that fails alone while others are delivered is blamed too.
 */
import { setMaxListeners } from 'node:events';
import type { Clock, Log } from '../core/ports.js';
import { SingleRun } from '../core/single-run.js';
import { type Backend, Unauthorized, type DeliveryResult } from './backends/backend.js';
import { deliveryCountOf, type PendingDelivery, type PendingDeliveries } from './pending-deliveries.js';
import type { DispatcherMetrics } from './metrics.js';
import type { BackendHealth } from './backend-health.js';
import { type EventStream, MAX_DELIVERIES } from './stream.js';

const MAX_ISOLATED_AT_ONCE = 8;
const FAILURES_BEFORE_ISOLATION = 3;
const MAX_SLEEP_MS = 1_000;
const REDIS_RETRY_MS = 500;
const FIRST_BLAMED_DELAY_MS = 1_000; // Doubles with each delivery: an event on which the backend fails may harm it.

export interface DelivererOptions {
  backend: Backend;
  stream: EventStream;
  pending: PendingDeliveries;
  backendHealth: BackendHealth;
  metrics: DispatcherMetrics;
  clock: Clock;
  log: Log;
}

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #abort = new AbortController();
  #isStopping = false;
  #batchLimit: number;
  readonly #acknowledging = new SingleRun();
  #loops: Promise<unknown> = Promise.resolve();

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#batchLimit = options.backend.batch.maxEvents;
    setMaxListeners(0, this.#abort.signal); // Each delivery in flight adds a listener; without this Node warns of a leak.
  }

  start(): void {
    this.#loops = Promise.all([this.#runBatches(), this.#runIsolated()]);
  }

  /** Starts no more deliveries, and lets those in flight finish for up to `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    const { clock, pending } = this.#options;
    this.#isStopping = true;
    pending.changed.wake();
    const cancel = clock.after(graceMs, () => {
      this.#abort.abort();
    });
    await this.#loops;
    cancel();
  }

  /** Acknowledges delivered events. If Redis is unavailable, they are acknowledged by a later call. */
  acknowledge(): Promise<void> {
    return this.#acknowledging.run(() => this.#acknowledgeAll());
  }

  async #acknowledgeAll(): Promise<void> {
    const { stream, pending } = this.#options;
    try {
      while (pending.delivered.size > 0) {
        const ids = [...pending.delivered];
        await stream.acknowledge(ids);
        for (const id of ids) pending.delivered.delete(id);
        pending.changed.wake();
      }
    } catch {
      // The connection has logged it.
    }
  }

  // ---- the two loops

  async #runBatches(): Promise<void> {
    const { pending, backendHealth } = this.#options;
    while (!this.#isStopping) {
      const batch = backendHealth.waitMs > 0 ? [] : pending.nextBatch(this.#batchLimit);
      if (batch.length === 0) {
        const waitMs = backendHealth.waitMs || pending.gatheringMs || MAX_SLEEP_MS;
        await pending.changed.wait(Math.min(waitMs, MAX_SLEEP_MS));
        continue;
      }
      await this.#attempt(batch);
    }
  }

  async #runIsolated(): Promise<void> {
    const { pending, backendHealth } = this.#options;
    const running = new Set<Promise<void>>();
    while (!this.#isStopping) {
      const limit = backendHealth.isFailing ? 1 : MAX_ISOLATED_AT_ONCE;
      const canStart = running.size < limit && backendHealth.waitMs === 0;
      const item = canStart ? pending.nextIsolated() : undefined;
      if (!item) {
        const waitMs = canStart ? pending.nextIsolatedInMs : backendHealth.waitMs || MAX_SLEEP_MS;
        await pending.changed.wait(Math.min(waitMs, MAX_SLEEP_MS));
        continue;
      }
      item.isInFlight = true;
      const attempt = this.#attemptIsolated(item).finally(() => {
        item.isInFlight = false;
        running.delete(attempt);
        pending.changed.wake();
      });
      running.add(attempt);
    }
    await Promise.all(running);
  }

  async #attemptIsolated(item: PendingDelivery): Promise<void> {
    if (item.deadLetterReason !== null) return this.#moveToDeadLetters(item, item.deadLetterReason);
    if (item.isBlamed && !(await this.#startAnotherDelivery(item))) return;
    await this.#attempt([item]);
  }

  /** Makes Redis count another delivery of a blamed event. @returns whether the event may be delivered again. */
  async #startAnotherDelivery(item: PendingDelivery): Promise<boolean> {
    const { stream, pending, metrics } = this.#options;
    const taken = await stream.take([item.id], 'alone').catch(() => null);
    if (!taken?.[0]) {
      pending.isolate(item, REDIS_RETRY_MS);
      return false;
    }
    const [it] = taken;
    if (it.kind === 'taken') {
      item.deliveries = it.deliveries;
      item.isCounted = true;
      item.isBlamed = false;
      return true;
    }
    metrics.notTaken(it);
    pending.drop(item);
    return false;
  }

  // ---- one attempt

  async #attempt(batch: readonly PendingDelivery[]): Promise<void> {
    const { pending } = this.#options;
    const before = batch[0]?.triedAtMs ?? null;
    await this.#count(batch);
    for (const item of batch) item.isInFlight = true;
    const results = await this.#deliver(batch);
    if (results === null) this.#waitForCredential(batch);
    else await this.#applyResults(batch, results, before);
    await this.#uncount(batch);
    for (const item of batch) item.isInFlight = false;
    pending.changed.wake();
  }

  /** @returns null if the credential was refused. */
  async #deliver(batch: readonly PendingDelivery[]): Promise<DeliveryResult[] | null> {
    const { backend, clock, backendHealth, metrics, log } = this.#options;
    const nowMs = clock.monotonic();
    for (const item of batch) item.triedAtMs = nowMs;
    try {
      const results = await backend.deliver(
        batch.map(({ delivery }) => delivery),
        this.#abort.signal,
      );
      metrics.deliverySeconds.observe((clock.monotonic() - nowMs) / 1000);
      return results;
    } catch (error) {
      if (error instanceof Unauthorized) {
        backendHealth.unauthorized(error.message);
        return null;
      }
      // Our code cannot convert one of the events to the format of the backend. Sending each alone shows which one.
      log.error('cannot convert an event to the format of the backend', { error });
      return batch.map(() => ({ kind: 'rejected', why: 'cannot be converted to the format of the backend' }));
    }
  }

  async #applyResults(
    batch: readonly PendingDelivery[],
    results: readonly DeliveryResult[],
    triedBeforeMs: number | null,
  ): Promise<void> {
    const { pending, backendHealth, metrics } = this.#options;
    const of = <K extends DeliveryResult['kind']>(kind: K) =>
      batch.flatMap((item, index) => {
        const result = results[index] ?? { kind: 'retry', why: 'no result' };
        return result.kind === kind ? [{ item, result: result as Extract<DeliveryResult, { kind: K }> }] : [];
      });
    const [delivered, rejected, retried] = [of('delivered'), of('rejected'), of('retry')];

    // Read before the results of this batch are recorded: it is about earlier deliveries.
    const othersDelivered = backendHealth.hasDeliveredSince(triedBeforeMs);
    for (const { item } of delivered) {
      pending.delivered.add(item.id);
      pending.drop(item);
    }
    metrics.delivered.inc(delivered.length);
    metrics.retried.inc(rejected.length + retried.length);
    if (delivered.length > 0) {
      if (backendHealth.succeeded()) pending.retryNow();
      this.#batchLimit = Math.min(2 * this.#batchLimit, this.#options.backend.batch.maxEvents);
    } else if (rejected.length > 0) backendHealth.responded();

    for (const { item, result } of rejected) {
      if (batch.length > 1) pending.isolate(item, 0);
      else await this.#blame(item, result.why);
    }
    if (retried.length === batch.length) await this.#batchFailed(retried, othersDelivered);
    // The backend is available, and asked for a retry of these events only.
    else for (const { item, result } of retried) this.#retryIsolated(item, result.afterMs);
    if (delivered.length > 0) await this.acknowledge();
  }

  /** The backend accepted none of the events. */
  async #batchFailed(
    retried: readonly { item: PendingDelivery; result: { why: string; afterMs?: number } }[],
    othersDelivered: boolean,
  ): Promise<void> {
    const { pending, backendHealth } = this.#options;
    const [first] = retried;
    if (!first || this.#abort.signal.aborted) return;
    const afterMs = Math.max(0, ...retried.map(({ result }) => result.afterMs ?? 0));
    const { why } = first.result;
    if (retried.length === 1 && afterMs === 0 && othersDelivered && first.item.isIsolated) {
      await this.#blame(first.item, why, FIRST_BLAMED_DELAY_MS * 2 ** first.item.deliveries);
      return;
    }
    const ids = retried.map(({ item }) => item.id);
    backendHealth.failed(ids, why, afterMs);
    this.#batchLimit = Math.max(1, Math.floor(retried.length / 2));
    for (const { item } of retried) {
      item.failures++;
      const isSuspect = retried.length === 1 || (item.failures >= FAILURES_BEFORE_ISOLATION && othersDelivered);
      if (item.isIsolated || isSuspect) this.#retryIsolated(item, afterMs);
      else {
        item.isCounted = false;
        pending.requeue(item);
      }
    }
  }

  #waitForCredential(batch: readonly PendingDelivery[]): void {
    const { pending, metrics } = this.#options;
    metrics.retried.inc(batch.length);
    for (const item of batch) {
      item.isCounted = false;
      if (!item.isIsolated) pending.requeue(item);
    }
  }

  #retryIsolated(item: PendingDelivery, afterMs = 0): void {
    item.isCounted = false;
    this.#options.pending.isolate(item, Math.max(afterMs, item.backoff.next()));
  }

  // ---- blame and delivery counts

  /** Records that the event itself caused the failure: its next attempt counts as another delivery. */
  async #blame(item: PendingDelivery, why: string, minDelayMs = 0): Promise<void> {
    if (item.deliveries >= MAX_DELIVERIES) return this.#moveToDeadLetters(item, why);
    item.isBlamed = true;
    this.#options.pending.isolate(item, Math.max(minDelayMs, item.backoff.next()));
  }

  async #moveToDeadLetters(item: PendingDelivery, why: string): Promise<void> {
    const { stream, pending, metrics, log } = this.#options;
    const { id, deliveries, delivery } = item;
    item.deadLetterReason = why;
    try {
      const evicted = await stream.moveToDeadLetters(id, deliveries, why, delivery.json);
      metrics.deadLettered(evicted);
      log.error('event moved to dead letters', { event: delivery.event.id, deliveries, reason: why });
      pending.drop(item);
    } catch {
      pending.isolate(item, REDIS_RETRY_MS);
    }
  }

  /** Before an attempt: if the attempt ends this process, Redis has counted the delivery. */
  async #count(batch: readonly PendingDelivery[]): Promise<void> {
    const uncounted = batch.filter(({ isCounted }) => !isCounted);
    for (const item of uncounted) item.isCounted = true;
    await this.#writeCounts(uncounted);
  }

  /** After an attempt that failed for a reason other than the event. */
  async #uncount(batch: readonly PendingDelivery[]): Promise<void> {
    await this.#writeCounts(batch.filter(({ isCounted }) => !isCounted));
  }

  async #writeCounts(some: readonly PendingDelivery[]): Promise<void> {
    if (some.length === 0) return;
    const counts = new Map(some.map((item) => [item.id, deliveryCountOf(item)]));
    await this.#options.stream.renewClaims(counts).catch(() => undefined); // Redis is unavailable, and keeps its previous counts.
  }
}
