/** The fourth builder: /manage, the Admin UI, probes and metrics, and the listeners that serve them. */
import { adminUi } from '../admin/mount.js';
import { ADMIN_UI, MANAGEMENT_API, FailedAttempts } from '../core/failed-attempts.js';
import { PopulationCount } from '../core/population.js';
import type { EventBus, RecordStore } from '../core/ports.js';
import { AdminSessions } from '../core/admin-sessions.js';
import type { AuditStatus, StatusReport } from '../core/status.js';
import { tlsBehind } from '../http/client-address.js';
import { EventStreams } from '../http/manage/event-streams.js';
import { fetchFrom } from '../http/manage/in-process.js';
import type { ManageOptions } from '../http/manage/routes.js';
import type { Proxy } from '../http/proxy/proxy.js';
import type { Upgrades } from '../http/proxy/upgrades.js';
import { createApp, type MountedPages } from '../http/server/app.js';
import { type UnknownPathErrors, unknownPathErrors } from '../http/server/unknown-path.js';
import { type Probes, probeRoutes } from '../http/server/probes.js';
import type { MetricsEndpoint } from '../http/server/metrics-route.js';
import { createHttpServer, type HttpServer } from '../http/server/server.js';
import type { BuildContext } from './context.js';
import type { Core } from './core.js';
import { type StatusSources, statusOf } from './status.js';
import type { Traffic } from './traffic.js';

/** The parts of the storage that management uses directly. */
export interface ManagedStorage {
  records: RecordStore;
  auditFiles: { readonly isFailing: boolean; readonly status: AuditStatus };
  /** Null if Redis is not configured. */
  redis: { ping(): Promise<void> } | null;
  /** Null if events are not published. */
  bus: EventBus | null;
}

export interface Management {
  /** Counters of wrong credentials, for the management API and for the Admin UI. */
  attempts: FailedAttempts;
  logInAttempts: FailedAttempts;
  streams: EventStreams;
  status: () => Promise<StatusReport>;
  /** The server of /v1. It does not listen yet. */
  server: HttpServer;
  /** The server of /manage, if it is not `server`. */
  managementServer: HttpServer | null;
}

/** For the public listener, if another one serves operators. */
const CLIENTS_ONLY = { manage: null, admin: null, metrics: null };

export function buildManagement(
  context: BuildContext,
  core: Core,
  traffic: Traffic,
  storage: ManagedStorage,
): Management {
  const { settings, live, log, clock } = context;
  const { records, bus } = storage;
  const attempts = new FailedAttempts({ surface: MANAGEMENT_API, store: records, clock, log });
  const logInAttempts = new FailedAttempts({ surface: ADMIN_UI, store: records, clock, log });
  const streams = new EventStreams(clock);
  const probes = probesOf(context, core, traffic, storage);
  const statusSources = statusSourcesOf(context, core, traffic, storage, probes);
  const status = () => statusOf(statusSources);
  const manage: ManageOptions = {
    managementToken: settings.managementToken,
    attempts,
    logIns: { sessions: new AdminSessions(records, clock), attempts: logInAttempts },
    addressOf: traffic.addressOf,
    registry: core.registry,
    checkKey: traffic.checkKey,
    cacheUpkeep: core.cacheUpkeep,
    auditBook: core.auditBook,
    usage: core.usage,
    top: core.top,
    names: (...ids) => records.names(...ids),
    migrations: { status: core.migrations.statusForOperators, up: core.migrations.up },
    streams,
    bus,
    status,
    clock,
    live,
  };
  const { proxy, upgrades, metrics } = traffic;
  const serverOf = (serves: ServedParts) => listenerOf(context, core, traffic, probes, serves);
  const scraped = metrics && { path: settings.metricsPath, metrics };
  const forOperators = { manage, admin: adminOf(context, manage), metrics: scraped };
  const forClients = {
    proxy,
    upgrades,
    unknownPathErrors: unknownPathErrors({ live, isTls: tlsBehind(settings.trustedProxies) }),
  };
  const isApart = settings.managementListenAddress !== undefined;
  const server = serverOf({ ...forClients, ...(isApart ? CLIENTS_ONLY : forOperators) });
  const managementServer = isApart
    ? serverOf({ proxy: null, upgrades: null, unknownPathErrors: null, ...forOperators })
    : null;
  return { attempts, logInAttempts, streams, status, server, managementServer };
}

function probesOf(context: BuildContext, core: Core, { heap }: Traffic, storage: ManagedStorage): Probes {
  const { clock } = context;
  const { readiness, admission, pingDatabase } = core;
  const { auditFiles, redis, bus } = storage;
  return {
    clock,
    startedAtMs: clock.monotonic(),
    missing: () => [...readiness.missing, ...(heap.isFull ? ['memory'] : [])],
    degraded: () => (auditFiles.isFailing ? ['audit_file'] : []),
    pingDatabase: async () => {
      await pingDatabase();
      admission.onDatabaseContact();
    },
    servesWithoutDatabase: () => admission.isWithinStaleLimit,
    pingRedis: redis && (() => redis.ping()),
    isMemoryFull: () => heap.isFull,
    isBusFailing: bus && (() => bus.isFailing),
  };
}

function statusSourcesOf(
  { settings, clock, version, instanceId }: BuildContext,
  { migrations, cache }: Core,
  { proxy, upgrades, pulse }: Traffic,
  { records, bus, auditFiles }: ManagedStorage,
  probes: Probes,
): StatusSources {
  return {
    version,
    instanceId,
    startedAtMs: clock.now(),
    clock,
    probes,
    databaseDriver: settings.databaseDriver,
    migrations: migrations.status,
    population: new PopulationCount(records, clock),
    pulse,
    cache,
    inFlight: () => proxy.inFlight + upgrades.inFlight,
    bus,
    audit: () => auditFiles.status,
  };
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
    fetch: fetchFrom(createApp({ log, probes: null, manage, admin: null, metrics: null, unknownPathErrors: null })),
    proxyLocation: { port: ownPort },
    clock,
    live,
    log,
  });
}

/** The parts that a listener serves in addition to probes; null for parts that it does not serve. */
interface ServedParts {
  proxy: Proxy | null;
  upgrades: Upgrades | null;
  manage: ManageOptions | null;
  admin: MountedPages | null;
  metrics: MetricsEndpoint | null;
  unknownPathErrors: UnknownPathErrors | null;
}

function listenerOf(
  { log, clock, live }: BuildContext,
  { readiness }: Core,
  { bounds, connections }: Traffic,
  probes: Probes,
  serves: ServedParts,
): HttpServer {
  return createHttpServer({
    proxy: serves.proxy,
    upgrades: serves.upgrades,
    unknownPathErrors: serves.unknownPathErrors,
    app: createApp({ log, probes: probeRoutes(probes), ...serves }),
    clock,
    log,
    bounds,
    maxConnections: connections.maxConnections,
    isDraining: () => readiness.isDraining,
    live,
  });
}
