/** Follows a stream of the daemon until it is aborted. */
import { setTimeout as wait } from 'node:timers/promises';
import { type FollowOptions, followStream } from '../../daemon/api/follow-stream.js';

export interface StreamOptions<T> extends Omit<FollowOptions<T>, 'isRetryable' | 'pause' | 'onConnected' | 'onItem'> {
  onItem: (item: T, id: string) => void;
  /** Called when the response starts. */
  onConnected: () => void;
  /** Injected by tests. */
  pause?: FollowOptions<T>['pause'];
}

/**
 * Resolves when `signal` is aborted. Retries when the daemon is unreachable, at the start and later.
 *
 * @throws errors that a retry cannot fix, such as an `ApiError` of 401 or 404.
 */
export function followUntilAborted<T>(options: StreamOptions<T>): Promise<void> {
  return followStream({ pause, ...options });
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
}
