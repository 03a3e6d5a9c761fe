/** What a dispatcher does now and then, whether or not there are events. */
import type { Clock } from '../core/ports.js';
import type { Deliverer } from './deliverer.js';
import type { InHand } from './in-hand.js';
import type { Intake } from './intake.js';
import type { DispatcherMetrics } from './metrics.js';
import type { EventStream } from './stream.js';

const MEASURE_EVERY_MS = 2_000;
const ACKNOWLEDGE_EVERY_MS = 500;
const LONGEST_HOLD_MS = 20_000;
const CLEAN_EVERY_MS = 60_000;
/** A dispatcher that lives is seen within its time for taking over. */
const GONE_AFTER_CLAIMS = 10;

export interface UpkeepOptions {
  stream: EventStream;
  inHand: InHand;
  deliverer: Deliverer;
  intake: Pick<Intake, 'trouble'>;
  metrics: DispatcherMetrics;
  clock: Clock;
  claimIdleMs: number;
}

/** @returns stops it. What Redis does not take is tried again the next time. */
export function startUpkeep(options: UpkeepOptions): () => void {
  const { stream, inHand, deliverer, intake, metrics, clock, claimIdleMs } = options;
  // Until the intake has made its consumer group, Redis would refuse these commands, and the log would say so.
  const whileReading = (action: () => Promise<void>) => () => (intake.trouble ? Promise.resolve() : action());
  const stops = [
    // What is in hand, the slow delivery and what waits for the back end, is not to be taken over by another.
    every(clock, Math.min(claimIdleMs / 3, LONGEST_HOLD_MS), async () => {
      for (const id of await stream.hold(inHand.counts())) {
        const held = inHand.find(id);
        if (held && !held.isInFlight) inHand.drop(held);
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
      Math.min(CLEAN_EVERY_MS, GONE_AFTER_CLAIMS * claimIdleMs),
      whileReading(() => stream.dropIdleConsumers(GONE_AFTER_CLAIMS * claimIdleMs)),
    ),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}

function every(clock: Clock, ms: number, action: () => Promise<void>): () => void {
  let isStopped = false;
  let cancel: () => void = () => undefined;
  const next = () => {
    cancel = clock.after(ms, () => {
      void action()
        .catch(() => undefined)
        .then(() => {
          if (!isStopped) next();
        });
    });
  };
  next();
  return () => {
    isStopped = true;
    cancel();
  };
}
