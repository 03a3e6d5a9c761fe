import { command } from '../command.js';
import { flag } from '../option.js';
import { serviceOptions } from '../service.js';

/** `llmp daemon`: the proxy. Its code is in daemon/ and is loaded only if it runs. */
export const daemonCommand = command({
  path: ['daemon'],
  runsUnbundled: true,
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
    // A closed pipe ends other commands, but a service continues if the reader of its log is gone.
    if (!check && !printConfig) shell.stdout.removeAllListeners('error');
    const { runDaemon } = await import('../../daemon/main.js');
    return runDaemon({ check, printConfig, ...(envFile === undefined ? {} : { envFile }) });
  },
});
