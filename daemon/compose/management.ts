/** The fourth builder: /manage, the Admin UI, probes and metrics, and the listeners that serve them. */
import { ADMIN_UI, MANAGEMENT_API, FailedAttempts } from '../core/failed-attempts.js';
import { populationOf } from '../core/population.js';
import type { EventBus, RecordStore } from '../core/ports.js';
import type { AuditStatus, StatusReport, WorkerReport } from '../core/status.js';
import { tlsBehind } from '../http/client-address.js';
import { EventStreams } from '../http/manage/event-streams.js';
import type { Proxy } from '../http/proxy/proxy.js';
import type { Upgrades } from '../http/proxy/upgrades.js';
import { type AppOptions, createApp } from '../http/server/app.js';
import type { TokenSelfHandler } from '../http/server/token-self.js';
import { type UnknownPathErrors, unknownPathErrors } from '../http/server/unknown-path.js';
import { type Probes, probeRoutes } from '../http/server/probes.js';
import { createHttpServer, type HttpServer } from '../http/server/server.js';
import { serverForWorkers, throughPrimary } from '../http/server/through-primary.js';
import type { BuildContext } from './context.js';
import type { Core } from './core.js';
import type { OperatorsParts, partsForOperators } from './operators.js';
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
    settled(isChange: boolean): Promise<void>;
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

export async function buildManagement(
  context: BuildContext,
  core: Core,
  traffic: Traffic,
  storage: ManagedStorage,
): Promise<Management> {
  const { settings, live, log, clock } = context;
  const { records, bus, crew } = storage;
  const attempts = new FailedAttempts({ surface: MANAGEMENT_API, store: records, clock, log });
  const logInAttempts = new FailedAttempts({ surface: ADMIN_UI, store: records, clock, log });
  const streams = new EventStreams(clock);
  const probes = probesOf(context, core, traffic, storage);
  const statusSources = statusSourcesOf(context, core, traffic, storage, probes);
  const status = () => statusOf(statusSources);
  const { proxy, upgrades } = traffic;
  const serverOf = (serves: ServedParts) => listenerOf(context, core, traffic, probes, serves);
  const { link, isPrimary } = context;
  const forOperators = link
    ? CLIENTS_ONLY
    : await operatorsParts(context, core, traffic, { records, bus, crew, streams, status, attempts, logInAttempts });
  const forClients = {
    proxy,
    upgrades,
    tokenSelf: traffic.tokenSelf,
    unknownPathErrors: unknownPathErrors({ live, isTls: tlsBehind(settings.trustedProxies) }),
  };
  const isApart = settings.managementListenAddress !== undefined;
  const served = { ...forClients, ...(isApart ? CLIENTS_ONLY : forOperators) };
  const server = isPrimary ? serverForWorkers(appOf(context, probes, served), traffic.bounds) : serverOf(served);
  const managementServer =
    isApart && !link
      ? serverOf({ proxy: null, upgrades: null, tokenSelf: null, unknownPathErrors: null, ...forOperators })
      : null;
  const currentStatus = async () => {
    await crew?.reported();
    return status();
  };
  return { attempts, logInAttempts, streams, status: currentStatus, server, managementServer };
}

/** Loaded only where it is served: it weighs more than all that requests on /v1 need. */
async function operatorsParts(...of: Parameters<typeof partsForOperators>): Promise<OperatorsParts> {
  const { partsForOperators } = await import('./operators.js');
  return partsForOperators(...of);
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
      admission.accounts.onDatabaseContact();
    },
    servesWithoutDatabase: () => admission.accounts.isWithinStaleLimit,
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
  { proxy, upgrades, recentTraffic }: Traffic,
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
    population: populationOf(records, clock),
    recentTraffic,
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

/** The parts that a listener serves in addition to probes; null for parts that it does not serve. */
interface ServedParts extends Pick<AppOptions, 'manage' | 'admin' | 'metrics'> {
  proxy: Proxy | null;
  upgrades: Upgrades | null;
  tokenSelf: TokenSelfHandler | null;
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
    tokenSelf: serves.tokenSelf,
    unknownPathErrors: serves.unknownPathErrors,
    app:
      link && settings.managementListenAddress === undefined
        ? throughPrimary({ connect: (client) => link.connect(client), app, memory: bounds.memory })
        : app,
    clock,
    log,
    bounds,
    maxConnections: connections.maxConnections,
    keepAliveMs: settings.clientKeepAliveMs,
    isDraining: () => readiness.isDraining,
    live,
  });
}
