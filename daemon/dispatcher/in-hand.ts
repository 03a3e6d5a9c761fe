/**
 * The events in hand: read, and not delivered yet. They are kept in memory while the back end is away, so that waiting costs Redis
 * nothing and is not counted as deliveries; how many there are is bounded, and what is beyond stays in the stream.
 */
import type { Clock } from '../core/ports.js';
import { Backoff } from './backoff.js';
import type { Backend, Delivery } from './backends/backend.js';
import { Wakeup } from './wakeup.js';

const MOST_APART = 500;
const BATCHES_AHEAD = 2; // One that is on its way, and the next.
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 60_000;

export interface Held {
  /** Of its entry. */
  readonly id: string;
  readonly delivery: Delivery;
  readonly bytes: number;
  readonly arrivedAtMs: number;
  /** How often it was delivered, by Redis' count, the delivery it is held for included. */
  deliveries: number;
  /** Redis counts this delivery. It does not while the event waits for a back end that is away. */
  isCounted: boolean;
  /** That it was not delivered is its own fault: the next try is another delivery. */
  isBlamed: boolean;
  /** Why it is to become a dead letter, once Redis is there to take it. */
  deadBecause: string | null;
  /** How often it was among what the back end did not take. */
  failures: number;
  triedAtMs: number | null;
  /** It is tried alone, beside the others. */
  isApart: boolean;
  isInFlight: boolean;
  notBeforeMs: number;
  readonly backoff: Backoff;
}

export class InHand {
  readonly changed: Wakeup;
  /** Delivered, and not acknowledged yet. */
  readonly delivered = new Set<string>();
  readonly #clock: Clock;
  readonly #batch: Backend['batch'];
  readonly #all = new Map<string, Held>();
  readonly #apart = new Set<Held>();
  #queue: Held[] = [];
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

  get bytes(): number {
    return this.#bytes;
  }

  all(): Iterable<Held> {
    return this.#all.values();
  }

  has(id: string): boolean {
    return this.#all.has(id) || this.delivered.has(id);
  }

  /** How many more may be read now. */
  get room(): number {
    const { mostEvents, mostBytes } = this.#batch;
    if (this.delivered.size + this.#apart.size >= MOST_APART) return 0;
    // One that is to blame itself waits beside the others, and takes no room from them.
    const blamed = [...this.#apart].filter(({ isBlamed }) => isBlamed).length;
    const ahead = this.#all.size - blamed;
    const forBytes = Math.floor((BATCHES_AHEAD * mostBytes - this.#bytes) / this.#meanBytes);
    // With nothing in hand one is read however large they are.
    const most = Math.max(forBytes, this.#all.size === 0 ? 1 : 0);
    return Math.max(0, Math.min(mostEvents, BATCHES_AHEAD * mostEvents - ahead, most));
  }

  /** Whoever added some wakes those who wait for them, once: batches are made of what came together. */
  add(id: string, delivery: Delivery, deliveries: number, how: 'together' | 'alone'): Held {
    const bytes = Buffer.byteLength(delivery.json);
    const held: Held = {
      id,
      delivery,
      bytes,
      deliveries,
      arrivedAtMs: this.#clock.monotonic(),
      isCounted: true,
      isBlamed: false,
      deadBecause: null,
      failures: 0,
      triedAtMs: null,
      isApart: false,
      isInFlight: false,
      notBeforeMs: 0,
      backoff: new Backoff(FIRST_DELAY_MS, LONGEST_DELAY_MS),
    };
    this.#all.set(id, held);
    this.#bytes += bytes;
    this.#meanBytes += (bytes - this.#meanBytes) / 50;
    if (how === 'alone') this.putApart(held, 0);
    else this.#queue.push(held);
    return held;
  }

  /** Forgets it: it was delivered, set aside, or is another's. */
  drop(held: Held): void {
    if (!this.#all.delete(held.id)) return;
    this.#bytes -= held.bytes;
    this.#apart.delete(held);
    // What is on its way was taken out of the queue.
    if (!held.isInFlight) this.#queue = this.#queue.filter((it) => it !== held);
    this.changed.wake();
  }

  find(id: string): Held | undefined {
    return this.#all.get(id);
  }

  /** The next events for one delivery, which are taken out of the queue; none while it is worth waiting for more. */
  nextBatch(mostEvents: number): Held[] {
    const [first] = this.#queue;
    if (!first) return [];
    const count = this.#fitting(mostEvents);
    const isFull = count < this.#queue.length || count >= mostEvents;
    if (!isFull && this.gatheringMs > 0) return [];
    return this.#queue.splice(0, count);
  }

  /** How long the first of the queue still waits for others; 0: not at all. */
  get gatheringMs(): number {
    const [first] = this.#queue;
    const { gatherMs = 0 } = this.#batch;
    if (!first || first.failures > 0) return 0;
    return Math.max(0, first.arrivedAtMs + gatherMs - this.#clock.monotonic());
  }

  #fitting(mostEvents: number): number {
    let bytes = 0;
    let count = 0;
    for (const held of this.#queue) {
      bytes += held.bytes + 1;
      if (count > 0 && (count >= mostEvents || bytes > this.#batch.mostBytes)) break;
      count++;
    }
    return count;
  }

  /** Behind all others that wait. */
  putBack(held: Held): void {
    if (!this.#all.has(held.id)) return;
    this.#queue.push(held);
    this.changed.wake();
  }

  /** From now on it is tried alone. */
  putApart(held: Held, afterMs: number): void {
    if (!this.#all.has(held.id)) return;
    held.isApart = true;
    held.notBeforeMs = this.#clock.monotonic() + afterMs;
    this.#apart.add(held);
    this.changed.wake();
  }

  /** One that is to be tried alone now. */
  nextApart(): Held | undefined {
    const nowMs = this.#clock.monotonic();
    for (const held of this.#apart) if (!held.isInFlight && held.notBeforeMs <= nowMs) return held;
    return undefined;
  }

  /** How long until one is to be tried alone. */
  get apartInMs(): number {
    const nowMs = this.#clock.monotonic();
    const waiting = [...this.#apart].filter(({ isInFlight }) => !isInFlight);
    return Math.min(...waiting.map(({ notBeforeMs }) => Math.max(0, notBeforeMs - nowMs)));
  }

  /** Those that only waited for the back end need not wait any more. */
  hurry(): void {
    for (const held of this.#apart) if (!held.isBlamed) held.notBeforeMs = 0;
  }

  /** How often Redis is to say that each was delivered. */
  counts(): Map<string, number> {
    // One that is being taken for another delivery has its count raised just now.
    const settled = [...this.#all.values()].filter(({ isBlamed, isInFlight }) => !(isBlamed && isInFlight));
    return new Map(settled.map((held) => [held.id, countOf(held)]));
  }

  /** The same once they are given up undelivered, for which only those are to blame that were refused. */
  countsToRelease(): Map<string, number> {
    return new Map([...this.#all.values()].map((it) => [it.id, it.isBlamed ? it.deliveries : it.deliveries - 1]));
  }
}

export const countOf = ({ deliveries, isCounted }: Held): number => (isCounted ? deliveries : deliveries - 1);
