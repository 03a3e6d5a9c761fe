/** Prometheus metrics of a dispatcher. Labels have few values, whatever the events contain. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Measured, TakeResult } from './stream.js';

const SECONDS = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

export class DispatcherMetrics {
  readonly registry = new Registry();
  readonly delivered = this.#counter('delivered', 'Events that the backend accepted.');
  readonly retried = this.#counter('retried', 'Deliveries of events that the backend did not accept.');
  readonly #dead = this.#counter('dead', 'Events moved to the dead letters.');
  readonly #deadLost = this.#counter('dead_letters_lost', 'Dead letters that were evicted by newer ones.');
  readonly trimmed = new Counter({
    name: 'llmp_dispatcher_trimmed_total',
    help: 'Events trimmed from the stream before delivery: not read by any dispatcher (unread), or read by one (pending).',
    labelNames: ['state'],
    registers: [this.registry],
  });
  readonly groupRecreated = this.#counter(
    'group_recreated',
    'How often the consumer group was missing and created again.',
  );
  readonly #lag = this.#gauge(
    'lag_events',
    'Events in the stream that no dispatcher has read; -1 before Redis 7, which does not report it.',
  );
  readonly #pending = this.#gauge('pending_events', 'Events read by any dispatcher and not acknowledged yet.');
  readonly #deadLetters = this.#gauge('dead_letters', 'Dead letters in Redis.');
  readonly deliverySeconds = new Histogram({
    name: 'llmp_dispatcher_delivery_seconds',
    help: 'Time until the backend responded to a batch.',
    buckets: SECONDS,
    registers: [this.registry],
  });

  /** @param state is read on each scrape. */
  constructor(state: { pending: () => number; isPaused: () => boolean; isFailing: () => boolean }) {
    collectDefaultMetrics({ register: this.registry });
    for (const it of ['unread', 'pending']) this.trimmed.inc({ state: it }, 0);
    this.#gauge('in_hand_events', 'Events read by this dispatcher and not delivered yet.', state.pending);
    this.#gauge('paused', '1 while the backend refuses the credential, otherwise 0.', () => Number(state.isPaused()));
    this.#gauge('back_end_failing', '1 while the backend accepts no events, otherwise 0.', () =>
      Number(state.isFailing()),
    );
  }

  /** @param evicted how many older dead letters were evicted. */
  deadLettered(evicted: number): void {
    this.#dead.inc();
    this.#deadLost.inc(evicted);
  }

  /** Counts an entry that could not be taken for delivery. */
  notTaken(taken: TakeResult): void {
    if (taken.kind === 'dead') this.deadLettered(taken.deadLettersLost);
    if (taken.kind === 'trimmed') this.trimmed.inc({ state: 'pending' });
  }

  measured({ lag, pending, trimmedUnread, deadLetters }: Measured): void {
    this.#lag.set(lag ?? -1);
    this.#pending.set(pending);
    this.#deadLetters.set(deadLetters);
    this.trimmed.inc({ state: 'unread' }, trimmedUnread ?? 0);
  }

  #counter(name: string, help: string): Counter {
    return new Counter({ name: `llmp_dispatcher_${name}_total`, help, registers: [this.registry] });
  }

  /** @param value is read on each scrape; without it, the gauge is set. */
  #gauge(name: string, help: string, value?: () => number): Gauge {
    const gauge: Gauge = new Gauge({
      name: `llmp_dispatcher_${name}`,
      help,
      registers: [this.registry],
      ...(value && {
        collect: () => {
          gauge.set(value());
        },
      }),
    });
    return gauge;
  }
}
