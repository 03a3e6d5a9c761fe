/** Periodic tasks of a dispatcher: renewing claims, acknowledging, measuring the stream, and removing dead consumers. */
import type { Clock } from '../core/ports.js';
import { every } from '../core/timing.js';
import type { Deliverer } from './deliverer.js';
import type { PendingDeliveries } from './pending-deliveries.js';
import type { EventReader } from './event-reader.js';
import type { DispatcherMetrics } from './metrics.js';
import type { EventStream } from './stream.js';

const MEASURE_EVERY_MS = 2_000;
const ACKNOWLEDGE_EVERY_MS = 500;
const MAX_RENEWAL_MS = 20_000;
const REMOVE_CONSUMERS_EVERY_MS = 60_000;
/** After this many claim idle times without a sign of life a consumer is removed. */
const REMOVE_AFTER_CLAIM_IDLE_TIMES = 10;

export interface UpkeepOptions {
  stream: EventStream;
  pending: PendingDeliveries;
  deliverer: Deliverer;
  reader: Pick<EventReader, 'problem'>;
  metrics: DispatcherMetrics;
  clock: Clock;
  claimIdleMs: number;
}

/** A task that fails because Redis is unavailable runs again next time. @returns a function that stops the tasks. */
export function startUpkeep(options: UpkeepOptions): () => void {
  const { stream, pending, deliverer, reader, metrics, clock, claimIdleMs } = options;
  // Before the reader has created the consumer group, Redis would refuse these commands, and the log would report it.
  const whileReading = (action: () => Promise<void>) => () => (reader.problem ? Promise.resolve() : action());
  const stops = [
    // Other dispatchers must not take over pending events, such as those of a slow delivery or an unavailable backend.
    every(clock, Math.min(claimIdleMs / 3, MAX_RENEWAL_MS), async () => {
      for (const id of await stream.renewClaims(pending.deliveryCounts())) {
        const item = pending.find(id);
        if (item && !item.isInFlight) pending.drop(item);
      }
    }),
    every(clock, ACKNOWLEDGE_EVERY_MS, () => deliverer.acknowledge()),
    every(
      clock,
      MEASURE_EVERY_MS,
      whileReading(async () => {
        metrics.measured(await stream.measure());
      }),
    ),
    every(
      clock,
      Math.min(REMOVE_CONSUMERS_EVERY_MS, REMOVE_AFTER_CLAIM_IDLE_TIMES * claimIdleMs),
      whileReading(() => stream.dropIdleConsumers(REMOVE_AFTER_CLAIM_IDLE_TIMES * claimIdleMs)),
    ),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
