import type { Live, Settings } from '../../config/settings.js';
import type { MemoryLimit } from '../core/memory-limit.js';
import type { Clock, Log } from '../core/ports.js';
import type { RoleMapping } from '../oidc/role-mapping.js';
import type { HeapGuard } from '../process/heap-guard.js';
import type { PriceFile } from '../process/price-lists.js';
import type { PrimaryLink } from '../store/ipc/primary-link.js';
import type { DatabaseTimeouts } from '../store/sql/database.js';

/** Context that every builder gets. */
export interface BuildContext {
  /** Settings that are fixed while the daemon runs. */
  settings: Settings;
  /** Reloadable settings, which SIGHUP may replace. Builders do not read them; they pass this object on. */
  live: Live;
  /** `PRICES_FILE` as it was at the start; null if there is none. */
  priceFile: PriceFile | null;
  /** `OIDC_ROLES`, which SIGHUP may replace; null if people do not log in. */
  roles: { readonly current: RoleMapping | null };
  log: Log;
  clock: Clock;
  version: string;
  /** Unique among all daemons that run or ever ran. */
  instanceId: string;
  /** Creates such an ID for a worker. */
  newId: () => string;
  /** The instance ID of the primary in a worker, otherwise its own. */
  daemonId: string;
  /** How long to wait for a database server. */
  databaseTimeouts: Readonly<DatabaseTimeouts>;
  /** The timeout in ms of Redis commands that a request waits for; undefined for the default. */
  redisCommandMs: number | undefined;
  heap: HeapGuard;
  /** For what this process holds between clients and providers. */
  memory: MemoryLimit;
  /** Whether this process is the primary of several workers. */
  isPrimary: boolean;
  /** A worker's connection to its primary; null in other processes. */
  link: PrimaryLink | null;
}
