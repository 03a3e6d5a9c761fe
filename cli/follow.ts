/** Follows a stream of the daemon until the process is interrupted. */
import type { StreamItem, StreamOptions } from '../daemon/api/client.js';
import { followStream, isRetryable } from '../daemon/api/follow-stream.js';
import type { Invocation } from './command.js';
import type { Options } from './option.js';
import { endedBy } from '../console/failure.js';
import type { Shell } from './shell.js';

/**
 * Shows each item when it arrives. If the stream ends or the connection breaks, it reconnects and continues after the last item.
 *
 * @param open requests the stream.
 * @returns the exit code of the signal that ended the process.
 * @throws if the first attempt fails, or the daemon refuses the request.
 */
export async function follow<T, O extends Options>(
  { shell, output, server }: Pick<Invocation<O>, 'shell' | 'output' | 'server'>,
  open: (options: StreamOptions) => AsyncIterable<StreamItem<T>>,
  show: (item: T) => Promise<void>,
): Promise<number> {
  const ending = untilInterrupted(shell);
  await followStream({
    open,
    onItem: show,
    onLost() {
      output.note(`The stream from ${server} ended; reconnecting`);
    },
    isRetryable: (error, isFirst) => !isFirst && isRetryable(error),
    signal: ending,
    pause: (ms, signal) => shell.pause(ms, signal),
  });
  return endedBy(ending);
}

/** @returns a signal that ^C, SIGTERM or SIGHUP aborts, in place of ending the process. Its reason is the name of the signal. */
export function untilInterrupted(shell: Pick<Shell, 'interrupted'>): AbortSignal {
  const controller = new AbortController();
  void shell.interrupted().then((signal) => {
    controller.abort(signal);
  });
  return controller.signal;
}
