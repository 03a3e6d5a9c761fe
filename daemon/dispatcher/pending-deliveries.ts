/**
 * Events that were read from the stream and are not delivered yet. They wait in memory while the backend is unavailable, so that waiting
 * does not load Redis and does not count as a delivery. Their number is bounded; further events stay in the stream.
 */
import type { Clock } from '../core/ports.js';
import { Backoff } from '../core/backoff.js';
import type { Backend, Delivery } from './backends/backend.js';
import { Wakeup } from '../core/wakeup.js';

const MAX_ISOLATED = 500;
const BATCHES_AHEAD = 2; // The batch in flight, and the next one.
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 60_000;

export interface PendingDelivery {
  /** The ID of the stream entry. */
  readonly id: string;
  readonly delivery: Delivery;
  readonly bytes: number;
  readonly arrivedAtMs: number;
  /** How often it was delivered, as Redis counts, including the current delivery. */
  deliveries: number;
  /** Whether Redis counts the current delivery. It does not while the event waits for an unavailable backend. */
  isCounted: boolean;
  /** Whether the event itself caused the last failure: its next attempt counts as another delivery. */
  isBlamed: boolean;
  /** Why the event moves to the dead letters as soon as Redis is available; null if it does not. */
  deadLetterReason: string | null;
  /** How many failed batches it was in. */
  failures: number;
  triedAtMs: number | null;
  /** Whether it is sent alone, apart from the batches. */
  isIsolated: boolean;
  isInFlight: boolean;
  notBeforeMs: number;
  readonly backoff: Backoff;
}

export class PendingDeliveries {
  readonly changed: Wakeup;
  /** Events that are delivered and not acknowledged yet. */
  readonly delivered = new Set<string>();
  readonly #clock: Clock;
  readonly #batch: Backend['batch'];
  readonly #all = new Map<string, PendingDelivery>();
  readonly #isolated = new Set<PendingDelivery>();
  #queue: PendingDelivery[] = [];
  #bytes = 0;
  #meanBytes = 1_000;

  constructor(clock: Clock, batch: Backend['batch']) {
    this.#clock = clock;
    this.#batch = batch;
    this.changed = new Wakeup(clock);
  }

  get size(): number {
    return this.#all.size;
  }

  has(id: string): boolean {
    return this.#all.has(id) || this.delivered.has(id);
  }

  /** How many more events may be read now. */
  get capacity(): number {
    const { maxEvents, maxBytes } = this.#batch;
    if (this.delivered.size + this.#isolated.size >= MAX_ISOLATED) return 0;
    // Blamed events wait apart from the others, and must not reduce the capacity for them.
    const blamed = [...this.#isolated].filter(({ isBlamed }) => isBlamed).length;
    const ahead = this.#all.size - blamed;
    const byBytes = Math.floor((BATCHES_AHEAD * maxBytes - this.#bytes) / this.#meanBytes);
    // If nothing is pending, one event is read, however large it is.
    const byBytesOrOne = Math.max(byBytes, this.#all.size === 0 ? 1 : 0);
    return Math.max(0, Math.min(maxEvents, BATCHES_AHEAD * maxEvents - ahead, byBytesOrOne));
  }

  /** Does not wake waiters. The caller calls `changed.wake()` once after adding several events, so that they form one batch. */
  add(id: string, delivery: Delivery, deliveries: number, how: 'together' | 'alone'): PendingDelivery {
    const bytes = Buffer.byteLength(delivery.json);
    const item: PendingDelivery = {
      id,
      delivery,
      bytes,
      deliveries,
      arrivedAtMs: this.#clock.monotonic(),
      isCounted: true,
      isBlamed: false,
      deadLetterReason: null,
      failures: 0,
      triedAtMs: null,
      isIsolated: false,
      isInFlight: false,
      notBeforeMs: 0,
      backoff: new Backoff(FIRST_DELAY_MS, MAX_DELAY_MS),
    };
    this.#all.set(id, item);
    this.#bytes += bytes;
    this.#meanBytes += (bytes - this.#meanBytes) / 50;
    if (how === 'alone') this.isolate(item, 0);
    else this.#queue.push(item);
    return item;
  }

  /** Removes an event that was delivered, moved to the dead letters, or taken over by another dispatcher. */
  drop(item: PendingDelivery): void {
    if (!this.#all.delete(item.id)) return;
    this.#bytes -= item.bytes;
    this.#isolated.delete(item);
    // An event in flight is not in the queue.
    if (!item.isInFlight) this.#queue = this.#queue.filter((it) => it !== item);
    this.changed.wake();
  }

  find(id: string): PendingDelivery | undefined {
    return this.#all.get(id);
  }

  /** Takes the next batch out of the queue. Empty while the batch still waits for more events. */
  nextBatch(maxEvents: number): PendingDelivery[] {
    const [first] = this.#queue;
    if (!first) return [];
    const count = this.#fitting(maxEvents);
    const isFull = count < this.#queue.length || count >= maxEvents;
    if (!isFull && this.gatheringMs > 0) return [];
    return this.#queue.splice(0, count);
  }

  /** How long the first event in the queue still waits for others; 0 if it does not wait. */
  get gatheringMs(): number {
    const [first] = this.#queue;
    const { gatherMs = 0 } = this.#batch;
    if (!first || first.failures > 0) return 0;
    return Math.max(0, first.arrivedAtMs + gatherMs - this.#clock.monotonic());
  }

  #fitting(maxEvents: number): number {
    let bytes = 0;
    let count = 0;
    for (const item of this.#queue) {
      bytes += item.bytes + 1;
      if (count > 0 && (count >= maxEvents || bytes > this.#batch.maxBytes)) break;
      count++;
    }
    return count;
  }

  /** Puts an event at the end of the queue. */
  requeue(item: PendingDelivery): void {
    if (!this.#all.has(item.id)) return;
    this.#queue.push(item);
    this.changed.wake();
  }

  /** Sends the event alone from now on, after a delay. */
  isolate(item: PendingDelivery, afterMs: number): void {
    if (!this.#all.has(item.id)) return;
    item.isIsolated = true;
    item.notBeforeMs = this.#clock.monotonic() + afterMs;
    this.#isolated.add(item);
    this.changed.wake();
  }

  /** An isolated event that is due now. */
  nextIsolated(): PendingDelivery | undefined {
    const nowMs = this.#clock.monotonic();
    for (const item of this.#isolated) if (!item.isInFlight && item.notBeforeMs <= nowMs) return item;
    return undefined;
  }

  /** How long until the next isolated event is due. */
  get nextIsolatedInMs(): number {
    const nowMs = this.#clock.monotonic();
    const waiting = [...this.#isolated].filter(({ isInFlight }) => !isInFlight);
    return Math.min(...waiting.map(({ notBeforeMs }) => Math.max(0, notBeforeMs - nowMs)));
  }

  /** Ends the delay of isolated events that are not blamed: they only waited for the backend. */
  retryNow(): void {
    for (const item of this.#isolated) if (!item.isBlamed) item.notBeforeMs = 0;
  }

  /** The delivery count that Redis must have for each event. */
  deliveryCounts(): Map<string, number> {
    // Redis is just raising the count of a blamed event that is being taken for another delivery.
    const settled = [...this.#all.values()].filter(({ isBlamed, isInFlight }) => !(isBlamed && isInFlight));
    return new Map(settled.map((item) => [item.id, deliveryCountOf(item)]));
  }

  /** The same for events that are released undelivered: the current delivery counts only for blamed events. */
  deliveryCountsOnRelease(): Map<string, number> {
    return new Map([...this.#all.values()].map((it) => [it.id, it.isBlamed ? it.deliveries : it.deliveries - 1]));
  }
}

export const deliveryCountOf = ({ deliveries, isCounted }: PendingDelivery): number =>
  isCounted ? deliveries : deliveries - 1;
