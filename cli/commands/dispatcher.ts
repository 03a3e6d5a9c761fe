import { command } from '../command.js';
import { flag } from '../option.js';
import { serviceOptions } from '../service.js';

/** `llmp dispatcher`: forwards events. Its code is in daemon/dispatcher/ and is loaded only if it runs. */
export const dispatcherCommand = command({
  path: ['dispatcher'],
  runsUnbundled: true,
  summary: 'forward events from Redis to a file or a service',
  examples: [
    ['dispatcher --env-file /etc/llmp/llmp.env', 'run in the foreground'],
    ['dispatcher --once', 'forward all waiting events, then exit'],
    ['dispatcher --replay-dead', 'move dead letters back to the stream, then exit'],
  ],
  options: {
    ...serviceOptions,
    once: flag('--once', 'forward all waiting events, then exit (with 69 on failure)'),
    replayDead: flag('--replay-dead', 'move dead letters back to the stream, then exit'),
  },
  async run({ shell, options: { envFile, check = false, once = false, replayDead = false } }) {
    // A closed pipe ends other commands, but a service continues if the reader of its log is gone.
    if (!check) shell.stdout.removeAllListeners('error');
    const { runDispatcher } = await import('../../daemon/dispatcher/main.js');
    return runDispatcher({ check, once, replayDead, ...(envFile === undefined ? {} : { envFile }) });
  },
});
