/** The path of docs/operate/several-instances.md, from one machine with SQLite to two instances, under load. */
import { expect } from 'chai';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { databaseAddress } from '../../config/database-url.js';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { realClock } from '../../daemon/process/clock.js';
import { openDatabase } from '../../daemon/store/databases.js';
import { llmp } from '../cli/captured.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../support/daemon.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Fleet, type Member } from '../support/fleet.js';
import { type Front, FRONTS } from '../support/fronts.js';
import { freePort } from '../support/ports.js';
import { type DaemonProcess, launchDaemon } from '../support/process.js';
import { json, startProvider } from '../support/provider.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';

const CLIENTS = 4;

for (const { name, without, instances } of FRONTS) {
  const WITHOUT_ANY = WITHOUT.postgres || without || WITHOUT_REDIS;
  describe(`from one machine to several, behind ${name}${WITHOUT_ANY}`, function () {
    this.timeout(240_000);

    it('refuses requests only during the copy, and no client changes anything', async function () {
      if (WITHOUT_ANY) this.skip();
      const provider = await startProvider();
      const dir = temporaryFolder();
      const folders = [temporaryFolder(), temporaryFolder()] as const;
      const key = canaryEncryptionKey();
      const common = { MANAGEMENT_TOKEN, UPSTREAM_BASE_URL: provider.url, ENCRYPTION_KEY: key, SHUTDOWN_GRACE: '10s' };
      const behindFront = await instances();
      const running = new Set<DaemonProcess>();
      const start = async (index: 0 | 1, env: Record<string, string>) => {
        const daemon = launchDaemon({ ...common, AUDIT_LOG_FILE: join(folders[index], 'audit.log'), ...env });
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

      // The address of the clients: first of the daemon, then of the load balancer.
      const port = await freePort();
      const onSqlite = { DATABASE_URL: join(dir, 'llmp.db') };
      const alone = await start(0, { ...onSqlite, LISTEN_ADDR: `127.0.0.1:${port}` });
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
          const url = `http://127.0.0.1:${port}/v1/models`;
          const status = await fetch(url, { headers: { authorization: `Bearer ${token.token}` } })
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

      let front: Front | undefined;
      try {
        await servedMore();
        const url = await (await DatabaseServer.shared('postgres')).newDatabase();
        const onPostgres = { DB_DRIVER: 'postgres', DATABASE_URL: url, TRUSTED_PROXIES: '127.0.0.1' };
        writeFileSync(join(dir, 'new.key'), key, { mode: 0o600 });
        const keyFile = { ENCRYPTION_KEY_FILE: join(dir, 'new.key') };
        const lines = Object.entries({ ...onPostgres, ...behindFront.env[0], ...keyFile });
        writeFileSync(join(dir, 'new.env'), lines.map((line) => `${line.join('=')}\n`).join(''), { mode: 0o600 });
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
        const begin = (index: 0 | 1, more = {}) => start(index, { ...onPostgres, ...behindFront.env[index], ...more });
        const first = await begin(0);
        const balancer = await behindFront.start(port);
        front = balancer;
        const isUsed = async (index: number) => {
          await eventually('the load balancer uses it', () => balancer.sendsTo(index));
          await servedMore();
        };
        await isUsed(0);
        isPause = false;
        await servedMore();

        const second = await begin(1);
        await isUsed(1);

        const redis = await TestRedis.start();
        for (const [index, { daemon }] of [first, second].entries()) {
          await stop(daemon);
          await begin(index as 0 | 1, { REDIS_ADDR: redis.address });
          await isUsed(index);
        }
        ended.abort();
        await Promise.all(clients);
        expect(failures, balancer.complaints).to.deep.equal([]);
        for (const daemon of running) await stop(daemon);
        await redis.stop();
      } finally {
        ended.abort();
        await Promise.all(clients);
        for (const daemon of running) await daemon.kill();
        await front?.stop();
        await provider.stop();
      }
    });
  });
}

describe(`a copy right after kill -9${WITHOUT.postgres}`, function () {
  this.timeout(240_000);
  const CAPS = [40, 150, 300, 300];
  const BUDGET = 12_000;
  const CHAT = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }], max_tokens: 11 });
  const USAGE = { prompt_tokens: 7, completion_tokens: 11, total_tokens: 18 };

  it('counts what the daemon had leased as used: caps and a budget hold, by the log of the provider', async function () {
    if (WITHOUT.postgres) this.skip();
    let billed = 0;
    const withBilling = (fleet: Fleet) => {
      fleet.provider.answer = (_req, res, { url }) => {
        if (url.startsWith('/v1/chat/')) billed += USAGE.total_tokens;
        json(res, 200, { id: 'c', object: 'chat.completion', choices: [], usage: USAGE });
      };
      return fleet;
    };
    const chat = (member: Member, { token }: WireTokenCreated) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      return fetch(`${member.url}/v1/chat/completions`, { method: 'POST', headers, body: CHAT })
        .then(async (response) => (await response.arrayBuffer(), response.status))
        .catch(() => null);
    };

    const path = join(temporaryFolder(), 'llmp.db');
    const key = canaryEncryptionKey();
    const onSqlite = { DATABASE_URL: path, ENCRYPTION_KEY: key };
    const alone = withBilling(await Fleet.start(null, { count: 1, env: onSqlite }));
    const only = alone.at(0);
    const project = await alone.createProject();
    const tokens = await Promise.all(CAPS.map((cap) => alone.createToken(project.id, cap)));
    const budgeted = await alone.createToken(project.id, 0, { budget: { tokens: BUDGET, mode: 'hard' } });
    const untilKilled = async (ask: () => Promise<number | null>) => {
      while ((await ask()) !== null);
    };
    const clients = [...tokens, ...tokens].map((token) => untilKilled(() => only.call(token)));
    clients.push(untilKilled(() => chat(only, budgeted)));
    await eventually('there is load', () => alone.reached(tokens[3]!.id) > 60, 30_000);
    await only.kill();
    await Promise.all(clients);
    expect(statSync(`${path}-wal`).size).to.be.greaterThan(0);

    const url = await (await DatabaseServer.shared('postgres')).newDatabase();
    const { exitCode, err } = await llmp(['migrate', 'copy', '--to', url], { env: onSqlite });
    expect(exitCode, err).to.equal(0);
    // As if half a minute had passed, after which the others expect no heartbeat any more.
    const database = openDatabase({ database: databaseAddress.parse(url)! }, realClock);
    await database.transact((tx) => tx.execute('UPDATE instances SET heartbeat_at = heartbeat_at - 60000'));
    await database.close();

    const env = { ENCRYPTION_KEY: key, DATABASE_URL: url, DB_DRIVER: 'postgres' };
    const several = withBilling(await Fleet.start(await DatabaseServer.shared('postgres'), { count: 2, env }));
    try {
      let uncounted = 0;
      for (const [index, token] of tokens.entries()) {
        const cap = CAPS[index]!;
        const before = await several.counted(token.id);
        uncounted += alone.reached(token.id) - before.requestCount;
        expect(before.leased, 'of the killed daemon').to.equal(0);
        expect(alone.reached(token.id)).to.be.at.most(before.requestCount);
        const answers = await Promise.all(
          Array.from({ length: cap - before.requestCount + 20 }, (_, n) => several.at(n).call(token)),
        );
        expect(answers.filter((status) => status === 200)).to.have.lengthOf(cap - before.requestCount);
        expect(alone.reached(token.id) + several.reached(token.id)).to.be.at.most(cap);
      }
      expect(uncounted).to.be.below(0);
      const before = billed;
      const exhaust = async (client: number) => {
        for (let n = client, status: number | null = 0; status !== 402; n++) {
          status = await chat(several.at(n), budgeted);
          // 429 and 503: it fits once the others have settled.
          expect(status).to.be.oneOf([200, 402, 429, 503]);
        }
      };
      await Promise.all([0, 1, 2, 3].map(exhaust));
      expect(billed).to.be.within(before + 1, BUDGET);
    } finally {
      await alone.stop();
      await several.stop();
    }
  });
});
