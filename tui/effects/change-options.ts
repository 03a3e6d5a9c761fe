/** What a change needs besides itself. */
import type { ManagementClient } from '../../daemon/api/client.js';
import type { Failure } from '../state/exchange.js';

export interface ChangeOptions {
  client: ManagementClient;
  /** Aborted to stop a bulk change, or the check of a key. */
  signal: AbortSignal;
  progress: (done: number, of: number) => void;
  failureOf: (error: unknown) => Failure;
}
