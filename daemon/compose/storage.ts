/** The first builder: the database, the audit files, and the data that instances share in Redis. */
import { type AuditFiles, openAuditFiles } from '../store/audit-file/open.js';
import { openStores, type Stores } from '../store/open.js';
import { Crew, CrewCache } from '../store/ipc/crew.js';
import { LinkedCache, LinkedRateWindows, type PrimaryLink } from '../store/ipc/primary-link.js';
import { redisAddressFrom } from '../store/redis/address.js';
import type { ResourceStack } from '../store/resource-stack.js';
import { openSharedStores, type SharedStores } from '../store/shared.js';
import { LogThrottle } from '../core/log-throttle.js';
import type { Clock, Log, RateWindows, StoreRefused } from '../core/ports.js';
import type { BuildContext } from './context.js';

export interface Storage {
  stores: Stores;
  auditFiles: AuditFiles;
  shared: SharedStores;
  /** The workers of a primary; null in other processes. */
  crew: Crew | null;
  /** In a worker with Redis: the rate windows that all workers of this instance share. */
  ofInstance: RateWindows | null;
}

/**
 * @param opened collects each store as soon as it is open, and closes them in reverse order.
 * @throws {SettingsError} if the configuration does not fit the database or the files.
 */
export async function openStorage(context: BuildContext, opened: ResourceStack): Promise<Storage> {
  const { settings: all, live, clock, log, instanceId, databaseTimeouts, redisCommandMs, isPrimary, link } = context;
  const settings = link ? { ...all, ...ONLY_IN_THE_PRIMARY } : all;
  const role = link ? 'worker' : isPrimary ? 'primary' : 'alone';
  let crew: Crew | null = null;
  const afterChange = async () => {
    await crew?.confirmed();
  };
  const onRefused = refusalLog(clock, log);
  const onWaiting = async (isWaiting: () => boolean) => {
    await crew?.endUnresponsive(isWaiting);
  };
  const hasRedis = redisAddressFrom(settings) !== null;
  const stores = opened.add(
    await openStores(settings, {
      clock,
      timeouts: databaseTimeouts,
      role,
      hasRedis,
      onRefused,
      afterChange,
      onWaiting,
    }),
  );
  const { records, anchors } = stores;
  const auditFiles = opened.add(await openAuditFiles({ settings, records, anchors, clock, log }));
  const deriveKey = (purpose: string) => stores.deriveKey(purpose);
  const isShared = settings.database.driver !== 'sqlite' && link === null;
  const shared = opened.add(
    await openSharedStores({ settings, live, clock, log, instanceId, deriveKey, isShared, redisCommandMs }),
  );
  if (isPrimary) crew = new Crew({ outer: shared.notifications, clock, log });
  return {
    stores,
    auditFiles,
    shared: link ? linked(shared, link, clock) : crew ? managed(shared, crew) : shared,
    crew,
    ofInstance: link && shared.rateWindows && new LinkedRateWindows(link, clock),
  };
}

const REFUSED_AGAIN_MS = 60_000;

/** Logs what the database refuses: at once, and every minute while it lasts. */
function refusalLog(clock: Clock, log: Log): (refused: StoreRefused) => void {
  const throttle = new LogThrottle(clock, log, REFUSED_AGAIN_MS);
  return ({ what: reason, advice }) => {
    throttle.record('error', 'the database refuses statements of llmp', () => ({ reason, advice }), reason);
  };
}

/** Workers send what these would write to the primary. */
const ONLY_IN_THE_PRIMARY = { auditLogFile: null, auditUseLogFile: null, eventBus: 'off' } as const;

/** What a worker shares with the others on this machine. */
function linked(shared: SharedStores, link: PrimaryLink, clock: Clock): SharedStores {
  const { cache, rateWindows } = shared;
  return {
    ...shared,
    cache: cache?.backend === 'memory' ? new LinkedCache(link, cache, clock) : cache,
    rateWindows: rateWindows ?? new LinkedRateWindows(link, clock),
    notifications: link.notifications,
  };
}

/** What a primary uses of its workers. */
function managed(shared: SharedStores, crew: Crew): SharedStores {
  const { cache } = shared;
  return { ...shared, cache: cache?.backend === 'memory' ? new CrewCache(crew) : cache, notifications: crew };
}
