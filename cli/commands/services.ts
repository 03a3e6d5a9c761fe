/** The commands that run as services: `llmp daemon`, the proxy, and `llmp dispatcher`, which forwards events. Their code is in daemon/. */
import { setFlagsFromString } from 'node:v8';
import { command } from '../command.js';
import { OF_OUTPUT, OF_REQUESTS } from '../globals.js';
import { flag, text } from '../option.js';
import type { Shell } from '../shell.js';

export const envFile = text(
  '--env-file <FILE>',
  'settings file, one NAME=value per line; environment variables take precedence',
);

export const serviceOptions = {
  envFile,
  check: flag('--check', 'check the settings without connecting to anything, then exit'),
};

/** A closed pipe ends other commands, but a service continues if the reader of its log is gone. */
export const outliveReader = ({ stdout }: Shell) => stdout.removeAllListeners('error');

export const daemonCommand = command({
  path: ['daemon'],
  runsUnbundled: true,
  ignores: [...OF_REQUESTS, ...OF_OUTPUT],
  alias: 'serve',
  summary: 'run the proxy in the foreground',
  examples: [
    ['daemon --env-file /etc/llmp/llmp.env', 'run with settings from a file'],
    ['daemon --check', 'only check the settings'],
  ],
  options: {
    ...serviceOptions,
    printConfig: flag('--print-config', 'print the settings with their sources, then exit'),
  },
  async run({ shell, options: { envFile, check = false, printConfig = false } }) {
    if (!check && !printConfig) outliveReader(shell);
    // Nearly all that loading allocates survives, and V8 would enlarge the young generation for it: see daemon/process/v8.ts.
    setFlagsFromString('--semi-space-growth-factor=1');
    const { runDaemon } = await import('../../daemon/main.js');
    return runDaemon({ check, printConfig, ...(envFile === undefined ? {} : { envFile }) });
  },
});

export const dispatcherCommand = command({
  path: ['dispatcher'],
  runsUnbundled: true,
  ignores: [...OF_REQUESTS, ...OF_OUTPUT],
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
    if (!check) outliveReader(shell);
    const { runDispatcher } = await import('../../daemon/dispatcher/main.js');
    return runDispatcher({ check, once, replayDead, ...(envFile === undefined ? {} : { envFile }) });
  },
});
