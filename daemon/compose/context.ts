import type { Live, Settings } from '../../config/settings.js';
import type { Clock, Log } from '../core/ports.js';
import type { DatabaseWaits } from '../store/sql/waits.js';

/** What every builder is given. */
export interface BuildContext {
  /** For as long as the daemon runs. */
  settings: Settings;
  /** Those in force: SIGHUP may put others in their place. A builder reads none of them, but hands this on. */
  live: Live;
  log: Log;
  clock: Clock;
  version: string;
  /** Which daemon this is, among all that run or ever ran. */
  instanceId: string;
  /** How long a database server is waited for. */
  waits: Readonly<DatabaseWaits>;
  /** How long a command to Redis may take while a request waits for it, in ms; as shipped when undefined. */
  redisCommandMs: number | undefined;
}
