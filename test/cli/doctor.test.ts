import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { exportJWK } from 'jose';
import { Sequelize } from 'sequelize';
import { type Finding, limitFor, runDoctor } from '../../daemon/ops/doctor.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { growthFindings } from '../../daemon/ops/doctor-growth.js';
import { schemaFinding } from '../../daemon/ops/doctor-database.js';
import { canary, canaryEncryptionKey } from '../support/canaries.js';
import { selfSigned } from '../support/certificates.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { createTrust } from '../support/exchanges.js';
import { startIssuer } from '../support/issuer.js';
import { signingKey } from '../support/jwt-issuer.js';
import { spawnDaemon } from '../support/process.js';
import { ConnectProxy } from '../support/connect-proxy.js';
import { freePort } from '../support/ports.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { type Captured, llmp } from './captured.js';
import { answerJson, responds, type StandIn, startStandIn } from './stand-in.js';

interface Diagnosis extends Captured {
  findings: Finding[];
  /** All findings of a check as one text. */
  of: (check: string) => string;
}

/** Every Node.js that the tests run with gets security fixes at this time. */
const SUPPORTED = Date.parse('2026-04-30T12:00:00Z');

describe('llmp doctor', () => {
  let dir: string;
  let upstream: StandIn;
  let env: NodeJS.ProcessEnv;
  let umask: number;

  beforeEach(async () => {
    umask = process.umask(0o077); // As the process has it.
    dir = temporaryFolder();
    upstream = await startStandIn();
    env = {
      MANAGEMENT_TOKEN,
      DATABASE_URL: join(dir, 'llmp.db'),
      AUDIT_LOG_FILE: join(dir, 'audit.log'),
      LISTEN_ADDR: `127.0.0.1:${await freePort()}`,
      UPSTREAM_BASE_URL: upstream.url,
      SYSTEMD_UNIT_PATH: dir,
      LC_ALL: 'C.UTF-8',
    };
  });
  afterEach(async () => {
    process.umask(umask);
    await upstream.stop();
  });

  async function diagnosed(more: Record<string, string> = {}, args = '', nowMs = SUPPORTED): Promise<Diagnosis> {
    const captured = await llmp(`doctor --json ${args}`.trim(), { env: { ...env, ...more }, nowMs });
    const { checks } = JSON.parse(captured.out) as { ok: boolean; checks: Finding[] };
    const of = (check: string) =>
      checks
        .filter((each) => each.check === check)
        .map(({ state, evidence, advice }) => `${state}: ${evidence} > ${advice ?? ''}`)
        .join('\n');
    return { ...captured, findings: checks, of };
  }

  describe('before a daemon ever started', () => {
    it('finds no problems with valid settings, and creates nothing', async () => {
      const { exitCode, findings, of } = await diagnosed();
      expect(findings.filter(({ state }) => state === 'failed' || state === 'warning')).to.deep.equal([]);
      expect(exitCode).to.equal(0);
      expect(of('database')).to.contain('the first start creates it');
      expect(of('listening')).to.contain('is free');
      expect(of('upstream')).to.contain('responded with 200');
      expect(readdirSync(dir)).to.deep.equal([]);
    });

    it('asks the provider for its models, without a key', async () => {
      await diagnosed();
      expect(upstream.asked.map(({ method, url, headers }) => [method, url, headers.authorization])).to.deep.equal([
        ['GET', '/v1/models', undefined],
      ]);
    });

    it('is a table on a terminal, with advice below the evidence, and lines for scripts otherwise', async () => {
      const more = { ...env, UPSTREAM_BASE_URL: `http://127.0.0.1:${await freePort()}`, TERM: 'xterm' };
      const shown = await llmp('doctor --no-color', { env: more, terminal: 100 });
      expect(shown.exitCode).to.equal(9);
      expect(shown.out).to.match(/^STATE +CHECK +EVIDENCE\n/);
      expect(shown.out).to.match(/^✗ failed +upstream .*ECONNREFUSED\n +> Test the connection: nc -vz 127/m);
      expect(shown.out).to.match(/^● ok +terminal +TERM=xterm, 16 colors, UTF-8/m);
      expect(shown.err).to.match(/^1 failed, /m);
      const piped = await llmp('doctor', { env: more });
      expect(piped.out).to.match(/^upstream\tfailed\t.*ECONNREFUSED\tTest the connection: nc -vz 127\.0\.0\.1 \d+$/m);
    });

    it('prints one JSON line per check with -o jsonl', async () => {
      const { out } = await llmp('doctor -o jsonl', { env });
      const lines = out.trimEnd().split('\n');
      expect(lines.map((line) => Object.keys(JSON.parse(line) as object))).to.deep.equal(
        lines.map(() => ['check', 'state', 'evidence', 'advice']),
      );
    });
  });

  describe('of the settings', () => {
    it('reports all problems and warnings; only problems are failures', async () => {
      const bad = await diagnosed({ LOG_LEVEL: 'loud', MAX_REQUEST_SIZE: '50', LLMP_SERVR: 'x' });
      expect(bad.exitCode).to.equal(9);
      expect(bad.of('settings'))
        .to.contain('failed: LOG_LEVEL must be one of')
        .and.contain('failed: MAX_REQUEST_SIZE must be')
        .and.contain('warning: LLMP_SERVR in the environment is not a setting; did you mean LLMP_SERVER?')
        .and.contain('llmp config validate');
      expect(bad.of('upstream'), 'what is not wrong is looked at').to.contain('ok:');
      const unwise = await diagnosed({ MANAGEMENT_TOKEN: 'short' });
      expect(unwise.of('settings')).to.contain('warning: MANAGEMENT_TOKEN is shorter');
      expect(unwise.exitCode).to.equal(0);
    });

    it('reports their source, and fails for a world-readable env file', async () => {
      const file = join(dir, 'llmp.env');
      writeFileSync(file, `MANAGEMENT_TOKEN=${MANAGEMENT_TOKEN}\n`, { mode: 0o600 });
      delete env.MANAGEMENT_TOKEN;
      expect((await diagnosed({}, `--env-file ${file}`)).of('settings')).to.contain(`1 from env file ${file}`);
      chmodSync(file, 0o644);
      const { exitCode, of } = await diagnosed({}, `--env-file ${file}`);
      expect(of('files')).to.equal(
        `failed: the env file ${file} has mode 0644: every user of this machine can read it > chmod 600 ${file}`,
      );
      expect(exitCode).to.equal(9);
    });

    it('fails for a token file that others can read, but accepts a group-readable env file without secrets', async () => {
      const [file, token] = [join(dir, 'llmp.env'), join(dir, 'management-token')];
      writeFileSync(file, `MANAGEMENT_TOKEN_FILE=${token}\n`);
      chmodSync(file, 0o640);
      writeFileSync(token, MANAGEMENT_TOKEN);
      chmodSync(token, 0o604);
      delete env.MANAGEMENT_TOKEN;
      const { of } = await diagnosed({}, `--env-file ${file}`);
      expect(of('files')).to.match(/^ok: the env file .*0640 > $/m);
      expect(of('files')).to.contain(`chmod 600 ${token}`);
    });

    it('fails for a missing env file, and runs the other checks', async () => {
      const { exitCode, of } = await diagnosed({}, '--env-file /nowhere/llmp.env');
      expect(exitCode).to.equal(9);
      expect(of('settings')).to.contain('cannot read /nowhere/llmp.env: ENOENT');
      expect(of('node')).to.contain('ok:');
      expect(of('database'), 'the database is unknown').to.match(/^skipped: .*settings are invalid/);
    });

    it('fails for an audit file that cannot be created', async () => {
      writeFileSync(join(dir, 'file'), '');
      const { of } = await diagnosed({ AUDIT_LOG_FILE: join(dir, 'file', 'audit.log') });
      expect(of('audit')).to.match(
        /^failed: .*file cannot be written by this user > Grant write permission. Check with: ls -ld/,
      );
    });
  });

  describe('of a database of SQLite', () => {
    let daemon: TestDaemon;

    async function used(settings: Record<string, string> = {}): Promise<void> {
      daemon = await startDaemon({ dir, env: settings });
      if (settings.AUTO_MIGRATE !== 'false') await daemon.createProject();
      await daemon.stop();
    }

    /** Contents and metadata of all files in the folder, except the index of the write-ahead log, which all readers share. */
    const state = () =>
      readdirSync(dir)
        .filter((name) => !name.endsWith('-shm'))
        .map((name) => {
          const path = join(dir, name);
          const { mode, mtimeMs, ino } = statSync(path);
          return [name, mode, mtimeMs, ino, createHash('sha256').update(readFileSync(path)).digest('hex')];
        });

    it('decrypts the stored keys, and changes nothing', async () => {
      await used();
      const before = state();
      const { exitCode, of } = await diagnosed();
      expect(of('database')).to.match(/SQLite 3\.\d+.*not in use/);
      expect(of('schema')).to.match(/^ok: 0001\S*, no pending migrations/);
      expect(of('encryption key')).to.contain('decrypts the upstream keys of 1 project');
      expect(of('disk') + of('audit')).to.match(/GB free.*\n?.*GB free/s);
      expect(exitCode).to.equal(0);
      expect(state()).to.deep.equal(before);
    });

    it('accepts that a running llmp uses it', async () => {
      daemon = await startDaemon({ dir });
      await daemon.createProject();
      const { of, exitCode } = await diagnosed();
      expect(of('database')).to.contain('in use by a running llmp');
      expect(of('encryption key')).to.contain('decrypts the upstream keys of 1 project');
      expect(exitCode).to.equal(0);
      expect((await daemon.manage('GET', '/manage/projects')).status).to.equal(200);
      await daemon.stop();
    });

    it('says when it is time to move to a database server', async () => {
      daemon = await startDaemon({ dir });
      await daemon.createProject();
      expect((await diagnosed()).of('growth')).to.equal('');
      const writer = new SqliteDatabase(daemon.databasePath);
      const ended = new AbortController();
      const writing = writer.transact(() => once(ended.signal, 'abort'));
      const { of, exitCode } = await diagnosed();
      ended.abort();
      await writing;
      await writer.close();
      await daemon.stop();
      expect(of('growth')).to.match(/^warning: SQLite is writing 100 % of the time.* > Move to .*llmp migrate copy/);
      expect(exitCode).to.equal(0);
      const enough = { writing: 0.4, size: 2 ** 30, workers: 3, cores: 4, load: 4 };
      expect(growthFindings(enough)).to.deep.equal([]);
      const reasons = growthFindings({ writing: 0.5, size: 2 ** 35, workers: 4, cores: 4, load: 3.7 });
      expect(reasons.map(({ evidence }) => evidence.slice(0, 12))).to.deep.equal([
        'SQLite is wr',
        'the database',
        'WORKERS=4 us',
      ]);
    });

    it('changes no files of a killed daemon', async () => {
      const killed = await spawnDaemon({ MANAGEMENT_TOKEN, DATABASE_URL: join(dir, 'llmp.db') });
      await killed.kill();
      const before = state();
      const { of, exitCode } = await diagnosed();
      expect(of('database')).to.contain('not in use');
      expect(of('schema')).to.match(/^ok: 0001/);
      expect(exitCode).to.equal(0);
      expect(state()).to.deep.equal(before);
    });

    it('fails when the key file is wrong or missing', async () => {
      await used();
      const key = join(dir, 'llmp.db.key');
      writeFileSync(key, `${canaryEncryptionKey()}\n`);
      const wrong = await diagnosed();
      expect(wrong.of('encryption key')).to.match(/^failed: cannot decrypt the upstream keys of 1 of 1 project/);
      expect(wrong.exitCode).to.equal(9);
      rmSync(key);
      const gone = await diagnosed();
      expect(gone.of('encryption key')).to.match(/^failed: .*llmp\.db\.key: ENOENT > Restore/);
      expect(existsSync(key)).to.equal(false);
    });

    it('warns while upstream keys are encrypted with the previous key', async () => {
      const [before, after] = [canaryEncryptionKey(), canaryEncryptionKey()];
      await used({ ENCRYPTION_KEY: before });
      const { of } = await diagnosed({ ENCRYPTION_KEY: after, ENCRYPTION_KEY_PREVIOUS: before });
      expect(of('encryption key')).to.match(/^warning: .*> llmp migrate rekey/);
    });

    it('fails for pending migrations that wait for an operator', async () => {
      await used({ AUTO_MIGRATE: 'false' });
      const { of, exitCode } = await diagnosed({ AUTO_MIGRATE: 'false' });
      expect(of('schema')).to.match(/^failed: empty, and AUTO_MIGRATE=false: \d+ pending.*> llmp migrate up --direct/);
      expect(exitCode).to.equal(9);
      expect((await diagnosed()).of('schema'), 'with AUTO_MIGRATE').to.match(/^ok: empty/);
    });

    /** Changes the list of applied migrations. */
    async function migrated(sql: string): Promise<void> {
      const database = new Sequelize({ dialect: 'sqlite', storage: daemon.databasePath, logging: false });
      await database.query(sql);
      await database.close();
    }

    // There is only one migration so far.
    it('says that the schema is older than llmp', () => {
      const status = { current: '0001-first-schema', pending: ['0002-more'], newer: [] };
      const [automatic, waiting] = [true, false].map((isAutomatic) =>
        schemaFinding(status, isAutomatic, 'llmp migrate up'),
      );
      const missing = '1 pending migration: 0002-more';
      expect(automatic).to.deep.include({ state: 'warning', advice: 'llmp migrate up' });
      expect(automatic?.evidence).to.match(
        new RegExp(`^older than llmp [\\d.]+, whose next start migrates it: ${missing}`),
      );
      expect(waiting).to.deep.include({ state: 'failed', advice: 'llmp migrate up' });
      expect(waiting?.evidence).to.match(new RegExp(`^older than llmp [\\d.]+, and AUTO_MIGRATE=false: ${missing}`));
    });

    it('says that the schema is newer than llmp, if llmp can use it', async () => {
      await used();
      await migrated("INSERT INTO schema_migrations VALUES ('9999-later', '0.0.1', 0)");
      const { of, exitCode } = await diagnosed();
      expect(of('schema')).to.match(/^ok: newer than llmp [\d.]+, which can use it: 9999-later/);
      expect(exitCode).to.equal(0);
    });

    it('fails for a schema that needs a newer llmp', async () => {
      await used();
      await migrated("INSERT INTO schema_migrations VALUES ('9999-later', '99.0.0', 0)");
      const { of, exitCode } = await diagnosed();
      expect(of('schema')).to.match(/^failed: .*9999-later\) needs llmp 99\.0\.0 or newer/);
      expect(exitCode).to.equal(9);
    });

    it('fails for a file that is not a database, and for a world-readable one', async () => {
      writeFileSync(join(dir, 'llmp.db'), 'this is a diary, and not a database', { mode: 0o600 });
      expect((await diagnosed()).of('database')).to.match(/failed: .*(?:not a database|NOTADB)/);
      rmSync(join(dir, 'llmp.db'));
      await used();
      chmodSync(join(dir, 'llmp.db'), 0o644);
      expect((await diagnosed()).of('database')).to.match(/failed: .*0644.*> chmod 600/);
    });
  });

  describe(`of a database on a server${WITHOUT.postgres}`, () => {
    let server: DatabaseServer | undefined;
    before(async function () {
      this.timeout(60_000);
      if (WITHOUT.postgres) this.skip();
      server = await DatabaseServer.shared('postgres');
    });

    it('reports its version, and compares clocks; an empty database is valid', async () => {
      const DATABASE_URL = await server!.newDatabase();
      const { of, exitCode } = await diagnosed({
        DB_DRIVER: 'postgres',
        DATABASE_URL,
        ENCRYPTION_KEY: canaryEncryptionKey(),
      });
      expect(of('database')).to.match(/^ok: PostgreSQL \d+.* at 127\.0\.0\.1:\d+, responded in/);
      expect(of('schema')).to.match(/^ok: empty/);
      expect(of('clock, database')).to.match(/^ok: within/);
      expect(exitCode).to.equal(0);
    });

    it('fails when it is unreachable, and shows no password', async () => {
      const password = canary('password');
      const DATABASE_URL = `postgres://llmp:${password}@127.0.0.1:${await freePort()}/llmp`;
      const diagnosis = await diagnosed({ DB_DRIVER: 'postgres', DATABASE_URL, ENCRYPTION_KEY: canaryEncryptionKey() });
      expect(diagnosis.of('database')).to.match(
        /^failed: .*ECONNREFUSED.* > Test the connection: psql -h 127\.0\.0\.1 -p \d+ -U llmp -d llmp/,
      );
      expect(diagnosis.out).not.to.contain(password);
    });
  });

  describe(`of Redis${WITHOUT_REDIS}`, () => {
    let redis: TestRedis | undefined;
    before(async function () {
      if (WITHOUT_REDIS) this.skip();
      redis = await TestRedis.start('--maxmemory', '64mb', '--maxmemory-policy', 'allkeys-lru');
    });
    after(() => redis?.stop());

    it('warns about a policy that may evict events, and about events that a restart loses', async () => {
      const { of, exitCode } = await diagnosed({ REDIS_ADDR: redis!.address });
      expect(of('redis')).to.match(/^ok: 127\.0\.0\.1:\d+: Redis \d/);
      expect(of('redis memory')).to.match(/^warning: maxmemory 64 MiB, allkeys-lru: may evict .*volatile-lru/);
      expect(of('redis persistence')).to.match(/^warning: neither .*appendonly yes/);
      expect(of('clock, Redis')).to.match(/^ok:/);
      expect(exitCode, 'warnings are no failure').to.equal(0);
      await redis!.client.config('SET', 'appendonly', 'yes', 'maxmemory-policy', 'volatile-lru');
      const mended = await diagnosed({ REDIS_ADDR: redis!.address });
      expect(mended.of('redis memory') + mended.of('redis persistence')).not.to.contain('warning');
    });

    it('fails when it is unreachable', async () => {
      const { of, exitCode } = await diagnosed({ REDIS_ADDR: `127.0.0.1:${await freePort()}` });
      expect(of('redis')).to.match(/^failed: .*ECONNREFUSED.*> Test the connection: redis-cli -h 127/);
      expect(exitCode).to.equal(9);
    });
  });

  describe('of the upstream', () => {
    it('fails for a name that does not resolve', async () => {
      const { of } = await diagnosed({ UPSTREAM_BASE_URL: 'https://nowhere.invalid' });
      expect(of('upstream')).to.match(
        /^failed: cannot resolve nowhere\.invalid: \w+ > Check UPSTREAM_BASE_URL and DNS: getent hosts/,
      );
    });

    it('findings-3 B15: reaches it through UPSTREAM_PROXY, which resolves its name', async () => {
      const proxy = await ConnectProxy.start();
      const password = canary('password');
      const base = upstream.url.replace('127.0.0.1', 'provider.test');
      const settings = { UPSTREAM_BASE_URL: base, UPSTREAM_PROXY: `http://me:${password}@${proxy.address}` };
      const good = await diagnosed(settings);
      expect(good.of('upstream')).to.match(
        /through the proxy 127\.0\.0\.1:\d+\) connected in \d+ ms, responded with 200/,
      );
      expect(proxy.asked.map(({ authority }) => authority)).to.deep.equal([new URL(base).host]);
      proxy.response = 'HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n';
      const refused = await diagnosed(settings);
      proxy.stop();
      expect(refused.of('upstream')).to.match(
        /^failed: the proxy 127.* responded with 407 to CONNECT provider\.test:\d+ > Check/,
      );
      expect(refused.exitCode).to.equal(9);
      const gone = await diagnosed(settings);
      expect(gone.of('upstream')).to.match(/^failed: no tunnel through the proxy 127\.0\.0\.1:\d+: .*ECONNREFUSED/);
    });

    it('fails for a self-signed certificate, and sends nothing', async () => {
      let requests = 0;
      const server = createTlsServer(selfSigned({ name: 'localhost' }), (_req, res) => {
        requests++;
        res.end();
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const { of, exitCode } = await diagnosed({ UPSTREAM_BASE_URL: `https://localhost:${port}` });
      server.close();
      expect(of('upstream certificate')).to.match(/^failed: TLSv1\.3, valid until .*SELF_SIGNED.*NODE_EXTRA_CA_CERTS/);
      expect({ exitCode, requests }).to.deep.equal({ exitCode: 9, requests: 0 });
    });

    it('reports an upstream URL that is not an API', async () => {
      upstream.answer = responds({}, 404);
      const { of, exitCode } = await diagnosed();
      expect(of('upstream')).to.match(/^failed: .*responded with 404 to GET \/v1\/models.*UPSTREAM_BASE_URL/);
      expect(exitCode).to.equal(9);
    });

    it('warns about a clock that is minutes off', async () => {
      upstream.answer = responds({}, 401, { date: new Date(Date.now() + 600_000).toUTCString() });
      const { of, exitCode } = await diagnosed();
      expect(of('upstream'), 'any answer counts').to.contain('responded with 401');
      expect(of('clock, upstream')).to.match(/^warning: (?:59\d|600) s ahead of this machine's/);
      expect(exitCode).to.equal(0);
    });
  });

  describe('of the address to listen on', () => {
    let other: Server | null = null;
    afterEach(() => {
      other?.close();
      other = null;
    });

    it('fails when another program uses it', async () => {
      other = createServer((socket) => {
        socket.on('error', () => undefined).end('SSH-2.0-not-llmp\r\n');
      }).listen(0, '127.0.0.1');
      await once(other, 'listening');
      const { port } = other.address() as AddressInfo;
      const { of, exitCode } = await diagnosed({ LISTEN_ADDR: `127.0.0.1:${port}` });
      expect(of('listening')).to.match(
        /^failed: 127\.0\.0\.1:\d+ is in use by another program > Stop that program, or change LISTEN_ADDR\. Find it with: ss -ltnp/,
      );
      expect(exitCode).to.equal(9);
    });

    it('fails for an address that this machine does not have', async () => {
      const { of } = await diagnosed({ LISTEN_ADDR: '192.0.2.1:8080' });
      expect(of('listening')).to.match(/^failed: cannot listen on 192\.0\.2\.1:8080: EADDRNOTAVAIL|no response/);
    });

    it('passes when a ready llmp of this release uses it', async () => {
      const daemon = await startDaemon({ dir });
      const { of, exitCode } = await diagnosed({ LISTEN_ADDR: new URL(daemon.url).host });
      await daemon.stop();
      expect(of('listening')).to.contain('in use by a running llmp, which is ready');
      expect(of('daemon')).to.match(/^ok: http:.* is ready/);
      expect(of('daemon version')).to.match(/^ok: 0\.1\.0, the same as this program/);
      expect(exitCode).to.equal(0);
    });

    it('fails when a llmp with another management token uses it', async () => {
      const daemon = await startDaemon({ dir });
      const settings = { LISTEN_ADDR: new URL(daemon.url).host, MANAGEMENT_TOKEN: canary('management') };
      const { of, exitCode } = await diagnosed(settings);
      await daemon.stop();
      expect(of('daemon version')).to.match(
        /^failed: .*> Another daemon may use this address: set another LISTEN_ADDR/,
      );
      expect(exitCode).to.equal(9);
    });

    it('treats a stale socket as free', async () => {
      expect((await diagnosed({ LISTEN_ADDR: `unix:${join(dir, 'llmp.sock')}` })).of('listening')).to.contain(
        'is free',
      );
      writeFileSync(join(dir, 'file'), '');
      const { of } = await diagnosed({ LISTEN_ADDR: `unix:${join(dir, 'file')}` });
      expect(of('listening')).to.match(/^failed: .* exists and is not a usable socket/);
    });
  });

  describe('of a daemon that is named', () => {
    it('fails when it does not respond', async () => {
      const server = `http://127.0.0.1:${await freePort()}`;
      const { of, exitCode } = await diagnosed({}, `--server ${server}`);
      expect(of('daemon')).to.match(/^failed: .*> llmp daemon/);
      expect(exitCode).to.equal(9);
    });

    it('warns when its release differs', async () => {
      const daemon = await startStandIn();
      daemon.answer = (req, res) => {
        if (req.url === '/manage/status') answerJson(res, 200, { version: '0.0.7' });
        else answerJson(res, 200, { status: 'ready', missing: [], degraded: [] });
      };
      const { of } = await diagnosed({ LLMP_SERVER: daemon.url });
      await daemon.stop();
      expect(of('daemon version')).to.match(/^warning: the daemon has version 0\.0\.7/);
    });
  });

  describe('of people and JWTs', () => {
    it('says nothing where nobody uses them', async () => {
      const { of } = await diagnosed();
      expect(of('log-in')).to.match(/^skipped: people do not log in .*OIDC_ISSUER is not set/);
      for (const check of ['roles', 'public keys', 'trusts']) expect(of(check)).to.equal('');
    });

    it('reads the configuration of the identity provider, and the roles', async () => {
      const issuer = await startIssuer({ redirectUri: 'https://llmp.example.com/admin/oidc/callback' });
      const roles = join(dir, 'roles.json');
      const oidc = {
        OIDC_ISSUER: issuer.url,
        OIDC_CLIENT_ID: 'llmp',
        OIDC_CLIENT_SECRET: issuer.clientSecret,
        OIDC_ROLES: roles,
        PUBLIC_URL: 'https://llmp.example.com',
      };
      const daemon = await startDaemon({ dir });
      const { id } = await daemon.createProject();
      await daemon.stop();
      const unknown = '6f1c9a52-5f0e-4c7b-9f43-2a9d1c3b7e10';
      const rows = (projects: string[]) => JSON.stringify([{ match: { sub: 'ana' }, role: 'issuer', projects }]);
      writeFileSync(roles, rows([id]));
      const good = await diagnosed(oidc);
      expect(good.of('log-in')).to.equal(`ok: ${issuer.url} has a configuration > `);
      expect(good.of('roles')).to.equal('ok: OIDC_ROLES has 1 row > ');
      expect(issuer.requests, 'nothing else is asked').to.deep.equal(['GET /.well-known/openid-configuration']);

      writeFileSync(roles, rows([id, unknown]));
      issuer.configuration = ({ device_authorization_endpoint: _, ...others }) => others;
      const lacking = await diagnosed(oidc);
      expect(lacking.of('log-in')).to.match(/^ok: .* people log in to the Admin UI only/);
      expect(lacking.of('roles')).to.contain(
        `warning: row 1 of OIDC_ROLES names projects that do not exist: ${unknown} > Compare with: llmp project list`,
      );
      writeFileSync(roles, '[{ "role": "boss" }]');
      issuer.configuration = (document) => ({ ...document, issuer: 'https://evil.example.com' });
      const bad = await diagnosed(oidc);
      expect(bad.exitCode).to.equal(9);
      expect(bad.of('log-in')).to.match(/^failed: .* another issuer than OIDC_ISSUER > .*curl -sS http:.*well-known/);
      expect(bad.of('roles')).to.match(/^failed: OIDC_ROLES: .*, row 1: match is missing > /);
      await issuer.stop();
      expect((await diagnosed(oidc)).of('log-in')).to.match(/^failed: .*unreachable \(ECONNREFUSED\)/);
    });

    it('reads the files of public keys, and finds those that trusts miss', async () => {
      const folder = join(dir, 'jwks');
      const JWKS_DIR = folder;
      expect((await diagnosed({ JWKS_DIR })).of('public keys')).to.match(/^failed: cannot read JWKS_DIR .*ENOENT/);
      mkdirSync(folder);
      expect((await diagnosed({ JWKS_DIR })).of('public keys')).to.match(/^warning: there are no files in JWKS_DIR/);
      const { jwk, privateKey } = await signingKey('ES256');
      const write = (name: string, content: unknown) => {
        writeFileSync(join(folder, name), JSON.stringify(content));
      };
      write('cluster.json', { keys: [jwk, { kty: 'EC', crv: 'P-521' }] });
      const daemon = await startDaemon({ dir, env: { JWKS_DIR } });
      const { id } = await daemon.createProject();
      await createTrust(daemon, 'https://cluster.example', id, { jwks_file: 'cluster.json' });
      await daemon.stop();
      const good = await diagnosed({ JWKS_DIR });
      expect([good.of('public keys'), good.of('trusts')]).to.deep.equal(['ok: cluster.json: 1 key > ', '']);

      write('private.json', { keys: [jwk, { ...jwk, d: (await exportJWK(privateKey)).d }] });
      write('none.json', { keys: [] });
      write('text.json', 'keys');
      rmSync(join(folder, 'cluster.json'));
      const { of, exitCode } = await diagnosed({ JWKS_DIR });
      expect(exitCode).to.equal(9);
      expect(of('public keys'))
        .to.match(/^failed: private.json in JWKS_DIR has a private key.*> Replace the key at the issuer/m)
        .and.match(/^warning: none.json .* has no keys for RS256, ES256 or EdDSA > Save the public keys/m)
        .and.match(/^warning: text.json .* has no keys > /m)
        .and.not.contain('ok:');
      const missing = 'failed: 1 trust cannot exchange JWTs:';
      expect(of('trusts')).to.contain(`${missing} cannot read cluster.json in JWKS_DIR: ENOENT > Save the public keys`);
      expect((await diagnosed()).of('trusts')).to.contain(`${missing} JWKS_DIR is not set > `);
    });
  });

  it('reports a check that hangs, and does not wait for it', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const hanging = { ...env, UPSTREAM_BASE_URL: `http://127.0.0.1:${port}` };
    const findings = await runDoctor({ env: hanging, envFile: undefined, now: SUPPORTED, limitMs: 500 });
    silent.close();
    const of = (check: string) => findings.filter((each) => each.check === check).map(({ evidence }) => evidence);
    expect(of('upstream')).to.deep.equal(['no response within 0.5 s']);
    expect(of('node')).to.have.lengthOf(1);
    expect(findings.find(({ check }) => check === 'upstream')?.advice).to.include('raise --timeout');
    expect([0, 1_000, 120_000].map(limitFor)).to.deep.equal([6_000, 6_000, 240_000]);
  });

  it('warns of a Node.js that gets no security fixes, and says what to install', async () => {
    const { exitCode, of } = await diagnosed({}, '', Date.parse('2035-01-01'));
    expect(exitCode).to.equal(0);
    expect(of('node')).to.match(/^warning: Node\.js [\d.]+ has had no security fixes since [\d-]+ > Install /);
  });

  it('checks an existing systemd unit', async () => {
    writeFileSync(join(dir, 'llmp.service'), '[Service]\nExecStart=/bin/true\n');
    expect((await diagnosed()).of('systemd')).to.match(/llmp\.service/);
  });
});
