/** What is asked for again and again until ^C, to be looked at. */
import { Unreachable } from '../daemon/api/client.js';
import { mayPass } from '../daemon/api/followed.js';
import type { Invocation } from './command.js';
import type { Options } from './option.js';
import { endedBy, EXIT, type Failure, failureOf } from '../console/failure.js';
import { untilInterrupted } from './follow.js';

const REFRESH_MS = 2_000;

/** What there is to show, and why that is not all. */
export interface Found<T> {
  item: T;
  failure: Failure | null;
}

export interface Watched<T> {
  find: (signal: AbortSignal) => Promise<Found<T>>;
  away: () => T;
  show: (item: T, failure: Failure | null) => Promise<void>;
}

/**
 * Shows what is found every two seconds, also while the daemon is away.
 *
 * @param find is given up when its signal says so.
 * @param away what there is to show when nobody answers.
 * @param show is told what is wrong as well.
 * @returns the exit code of ^C, or of what asking again does not mend: a management token that is refused is not sent a second time.
 * @throws {Unreachable} when nobody answers the first time.
 */
export async function watch<T, O extends Options>(
  { shell, server }: Pick<Invocation<O>, 'shell' | 'server'>,
  { find, away, show }: Watched<T>,
): Promise<number> {
  const signal = untilInterrupted(shell);
  const isOver = () => signal.aborted;
  for (let isFirst = true; ; isFirst = false) {
    const { item, failure } = await find(signal).catch((error: unknown): Found<T> => {
      if (!isOver() && (isFirst || !(error instanceof Unreachable))) throw error;
      return { item: away(), failure: failureOf(error, server) };
    });
    // Of ^C in a prompt only its failure tells.
    if (isOver() || failure?.exitCode === EXIT.interrupted) return endedBy(signal);
    await show(item, failure);
    if (failure && !mayPass(failure.cause)) return failure.exitCode;
    await shell.pause(REFRESH_MS, signal);
    if (isOver()) return endedBy(signal);
  }
}
