/** Builds a dispatcher and runs it. Tests call it too, with a clock and a log of their own. */
import type { AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import { inTime } from '../core/in-time.js';
import type { Clock, Log } from '../core/ports.js';
import { listen } from '../process/listen.js';
import type { Sight } from '../process/supervisor.js';
import { redisAddressFrom } from '../store/redis/address.js';
import type { Backend } from './backends/backend.js';
import { consumerName } from './consumer-name.js';
import { Deliverer } from './deliverer.js';
import { InHand } from './in-hand.js';
import { Intake } from './intake.js';
import { DispatcherMetrics } from './metrics.js';
import { Outlook } from './outlook.js';
import { createProbeServer } from './probes.js';
import type { DispatcherSettings } from './settings.js';
import { EventStream } from './stream.js';
import { startUpkeep } from './upkeep.js';

const RELEASE_WITHIN_MS = 2_000;

export interface DispatcherOptions {
  settings: DispatcherSettings;
  backend: Backend;
  clock: Clock;
  log: Log;
  /** Ends once all there is has been dispatched. Listens nowhere: another dispatcher may be running. */
  isOnce?: boolean;
}

export interface Dispatcher {
  /** Where it listens; null when it does not. */
  address: AddressInfo | string | null;
  metrics: DispatcherMetrics;
  /** How it does. */
  sight(): Sight;
  /** Resolves, when it is to run once, as soon as all is dispatched, or with why it gave up. */
  done: Promise<'done' | GaveUp>;
  /** Opens the back end's files anew, and asks one that was failing at once. */
  reopen(): Promise<void>;
  /** Stops reading, gives deliveries under way `SHUTDOWN_GRACE`, and leaves what is undelivered to whoever comes next. */
  stop(): Promise<void>;
}

/** Nothing could be delivered, or read, for `SHUTDOWN_GRACE`. */
export type GaveUp = 'redis away' | 'back end failing' | 'credential refused';

export function openStream(settings: DispatcherSettings, consumer: string, clock: Clock, log: Log): EventStream {
  const address = redisAddressFrom(settings);
  if (!address) throw new TypeError('settings that were not checked');
  const { redisStreamKey: key, redisStreamMaxLength: mostDead } = settings;
  return new EventStream({ address, key, consumer, mostDead, clock, log });
}

export async function startDispatcher(options: DispatcherOptions): Promise<Dispatcher> {
  const { settings, backend, clock, log, isOnce = false } = options;
  const { dispatcherClaimIdleMs: claimIdleMs, dispatcherListenAddress, shutdownGraceMs } = settings;
  const consumer = isOnce ? { name: `once:${randomUUID()}`, isStable: false } : consumerName(dispatcherListenAddress);

  const inHand = new InHand(clock, backend.batch);
  const outlook = new Outlook(clock, log);
  const metrics = new DispatcherMetrics({
    inHand: () => inHand.size,
    isPaused: () => outlook.isPaused,
    isFailing: () => outlook.isFailing,
  });
  const stream = openStream(settings, consumer.name, clock, log);
  const deliverer = new Deliverer({ backend, stream, inHand, outlook, metrics, clock, log });
  const intake = new Intake({ stream, inHand, metrics, clock, log, claimIdleMs, isOnce });

  let isDraining = false;
  const state = () => ({
    missing: [
      ...(intake.trouble ? [intake.trouble] : []),
      ...(outlook.isPaused ? ['credential'] : []),
      ...(isDraining ? ['draining'] : []),
    ],
    degraded: outlook.isFailing && !outlook.isPaused ? ['back_end'] : [],
  });
  const server = isOnce
    ? null
    : createProbeServer({ registry: metrics.registry, state, isDraining: () => isDraining, clock, log });
  // Nothing is read before it listens: who else listens there may have the same name.
  if (server) await listen(server, dispatcherListenAddress);
  await stream.connection.open();
  deliverer.start();
  const reading = intake.run();
  const stopUpkeep = startUpkeep({ stream, inHand, deliverer, intake, metrics, clock, claimIdleMs });
  const done = isOnce ? untilDone() : new Promise<never>(() => undefined);

  /** Once the intake has ended, waits until nothing is in hand; or gives up. */
  async function untilDone(): Promise<'done' | GaveUp> {
    let awaySinceMs: number | null = null;
    for (;;) {
      if (intake.hasEnded && inHand.size === 0 && inHand.delivered.size === 0) return 'done';
      const nowMs = clock.monotonic();
      awaySinceMs = intake.trouble === null ? null : (awaySinceMs ?? nowMs);
      if (awaySinceMs !== null && nowMs - awaySinceMs > shutdownGraceMs) return 'redis away';
      const { failingSinceMs, isPaused } = outlook;
      if (isPaused) return 'credential refused';
      if (failingSinceMs !== null && nowMs - failingSinceMs > shutdownGraceMs) return 'back end failing';
      await inHand.changed.wait(100);
    }
  }

  return {
    address: server?.address() ?? null,
    metrics,
    sight: () => ({ ...state(), figures: [`${inHand.size} events in hand`] }),
    done,
    async reopen() {
      await backend.reopen?.();
      outlook.hurry();
      inHand.changed.wake();
    },
    async stop() {
      isDraining = true;
      server?.promiseNoMore();
      log.info('draining', { in_hand: inHand.size });
      intake.stop();
      await Promise.all([reading, deliverer.stop(shutdownGraceMs)]);
      stopUpkeep();
      await inTime(clock, RELEASE_WITHIN_MS, leave(), () => undefined);
      stream.close();
      await backend.close();
      if (server) await closed(server);
    },
  };

  async function leave(): Promise<void> {
    try {
      await deliverer.acknowledge();
      await stream.release(inHand.countsToRelease());
      if (!consumer.isStable) await stream.leave();
    } catch {
      // Redis is away: others take over after a while, and what was delivered is delivered again, with the same id.
    }
  }
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}
