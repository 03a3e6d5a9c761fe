import { command } from '../command.js';
import { flag } from '../option.js';
import { serviceOptions } from '../service.js';

/** The daemon itself: everything about it is in daemon/, loaded only here. */
export const daemonCommand = command({
  path: ['daemon'],
  alias: 'serve',
  summary: 'run the proxy in the foreground',
  examples: [
    ['daemon --env-file /etc/llmp/llmp.env', 'with settings from a file'],
    ['daemon --check', 'check the settings, and exit'],
  ],
  options: {
    ...serviceOptions,
    printConfig: flag('--print-config', 'print the settings with their sources, and exit'),
  },
  async run({ shell, options: { envFile, check = false, printConfig = false } }) {
    // A closed pipe ends every other command; the daemon goes on when nobody reads its log any more.
    if (!check && !printConfig) shell.stdout.removeAllListeners('error');
    const { runDaemon } = await import('../../daemon/main.js');
    return runDaemon({ check, printConfig, ...(envFile === undefined ? {} : { envFile }) });
  },
});
