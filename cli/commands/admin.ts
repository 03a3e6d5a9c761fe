import { listenAddress } from '../../config/kinds.js';
import { command, type Invocation } from '../command.js';
import { value } from '../option.js';
import { wayTo } from '../connection/connection.js';
import { serviceOptions } from '../service.js';
import { managementTokenOf } from '../connection/token-source.js';

/** The Admin UI by itself: everything about it is in daemon/admin/, loaded only here. */
export const adminCommand = command({
  path: ['admin'],
  summary: 'run the Admin UI as a separate process',
  examples: [
    ['admin --server http://10.0.0.5:8080', 'pages on http://127.0.0.1:8081/admin/ for a daemon elsewhere'],
    ['admin --server unix:/run/llmp/manage.sock --listen unix:/run/llmp/admin.sock', 'behind a web server'],
  ],
  options: {
    ...serviceOptions,
    listen: value('--listen <ADDR>', listenAddress, 'listen address (default: 127.0.0.1:8081)'),
  },
  async run(invocation) {
    const { shell, options, output } = invocation;
    const { envFile, check = false, listen = { host: '127.0.0.1', port: 8081 } } = options;
    // A closed pipe ends every other command; this one goes on when nobody reads its log any more.
    if (!check) shell.stdout.removeAllListeners('error');
    const { server, fetch } = await wayTo(invocation);
    const managementToken = await namedToken(invocation);
    if (server.isClearText) output.warn(`the management token goes to ${server.shown} in clear text; use https`);
    const { runAdmin } = await import('../../daemon/admin/main.js');
    return runAdmin({
      check,
      listen,
      server: server.url,
      shownServer: server.shown,
      fetch,
      ...(envFile !== undefined && { envFile }),
      ...(managementToken !== undefined && { managementToken }),
    });
  },
});

/** The one that the line or a context names; else it is a setting, as for the daemon. */
async function namedToken(invocation: Invocation): Promise<string | undefined> {
  const { globals, destination } = invocation;
  const { context } = destination();
  const isNamed = [
    globals.managementToken,
    globals.managementTokenFile,
    context?.tokenFile,
    context?.tokenCommand,
  ].some((it) => it !== undefined);
  return isNamed ? managementTokenOf({ ...invocation, context }) : undefined;
}
