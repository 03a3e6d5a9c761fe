/** Builds and runs a dispatcher. Tests use this too, with their own clock and log. */
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import type { ListenAddress } from '../../config/kinds.js';
import { withTimeout } from '../core/timing.js';
import type { Clock, Log } from '../core/ports.js';
import { listen } from '../process/listen.js';
import type { HealthSummary } from '../process/supervisor.js';
import { redisAddressFrom } from '../store/redis/address.js';
import type { Backend } from './backends/backend.js';
import { Deliverer } from './deliverer.js';
import { PendingDeliveries } from './pending-deliveries.js';
import { EventReader } from './event-reader.js';
import { DispatcherMetrics } from './metrics.js';
import { BackendHealth } from './backend-health.js';
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
  /** Ends when the events in the stream are delivered. Does not listen, because another dispatcher may be running. */
  isOnce?: boolean;
}

export interface Dispatcher {
  /** The address that it listens on; null if it does not listen. */
  address: AddressInfo | string | null;
  metrics: DispatcherMetrics;
  health(): HealthSummary;
  /** With `isOnce`, resolves when all events are delivered, or with the reason for giving up. Never resolves otherwise. */
  done: Promise<'done' | GiveUpReason>;
  /** Reopens the files of the backend, and ends the delay of a backend that was failing. */
  reopen(): Promise<void>;
  /** Stops reading, lets deliveries in flight finish within `SHUTDOWN_GRACE`, and releases undelivered events to other dispatchers. */
  stop(): Promise<void>;
}

/** Why a dispatcher that runs once gave up: no event could be read or delivered for `SHUTDOWN_GRACE`, or the credential was refused. */
export type GiveUpReason = 'Redis unavailable' | 'backend unavailable' | 'credential refused';

export function openStream(settings: DispatcherSettings, consumer: string, clock: Clock, log: Log): EventStream {
  const address = redisAddressFrom(settings);
  if (!address) throw new TypeError('the settings were not validated: REDIS_ADDR is missing');
  const { redisStreamKey: key, redisStreamMaxLength: maxDeadLetters } = settings;
  return new EventStream({ address, key, consumer, maxDeadLetters, clock, log });
}

export async function startDispatcher(options: DispatcherOptions): Promise<Dispatcher> {
  const { settings, backend, clock, log, isOnce = false } = options;
  const { dispatcherClaimIdleMs: claimIdleMs, dispatcherListenAddress, shutdownGraceMs } = settings;
  const consumer = isOnce ? { name: `once:${randomUUID()}`, isStable: false } : consumerName(dispatcherListenAddress);

  const pending = new PendingDeliveries(clock, backend.batch);
  const backendHealth = new BackendHealth(clock, log);
  const metrics = new DispatcherMetrics({
    pending: () => pending.size,
    isPaused: () => backendHealth.isPaused,
    isFailing: () => backendHealth.isFailing,
  });
  const stream = openStream(settings, consumer.name, clock, log);
  const deliverer = new Deliverer({ backend, stream, pending, backendHealth, metrics, clock, log });
  const reader = new EventReader({ stream, pending, metrics, clock, log, claimIdleMs, isOnce });

  let isDraining = false;
  const state = () => ({
    missing: [
      ...(reader.problem ? [reader.problem] : []),
      ...(backendHealth.isPaused ? ['credential'] : []),
      ...(isDraining ? ['draining'] : []),
    ],
    degraded: backendHealth.isFailing && !backendHealth.isPaused ? ['back_end'] : [],
  });
  const server = isOnce
    ? null
    : createProbeServer({ registry: metrics.registry, state, isDraining: () => isDraining, clock, log });
  // Listens before it reads: a dispatcher that already listens on this address has the same consumer name.
  if (server) await listen(server, dispatcherListenAddress);
  await stream.open();
  deliverer.start();
  const reading = reader.run();
  const stopUpkeep = startUpkeep({ stream, pending, deliverer, reader, metrics, clock, claimIdleMs });
  const done = isOnce ? untilDone() : new Promise<never>(() => undefined);

  /** Waits until the reader has ended and every event is delivered and acknowledged, or gives up. */
  async function untilDone(): Promise<'done' | GiveUpReason> {
    let unavailableSinceMs: number | null = null;
    for (;;) {
      if (reader.hasEnded && pending.size === 0 && pending.delivered.size === 0) return 'done';
      const nowMs = clock.monotonic();
      unavailableSinceMs = reader.problem === null ? null : (unavailableSinceMs ?? nowMs);
      if (unavailableSinceMs !== null && nowMs - unavailableSinceMs > shutdownGraceMs) return 'Redis unavailable';
      const { failingSinceMs, isPaused } = backendHealth;
      if (isPaused) return 'credential refused';
      if (failingSinceMs !== null && nowMs - failingSinceMs > shutdownGraceMs) return 'backend unavailable';
      await pending.changed.wait(100);
    }
  }

  return {
    address: server?.address() ?? null,
    metrics,
    health: () => ({ ...state(), figures: [`${pending.size} events pending`] }),
    done,
    async reopen() {
      await backend.reopen?.();
      backendHealth.retryNow();
      pending.changed.wake();
    },
    async stop() {
      isDraining = true;
      server?.stopKeepAlive();
      log.info('draining', { in_hand: pending.size });
      reader.stop();
      await Promise.all([reading, deliverer.stop(shutdownGraceMs)]);
      stopUpkeep();
      await withTimeout(clock, RELEASE_WITHIN_MS, releaseEvents(), () => undefined);
      stream.close();
      await backend.close();
      if (server) await closeServer(server);
    },
  };

  async function releaseEvents(): Promise<void> {
    try {
      await deliverer.acknowledge();
      await stream.release(pending.deliveryCountsOnRelease());
      if (!consumer.isStable) await stream.leave();
    } catch {
      // Redis is unavailable. Other dispatchers take over after DISPATCHER_CLAIM_IDLE; delivered but unacknowledged events are sent again, with the same id.
    }
  }
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}

/**
 * Name of a dispatcher in its consumer group. It is the same after a restart, so that the dispatcher continues with its pending events. It is
 * unique, because only one dispatcher of a machine can listen on an address. With port 0 it is a new name each time.
 */
function consumerName(listenAddress: ListenAddress): { name: string; isStable: boolean } {
  const host = hostname();
  const isStable = 'path' in listenAddress || listenAddress.port !== 0;
  if (!isStable) return { name: `${host}:${randomUUID()}`, isStable };
  const address = 'path' in listenAddress ? listenAddress.path : `${listenAddress.host}:${listenAddress.port}`;
  // Machines created from the same image may have the same host name.
  const digest = createHash('sha256').update(`${machineId()}\n${host}\n${address}`).digest('hex').slice(0, 12);
  return { name: `${host}:${digest}`, isStable };
}

function machineId(): string {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim();
  } catch {
    return '';
  }
}
