import type { RequestHandler } from 'express';
import type { Live, Settings } from '../../config/settings.js';
import type { AdminOptions } from './app.js';
import type { ProxyLocation } from './sessions.js';
import { PageStreams } from './page-streams.js';
import { ManagementClient } from '../api/client.js';
import type { Clock, Log } from '../core/ports.js';
import type { MountedPages } from '../http/server/app.js';
import { addressesBehind, tlsBehind } from '../http/client-identity.js';
import { readSmallBody } from '../http/small-body.js';

// Longer than the daemon's own timeout for the database.
const TIMEOUT_MS = 15_000;

export interface AdminUiOptions extends Pick<Settings, 'adminUiPath' | 'managementToken' | 'trustedProxies'> {
  /** URL of the management API, and the `fetch` that connects to it. */
  server: string;
  fetch: typeof fetch;
  proxyLocation: ProxyLocation;
  clock: Clock;
  live: Live<'clientBodyTimeoutMs'>;
  log: Log;
}

export interface AdminUi extends MountedPages {
  /** Ends the streams of open pages, so that a process can stop. */
  endStreams: () => void;
}

/** The Admin UI, for the daemon and for `llmp admin`. */
export function adminUi(options: AdminUiOptions): AdminUi {
  const { adminUiPath: path, managementToken, trustedProxies, server, clock, live, log } = options;
  const addressOf = addressesBehind(trustedProxies);
  const streams = new PageStreams(clock);
  const pages = lazyAdminApp({
    path,
    streams,
    managementToken,
    clock,
    log,
    clientFor: ({ session, clientIp, reason }) =>
      new ManagementClient({
        server,
        managementToken,
        frontEnd: 'admin',
        session: session ?? undefined,
        clientIp: clientIp ?? undefined,
        reason: reason ?? undefined,
        timeoutMs: TIMEOUT_MS,
        fetch: options.fetch,
      }),
    addressOf: (req) => addressOf(req.socket, req.get('x-forwarded-for')),
    isTls: tlsBehind(trustedProxies),
    proxyLocation: options.proxyLocation,
    readBody: (req, res) => readSmallBody(req, res, { clock, live }),
  });
  return {
    path,
    pages,
    endStreams: () => {
      streams.end();
    },
  };
}

/**
 * Loads the Admin UI on the first request to it. React and its other modules cost memory and startup time, and many daemons never serve
 * a page.
 */
function lazyAdminApp(options: AdminOptions): RequestHandler {
  let loading: Promise<RequestHandler> | null = null;
  return async (req, res, next) => {
    loading ??= import('./app.js').then(({ createAdminApp }) => createAdminApp(options));
    (await loading)(req, res, next);
  };
}
