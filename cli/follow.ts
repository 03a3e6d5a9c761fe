/** What goes on until ^C: a stream of the daemon, asked for again whenever it ends. */
import { ApiError, type Streamed, type StreamOptions, Unreachable } from '../daemon/api/client.js';
import type { Invocation, Options } from './command.js';
import { EXIT } from './failure.js';
import type { Shell } from './shell.js';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;

/**
 * Shows each item as it comes. When the daemon ends the stream or is lost, it is asked for what came after the last one: soon at
 * first, and later with each time in vain.
 *
 * @param open asks the daemon.
 * @returns the exit code of ^C; nothing else ends it but what asking again does not mend.
 * @throws when the first try already fails, or the daemon refuses.
 */
export async function follow<T, O extends Options>(
  { shell, output, server }: Pick<Invocation<O>, 'shell' | 'output' | 'server'>,
  open: (options: StreamOptions) => AsyncIterable<Streamed<T>>,
  show: (item: T) => Promise<void>,
): Promise<number> {
  const signal = untilInterrupted(shell);
  const isOver = () => signal.aborted;
  let lastEventId: string | undefined;
  let delayMs = FIRST_DELAY_MS;
  let isFirst = true;
  for (;;) {
    try {
      for await (const { id, item } of open({ lastEventId, signal })) {
        lastEventId = id;
        delayMs = FIRST_DELAY_MS;
        await show(item);
      }
      isFirst = false; // It was there, and has ended it.
    } catch (error) {
      if (isFirst || !mayPass(error)) throw error;
    }
    if (isOver()) return EXIT.interrupted;
    output.note(`The stream of ${server} has ended; asking again`);
    // Between half of it and all of it: not all who lost it come back together.
    await shell.pause(delayMs * (0.5 + Math.random() / 2), signal);
    if (isOver()) return EXIT.interrupted;
    delayMs = Math.min(2 * delayMs, LONGEST_DELAY_MS);
  }
}

/** From now on ^C ends no more than what listens to this. */
export function untilInterrupted(shell: Pick<Shell, 'interrupted'>): AbortSignal {
  const enough = new AbortController();
  void shell.interrupted().then(() => {
    enough.abort();
  });
  return enough.signal;
}

/** Whether asking again may mend it. */
export const mayPass = (error: unknown) =>
  error instanceof Unreachable || (error instanceof ApiError && (error.status >= 500 || error.status === 429));
