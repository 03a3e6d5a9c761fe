import { rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Settings } from '../../config/settings.js';
import type { Clock, Log } from '../core/ports.js';
import { every } from '../core/timing.js';
import type { Readiness } from './readiness.js';

const SWEEP_EVERY_MS = 50;
const LAST_ACCEPTS_MS = 50;

/** A server that can stop offering keep-alive to its clients. */
export type DrainableServer = Server & { stopKeepAlive(): void };

export interface DrainOptions {
  servers: readonly DrainableServer[];
  readiness: Readiness;
  clock: Clock;
  log: Log;
  settings: Pick<Settings, 'shutdownDelayMs' | 'shutdownGraceMs'>;
  /** Whether other processes listen on the same address: then a unix socket stays. */
  isWorker?: boolean;
  /** Ends responses without an end, such as event streams. */
  endStreams: () => void;
  /** Aborts all requests in flight when the grace period is over. */
  cutAll: () => void;
}

/**
 * Takes the daemon out of service. `/ready` fails at once, and the daemon accepts connections for `SHUTDOWN_DELAY`, so that load balancers notice.
 * Then it stops listening, and requests in flight may finish within `SHUTDOWN_GRACE`.
 */
export async function drain({
  servers,
  readiness,
  clock,
  log,
  settings,
  isWorker = false,
  endStreams,
  cutAll,
}: DrainOptions): Promise<void> {
  readiness.isDraining = true;
  if (!isWorker) log.info('draining');
  // For current connections. New ones check `isDraining` themselves.
  for (const server of servers) server.stopKeepAlive();
  await new Promise<void>((resolve) => clock.after(settings.shutdownDelayMs, resolve));

  const closed = Promise.all(servers.map((server) => closeListener(server, clock, isWorker)));
  endStreams(); // Not earlier: a client that reconnects at once must reach another instance.
  // Repeatedly: a response whose header was sent before draining has offered keep-alive, so its connection becomes idle afterwards.
  const sweep = () => {
    for (const server of servers) server.closeIdleConnections();
  };
  sweep();
  const stopSweeping = every(clock, SWEEP_EVERY_MS, sweep);
  const cancel = clock.after(settings.shutdownGraceMs, () => {
    log.warn('shutdown grace period is over, aborting requests in flight');
    cutAll();
    for (const server of servers) server.closeAllConnections();
  });
  await closed;
  cancel();
  stopSweeping();
}

/**
 * Closes a listener without losing connections that the kernel has established and the process has not accepted yet: these would be reset. A unix
 * socket is first unlinked, so that no client can connect any more, and then the waiting connections are accepted. TCP has no such step, so there
 * a short window remains.
 */
async function closeListener(server: Server, clock: Clock, isWorker: boolean): Promise<void> {
  const address = server.address();
  if (typeof address === 'string' && !isWorker) {
    rmSync(address, { force: true });
    await new Promise<void>((resolve) => clock.after(LAST_ACCEPTS_MS, resolve));
  }
  await new Promise<void>((resolve) => {
    // After the event loop has accepted waiting connections.
    setImmediate(() =>
      server.close(() => {
        resolve();
      }),
    );
  });
}
