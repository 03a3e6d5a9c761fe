/** The fourth builder: /manage, the Admin UI, probes and metrics, and the listeners that serve all of it. */
import { adminUi } from '../admin/mount.js';
import { ADMIN_UI, MANAGEMENT_API, WrongAttempts } from '../core/attempts.js';
import { PopulationCount } from '../core/population.js';
import type { EventBus, RecordStore } from '../core/ports.js';
import { Sessions } from '../core/sessions.js';
import type { AuditStatus, StatusReport } from '../core/status.js';
import { tlsBehind } from '../http/client-address.js';
import { EventStreams } from '../http/manage/event-stream.js';
import { fetchFrom } from '../http/manage/in-process.js';
import type { ManageOptions } from '../http/manage/routes.js';
import type { Proxy } from '../http/proxy/proxy.js';
import type { Upgrades } from '../http/proxy/upgrades.js';
import { createApp, type Mounted } from '../http/server/app.js';
import { type OffPath, offPath } from '../http/server/off-path.js';
import { type Probes, probeRoutes } from '../http/server/probes.js';
import type { Scraped } from '../http/server/scrape.js';
import { createHttpServer, type HttpServer } from '../http/server/server.js';
import type { BuildContext } from './context.js';
import type { Core } from './core.js';
import { type StatusSources, statusOf } from './status.js';
import type { Traffic } from './traffic.js';

/** What management needs of the storage beside what the core makes of it. */
export interface ManagedStorage {
  records: RecordStore;
  auditFiles: { readonly isFailing: boolean; readonly status: AuditStatus };
  /** Null where there is none. */
  redis: { ping(): Promise<void> } | null;
  /** Null when nothing is published. */
  bus: EventBus | null;
}

export interface Management {
  /** Those with a wrong credential, at each door. */
  attempts: WrongAttempts;
  logInAttempts: WrongAttempts;
  streams: EventStreams;
  /** How this instance does. */
  status: () => Promise<StatusReport>;
  /** The one that serves /v1. It does not listen yet. */
  server: HttpServer;
  /** The one that serves /manage, if that is not `server`. */
  managementServer: HttpServer | null;
}

/** Where another listener serves what is for operators. */
const FOR_CLIENTS_ALONE = { manage: null, admin: null, metrics: null };

export function buildManagement(
  context: BuildContext,
  core: Core,
  traffic: Traffic,
  storage: ManagedStorage,
): Management {
  const { settings, live, log, clock, version } = context;
  const { records, bus } = storage;
  const attempts = new WrongAttempts({ door: MANAGEMENT_API, store: records, clock, log });
  const logInAttempts = new WrongAttempts({ door: ADMIN_UI, store: records, clock, log });
  const streams = new EventStreams(clock);
  const probes = probesOf(context, core, traffic, storage);
  const statusSources = statusSourcesOf(context, core, traffic, storage, probes);
  const status = () => statusOf(statusSources);
  const manage: ManageOptions = {
    managementToken: settings.managementToken,
    attempts,
    logIns: { sessions: new Sessions(records, clock), attempts: logInAttempts },
    addressOf: traffic.addressOf,
    registry: core.registry,
    cacheUpkeep: core.cacheUpkeep,
    auditBook: core.auditBook,
    usage: core.usage,
    migrations: { status: core.migrations.explainedStatus, up: core.migrations.up },
    streams,
    bus,
    status,
    version,
    clock,
    live,
  };
  const { proxy, upgrades, metrics } = traffic;
  const serverOf = (serves: Serves) => listenerOf(context, core, traffic, probes, serves);
  const scraped = metrics && { path: settings.metricsPath, metrics };
  const forOperators = { manage, admin: adminOf(context, manage), metrics: scraped };
  const forClients = { proxy, upgrades, offPath: offPath({ live, isTls: tlsBehind(settings.trustedProxies) }) };
  const isApart = settings.managementListenAddress !== undefined;
  const server = serverOf({ ...forClients, ...(isApart ? FOR_CLIENTS_ALONE : forOperators) });
  const managementServer = isApart ? serverOf({ proxy: null, upgrades: null, offPath: null, ...forOperators }) : null;
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
      admission.heardFromDatabase();
    },
    outlastsDatabase: () => admission.outlastsDatabase,
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

/** The Admin UI; null when it is not to be served. */
function adminOf({ settings, live, log, clock }: BuildContext, manage: ManageOptions): Mounted | null {
  if (!settings.adminUiEnabled) return null;
  const { managementListenAddress, listenAddress } = settings;
  const ownPort = managementListenAddress && 'port' in listenAddress ? listenAddress.port : null;
  return adminUi({
    ...settings,
    // It asks as every front end does, but within this process: no headers come between but its own, neither a limit nor a free place
    // among the connections matters, and it works wherever the daemon listens.
    server: 'http://daemon',
    fetch: fetchFrom(createApp({ log, probes: null, manage, admin: null, metrics: null, offPath: null })),
    clientsAt: { port: ownPort },
    clock,
    live,
    log,
  });
}

/** What a listener serves beside the probes; null for what it does not. */
interface Serves {
  proxy: Proxy | null;
  upgrades: Upgrades | null;
  manage: ManageOptions | null;
  admin: Mounted | null;
  metrics: Scraped | null;
  offPath: OffPath | null;
}

function listenerOf(
  { log, clock, live }: BuildContext,
  { readiness }: Core,
  { bounds, connections }: Traffic,
  probes: Probes,
  serves: Serves,
): HttpServer {
  return createHttpServer({
    proxy: serves.proxy,
    upgrades: serves.upgrades,
    offPath: serves.offPath,
    app: createApp({ log, probes: probeRoutes(probes), ...serves }),
    clock,
    log,
    bounds,
    maxConnections: connections.maxConnections,
    isDraining: () => readiness.isDraining,
    live,
  });
}
