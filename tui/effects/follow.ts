/** Follows a stream of the daemon for as long as somebody looks at it. */
import { setTimeout as wait } from 'node:timers/promises';
import { type Follow, followed } from '../../daemon/api/followed.js';

export interface Following<T> extends Omit<Follow<T>, 'mayPass' | 'pause' | 'connected' | 'item'> {
  item: (item: T, id: string) => void;
  /** The daemon has begun to answer. */
  connected: () => void;
  /** Handed in by tests. */
  pause?: Follow<T>['pause'];
}

/**
 * Resolves when `signal` is aborted. A daemon that is away from the beginning is asked again like one that is lost.
 *
 * @throws what asking again does not mend, such as an `ApiError` of 401 or 404.
 */
export function followStream<T>(following: Following<T>): Promise<void> {
  return followed({ pause, ...following });
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
}
