/** The first builder: the database, the audit files, and the data that instances share in Redis. */
import { type AuditFiles, openAuditFiles } from '../store/audit-file/open.js';
import { openStores, type Stores } from '../store/open.js';
import type { ResourceStack } from '../store/resource-stack.js';
import { openSharedStores, type SharedStores } from '../store/shared.js';
import type { BuildContext } from './context.js';

export interface Storage {
  stores: Stores;
  auditFiles: AuditFiles;
  shared: SharedStores;
}

/**
 * @param opened collects each store as soon as it is open, and closes them in reverse order.
 * @throws {SettingsError} if the configuration does not fit the database or the files.
 */
export async function openStorage(context: BuildContext, opened: ResourceStack): Promise<Storage> {
  const { settings, live, clock, log, instanceId, databaseTimeouts, redisCommandMs } = context;
  const stores = opened.add(await openStores(settings, { clock, timeouts: databaseTimeouts }));
  const { records, anchors } = stores;
  const auditFiles = opened.add(await openAuditFiles({ settings, records, anchors, clock, log }));
  const deriveKey = (purpose: string) => stores.deriveKey(purpose);
  const isShared = stores.clusterStore !== null;
  const shared = opened.add(
    await openSharedStores({ settings, live, clock, log, instanceId, deriveKey, isShared, redisCommandMs }),
  );
  return { stores, auditFiles, shared };
}
