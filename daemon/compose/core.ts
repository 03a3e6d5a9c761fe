/** The second builder: the rules of the core upon the storage, and how the database comes up. Nothing here knows of HTTP. */
import type { SettingsError } from '../../config/settings.js';
import { Migrator } from '../../migrations/migrator.js';
import { Admission } from '../core/admission.js';
import { AuditBook } from '../core/audit-book.js';
import { ResponseCache } from '../core/cache/response-cache.js';
import { CacheUpkeep } from '../core/cache/upkeep.js';
import { Neighbours } from '../core/neighbours.js';
import { StoreUnavailable } from '../core/ports.js';
import { publishChanges } from '../core/publishing.js';
import { RateLimits } from '../core/rate-limit.js';
import { Registry } from '../core/registry.js';
import { HourlyUsage } from '../core/usage.js';
import { Readiness } from '../process/readiness.js';
import { ComingUp } from '../process/startup.js';
import { MemoryRateWindows } from '../store/memory/rate-windows.js';
import { explained } from '../store/sql/failures.js';
import type { BuildContext } from './context.js';
import type { Storage } from './storage.js';

/** The schema of the database. */
type SchemaStatus = Awaited<ReturnType<Migrator['status']>>;

export interface Core {
  readiness: Readiness;
  admission: Admission;
  usage: HourlyUsage;
  /** Null when nothing is to be cached. */
  cache: ResponseCache | null;
  cacheUpkeep: CacheUpkeep;
  registry: Registry;
  auditBook: AuditBook;
  rateLimits: RateLimits;
  /** Null where this instance has its database for itself. */
  neighbours: Neighbours | null;
  /** Has not begun. */
  comingUp: ComingUp;
  migrations: {
    /** As the database says, with its own errors. */
    status: () => Promise<SchemaStatus>;
    /** The same for operators: rejects with `StoreUnavailable` when the database does not answer. */
    explainedStatus: () => Promise<SchemaStatus>;
    /** Rejects so as well, and when the change could not be recorded. @throws {Refusal} `schema_too_new` */
    up: () => Promise<SchemaStatus>;
  };
  /** Rejects when the database does not answer. */
  pingDatabase: () => Promise<void>;
  /** Rejects when it turns out that the configuration does not fit a database that was away at the start. */
  failed: Promise<never>;
}

export function buildCore(context: BuildContext, { stores, auditFiles, shared }: Storage): Core {
  const { settings, live, log, clock, version, instanceId } = context;
  const { database, records, lookup, ledger, neighbourhood } = stores;
  const isShared = neighbourhood !== null;
  const staleLimitMs = settings.tokenStaleLimitMs;
  const migrator = new Migrator(database, version, () => clock.now());
  const readiness = new Readiness();
  records.refuseChangesWhile(() => auditFiles.whyNoChanges ?? readiness.whyNoChanges);
  const admission = new Admission({
    lookup,
    ledger,
    clock,
    log,
    instanceId,
    staleLimitMs,
    isShared,
    onContention: (tokenId) => shared.pokes?.send({ kind: 'wanted', tokenId }),
  });
  const isReady = () => readiness.isDatabaseReady;
  const retentionMs = settings.usageRetentionMs;
  const usage = new HourlyUsage({ store: stores.usage, clock, log, instanceId, isReady, retentionMs });
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
      staleLimitMs,
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
  const { bus } = shared;
  if (bus) {
    records.onCommitted((committed) => {
      publishChanges(bus, committed);
    });
  }
  const rateLimits = new RateLimits({
    live,
    local: { address: new MemoryRateWindows(clock), global: new MemoryRateWindows(clock, 1) },
    shared: shared.rateWindows,
  });

  const pingDatabase = async () => {
    await database.ask('SELECT 1');
  };
  let fail: (error: SettingsError) => void = () => undefined;
  const failed = new Promise<never>((_resolve, reject) => (fail = reject));
  failed.catch(() => undefined); // Whoever asks for it hears of it.
  const comingUp = new ComingUp({
    migrator,
    readiness,
    isShared,
    autoMigrate: settings.autoMigrate,
    firstTryMs: context.waits.firstTryMs,
    async beginServing() {
      await stores.checkEncryptionKey();
      await ledger.enrol(instanceId, clock.now());
      await neighbours?.begin();
      await auditFiles.begin();
      usage.begin();
    },
    ping: pingDatabase,
    onHopeless: (error) => {
      fail(error);
    },
    clock,
    log,
  });
  const migrations: Core['migrations'] = {
    status: () => migrator.status(),
    explainedStatus: () => explained(migrator.status()),
    up() {
      if (auditFiles.whyNoChanges !== null) return Promise.reject(new StoreUnavailable(auditFiles.whyNoChanges));
      return comingUp.migrateUp();
    },
  };
  return {
    readiness,
    admission,
    usage,
    cache,
    cacheUpkeep,
    registry,
    auditBook,
    rateLimits,
    neighbours,
    comingUp,
    migrations,
    pingDatabase,
    failed,
  };
}
