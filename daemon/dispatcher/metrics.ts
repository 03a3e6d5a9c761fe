/** What a dispatcher counts. Labels have few values, whatever the events hold. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Measured, Taken } from './stream.js';

const SECONDS = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

export class DispatcherMetrics {
  readonly registry = new Registry();
  readonly #delivered = this.#counter('delivered', 'Events that the back end took.');
  readonly #retried = this.#counter('retried', 'Deliveries of an event that the back end did not take.');
  readonly #dead = this.#counter('dead', 'Events set aside as dead letters.');
  readonly #deadLost = this.#counter('dead_letters_lost', 'Dead letters that made room for later ones.');
  readonly #trimmed = new Counter({
    name: 'llmp_dispatcher_trimmed_total',
    help: 'Events trimmed from the stream before they were delivered: read by nobody (unread), or by a dispatcher (pending).',
    labelNames: ['state'],
    registers: [this.registry],
  });
  readonly #recreated = this.#counter('group_recreated', 'How often the consumer group was gone and made anew.');
  readonly #lag = this.#gauge(
    'lag_events',
    'Events in the stream that no dispatcher has read; -1 where Redis does not tell.',
  );
  readonly #pending = this.#gauge('pending_events', 'Events read by any dispatcher and not acknowledged.');
  readonly #deadLetters = this.#gauge('dead_letters', 'Dead letters in Redis.');
  readonly #delivery = new Histogram({
    name: 'llmp_dispatcher_delivery_seconds',
    help: 'How long the back end took to answer for a batch.',
    buckets: SECONDS,
    registers: [this.registry],
  });

  /** @param state is asked when metrics are read. */
  constructor(state: { inHand: () => number; isPaused: () => boolean; isFailing: () => boolean }) {
    collectDefaultMetrics({ register: this.registry });
    for (const it of ['unread', 'pending']) this.#trimmed.inc({ state: it }, 0);
    this.#asked('in_hand_events', 'Events read by this dispatcher and not delivered yet.', state.inHand);
    this.#asked('paused', '1 while the back end refuses the credential.', () => Number(state.isPaused()));
    this.#asked('back_end_failing', '1 while the back end takes nothing.', () => Number(state.isFailing()));
  }

  delivered(count: number): void {
    this.#delivered.inc(count);
  }

  retried(count: number): void {
    this.#retried.inc(count);
  }

  /** @param pushedOut how many older dead letters made room. */
  setAside(pushedOut: number): void {
    this.#dead.inc();
    this.#deadLost.inc(pushedOut);
  }

  /** @param taken what could not be taken. */
  gone(taken: Taken): void {
    if (taken.kind === 'dead') this.setAside(taken.deadLettersLost);
    if (taken.kind === 'trimmed') this.trimmedPending(1);
  }

  trimmedPending(count: number): void {
    this.#trimmed.inc({ state: 'pending' }, count);
  }

  groupRecreated(): void {
    this.#recreated.inc();
  }

  took(ms: number): void {
    this.#delivery.observe(ms / 1000);
  }

  measured({ lag, pending, trimmedUnread, deadLetters }: Measured): void {
    this.#lag.set(lag ?? -1);
    this.#pending.set(pending);
    this.#deadLetters.set(deadLetters);
    this.#trimmed.inc({ state: 'unread' }, trimmedUnread);
  }

  #counter(name: string, help: string): Counter {
    return new Counter({ name: `llmp_dispatcher_${name}_total`, help, registers: [this.registry] });
  }

  #gauge(name: string, help: string): Gauge {
    return new Gauge({ name: `llmp_dispatcher_${name}`, help, registers: [this.registry] });
  }

  #asked(name: string, help: string, value: () => number): void {
    const gauge: Gauge = new Gauge({
      name: `llmp_dispatcher_${name}`,
      help,
      registers: [this.registry],
      collect: () => {
        gauge.set(value());
      },
    });
  }
}
