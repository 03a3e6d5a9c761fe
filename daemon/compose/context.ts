import type { Settings } from '../../config/settings.js';
import type { Clock, Log } from '../core/ports.js';

/** What every builder is given. */
export interface BuildContext {
  settings: Settings;
  /** Those in force: SIGHUP may put others in their place. */
  live: { readonly current: Settings };
  log: Log;
  clock: Clock;
  version: string;
  /** Which daemon this is, among all that run or ever ran. */
  instanceId: string;
}
