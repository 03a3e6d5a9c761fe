import type { Live, Settings } from '../../config/settings.js';
import type { ClientsAt } from './doorman.js';
import { loadedWhenAsked } from './loading.js';
import { ManagementClient } from '../api/client.js';
import type { Clock, Log } from '../core/ports.js';
import type { Mounted } from '../http/server/app.js';
import { addressesBehind, tlsBehind } from '../http/client-address.js';
import { readSmall } from '../http/small-body.js';

// More than the database may take to say that it does not answer.
const TIMEOUT_MS = 15_000;

export interface AdminUiOptions extends Pick<Settings, 'adminUiPath' | 'managementToken' | 'trustedProxies'> {
  /** Where the management API is, and how it is reached. */
  server: string;
  fetch: typeof fetch;
  clientsAt: ClientsAt;
  clock: Clock;
  live: Live<'clientBodyTimeoutMs'>;
  log: Log;
}

/** The Admin UI as it is served, by the daemon or by itself. */
export function adminUi(options: AdminUiOptions): Mounted {
  const { adminUiPath: path, managementToken, trustedProxies, server, clock, live, log } = options;
  const addressOf = addressesBehind(trustedProxies);
  const pages = loadedWhenAsked({
    path,
    managementToken,
    clock,
    log,
    clientFor: ({ clientIp, reason }) =>
      new ManagementClient({
        server,
        managementToken,
        frontEnd: 'admin',
        clientIp: clientIp ?? undefined,
        reason: reason ?? undefined,
        timeoutMs: TIMEOUT_MS,
        fetch: options.fetch,
      }),
    addressOf: (req) => addressOf(req.socket, req.get('x-forwarded-for')),
    isTls: tlsBehind(trustedProxies),
    clientsAt: options.clientsAt,
    readBody: (req, res) => readSmall(req, res, { clock, live }),
  });
  return { path, pages };
}
