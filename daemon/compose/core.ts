/** The second builder: the core on top of the storage, and the startup of the database. It does not depend on HTTP. */
import type { SettingsError } from '../../config/settings.js';
import type { Migrator } from '../../migrations/migrator.js';
import { Admission } from '../core/admission.js';
import { AuditLog } from '../core/audit-log.js';
import { Batches } from '../core/batches.js';
import { ResponseCache } from '../core/cache/response-cache.js';
import { CacheManager, type CacheManagerOptions } from '../core/cache/cache-manager.js';
import { Costs } from '../core/cost/costs.js';
import { ClusterSync } from '../core/cluster-sync.js';
import { Limiter } from '../core/limiter.js';
import { KNOWN_IN_REDIS_WITHIN_MS, LimitShares } from '../core/limit-shares.js';
import { ModelNames } from '../core/model-names.js';
import { type LimitStore, StoreUnavailable } from '../core/ports.js';
import { publishChanges } from '../core/publishing.js';
import { RateLimits } from '../core/rate-limit.js';
import { Registry } from '../core/registry.js';
import { Incidents } from '../core/incidents.js';
import { TopReports } from '../core/top.js';
import { UsageStatistics } from '../core/usage.js';
import { readShippedList } from '../process/price-lists.js';
import { Readiness } from '../process/readiness.js';
import { Startup, type StartupOptions } from './startup.js';
import type { Crew } from '../store/ipc/crew.js';
import { LinkedLimits, type PrimaryLink } from '../store/ipc/primary-link.js';
import { MemoryLimits } from '../store/memory/limits.js';
import { SharedLimits } from '../store/shared-limits.js';
import { localRateWindows } from '../store/memory/rate-windows.js';
import { withStoreErrors } from '../store/sql/failures.js';
import { checkEncoding } from '../store/sql/server-check.js';
import type { BuildContext } from './context.js';
import type { Storage } from './storage.js';

/** The schema of the database. */
type SchemaStatus = Awaited<ReturnType<Migrator['status']>>;

export interface Core {
  readiness: Readiness;
  admission: Admission;
  usage: UsageStatistics;
  top: TopReports;
  incidents: Incidents;
  /** Null if the cache is disabled. */
  cache: ResponseCache | null;
  cacheManager: CacheManager;
  registry: Registry;
  auditLog: AuditLog;
  batches: Batches;
  rateLimits: RateLimits;
  costs: Costs;
  /** Records the prices that are in force, if they are others than before. */
  notePrices: () => void;
  /** Where the limits of tokens and projects are counted. */
  limits: LimitStore;
  limiter: Limiter;
  /** The same as `limits` if they are counted in Redis, otherwise null. */
  sharedLimits: SharedLimits | null;
  /** Null if this instance does not share its database. */
  clusterSync: ClusterSync | null;
  /** Not started yet. */
  startup: Startup;
  migrations: {
    /** Rejects with the errors of the database. */
    status: () => Promise<SchemaStatus>;
    /** The same for operators: rejects with `StoreUnavailable` if the database does not respond. */
    statusForOperators: () => Promise<SchemaStatus>;
    /** Rejects with `StoreUnavailable` if the database does not respond, or the change could not be recorded. @throws {Refusal} `schema_too_new` */
    up: () => Promise<SchemaStatus>;
  };
  /** Rejects if the database does not respond. */
  pingDatabase: () => Promise<void>;
  /** Rejects if the database was unavailable at start and its content turns out not to fit the configuration. */
  failed: Promise<never>;
}

export async function buildCore(
  context: BuildContext,
  { stores, auditFiles, shared, crew, ofInstance }: Storage,
): Promise<Core> {
  const { settings, live, log, clock, version, instanceId, memory, link } = context;
  const isServer = settings.database.driver !== 'sqlite';
  const { database, records, lookup, ledger, clusterStore } = stores;
  const isShared = clusterStore !== null;
  const staleLimitMs = settings.tokenStaleLimitMs;
  const migrator = link
    ? migratedByPrimary(link)
    : new (await import('../../migrations/migrator.js')).Migrator(database, version, () => clock.now());
  const readiness = new Readiness();
  records.refuseChangesWhile(() => auditFiles.whyNoChanges ?? readiness.whyNoChanges);
  // Workers have their part through their primary. Instances with a database of their own have no others.
  const limitShares = isServer && !link ? new LimitShares(clock, log, shared.limits === null) : null;
  const ownLimits = new MemoryLimits({
    clock,
    shares: limitShares,
    ...(shared.limits && { unknownForMs: KNOWN_IN_REDIS_WITHIN_MS }),
  });
  const sharedLimits =
    limitShares && clusterStore && shared.limits
      ? new SharedLimits({
          redis: shared.limits,
          divided: ownLimits,
          shares: limitShares,
          markApart: (isApart) => clusterStore.markApart(instanceId, isApart),
          clock,
          log,
        })
      : null;
  const limits = link ? new LinkedLimits(link, clock) : (sharedLimits ?? ownLimits);
  const limiter = new Limiter(limits);
  const lists = { shipped: readShippedList(), file: context.priceFile };
  const costs = new Costs(lists, settings.upstreamBaseUrl.href);
  const admission = new Admission({
    costs,
    onBudgetEvent: (event) => {
      if (link) link.channel.send('budget', event);
      else shared.bus?.publish({ kind: 'budget', event });
    },
    limiter,
    lookup,
    ledger,
    clock,
    log,
    instanceId,
    staleLimitMs,
    allowsEscapes: settings.escapes === 'allow',
    isShared,
    onRejoin: () => {
      (sharedLimits ?? ownLimits).startAgain();
    },
    onContention: (id) => shared.notifications?.send({ kind: 'wanted', id }),
  });
  const isReady = () => readiness.isDatabaseReady;
  const retentionMs = settings.usageRetentionMs;
  const models = new ModelNames();
  const usage = new UsageStatistics({ store: stores.usage, clock, log, instanceId, models, isReady, retentionMs });
  const top = new TopReports({ usage, clock });
  const incidents = new Incidents(usage, clock);
  const cache = shared.cache && new ResponseCache({ store: shared.cache, clock, live, memory });
  const cacheManager = new CacheManager({ cache: cache && crew ? cacheOf(crew, cache) : cache, records, clock, log });
  const registry = new Registry(records, admission, clock, {
    defaultOrigin: settings.upstreamBaseUrl.origin,
    onUpstreamChanged(projectId) {
      cacheManager.dropProject(projectId);
    },
  });
  const auditLog = new AuditLog(records, clock);
  const batches = new Batches({ registry, store: records, clock });
  const clusterSync =
    clusterStore &&
    new ClusterSync({
      store: clusterStore,
      admission,
      records,
      notifications: shared.notifications,
      clock,
      log,
      instanceId,
      staleLimitMs,
      limitShares,
      onChange: (change) => {
        // The primary purges the caches of its workers itself, and precisely.
        if (link?.notifications.isOwn && change.kind === 'cache.purged') return;
        cacheManager.applyRemoteChange(change);
      },
      onLostTrack: () => {
        cacheManager.dropAll();
      },
      onRecords: () => {
        auditLog.wake();
        auditFiles.wake();
      },
    });
  const { bus } = shared;
  if (bus) {
    records.onCommitted((committed) => {
      publishChanges(bus, committed);
    });
  }
  const rateLimits = new RateLimits({
    live,
    local: localRateWindows(clock),
    shared: shared.rateWindows,
    ofInstance,
  });

  /** Nobody waits for it: while the database is unavailable, the next start records it. */
  const notePrices = () => {
    registry.recordPrices(costs.lists).catch((error: unknown) => {
      log.warn('cannot record which prices are in force', { error });
    });
  };
  const pingDatabase = async () => {
    await database.prioritySelect('SELECT 1');
  };
  let fail: (error: SettingsError) => void = () => undefined;
  const failed = new Promise<never>((_resolve, reject) => (fail = reject));
  failed.catch(() => undefined); // Not an unhandled rejection if no caller awaits it.
  const startup = new Startup({
    migrator,
    readiness,
    isShared: isServer || link !== null,
    // The primary migrates.
    autoMigrate: settings.autoMigrate && link === null,
    firstTryMs: context.databaseTimeouts.firstAttemptMs,
    checkDatabase: () => checkEncoding(database),
    async beginServing() {
      await stores.checkEncryptionKey();
      if (await ledger.enrol(instanceId, clock.now())) ownLimits.distrustLastUses();
      await clusterSync?.begin();
      sharedLimits?.begin();
      await auditFiles.begin();
      if (!link) usage.begin(); // The primary counts the usage.
    },
    onServing() {
      if (!link) notePrices();
    },
    ping: pingDatabase,
    onFatal: (error) => {
      fail(error);
    },
    clock,
    log,
  });
  const migrations: Core['migrations'] = {
    status: () => migrator.status(),
    statusForOperators: () => withStoreErrors(migrator.status()),
    up() {
      if (auditFiles.whyNoChanges !== null) return Promise.reject(new StoreUnavailable(auditFiles.whyNoChanges));
      return startup.migrateUp();
    },
  };
  return {
    readiness,
    admission,
    usage,
    top,
    incidents,
    cache,
    cacheManager,
    registry,
    auditLog,
    batches,
    rateLimits,
    costs,
    notePrices,
    limits,
    limiter,
    sharedLimits,
    clusterSync,
    startup,
    migrations,
    pingDatabase,
    failed,
  };
}

/** In a worker: the primary has checked the schema, and migrates it. */
function migratedByPrimary(link: PrimaryLink): StartupOptions['migrator'] {
  const status = () => {
    const { isDatabaseReady, pendingMigrations } = link.health;
    if (!isDatabaseReady && pendingMigrations.length === 0)
      return Promise.reject(new StoreUnavailable('the primary is not connected to the database'));
    return Promise.resolve({ current: null, pending: [...pendingMigrations], applied: [] });
  };
  return { status, up: status, refuseNewerSchema: () => Promise.resolve() };
}

/** The cache of a primary, with the counts of its workers. */
function cacheOf(crew: Crew, cache: ResponseCache): CacheManagerOptions['cache'] {
  return {
    backend: cache.backend,
    get hits() {
      return crew.figures.counters.hits;
    },
    get misses() {
      return crew.figures.counters.misses;
    },
    size: () => cache.size(),
    count: (selection) => cache.count(selection),
    purge: (selection) => cache.purge(selection),
  };
}
