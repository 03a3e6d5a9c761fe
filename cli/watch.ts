/** Refreshes what a command shows every two seconds, until the process is interrupted. */
import { Unreachable } from '../daemon/api/client.js';
import { isRetryable } from '../daemon/api/follow-stream.js';
import type { Invocation } from './command.js';
import type { Options } from './option.js';
import { endedBy, EXIT, type Failure, failureOf } from '../console/failure.js';
import { untilInterrupted } from './follow.js';

const REFRESH_MS = 2_000;

/** One state to show, and the failure because of which it is incomplete, if any. */
export interface Snapshot<T> {
  item: T;
  failure: Failure | null;
}

export interface WatchOptions<T> {
  fetch: (signal: AbortSignal) => Promise<Snapshot<T>>;
  unreachableItem: () => T;
  show: (item: T, failure: Failure | null) => Promise<void>;
}

/**
 * Fetches and shows a snapshot every two seconds, also while the daemon is unreachable.
 *
 * @param fetch stops when its signal is aborted.
 * @param unreachableItem returns the item to show while the daemon is unreachable.
 * @param show also receives the failure, if there is one.
 * @returns the exit code of the signal, or of a failure that a retry cannot fix: a refused management token is not sent a second time.
 * @throws {Unreachable} if the daemon is unreachable at the first attempt.
 */
export async function watch<T, O extends Options>(
  { shell, server }: Pick<Invocation<O>, 'shell' | 'server'>,
  { fetch, unreachableItem, show }: WatchOptions<T>,
): Promise<number> {
  const signal = untilInterrupted(shell);
  const isInterrupted = () => signal.aborted;
  for (let isFirst = true; ; isFirst = false) {
    const { item, failure } = await fetch(signal).catch((error: unknown): Snapshot<T> => {
      if (!isInterrupted() && (isFirst || !(error instanceof Unreachable))) throw error;
      return { item: unreachableItem(), failure: failureOf(error, server) };
    });
    // ^C in a prompt does not abort `signal`; only the exit code of the failure shows it.
    if (isInterrupted() || failure?.exitCode === EXIT.interrupted) return endedBy(signal);
    await show(item, failure);
    if (failure && !isRetryable(failure.cause)) return failure.exitCode;
    await shell.pause(REFRESH_MS, signal);
    if (isInterrupted()) return endedBy(signal);
  }
}
