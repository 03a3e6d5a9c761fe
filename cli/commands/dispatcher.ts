import { command } from '../command.js';
import { flag } from '../option.js';
import { serviceOptions } from '../service.js';

/** The dispatcher itself: everything about it is in daemon/dispatcher/, loaded only here. */
export const dispatcherCommand = command({
  path: ['dispatcher'],
  summary: 'forward events from Redis to a file or a service',
  examples: [
    ['dispatcher --env-file /etc/llmp/llmp.env', 'run in the foreground'],
    ['dispatcher --once', 'forward all waiting events, and exit'],
    ['dispatcher --replay-dead', 'put dead letters back into the stream, and exit'],
  ],
  options: {
    ...serviceOptions,
    once: flag('--once', 'forward all waiting events, and exit (with 69 on failure)'),
    replayDead: flag('--replay-dead', 'put dead letters back into the stream, and exit'),
  },
  async run({ shell, options: { envFile, check = false, once = false, replayDead = false } }) {
    // A closed pipe ends every other command; the dispatcher goes on when nobody reads its log any more.
    if (!check) shell.stdout.removeAllListeners('error');
    const { runDispatcher } = await import('../../daemon/dispatcher/main.js');
    return runDispatcher({ check, once, replayDead, ...(envFile === undefined ? {} : { envFile }) });
  },
});
