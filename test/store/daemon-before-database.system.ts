/** A daemon that starts before its database is available, or with the schema of another release. */
import { expect } from 'chai';
import { join } from 'node:path';
import { Sequelize } from 'sequelize';
import { SettingsError } from '../../config/settings.js';
import { llmp } from '../cli/captured.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { MIGRATIONS } from '../support/migrations.js';
import { type DaemonProcess, launchDaemon } from '../support/process.js';
import { Relay } from '../support/redis.js';

const BACK_MS = 5_000;
const PROBE_MS = 1_500;
const ENCRYPTION_KEY = canaryEncryptionKey();

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`a daemon that starts before its database: ${name}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let url: string;
    let isStopped = false;
    const daemons: TestDaemon[] = [];
    const processes: DaemonProcess[] = [];

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.start(kind);
    });
    beforeEach(async () => {
      url = await server.newDatabase();
    });
    afterEach(async () => {
      server.resume();
      if (isStopped) await begin();
      await Promise.all(daemons.splice(0).map((daemon) => daemon.stop()));
      for (const started of processes.splice(0)) await started.kill();
    });
    after(() => (WITHOUT[kind] ? undefined : server.remove()));

    const stop = async () => {
      isStopped = true;
      await server.stop();
    };
    const begin = async () => {
      await server.begin();
      isStopped = false;
    };
    const start = async (env: Record<string, string> = {}) => {
      const daemon = await startDaemon({ env: { DB_DRIVER: kind, DATABASE_URL: url, ENCRYPTION_KEY, ...env } });
      daemons.push(daemon);
      return daemon;
    };
    const launch = (env: Record<string, string> = {}) => {
      const AUDIT_LOG_FILE = join(temporaryFolder(), 'audit.log');
      const launched = launchDaemon({
        MANAGEMENT_TOKEN,
        DB_DRIVER: kind,
        DATABASE_URL: url,
        ENCRYPTION_KEY,
        AUDIT_LOG_FILE,
        SHUTDOWN_DELAY: '0',
        ...env,
      });
      processes.push(launched);
      return launched;
    };
    const execute = async (sql: string) => {
      const admin = new Sequelize(url, { logging: false });
      await admin.query(sql);
      await admin.close();
    };
    const isReady = async (daemon: { url: string }) => (await fetch(`${daemon.url}/ready`)).status === 200;
    const isReadySoon = async (daemon: { url: string }) => {
      const startMs = performance.now();
      await eventually('the daemon is ready', () => isReady(daemon), 2 * BACK_MS);
      expect(performance.now() - startMs).to.be.below(BACK_MS);
    };
    const expectNotReady = async (daemon: { url: string }, missing: string) => {
      const startMs = performance.now();
      expect((await fetch(`${daemon.url}/live`)).status).to.equal(200);
      const ready = await fetch(`${daemon.url}/ready`);
      expect(performance.now() - startMs).to.be.below(PROBE_MS);
      expect(ready.status).to.equal(503);
      expect(await ready.json()).to.deep.equal({ status: 'not ready', missing: [missing], degraded: [] });
    };
    const expectUnavailable = ({ status, headers }: { status: number; headers: Headers }) => {
      expect(status).to.equal(503);
      expect(headers.get('retry-after')).to.match(/^[1-9]\d*$/);
    };
    const failureOf = (daemon: TestDaemon) => daemon.daemon.failed.catch((error: unknown) => error);
    /** For a database that contains a project and its key. */
    const withProject = async () => {
      const daemon = await start();
      const { token } = await daemon.createToken((await daemon.createProject()).id);
      await daemon.stop();
      daemons.splice(0);
      return token;
    };

    for (const [what, takeAway, bringBack] of [
      ['is not running', stop, begin],
      [
        'hangs',
        () => {
          server.freeze();
        },
        () => {
          server.resume();
        },
      ],
    ] as const) {
      it(`keeps running if the database ${what}, refuses requests, and serves as soon as it is available`, async () => {
        const token = await withProject();
        await takeAway();
        const daemon = await start();
        await expectNotReady(daemon, 'database');
        expectUnavailable(await daemon.call(token));
        expectUnavailable(await daemon.manage('GET', '/manage/tokens'));
        expectUnavailable(await daemon.manage('POST', '/manage/projects', { name: 'early', api_key: 'sk-early' }));
        await bringBack();
        await isReadySoon(daemon);
        expect((await daemon.call(token)).status).to.equal(502);
        expect((await daemon.manage('GET', '/manage/projects')).body).to.have.lengthOf(1);
      });
    }

    it('does not wait for a dead connection', async () => {
      const relay = await Relay.to(server.port);
      const behindRelay = new URL(url);
      behindRelay.port = String(relay.port);
      // It waits for the migration lock.
      const admin = new Sequelize(url, { logging: false, pool: { max: 1 } });
      await admin.query(
        kind === 'postgres'
          ? 'SELECT pg_advisory_lock(5501077220)'
          : "SELECT GET_LOCK(CONCAT('llmp migrations ', DATABASE()), 10)",
      );
      const starting = start({ DATABASE_URL: behindRelay.href });
      await eventually('it is connected', () => relay.open >= 1);
      const waits =
        kind === 'postgres'
          ? "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
          : "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'";
      const observer = new Sequelize(url, { logging: false });
      await eventually('it waits for the lock', async () => (await observer.query(waits))[0].length > 0);
      relay.isSilent = true;
      await Promise.all([admin.close(), observer.close()]);
      const daemon = await starting;
      await expectNotReady(daemon, 'database');
      relay.isSilent = false;
      await isReadySoon(daemon);
      daemons.splice(0);
      await daemon.stop();
      await relay.stop();
    });

    it('stops at once if the database never became available', async () => {
      await stop();
      const daemon = await start();
      const startMs = performance.now();
      daemons.splice(0);
      await daemon.stop();
      expect(performance.now() - startMs).to.be.below(BACK_MS);
    });

    it('exits with a configuration error when the database turns out to be encrypted with another key, and changes nothing', async () => {
      await withProject();
      await stop();
      const daemon = await start({ ENCRYPTION_KEY: canaryEncryptionKey() });
      const failing = { isOver: false };
      const failure = failureOf(daemon).finally(() => (failing.isOver = true));
      await begin();
      let changed = 0;
      const trying = (async () => {
        while (!failing.isOver) {
          const { status } = await daemon.manage('POST', '/manage/projects', { name: 'sealed', api_key: 'sk-sealed' });
          if (status < 400) changed += 1;
        }
      })();
      expect(await failure).to.be.instanceOf(SettingsError);
      expect(String(await failure)).to.match(/ENCRYPTION_KEY/);
      await trying;
      expect(changed).to.equal(0);
      expect(await isReady(daemon)).to.equal(false);
    });

    it('J14 exits with a configuration error when the database turns out to have a newer schema', async () => {
      await withProject();
      await execute("UPDATE schema_migrations SET min_build = '99.1.0'");
      await stop();
      const daemon = await start();
      await begin();
      const failure = await failureOf(daemon);
      expect(failure).to.be.instanceOf(SettingsError);
      expect(String(failure)).to.match(/needs llmp 99\.1\.0 or newer; this is 0\.1\.0/);
    });

    it('exits with 78 and reports the reason', async () => {
      await withProject();
      await stop();
      const launched = launch({ ENCRYPTION_KEY: canaryEncryptionKey() });
      await expectNotReady({ url: await launched.listening }, 'database');
      await begin();
      expect(await launched.exit).to.equal(78);
      expect(launched.printed.stderr).to.match(/^llmp: ENCRYPTION_KEY: .*encrypted with another key/);
    });
  });

  describe(`the schema of another release: ${name}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let env: Record<string, string>;
    const daemons: TestDaemon[] = [];

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
    });
    beforeEach(async () => {
      env = { DB_DRIVER: kind, DATABASE_URL: await server.newDatabase(), ENCRYPTION_KEY };
    });
    afterEach(() => Promise.all(daemons.splice(0).map((daemon) => daemon.stop())));

    const start = async (more: Record<string, string> = {}) => {
      const daemon = await startDaemon({ env: { ...env, ...more } });
      daemons.push(daemon);
      return daemon;
    };
    const execute = async (sql: string) => {
      const admin = new Sequelize(env.DATABASE_URL ?? '', { logging: false });
      await admin.query(sql);
      await admin.close();
    };
    const readinessOf = async (daemon: TestDaemon) => {
      const answer = await daemon.manage('GET', '/ready');
      return { status: answer.status, missing: (answer.body as { missing: string[] }).missing };
    };
    const READY = { status: 200, missing: [] };
    const PENDING = { status: 503, missing: ['pending migrations'] };

    it('J14 is refused with 78 if it requires a newer build; its state can still be displayed', async () => {
      const serving = await start();
      await execute("UPDATE schema_migrations SET min_build = '99.1.0'");
      const failure = await start().catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(SettingsError);
      expect(String(failure)).to.match(/needs llmp 99\.1\.0 or newer; this is 0\.1\.0/);

      const direct = { env: { ...env, AUDIT_LOG_FILE: '' } };
      const overHttp = { env: { LLMP_SERVER: serving.url, MANAGEMENT_TOKEN } };
      for (const [how, situation] of [
        [' --direct', direct],
        ['', overHttp],
      ] as const) {
        const up = await llmp(`migrate up${how}`, situation);
        expect({ exitCode: up.exitCode, out: up.out }, how).to.deep.equal({ exitCode: 5, out: '' });
        expect(up.err).to.include('99.1.0').and.to.include('0.1.0');
        const status = await llmp(`migrate status --json${how}`, situation);
        expect(status.exitCode).to.equal(0);
        expect(status.out).to.include(MIGRATIONS[0]);
      }
    });

    it('J15 is migrated at startup, or waits for an operator to migrate it', async () => {
      const waiting = await start({ AUTO_MIGRATE: 'false' });
      expect(await readinessOf(waiting)).to.deep.equal(PENDING);
      expect((await waiting.call(`sk-wt-${'0'.repeat(49)}`)).status).to.equal(503);
      expect((await llmp('migrate up', { env: { LLMP_SERVER: waiting.url, MANAGEMENT_TOKEN } })).exitCode).to.equal(0);
      expect(await readinessOf(waiting)).to.deep.equal(READY);
      const next = await start();
      expect(await readinessOf(next)).to.deep.equal(READY);
    });

    for (const [what, migrate] of [
      ['another instance', () => start()],
      ['llmp migrate up --direct', () => llmp('migrate up --direct', { env: { ...env, AUDIT_LOG_FILE: '' } })],
    ] as const) {
      it(`J15 is waited for until ${what} has migrated it`, async () => {
        const waiting = [await start({ AUTO_MIGRATE: 'false' }), await start({ AUTO_MIGRATE: 'false' })];
        for (const daemon of waiting) expect(await readinessOf(daemon)).to.deep.equal(PENDING);
        await migrate();
        const startMs = performance.now();
        for (const daemon of waiting) {
          await eventually('it is ready', async () => (await readinessOf(daemon)).status === 200);
          expect((await daemon.createProject()).is_active).to.equal(true);
        }
        expect(performance.now() - startMs).to.be.below(BACK_MS);
      });
    }
  });
}
