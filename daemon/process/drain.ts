import { rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Settings } from '../../config/settings.js';
import type { Clock, Log } from '../core/ports.js';
import type { Readiness } from './readiness.js';

const SWEEP_EVERY_MS = 50;
const LAST_ACCEPTS_MS = 50;

/** A listener, which can be told to promise no client any more that its connection stays. */
export type Drained = Server & { promiseNoMore(): void };

export interface DrainOptions {
  servers: readonly Drained[];
  readiness: Readiness;
  clock: Clock;
  log: Log;
  settings: Pick<Settings, 'shutdownDelayMs' | 'shutdownGraceMs'>;
  /** Ends the answers that would go on as long as their clients want. */
  endStreams: () => void;
  /** Ends what is still in flight when the time is up. */
  cutAll: () => void;
}

/**
 * Takes the daemon out of service: `/ready` says so at once, it goes on accepting for a moment so that load
 * balancers notice, then it stops listening and lets what is in flight finish, as long as the grace lasts.
 */
export async function drain({
  servers,
  readiness,
  clock,
  log,
  settings,
  endStreams,
  cutAll,
}: DrainOptions): Promise<void> {
  readiness.isDraining = true;
  log.info('draining');
  // Those that begin later see to it themselves.
  for (const server of servers) server.promiseNoMore();
  await new Promise<void>((resolve) => clock.after(settings.shutdownDelayMs, resolve));

  const closed = Promise.all(servers.map((server) => closedOf(server, clock)));
  endStreams(); // Not before: who comes back at once is to find another instance.
  // Again and again: an answer whose head went out before has promised to keep its connection, which is idle once it ends.
  let cancelSweep: () => void = () => undefined;
  const sweep = () => {
    for (const server of servers) server.closeIdleConnections();
    cancelSweep = clock.after(SWEEP_EVERY_MS, sweep);
  };
  sweep();
  const cancel = clock.after(settings.shutdownGraceMs, () => {
    log.warn('cutting the requests that did not finish in time');
    cutAll();
    for (const server of servers) server.closeAllConnections();
  });
  await closed;
  cancel();
  cancelSweep();
}

/**
 * Whoever has connected and is not accepted yet when a listener closes gets a reset, perhaps for a request. Nobody can connect any more to a
 * unix socket whose path is gone, and those who have are accepted before it closes. Over TCP there is no such thing: there the moment is only short.
 */
async function closedOf(server: Server, clock: Clock): Promise<void> {
  const address = server.address();
  if (typeof address === 'string') {
    rmSync(address, { force: true });
    await new Promise<void>((resolve) => clock.after(LAST_ACCEPTS_MS, resolve));
  }
  await new Promise<void>((resolve) => {
    // Right behind the event loop's own accepting.
    setImmediate(() =>
      server.close(() => {
        resolve();
      }),
    );
  });
}
