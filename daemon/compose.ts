/** The one place that builds everything. Tests call it too, with a clock and a log of their own. */
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Settings } from '../config/settings.js';
import { SettingsError } from '../config/settings.js';
import { Migrator, SchemaTooNew } from '../migrations/migrator.js';
import { Admission } from './core/admission.js';
import { WrongAttempts } from './core/attempts.js';
import { AuditBook } from './core/audit-book.js';
import { CacheUpkeep } from './core/cache-upkeep.js';
import { ResponseCache } from './core/cache.js';
import { ContentReaders } from './core/content/reader.js';
import type { OnEnded, RequestEnded } from './core/events.js';
import type { Clock, Log } from './core/ports.js';
import { PopulationCount } from './core/population.js';
import { Pulse } from './core/pulse.js';
import { publishChanges, publishRequest } from './core/publishing.js';
import { RateLimits } from './core/rate-limit.js';
import { Registry } from './core/registry.js';
import { HourlyUsage } from './core/usage.js';
import { drain } from './drain.js';
import { Afterwards } from './http/afterwards.js';
import { createApp } from './http/app.js';
import { addressesBehind } from './http/client-address.js';
import { EventStreams } from './http/event-stream.js';
import { decoder } from './http/decoding.js';
import { Forwarder } from './http/forward.js';
import { createProxy, type Proxy } from './http/proxy.js';
import type { ManageOptions } from './http/manage.js';
import type { Scraped } from './http/scrape.js';
import { createHttpServer } from './http/server.js';
import { upgradesAt } from './http/http-proxy.js';
import { createUpgrades, type Upgrades } from './http/upgrade.js';
import { listen } from './listen.js';
import type { Metrics } from './metrics/metrics.js';
import type { Sources } from './metrics/sources.js';
import { Readiness } from './readiness.js';
import { type AuditFiles, openAuditFiles } from './store/audit-file/open.js';
import { MemoryRateWindows } from './store/memory/rate-windows.js';
import { Opened } from './store/opened.js';
import { openStores, type Stores } from './store/open.js';
import { explained } from './store/sql/failures.js';
import { type StatusSources, statusOf } from './status.js';
import { openSharedStores, type SharedStores } from './store/shared.js';

export interface ComposeOptions {
  settings: Settings;
  log: Log;
  clock: Clock;
  version: string;
  /** Told of every request on /v1 that is over. */
  onEnded?: (ended: RequestEnded) => void;
}

/** A daemon that listens. */
export interface Daemon {
  server: Server;
  /** The one that serves /manage, if that is not `server`. */
  managementServer: Server | null;
  stores: Stores;
  shared: SharedStores;
  auditFiles: AuditFiles;
  admission: Admission;
  afterwards: Afterwards;
  streams: EventStreams;
  usage: HourlyUsage;
  /** Requests that begin from now on go by these; they differ from those before in reloadable ones only. */
  apply(settings: Settings): void;
  /** Stops as on SIGTERM: takes no more, lets finish what is in flight, settles, closes. */
  stop(): Promise<void>;
}

/** Where another listener serves what is for operators. */
const FOR_CLIENTS_ALONE = { manage: null, metrics: null };

/** @throws {SettingsError} when the configuration does not fit what is there. */
export async function startDaemon(options: ComposeOptions): Promise<Daemon> {
  const opened = new Opened();
  try {
    return await composed(options, opened);
  } catch (error) {
    await opened.close().catch(() => undefined); // Why it does not start is what there is to tell.
    throw error;
  }
}

/** @param opened where all goes that must be let go of when this fails. */
async function composed(options: ComposeOptions, opened: Opened): Promise<Daemon> {
  const { settings, log, clock, version } = options;
  const live = { current: settings };
  const instanceId = randomUUID();
  const stores = opened.add(await openStores(settings));
  const { records } = stores;
  const auditFiles = opened.add(await openAuditFiles({ settings, records, anchors: stores.anchors, clock, log }));
  records.refuseChangesWhile(() => auditFiles.whyNoChanges);
  const deriveKey = (purpose: string) => stores.deriveKey(purpose);
  const shared = opened.add(await openSharedStores({ live, clock, log, instanceId, deriveKey }));
  const migrator = new Migrator(stores.database.sequelize, version, () => clock.now());
  const readiness = new Readiness();
  const { lookup, ledger } = stores;
  const admission = new Admission({
    lookup,
    ledger,
    clock,
    log,
    instanceId,
    staleLimitMs: settings.tokenStaleLimitMs,
  });

  /** Everything that needs the tables to be there. */
  const beginServing = async () => {
    await stores.checkEncryptionKey();
    await ledger.enrol(instanceId, clock.now());
    readiness.pendingMigrations = [];
    readiness.isDatabaseReady = true;
    await auditFiles.begin();
    usage.begin();
  };
  const migrateUp = async () => {
    const report = await migrator.up();
    if (!readiness.isDatabaseReady) await beginServing();
    return report;
  };

  const usage = new HourlyUsage({
    store: stores.usage,
    clock,
    log,
    instanceId,
    isReady: () => readiness.isDatabaseReady,
    live,
  });
  const cache = shared.cache && new ResponseCache({ store: shared.cache, clock, live });
  const cacheUpkeep = new CacheUpkeep({ cache, records, clock, log });
  const registry = new Registry(records, admission, clock, (projectId) => {
    cacheUpkeep.dropProject(projectId);
  });
  const forwarder = new Forwarder(settings, live, clock);
  const isServing = () => readiness.isDatabaseReady;
  /** All who keep a record of requests on /v1. */
  const keepers: OnEnded[] = [
    usage.keep,
    (ended) => options.onEnded?.(ended),
    (ended) => {
      auditFiles.keep(ended);
    },
  ];
  const { redis, bus } = shared;
  if (bus) {
    keepers.push((ended) => {
      publishRequest(bus, ended);
    });
    records.onCommitted((committed) => {
      publishChanges(bus, committed);
    });
  }
  const onEnded = (ended: RequestEnded, cause: unknown) => {
    for (const keep of keepers) keep(ended);
    logEnded(log, ended, cause);
  };
  const contents = new ContentReaders({ decode: decoder(), live });
  const rateLimits = new RateLimits({
    live,
    local: { address: new MemoryRateWindows(clock), global: new MemoryRateWindows(clock, 1) },
    shared: shared.rateWindows,
  });
  const afterwards = new Afterwards();
  const addressOf = addressesBehind(settings.trustedProxies);
  const loopMark = `llmp-${instanceId.slice(0, 8)}`;
  const proxy = createProxy({
    admission,
    rateLimits,
    addressOf,
    cache,
    contents,
    forwarder,
    clock,
    live,
    isServing,
    loopMark,
    afterwards,
    onEnded,
  });
  const forward = upgradesAt(settings.upstreamBaseUrl);
  const upgrades = createUpgrades({
    admission,
    rateLimits,
    addressOf,
    connections: forwarder,
    forward,
    clock,
    live,
    isServing,
    loopMark,
    afterwards,
    onEnded,
  });
  const metrics = settings.metricsEnabled
    ? await metricsOf({
        inFlight: () => ({ http: proxy.inFlight, websocket: upgrades.inFlight }),
        admission,
        rateLimits,
        cache,
        bus,
        audit: () => auditFiles.status,
      })
    : null;
  if (metrics) {
    keepers.push((ended) => {
      metrics.record(ended);
    });
  }
  const attempts = new WrongAttempts({ store: stores.records, clock, log });
  const streams = new EventStreams(clock);
  const probes = {
    clock,
    startedAtMs: clock.monotonic(),
    missing: () => readiness.missing,
    degraded: () => (auditFiles.isFailing ? ['audit_file'] : []),
    pingDatabase: async () => {
      await stores.database.select('SELECT 1');
      admission.heardFromDatabase();
    },
    outlastsDatabase: () => admission.outlastsDatabase,
    pingRedis: redis && (() => redis.ping()),
    isBusFailing: bus && (() => bus.isFailing),
  };
  const pulse = new Pulse(clock);
  keepers.push((ended) => {
    pulse.record(ended);
  });
  const statusSources: StatusSources = {
    version,
    instanceId,
    startedAtMs: clock.now(),
    clock,
    probes,
    databaseDriver: settings.databaseDriver,
    migrations: () => migrator.status(),
    population: new PopulationCount(records, clock),
    pulse,
    cache,
    inFlight: () => proxy.inFlight + upgrades.inFlight,
    bus,
    audit: () => auditFiles.status,
  };
  const manage: ManageOptions = {
    managementToken: settings.managementToken,
    attempts,
    addressOf,
    registry,
    cacheUpkeep,
    auditBook: new AuditBook(records),
    usage,
    migrations: { status: () => explained(migrator.status()), up: () => explained(migrateUp()) },
    streams,
    bus,
    status: () => statusOf(statusSources),
    version,
    clock,
    live,
  };
  /** A listener that serves what it is given, and the probes. */
  const serverOf = (serves: {
    proxy: Proxy | null;
    upgrades: Upgrades | null;
    manage: ManageOptions | null;
    metrics: Scraped | null;
  }) =>
    createHttpServer({
      proxy: serves.proxy,
      upgrades: serves.upgrades,
      app: createApp({ log, probes, manage: serves.manage, metrics: serves.metrics }),
      clock,
      maxConnections: settings.maxConnections,
      isDraining: () => readiness.isDraining,
      live,
    });
  const { managementListenAddress } = settings;
  const scraped = metrics && { path: settings.metricsPath, metrics };
  const forOperators = { manage, metrics: scraped };
  const server = serverOf({ proxy, upgrades, ...(managementListenAddress ? FOR_CLIENTS_ALONE : forOperators) });
  const managementServer = managementListenAddress ? serverOf({ proxy: null, upgrades: null, ...forOperators }) : null;
  const servers = managementServer ? [server, managementServer] : [server];

  const close = async () => {
    if (readiness.isDatabaseReady) await admission.retire();
    await forwarder.close();
    await attempts.close();
    afterwards.settle();
    await contents.settled();
    await usage.close();
    await opened.close();
  };
  try {
    await refuseForeignSchema(migrator);
    if (settings.autoMigrate) await migrateUp();
    else readiness.pendingMigrations = (await migrator.status()).pending;
    if (readiness.pendingMigrations.length === 0 && !readiness.isDatabaseReady) await beginServing();
    if (managementServer && managementListenAddress) await listen(managementServer, managementListenAddress);
    await listen(server, settings.listenAddress);
  } catch (error) {
    // One may listen already, and would keep the process alive.
    for (const each of servers) each.close().closeAllConnections();
    await close().catch(() => undefined);
    throw error;
  }

  let stopping: Promise<void> | null = null;
  const stop = async () => {
    await drain({
      servers,
      readiness,
      clock,
      log,
      settings,
      endStreams: () => {
        streams.end();
      },
      cutAll: () => {
        proxy.cutAll();
        upgrades.cutAll();
      },
    });
    await close();
  };
  return {
    server,
    managementServer,
    stores,
    shared,
    auditFiles,
    admission,
    afterwards,
    streams,
    usage,
    apply(next) {
      live.current = next;
    },
    stop: () => (stopping ??= stop()),
  };
}

function logEnded(log: Log, ended: RequestEnded, cause: unknown): void {
  const level = ended.outcome === 'upstream_error' ? 'warn' : 'debug';
  const isPlain = cause === undefined && ended.requestBody === null && ended.responseBody === null;
  // What clients and the provider say to each other is for whoever asked for it, and a log is read by many.
  log[level]('request ended', isPlain ? ended : { ...ended, requestBody: null, responseBody: null, error: cause });
}

async function metricsOf(sources: Sources): Promise<Metrics> {
  // Who wants none need not load what they are made with.
  const { Metrics } = await import('./metrics/metrics.js');
  return new Metrics(sources);
}

async function refuseForeignSchema(migrator: Migrator): Promise<void> {
  try {
    await migrator.refuseNewerSchema();
  } catch (error) {
    throw error instanceof SchemaTooNew ? new SettingsError([`DATABASE_URL: ${error.message}`]) : error;
  }
}
