/** The one place that builds everything. Tests call it too, with a clock and a log of their own. */
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Settings, SettingsError } from '../config/settings.js';
import { Migrator } from '../migrations/migrator.js';
import { adminUi } from './admin/mount.js';
import { ComingUp } from './process/startup.js';
import { Admission } from './core/admission.js';
import { ADMIN_UI, MANAGEMENT_API, WrongAttempts } from './core/attempts.js';
import { AuditBook } from './core/audit-book.js';
import { CacheUpkeep } from './core/cache/upkeep.js';
import { ResponseCache } from './core/cache/response-cache.js';
import { ContentReaders } from './core/content/reader.js';
import type { OnEnded, RequestEnded } from './core/events.js';
import { Neighbours } from './core/neighbours.js';
import { type Clock, type Log, StoreUnavailable } from './core/ports.js';
import { PopulationCount } from './core/population.js';
import { Pulse } from './core/pulse.js';
import { publishChanges, publishRequest } from './core/publishing.js';
import { RateLimits } from './core/rate-limit.js';
import { Registry } from './core/registry.js';
import { Sessions } from './core/sessions.js';
import type { StatusReport } from './core/status.js';
import { HourlyUsage } from './core/usage.js';
import { mostDescriptors, withinDescriptors } from './process/descriptors.js';
import { drain } from './process/drain.js';
import { Heap } from './process/heap.js';
import { Bounds } from './http/server/bounds.js';
import { Afterwards } from './http/proxy/afterwards.js';
import { createApp, type Mounted } from './http/server/app.js';
import { addressesBehind, tlsBehind } from './http/client-address.js';
import { EventStreams } from './http/manage/event-stream.js';
import { decoder } from './http/proxy/decoding.js';
import { Forwarder } from './http/proxy/forward.js';
import { type OffPath, offPath } from './http/server/off-path.js';
import { createProxy, type Proxy } from './http/proxy/proxy.js';
import type { ManageOptions } from './http/manage/routes.js';
import type { Scraped } from './http/server/scrape.js';
import { createHttpServer } from './http/server/server.js';
import { upgradesAt } from './http/proxy/http-proxy.js';
import { HeldBodies } from './http/held-bodies.js';
import { createUpgrades, type Upgrades } from './http/proxy/upgrade.js';
import { fetchFrom } from './http/manage/in-process.js';
import { probeRoutes } from './http/server/probes.js';
import { listen } from './process/listen.js';
import type { Metrics } from './metrics/metrics.js';
import type { Sources } from './metrics/sources.js';
import { Readiness } from './process/readiness.js';
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
  /** Null where this instance has its database for itself. */
  neighbours: Neighbours | null;
  /** Rejects when it turns out that the configuration does not fit a database that was away at the start. */
  failed: Promise<never>;
  /** Requests that begin from now on go by these; they differ from those before in reloadable ones only. */
  apply(settings: Settings): void;
  /** How this instance does. */
  status(): Promise<StatusReport>;
  /** Stops as on SIGTERM: takes no more, lets finish what is in flight, settles, closes. */
  stop(): Promise<void>;
}

/** Where another listener serves what is for operators. */
const FOR_CLIENTS_ALONE = { manage: null, admin: null, metrics: null };

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
  const stores = opened.add(await openStores(settings, { clock }));
  const { records } = stores;
  const auditFiles = opened.add(await openAuditFiles({ settings, records, anchors: stores.anchors, clock, log }));
  const deriveKey = (purpose: string) => stores.deriveKey(purpose);
  const { lookup, ledger, neighbourhood } = stores;
  const isShared = neighbourhood !== null;
  const shared = opened.add(await openSharedStores({ live, clock, log, instanceId, deriveKey, isShared }));
  const migrator = new Migrator(stores.database, version, () => clock.now());
  const readiness = new Readiness();
  records.refuseChangesWhile(() => auditFiles.whyNoChanges ?? readiness.whyNoChanges);
  const admission = new Admission({
    lookup,
    ledger,
    clock,
    log,
    instanceId,
    staleLimitMs: settings.tokenStaleLimitMs,
    isShared,
    onContention: (tokenId) => shared.pokes?.send({ kind: 'wanted', tokenId }),
  });

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
  const auditBook = new AuditBook(records);
  const neighbours =
    neighbourhood &&
    new Neighbours({
      neighbourhood,
      admission,
      records,
      pokes: shared.pokes,
      clock,
      log,
      instanceId,
      staleLimitMs: settings.tokenStaleLimitMs,
      onChange: (change) => {
        cacheUpkeep.heardOf(change);
      },
      onLostTrack: () => {
        cacheUpkeep.lostTrack();
      },
      onRecords: () => {
        auditBook.wake();
        auditFiles.wake();
      },
    });
  let fail: (error: SettingsError) => void = () => undefined;
  const failed = new Promise<never>((_resolve, reject) => (fail = reject));
  failed.catch(() => undefined); // Whoever asks for it hears of it.
  const comingUp = new ComingUp({
    migrator,
    readiness,
    isShared,
    autoMigrate: settings.autoMigrate,
    async beginServing() {
      await stores.checkEncryptionKey();
      await ledger.enrol(instanceId, clock.now());
      await neighbours?.begin();
      await auditFiles.begin();
      usage.begin();
    },
    ping: () => pingDatabase(stores),
    onHopeless: (error) => {
      fail(error);
    },
    clock,
    log,
  });
  const connections = withinDescriptors(settings, mostDescriptors());
  if (connections.maxConnections < settings.maxConnections) log.warn('too few open files are allowed', connections);
  const forwarder = new Forwarder({ ...settings, ...connections }, live, clock);
  const heap = new Heap(clock);
  const bounds = new Bounds({ clock, heap, log });
  const isServing = () => readiness.isDatabaseReady && heap.admits();
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
  const afterwards = new Afterwards(clock);
  const addressOf = addressesBehind(settings.trustedProxies);
  const loopMark = `llmp-${instanceId.slice(0, 8)}`;
  const bodies = new HeldBodies();
  const proxy = createProxy({
    admission,
    rateLimits,
    addressOf,
    cache,
    contents,
    untaken: bounds.untaken,
    bodies,
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
    untaken: bounds.untaken,
    bodies,
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
        shed: () => heap.refused,
        dropped: () => bounds.dropped,
        unheardMs: neighbours && (() => clock.monotonic() - neighbours.upToDateAtMs),
      })
    : null;
  if (metrics) {
    keepers.push((ended) => {
      metrics.record(ended);
    });
  }
  const attempts = new WrongAttempts({ door: MANAGEMENT_API, store: records, clock, log });
  const logInAttempts = new WrongAttempts({ door: ADMIN_UI, store: records, clock, log });
  const streams = new EventStreams(clock);
  const probes = {
    clock,
    startedAtMs: clock.monotonic(),
    missing: () => [...readiness.missing, ...(heap.isFull ? ['memory'] : [])],
    degraded: () => (auditFiles.isFailing ? ['audit_file'] : []),
    pingDatabase: async () => {
      await pingDatabase(stores);
      admission.heardFromDatabase();
    },
    outlastsDatabase: () => admission.outlastsDatabase,
    pingRedis: redis && (() => redis.ping()),
    isMemoryFull: () => heap.isFull,
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
  const status = () => statusOf(statusSources);
  const migrateUp = () => {
    if (auditFiles.whyNoChanges !== null) return Promise.reject(new StoreUnavailable(auditFiles.whyNoChanges));
    return comingUp.migrateUp();
  };
  const manage: ManageOptions = {
    managementToken: settings.managementToken,
    attempts,
    logIns: { sessions: new Sessions(records, clock), attempts: logInAttempts },
    addressOf,
    registry,
    cacheUpkeep,
    auditBook,
    usage,
    migrations: { status: () => explained(migrator.status()), up: migrateUp },
    streams,
    bus,
    status,
    version,
    clock,
    live,
  };
  /** A listener that serves what it is given, and the probes. */
  const serverOf = (serves: {
    proxy: Proxy | null;
    upgrades: Upgrades | null;
    manage: ManageOptions | null;
    admin: Mounted | null;
    metrics: Scraped | null;
    offPath: OffPath | null;
  }) =>
    createHttpServer({
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
  const { managementListenAddress, listenAddress } = settings;
  const ownPort = managementListenAddress && 'port' in listenAddress ? listenAddress.port : null;
  const scraped = metrics && { path: settings.metricsPath, metrics };
  const admin = settings.adminUiEnabled
    ? adminUi({
        ...settings,
        // It asks as every front end does, but within this process: no headers come between but its own, neither a limit nor a free place
        // among the connections matters, and it works wherever the daemon listens.
        server: 'http://daemon',
        fetch: fetchFrom(createApp({ log, probes: null, manage, admin: null, metrics: null, offPath: null })),
        clientsAt: { port: ownPort },
        clock,
        live,
        log,
      })
    : null;
  const forOperators = { manage, admin, metrics: scraped };
  const forClients = { proxy, upgrades, offPath: offPath({ live, isTls: tlsBehind(settings.trustedProxies) }) };
  const server = serverOf({ ...forClients, ...(managementListenAddress ? FOR_CLIENTS_ALONE : forOperators) });
  const managementServer = managementListenAddress
    ? serverOf({ proxy: null, upgrades: null, offPath: null, ...forOperators })
    : null;
  const servers = managementServer ? [server, managementServer] : [server];

  const close = async () => {
    await comingUp.close();
    await neighbours?.close();
    if (readiness.isDatabaseReady) await admission.retire();
    await forwarder.close();
    await attempts.close();
    await logInAttempts.close();
    afterwards.settle();
    await contents.settled();
    await usage.close();
    await opened.close();
  };
  try {
    await comingUp.begin();
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
    neighbours,
    failed,
    apply(next) {
      live.current = next;
    },
    status,
    stop: () => (stopping ??= stop()),
  };
}

async function pingDatabase({ database }: Stores): Promise<void> {
  await database.ask('SELECT 1');
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
