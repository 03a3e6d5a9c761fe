/** What is asked for again and again until ^C, to be looked at. */
import { Unreachable } from '../daemon/api/client.js';
import type { Invocation, Options } from './command.js';
import { EXIT, type Failure, failureOf } from './failure.js';
import { mayPass } from './follow.js';
import type { View } from './table.js';

const REFRESH_MS = 2_000;

/** What there is to show, and why that is not all. */
export interface Found<T> {
  item: T;
  failure: Failure | null;
}

/**
 * Shows what is found every two seconds, also while the daemon is away.
 *
 * @param find is given up when its signal says so.
 * @param away what to show when nobody answers.
 * @returns the exit code of ^C, or of what asking again does not mend: a management token that is refused is not sent a second time.
 * @throws {Unreachable} when nobody answers the first time.
 */
export async function watch<T, O extends Options>(
  { shell, output, server }: Pick<Invocation<O>, 'shell' | 'output' | 'server'>,
  { find, away, view }: { find: (signal: AbortSignal) => Promise<Found<T>>; away: T; view: View<T> },
): Promise<number> {
  const enough = new AbortController();
  const { signal } = enough;
  void shell.interrupted().then(() => {
    enough.abort();
  });
  const isOver = () => signal.aborted;
  for (let isFirst = true; ; isFirst = false) {
    const { item, failure } = await find(signal).catch((error: unknown): Found<T> => {
      if (!isOver() && (isFirst || !(error instanceof Unreachable))) throw error;
      return { item: away, failure: failureOf(error, server) };
    });
    // Of ^C in a prompt only its failure tells.
    if (isOver() || failure?.exitCode === EXIT.interrupted) return EXIT.interrupted;
    await output.again(item, view, failure);
    if (failure && !mayPass(failure.cause)) return failure.exitCode;
    await shell.pause(REFRESH_MS, signal);
    if (isOver()) return EXIT.interrupted;
  }
}
