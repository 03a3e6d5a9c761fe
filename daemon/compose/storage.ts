/** The first builder: the database, the audit files, and what instances share in Redis. */
import { type AuditFiles, openAuditFiles } from '../store/audit-file/open.js';
import { openStores, type Stores } from '../store/open.js';
import type { Opened } from '../store/opened.js';
import { openSharedStores, type SharedStores } from '../store/shared.js';
import type { BuildContext } from './context.js';

export interface Storage {
  stores: Stores;
  auditFiles: AuditFiles;
  shared: SharedStores;
}

/**
 * @param opened gets each as soon as it is open. Whoever closes it lets go of them in the opposite order.
 * @throws {SettingsError} when the configuration does not fit what is there.
 */
export async function openStorage(context: BuildContext, opened: Opened): Promise<Storage> {
  const { settings, live, clock, log, instanceId, waits, redisCommandMs } = context;
  const stores = opened.add(await openStores(settings, { clock, waits }));
  const { records, anchors } = stores;
  const auditFiles = opened.add(await openAuditFiles({ settings, records, anchors, clock, log }));
  const deriveKey = (purpose: string) => stores.deriveKey(purpose);
  const isShared = stores.neighbourhood !== null;
  const shared = opened.add(
    await openSharedStores({ settings, live, clock, log, instanceId, deriveKey, isShared, redisCommandMs }),
  );
  return { stores, auditFiles, shared };
}
