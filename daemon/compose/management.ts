/** The fourth builder: /manage, the Admin UI, probes and metrics, and the listeners that serve them. */
import { adminUi } from '../admin/mount.js';
import { ADMIN_UI, MANAGEMENT_API, FailedAttempts } from '../core/failed-attempts.js';
import { PopulationCount } from '../core/population.js';
import type { EventBus, RecordStore } from '../core/ports.js';
import { AdminSessions } from '../core/admin-sessions.js';
import type { AuditStatus, StatusReport, WorkerReport } from '../core/status.js';
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
import type { Metrics } from '../metrics/metrics.js';
import { createHttpServer, type HttpServer } from '../http/server/server.js';
import { serverForWorkers, throughPrimary } from '../http/server/through-primary.js';
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
  /** The workers of a primary; null in other processes. */
  crew: {
    reported(): Promise<void>;
    settled(): Promise<void>;
    readonly isServing: boolean;
    readonly report: WorkerReport[];
    readonly figures: { gauges: Record<'http' | 'websocket', number> };
  } | null;
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

/** In the list of degraded parts. */
export const AUDIT_FAILING = 'audit_file';

/** For the public listener, if another one serves operators. */
const CLIENTS_ONLY = { manage: null, admin: null, metrics: null };

export function buildManagement(
  context: BuildContext,
  core: Core,
  traffic: Traffic,
  storage: ManagedStorage,
): Management {
  const { settings, live, log, clock } = context;
  const { records, bus, crew } = storage;
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
    isForwarded: traffic.proxy.handles,
    auditBook: core.auditBook,
    usage: core.usage,
    top: core.top,
    names: (...ids) => records.names(...ids),
    migrations: { status: core.migrations.statusForOperators, up: core.migrations.up },
    streams,
    bus,
    status,
    settled: crew && (() => crew.settled()),
    clock,
    live,
  };
  const { proxy, upgrades, metrics } = traffic;
  const serverOf = (serves: ServedParts) => listenerOf(context, core, traffic, probes, serves);
  const scraped = metrics && { path: settings.metricsPath, metrics: withReports(metrics, crew) };
  const { link, isPrimary } = context;
  const forOperators = link ? CLIENTS_ONLY : { manage, admin: adminOf(context, manage), metrics: scraped };
  const forClients = {
    proxy,
    upgrades,
    unknownPathErrors: unknownPathErrors({ live, isTls: tlsBehind(settings.trustedProxies) }),
  };
  const isApart = settings.managementListenAddress !== undefined;
  const served = { ...forClients, ...(isApart ? CLIENTS_ONLY : forOperators) };
  const server = isPrimary ? serverForWorkers(appOf(context, probes, served)) : serverOf(served);
  const managementServer =
    isApart && !link ? serverOf({ proxy: null, upgrades: null, unknownPathErrors: null, ...forOperators }) : null;
  const currentStatus = async () => {
    await crew?.reported();
    return status();
  };
  return { attempts, logInAttempts, streams, status: currentStatus, server, managementServer };
}

/** Metrics with what the workers have counted until they are read. */
function withReports(metrics: Metrics, crew: ManagedStorage['crew']): MetricsEndpoint['metrics'] {
  if (!crew) return metrics;
  const render = async () => {
    await crew.reported();
    return metrics.render();
  };
  return { contentType: metrics.contentType, render };
}

function probesOf(context: BuildContext, core: Core, { heap }: Traffic, storage: ManagedStorage): Probes {
  const { clock, link } = context;
  const { readiness, admission, pingDatabase } = core;
  const { auditFiles, redis, bus, crew } = storage;
  return {
    clock,
    startedAtMs: clock.monotonic(),
    missing: () => [
      ...readiness.missing,
      ...(heap.isFull ? ['memory'] : []),
      ...(crew && !crew.isServing ? ['workers'] : []),
    ],
    degraded: () => (link ? [...link.health.degraded] : auditFiles.isFailing ? [AUDIT_FAILING] : []),
    pingDatabase: async () => {
      await pingDatabase();
      admission.onDatabaseContact();
    },
    servesWithoutDatabase: () => admission.isWithinStaleLimit,
    pingRedis: redis && (() => redis.ping()),
    isMemoryFull: () => heap.isFull,
    isBusFailing: link ? busOf(link) : bus && (() => bus.isFailing),
  };
}

/** The primary publishes the events of a worker. */
const busOf = (link: NonNullable<BuildContext['link']>) =>
  link.health.isBusFailing === null ? null : () => link.health.isBusFailing === true;

function statusSourcesOf(
  { settings, clock, version, instanceId }: BuildContext,
  { migrations, cache }: Core,
  { proxy, upgrades, pulse }: Traffic,
  { records, bus, auditFiles, crew }: ManagedStorage,
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
    inFlight: () => {
      const { http, websocket } = crew?.figures.gauges ?? { http: proxy.inFlight, websocket: upgrades.inFlight };
      return http + websocket;
    },
    workers: () => crew?.report ?? [],
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

/** Serves everything except /v1. */
const appOf = ({ log }: BuildContext, probes: Probes, serves: ServedParts) =>
  createApp({ log, probes: probeRoutes(probes), ...serves });

function listenerOf(
  context: BuildContext,
  { readiness }: Core,
  { bounds, connections }: Traffic,
  probes: Probes,
  serves: ServedParts,
): HttpServer {
  const { log, clock, live, link, settings } = context;
  const app = appOf(context, probes, serves);
  return createHttpServer({
    proxy: serves.proxy,
    upgrades: serves.upgrades,
    unknownPathErrors: serves.unknownPathErrors,
    app:
      link && settings.managementListenAddress === undefined
        ? throughPrimary((client) => link.connect(client), app)
        : app,
    clock,
    log,
    bounds,
    maxConnections: connections.maxConnections,
    isDraining: () => readiness.isDraining,
    live,
  });
}
