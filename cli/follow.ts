/** What goes on until ^C: a stream of the daemon, asked for again whenever it ends. */
import type { Streamed, StreamOptions } from '../daemon/api/client.js';
import { followed, mayPass } from '../daemon/api/followed.js';
import type { Invocation } from './command.js';
import type { Options } from './option.js';
import { endedBy } from '../console/failure.js';
import type { Shell } from './shell.js';

/**
 * Shows each item as it comes, and asks again for what comes after the last one whenever the daemon ends the stream or is lost.
 *
 * @param open asks the daemon.
 * @returns the exit code of the signal that ended it; nothing else does but what asking again does not mend.
 * @throws when the first try already fails, or the daemon refuses.
 */
export async function follow<T, O extends Options>(
  { shell, output, server }: Pick<Invocation<O>, 'shell' | 'output' | 'server'>,
  open: (options: StreamOptions) => AsyncIterable<Streamed<T>>,
  show: (item: T) => Promise<void>,
): Promise<number> {
  const ending = untilInterrupted(shell);
  await followed({
    open,
    item: show,
    lost() {
      output.note(`The stream of ${server} has ended; asking again`);
    },
    mayPass: (error, isFirst) => !isFirst && mayPass(error),
    signal: ending,
    pause: (ms, signal) => shell.pause(ms, signal),
  });
  return endedBy(ending);
}

/** From now on ^C ends no more than what listens to this. Its reason is the name of the signal. */
export function untilInterrupted(shell: Pick<Shell, 'interrupted'>): AbortSignal {
  const enough = new AbortController();
  void shell.interrupted().then((signal) => {
    enough.abort(signal);
  });
  return enough.signal;
}
