/** What operators use: /manage, the Admin UI and metrics. A worker has none of them, and does not load this. */
import { adminUi } from '../admin/mount.js';
import type { FailedAttempts } from '../core/failed-attempts.js';
import { Operators } from '../core/operators.js';
import type { RecordStore, Scope } from '../core/ports.js';
import { Trusts } from '../core/trusts.js';
import { Sessions } from '../core/sessions.js';
import type { StatusReport } from '../core/status.js';
import type { EventStreams } from '../http/manage/event-streams.js';
import { fetchFrom } from '../http/manage/in-process.js';
import { type ManageOptions, manageRoutes } from '../http/manage/routes.js';
import { type AppOptions, createApp, type MountedPages } from '../http/server/app.js';
import type { MetricsEndpoint } from '../http/server/metrics-route.js';
import type { Metrics } from '../metrics/metrics.js';
import { LogIns } from '../oidc/log-ins.js';
import type { BuildContext } from './context.js';
import type { Core } from './core.js';
import type { Storage } from './storage.js';
import type { Traffic } from './traffic.js';

export interface OperatorsParts extends Pick<AppOptions, 'manage' | 'admin' | 'metrics'> {
  /** Another mapping of roles is in force. */
  rolesChanged: () => void;
}

/** What they need of other parts. */
export interface OperatorsNeeds {
  streams: EventStreams;
  status: (scope?: Scope) => Promise<StatusReport>;
  attempts: FailedAttempts;
  logInAttempts: FailedAttempts;
}

export function partsForOperators(
  context: BuildContext,
  core: Core,
  traffic: Traffic,
  { stores: { records }, shared: { bus }, crew }: Storage,
  { streams, status, attempts, logInAttempts }: OperatorsNeeds,
): OperatorsParts {
  const { clock, roles } = context;
  const sessions = new Sessions({ store: records, clock, mapping: () => roles.current?.sha256 ?? null });
  const options: ManageOptions = {
    managementToken: context.settings.managementToken,
    attempts,
    logInAttempts,
    operators: new Operators({ store: records, admission: core.admission, clock }),
    sessions,
    logIns: logInsOf(context, records, sessions),
    addressOf: traffic.addressOf,
    registry: core.registry,
    probeProvider: traffic.probeProvider,
    cacheManager: core.cacheManager,
    isForwarded: traffic.proxy.handles,
    auditLog: core.auditLog,
    batches: core.batches,
    costs: core.costs,
    usage: core.usage,
    top: core.top,
    incidents: core.incidents,
    trusts: new Trusts({ store: records, admission: core.admission, clock: context.clock }),
    hasKeyFiles: context.settings.jwksFolder !== undefined,
    names: (...ids) => records.names(...ids),
    migrations: { status: core.migrations.statusForOperators, up: core.migrations.up },
    streams,
    bus,
    status,
    settled: crew && ((isChange) => crew.settled(isChange)),
    clock,
    live: context.live,
  };
  const { metrics } = traffic;
  return {
    manage: manageRoutes(options),
    admin: adminOf(context, options),
    metrics: metrics && { path: context.settings.metricsPath, metrics: withReports(metrics, crew) },
    rolesChanged: () => {
      sessions.endThoseOfOtherMappings().catch((error: unknown) => {
        context.log.warn('cannot end the sessions of the previous roles: they end if they are used now', { error });
      });
    },
  };
}

/** The log-in of people; null without an identity provider. */
function logInsOf({ settings, roles, clock, log }: BuildContext, store: RecordStore, sessions: Sessions) {
  const {
    oidcIssuer: issuer,
    oidcClientId: clientId,
    oidcClientSecret: clientSecret,
    publicUrl,
    managementToken,
  } = settings;
  // If there is an issuer, the others are there.
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) return null;
  return new LogIns({
    issuer,
    clientId,
    clientSecret,
    proxy: settings.upstreamProxy,
    proxyBypass: settings.upstreamProxyBypass,
    redirectUri: new URL(`${settings.adminUiPath}oidc/callback`, publicUrl).href,
    managementToken,
    roles,
    begin: (frontEnd, person, caller) => sessions.beginForPerson(frontEnd, person, caller),
    store,
    clock,
    log,
  });
}

/** Metrics with what the workers have counted until they are read. */
function withReports(metrics: Metrics, crew: Storage['crew']): MetricsEndpoint['metrics'] {
  if (!crew) return metrics;
  const render = async () => {
    await crew.reported();
    return metrics.render();
  };
  return { contentType: metrics.contentType, render };
}

/** The Admin UI; null if it is disabled. */
function adminOf({ settings, live, log, clock }: BuildContext, manage: ManageOptions): MountedPages | null {
  if (!settings.adminUiEnabled) return null;
  const { managementListenAddress, listenAddress } = settings;
  const ownPort = managementListenAddress && 'port' in listenAddress ? listenAddress.port : null;
  return adminUi({
    ...settings,
    // The Admin UI uses the management API like every front end, but within this process: connection limits do not apply, proxies cannot change
    // headers, and it works for every listen address.
    server: 'http://daemon',
    fetch: fetchFrom(
      createApp({
        log,
        probes: null,
        manage: manageRoutes(manage),
        admin: null,
        metrics: null,
        unknownPathErrors: null,
      }),
    ),
    proxyLocation: { port: ownPort },
    clock,
    live,
    log,
  });
}
