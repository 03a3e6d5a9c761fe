/** The path of docs/operate/several-instances.md, from one machine with SQLite to two instances, under load. */
import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { llmp } from '../cli/captured.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../support/daemon.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Nginx, WITHOUT_NGINX } from '../support/nginx.js';
import { type DaemonProcess, launchDaemon } from '../support/process.js';
import { startProvider } from '../support/provider.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';

const WITHOUT_ANY = WITHOUT.postgres || WITHOUT_NGINX || WITHOUT_REDIS;
const CLIENTS = 4;

describe(`from one machine to several${WITHOUT_ANY}`, function () {
  this.timeout(240_000);

  it('refuses requests only during the copy, and no client changes anything', async function () {
    if (WITHOUT_ANY) this.skip();
    const provider = await startProvider();
    const [dir, sockets] = [temporaryFolder(), temporaryFolder()];
    const folders = [temporaryFolder(), temporaryFolder()] as const;
    const key = canaryEncryptionKey();
    const common = {
      MANAGEMENT_TOKEN,
      UPSTREAM_BASE_URL: provider.url,
      ENCRYPTION_KEY: key,
      MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0',
      TRUSTED_PROXIES: '127.0.0.1',
      SHUTDOWN_DELAY: '1s',
      SHUTDOWN_GRACE: '10s',
    };
    const paths = [join(sockets, '1.sock'), join(sockets, '2.sock')] as const;
    const running = new Set<DaemonProcess>();
    const start = async (index: 0 | 1, env: Record<string, string>) => {
      const audit = { AUDIT_LOG_FILE: join(folders[index], 'audit.log') };
      const daemon = launchDaemon({ ...common, LISTEN_ADDR: `unix:${paths[index]}`, ...audit, ...env });
      running.add(daemon);
      const url = await daemon.listening;
      await eventually('it is ready', async () => (await fetch(`${url}/ready`)).status === 200, 30_000);
      return { daemon, url };
    };
    const stop = async (daemon: DaemonProcess) => {
      daemon.child.kill('SIGTERM');
      expect(await daemon.exit, daemon.printed.stderr).to.equal(0);
      running.delete(daemon);
    };
    const created = async (url: string, path: string, body: object): Promise<unknown> => {
      const headers = { authorization: `Bearer ${MANAGEMENT_TOKEN}`, 'content-type': 'application/json' };
      const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
      expect(response.status).to.equal(201);
      return response.json();
    };

    const onSqlite = { DATABASE_URL: join(dir, 'llmp.db') };
    const alone = await start(0, onSqlite);
    const nginx = await Nginx.start(paths);
    const project = (await created(alone.url, '/manage/projects', {
      name: 'web',
      api_key: UPSTREAM_KEY,
    })) as WireProject;
    const token = (await created(alone.url, '/manage/tokens', { project_id: project.id })) as WireTokenCreated;

    const ended = new AbortController();
    let isPause = false;
    const counts = { served: 0, refusedInPause: 0 };
    const failures: (number | string)[] = [];
    const clients = Array.from({ length: CLIENTS }, async () => {
      while (!ended.signal.aborted) {
        const wasPause = isPause;
        const status = await fetch(`${nginx.url}/v1/models`, { headers: { authorization: `Bearer ${token.token}` } })
          .then(async (response) => (await response.arrayBuffer(), response.status))
          .catch(String);
        if (status === 200) counts.served += 1;
        else if (wasPause || isPause) counts.refusedInPause += 1;
        else failures.push(status);
        if (status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    const servedMore = async () => {
      const before = counts.served;
      await eventually('requests are served', () => counts.served >= before + 50, 30_000);
    };

    try {
      await servedMore();
      const url = await (await DatabaseServer.shared('postgres')).newDatabase();
      writeFileSync(join(dir, 'new.key'), key, { mode: 0o600 });
      writeFileSync(
        join(dir, 'new.env'),
        `DB_DRIVER=postgres\nDATABASE_URL=${url}\nENCRYPTION_KEY_FILE=${join(dir, 'new.key')}\n`,
        { mode: 0o600 },
      );
      const copy = async (...more: string[]) => {
        const args = ['migrate', 'copy', '--to-env-file', join(dir, 'new.env'), ...more];
        const { exitCode, err } = await llmp(args, { env: { ...onSqlite, ENCRYPTION_KEY: key } });
        expect(exitCode, err).to.equal(0);
      };
      await copy('--prepare');
      await servedMore();

      isPause = true;
      await stop(alone.daemon);
      await copy();
      const onPostgres = { DB_DRIVER: 'postgres', DATABASE_URL: url };
      const first = await start(0, onPostgres);
      isPause = false;
      await servedMore();

      const second = await start(1, onPostgres);
      await servedMore();

      const redis = await TestRedis.start();
      const withRedis = { ...onPostgres, REDIS_ADDR: redis.address };
      await stop(first.daemon);
      await start(0, withRedis);
      await servedMore();
      await stop(second.daemon);
      await start(1, withRedis);
      await servedMore();
      ended.abort();
      await Promise.all(clients);
      expect(failures).to.deep.equal([]);
      for (const daemon of running) await stop(daemon);
      await redis.stop();
    } finally {
      ended.abort();
      await Promise.all(clients);
      for (const daemon of running) await daemon.kill();
      await nginx.stop();
      await provider.stop();
    }
  });
});
