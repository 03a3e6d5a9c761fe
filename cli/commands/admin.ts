import { listenAddress } from '../../config/kinds.js';
import { command, type Invocation } from '../command.js';
import { OF_OUTPUT } from '../globals.js';
import { value } from '../option.js';
import { fullFetchTo, quietConnectionTo } from '../connection/connection.js';
import { outliveReader, serviceOptions } from './services.js';
import { managementTokenOf } from '../connection/token-source.js';

/** `llmp admin`: the Admin UI as a separate process. Its code is in daemon/admin/ and is loaded only if it runs. */
export const adminCommand = command({
  path: ['admin'],
  runsUnbundled: true,
  ignores: ['timeout', 'reason', ...OF_OUTPUT],
  summary: 'run the Admin UI as a separate process',
  examples: [
    ['admin --server http://10.0.0.5:8080', 'serve http://127.0.0.1:8081/admin/ for a daemon on another machine'],
    [
      'admin --server unix:/run/llmp/manage.sock --listen unix:/run/llmp/admin.sock',
      'use unix sockets, for a reverse proxy',
    ],
  ],
  options: {
    ...serviceOptions,
    listen: value('--listen <ADDR>', listenAddress, 'listen address (default: 127.0.0.1:8081)'),
  },
  async run(invocation) {
    const { shell, options, output } = invocation;
    const { envFile, check = false, listen = { host: '127.0.0.1', port: 8081 } } = options;
    if (!check) outliveReader(shell);
    const { server } = quietConnectionTo(invocation);
    const managementToken = await namedToken(invocation);
    if (server.isClearText) output.warn(`the management token is sent to ${server.shown} in clear text; use https`);
    const { runAdmin } = await import('../../daemon/admin/main.js');
    return runAdmin({
      check,
      listen,
      server: server.url,
      shownServer: server.shown,
      fetch: await fullFetchTo(server),
      ...(envFile !== undefined && { envFile }),
      ...(managementToken !== undefined && { managementToken }),
    });
  },
});

/** The management token from the command line or the context. Without one, the Admin UI reads it as a setting, as the daemon does. */
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
