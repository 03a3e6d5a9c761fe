/**
 * Delivers what is in hand. In the main lane go batches, one after the other. What a back end refused, or choked on, goes beside
 * them, each event alone and at its own pace, so that it delays no other.
 *
 * **Refused** (`rejected`) as one of several, an event is tried alone at once: maybe it was another's fault. Refused alone it is
 * blamed: the next try is a delivery that Redis counts, and after the last of them it is set aside.
 *
 * **Not now** (`retry`) for a whole batch means that the back end is away. Everything waits, nothing is blamed, and the next batch is half
 * as large, so that one that chokes on a single event is found out. An event that fails alone although others are delivered is
 * blamed too.
 */
import { setMaxListeners } from 'node:events';
import type { Clock, Log } from '../core/ports.js';
import { SingleRun } from '../core/single-run.js';
import { type Backend, Unauthorized, type Verdict } from './backends/backend.js';
import { countOf, type Held, type InHand } from './in-hand.js';
import type { DispatcherMetrics } from './metrics.js';
import type { Outlook } from './outlook.js';
import { type EventStream, MOST_DELIVERIES } from './stream.js';

const MOST_ALONE_AT_ONCE = 8;
const FAILURES_TO_GO_APART = 3;
const LONGEST_SLEEP_MS = 1_000;
const REDIS_RETRY_MS = 500;
const CHOKED_DELAY_MS = 1_000; // For the first time, then twice as long each time: choking may hurt the back end.

export interface DelivererOptions {
  backend: Backend;
  stream: EventStream;
  inHand: InHand;
  outlook: Outlook;
  metrics: DispatcherMetrics;
  clock: Clock;
  log: Log;
}

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #abort = new AbortController();
  #isStopping = false;
  #mostAtOnce: number;
  readonly #acknowledging = new SingleRun();
  #lanes: Promise<unknown> = Promise.resolve();

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#mostAtOnce = options.backend.batch.mostEvents;
    setMaxListeners(0, this.#abort.signal); // Each delivery under way listens: Node would take them for a leak.
  }

  start(): void {
    this.#lanes = Promise.all([this.#runMain(), this.#runApart()]);
  }

  /** Begins no delivery any more, and gives those under way so long. */
  async stop(graceMs: number): Promise<void> {
    const { clock, inHand } = this.#options;
    this.#isStopping = true;
    inHand.changed.wake();
    const cancel = clock.after(graceMs, () => {
      this.#abort.abort();
    });
    await this.#lanes;
    cancel();
  }

  /** Acknowledges what was delivered. What Redis does not take now is kept for the next time. */
  acknowledge(): Promise<void> {
    return this.#acknowledging.run(() => this.#acknowledgeAll());
  }

  async #acknowledgeAll(): Promise<void> {
    const { stream, inHand } = this.#options;
    try {
      while (inHand.delivered.size > 0) {
        const ids = [...inHand.delivered];
        await stream.acknowledge(ids);
        for (const id of ids) inHand.delivered.delete(id);
        inHand.changed.wake();
      }
    } catch {
      // The connection has said so.
    }
  }

  // ---- the lanes

  async #runMain(): Promise<void> {
    const { inHand, outlook } = this.#options;
    while (!this.#isStopping) {
      const batch = outlook.waitMs > 0 ? [] : inHand.nextBatch(this.#mostAtOnce);
      if (batch.length === 0) {
        const waitMs = outlook.waitMs || inHand.gatheringMs || LONGEST_SLEEP_MS;
        await inHand.changed.wait(Math.min(waitMs, LONGEST_SLEEP_MS));
        continue;
      }
      await this.#try(batch);
    }
  }

  async #runApart(): Promise<void> {
    const { inHand, outlook } = this.#options;
    const running = new Set<Promise<void>>();
    while (!this.#isStopping) {
      const most = outlook.isFailing ? 1 : MOST_ALONE_AT_ONCE;
      const canBegin = running.size < most && outlook.waitMs === 0;
      const held = canBegin ? inHand.nextApart() : undefined;
      if (!held) {
        const waitMs = canBegin ? inHand.apartInMs : outlook.waitMs || LONGEST_SLEEP_MS;
        await inHand.changed.wait(Math.min(waitMs, LONGEST_SLEEP_MS));
        continue;
      }
      held.isInFlight = true;
      const attempt = this.#tryAlone(held).finally(() => {
        held.isInFlight = false;
        running.delete(attempt);
        inHand.changed.wake();
      });
      running.add(attempt);
    }
    await Promise.all(running);
  }

  async #tryAlone(held: Held): Promise<void> {
    if (held.deadBecause !== null) return this.#setAside(held, held.deadBecause);
    if (held.isBlamed && !(await this.#takeAgain(held))) return;
    await this.#try([held]);
  }

  /** Another delivery of one that was blamed, by Redis' count. @returns whether there is to be one. */
  async #takeAgain(held: Held): Promise<boolean> {
    const { stream, inHand, metrics } = this.#options;
    const taken = await stream.take([held.id], 'alone').catch(() => null);
    if (!taken?.[0]) {
      inHand.putApart(held, REDIS_RETRY_MS);
      return false;
    }
    const [it] = taken;
    if (it.kind === 'taken') {
      held.deliveries = it.deliveries;
      held.isCounted = true;
      held.isBlamed = false;
      return true;
    }
    metrics.gone(it);
    inHand.drop(held);
    return false;
  }

  // ---- one try

  async #try(batch: readonly Held[]): Promise<void> {
    const { inHand } = this.#options;
    const before = batch[0]?.triedAtMs ?? null;
    await this.#count(batch);
    for (const held of batch) held.isInFlight = true;
    const verdicts = await this.#deliver(batch);
    if (verdicts === null) this.#waitForBackEnd(batch);
    else await this.#settle(batch, verdicts, before);
    await this.#uncount(batch);
    for (const held of batch) held.isInFlight = false;
    inHand.changed.wake();
  }

  /** @returns null when the credential was refused. */
  async #deliver(batch: readonly Held[]): Promise<Verdict[] | null> {
    const { backend, clock, outlook, metrics, log } = this.#options;
    const nowMs = clock.monotonic();
    for (const held of batch) held.triedAtMs = nowMs;
    try {
      const verdicts = await backend.deliver(
        batch.map(({ delivery }) => delivery),
        this.#abort.signal,
      );
      metrics.took(clock.monotonic() - nowMs);
      return verdicts;
    } catch (error) {
      if (error instanceof Unauthorized) {
        outlook.unauthorized(error.message);
        return null;
      }
      // A back end of ours that cannot make its format of an event. Which one that was shows when each is tried alone.
      log.error('an event could not be put into the form of the back end', { error });
      return batch.map(() => ({ kind: 'rejected', why: 'cannot be put into the form of the back end' }));
    }
  }

  async #settle(batch: readonly Held[], verdicts: readonly Verdict[], triedBeforeMs: number | null): Promise<void> {
    const { inHand, outlook, metrics } = this.#options;
    const of = <K extends Verdict['kind']>(kind: K) =>
      batch.flatMap((held, index) => {
        const verdict = verdicts[index] ?? { kind: 'retry', why: 'no verdict' };
        return verdict.kind === kind ? [{ held, verdict: verdict as Extract<Verdict, { kind: K }> }] : [];
      });
    const [delivered, rejected, retried] = [of('delivered'), of('rejected'), of('retry')];

    // Asked before this delivery says that others go through.
    const othersGoThrough = outlook.hasDeliveredSince(triedBeforeMs);
    for (const { held } of delivered) {
      inHand.delivered.add(held.id);
      inHand.drop(held);
    }
    metrics.delivered(delivered.length);
    metrics.retried(rejected.length + retried.length);
    if (delivered.length > 0) {
      if (outlook.succeeded()) inHand.hurry();
      this.#mostAtOnce = Math.min(2 * this.#mostAtOnce, this.#options.backend.batch.mostEvents);
    } else if (rejected.length > 0) outlook.answered();

    for (const { held, verdict } of rejected) {
      if (batch.length > 1) inHand.putApart(held, 0);
      else await this.#blame(held, verdict.why);
    }
    if (retried.length === batch.length) await this.#failed(retried, othersGoThrough);
    // Answered one by one: the back end is there, and wants these later.
    else for (const { held, verdict } of retried) this.#waitApart(held, verdict.afterMs);
    if (delivered.length > 0) await this.acknowledge();
  }

  /** None was taken. */
  async #failed(
    retried: readonly { held: Held; verdict: { why: string; afterMs?: number } }[],
    othersGoThrough: boolean,
  ): Promise<void> {
    const { inHand, outlook } = this.#options;
    const [first] = retried;
    if (!first || this.#abort.signal.aborted) return;
    const afterMs = Math.max(0, ...retried.map(({ verdict }) => verdict.afterMs ?? 0));
    const { why } = first.verdict;
    if (retried.length === 1 && afterMs === 0 && othersGoThrough && first.held.isApart) {
      await this.#blame(first.held, why, CHOKED_DELAY_MS * 2 ** first.held.deliveries);
      return;
    }
    const ids = retried.map(({ held }) => held.id);
    outlook.failed(ids, why, afterMs);
    this.#mostAtOnce = Math.max(1, Math.floor(retried.length / 2));
    for (const { held } of retried) {
      held.failures++;
      const isSuspect = retried.length === 1 || (held.failures >= FAILURES_TO_GO_APART && othersGoThrough);
      if (held.isApart || isSuspect) this.#waitApart(held, afterMs);
      else {
        held.isCounted = false;
        inHand.putBack(held);
      }
    }
  }

  #waitForBackEnd(batch: readonly Held[]): void {
    const { inHand, metrics } = this.#options;
    metrics.retried(batch.length);
    for (const held of batch) {
      held.isCounted = false;
      if (!held.isApart) inHand.putBack(held);
    }
  }

  #waitApart(held: Held, afterMs = 0): void {
    held.isCounted = false;
    this.#options.inHand.putApart(held, Math.max(afterMs, held.backoff.next()));
  }

  // ---- whose fault it is

  /** It was not delivered, and that is its own fault. */
  async #blame(held: Held, why: string, leastMs = 0): Promise<void> {
    if (held.deliveries >= MOST_DELIVERIES) return this.#setAside(held, why);
    held.isBlamed = true;
    this.#options.inHand.putApart(held, Math.max(leastMs, held.backoff.next()));
  }

  async #setAside(held: Held, why: string): Promise<void> {
    const { stream, inHand, metrics, log } = this.#options;
    const { id, deliveries, delivery } = held;
    held.deadBecause = why;
    try {
      const pushedOut = await stream.setAside(id, deliveries, why, delivery.json);
      metrics.setAside(pushedOut);
      log.error('an event was set aside as a dead letter', { event: delivery.event.id, deliveries, reason: why });
      inHand.drop(held);
    } catch {
      inHand.putApart(held, REDIS_RETRY_MS);
    }
  }

  /** Before a try: should it be the end of this process, Redis has counted it. */
  async #count(batch: readonly Held[]): Promise<void> {
    const uncounted = batch.filter(({ isCounted }) => !isCounted);
    for (const held of uncounted) held.isCounted = true;
    await this.#tellCounts(uncounted);
  }

  /** After a try that was nobody's fault. */
  async #uncount(batch: readonly Held[]): Promise<void> {
    await this.#tellCounts(batch.filter(({ isCounted }) => !isCounted));
  }

  async #tellCounts(some: readonly Held[]): Promise<void> {
    if (some.length === 0) return;
    const counts = new Map(some.map((held) => [held.id, countOf(held)]));
    await this.#options.stream.hold(counts).catch(() => undefined); // Redis is away: it counts what it knows.
  }
}
