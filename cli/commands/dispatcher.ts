import { command } from '../command.js';
import { flag } from '../option.js';
import { serviceOptions } from '../service.js';

/** The dispatcher itself: everything about it is in daemon/dispatcher/, loaded only here. */
export const dispatcherCommand = command({
  path: ['dispatcher'],
  summary: 'forward events from Redis to a file or a service',
  examples: [
    ['dispatcher --env-file /etc/llmp/llmp.env', 'in the foreground, until it is told to stop'],
    ['dispatcher --once', 'forward what there is, and stop'],
    ['dispatcher --replay-dead', 'put events that were set aside back into the stream, and stop'],
  ],
  options: {
    ...serviceOptions,
    once: flag('--once', 'forward what there is, and stop; 69 when it cannot'),
    replayDead: flag('--replay-dead', 'put the dead letters back into the stream, and stop'),
  },
  async run({ shell, options: { envFile, check = false, once = false, replayDead = false } }) {
    // A closed pipe ends every other command; the dispatcher goes on when nobody reads its log any more.
    if (!check) shell.stdout.removeAllListeners('error');
    const { runDispatcher } = await import('../../daemon/dispatcher/main.js');
    return runDispatcher({ check, once, replayDead, ...(envFile === undefined ? {} : { envFile }) });
  },
});
