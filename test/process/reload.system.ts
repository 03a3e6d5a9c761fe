import { expect } from 'chai';
import { spawn, spawnSync } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeFileSync } from 'node:fs';
import { reloaded } from '../../config/reload.js';
import { type Environment, loadSettings } from '../../config/settings.js';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type ListeningDaemon, spawnDaemon } from '../support/process.js';
import { head } from '../support/raw.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { MANAGEMENT_TOKEN } from '../support/settings.js';

const load = (env: Environment) => loadSettings({ MANAGEMENT_TOKEN, ...env });

describe('reloaded settings', () => {
  const changes = (before: Environment, after: Environment) => reloaded(load(before), load(after));

  it('take effect if they are reloadable', () => {
    const { loaded, changed, waiting } = changes(
      { LOG_LEVEL: 'warn' },
      { REQUEST_TIMEOUT: '5s', CLIENT_BODY_TIMEOUT: '6s', UPSTREAM_CONNECT_TIMEOUT: '7s' },
    );
    expect(loaded.reloadable).to.include({
      logLevel: 'info',
      requestTimeoutMs: 5000,
      clientBodyTimeoutMs: 6000,
      upstreamConnectTimeoutMs: 7000,
    });
    expect(changed).to.deep.equal({
      LOG_LEVEL: { from: 'warn', to: 'info' },
      REQUEST_TIMEOUT: { from: '600s', to: '5s' },
      CLIENT_BODY_TIMEOUT: { from: '30s', to: '6s' },
      UPSTREAM_CONNECT_TIMEOUT: { from: '10s', to: '7s' },
    });
    expect(waiting).to.deep.equal([]);
  });

  it('take effect after a restart otherwise, and are reported on each reload until then', () => {
    const before = load({});
    const fresh = load({ MANAGEMENT_TOKEN: canary('management'), MAX_REQUEST_SIZE: '1MB', LOG_LEVEL: 'debug' });
    const first = reloaded(before, fresh);
    expect(first.waiting).to.deep.equal(['MANAGEMENT_TOKEN', 'MAX_REQUEST_SIZE']);
    expect(first.loaded.settings).to.deep.equal(before.settings);
    expect(first.loaded.reloadable).to.deep.equal({ ...before.reloadable, logLevel: 'debug' });
    const second = reloaded(first.loaded, fresh);
    expect(second).to.deep.include({ waiting: first.waiting, changed: {} });
  });
});

describe('a daemon that reloads its settings', () => {
  let scene: ProxyFixture;
  const before = {
    REQUEST_TIMEOUT: '10s',
    CLIENT_BODY_TIMEOUT: '10s',
    UPSTREAM_CONNECT_TIMEOUT: '1h',
    UPSTREAM_CONNECTIONS: '2',
  };
  const change = (env: Environment) => {
    scene.daemon.daemon.apply(load({ ...before, ...env }).reloadable);
  };
  const open = async (upstream?: string) => {
    scene = await ProxyFixture.open(before, upstream);
  };
  afterEach(() => scene.close());

  it('applies a new REQUEST_TIMEOUT to new requests, and not to requests in flight', async () => {
    await open();
    const answers: ServerResponse[] = [];
    scene.provider.answer = (_req, res) => void answers.push(res);
    const old = await scene.client(head('GET /v1/models', scene.secret));
    await scene.reached(1);
    change({ REQUEST_TIMEOUT: '1s' });
    const young = await scene.client(head('GET /v1/models', scene.secret));
    await scene.reached(2);
    answers[0]!.write('begun, ');
    await eventually('the start of the old response', () => old.pending.includes('begun'));

    scene.daemon.clock.advance(1_500);
    expect((await young.response()).status).to.equal(504);
    answers[0]!.end('and ended');
    expect((await old.response()).text).to.equal('begun, and ended');
  });

  it('applies a new CLIENT_BODY_TIMEOUT to new requests', async () => {
    await open();
    change({ CLIENT_BODY_TIMEOUT: '1s' });
    const client = await scene.client(head('POST /v1/echo', scene.secret, { 'Content-Length': '5' }) + 'abc');
    await scene.inFlight(1);
    scene.daemon.clock.advance(1_500);
    expect((await client.response()).status).to.equal(408);
  });

  it('waits no longer than the new UPSTREAM_CONNECT_TIMEOUT for a free connection', async () => {
    await open();
    scene.provider.answer = () => undefined;
    await scene.client(head('GET /v1/models', scene.secret));
    await scene.client(head('GET /v1/models', scene.secret));
    await scene.reached(2);
    change({ UPSTREAM_CONNECT_TIMEOUT: '1s' });
    const waiting = await scene.client(head('GET /v1/models', scene.secret));
    await scene.inFlight(3);
    scene.daemon.clock.advance(1_500);
    expect((await waiting.response()).status).to.equal(503);
  });

  it('waits no longer than the new UPSTREAM_CONNECT_TIMEOUT for a connection to be made', async () => {
    // Accepts connections, but never starts the TLS handshake, so the timer of undici ends the attempt.
    const silent = createServer().unref();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    await open(`https://127.0.0.1:${(silent.address() as AddressInfo).port}`);
    change({ UPSTREAM_CONNECT_TIMEOUT: '20ms' });
    const client = await scene.client(head('GET /v1/models', scene.secret));
    expect((await client.response()).status).to.equal(502);
  });
});

describe('SIGHUP', function () {
  this.timeout(60_000);
  let dir: string;
  let daemon: ListeningDaemon;
  const common = () => `DATABASE_URL=${dir}/llmp.db`;
  const write = (...lines: string[]) => {
    writeFileSync(join(dir, 'llmp.env'), lines.join('\n'));
  };
  /** Sends SIGHUP, and waits until the daemon logs the result. @returns the log records since. */
  const hangUp = async () => {
    const seen = daemon.logged.length;
    daemon.child.kill('SIGHUP');
    const records = () => daemon.logged.slice(seen).map((line) => JSON.parse(line) as Record<string, unknown>);
    await eventually('the result of SIGHUP', () =>
      records().some(({ message }) => /^settings (?:not )?reloaded$/.test(String(message))),
    );
    return records();
  };

  beforeEach(async () => {
    dir = temporaryFolder();
    write(common(), 'LOG_LEVEL=info');
    daemon = await spawnDaemon({ MANAGEMENT_TOKEN, SHUTDOWN_DELAY: '0' }, '--env-file', join(dir, 'llmp.env'));
  });
  afterEach(() => daemon.kill());

  it('makes the daemon read its env file again, apply reloadable settings, and report those that need a restart', async () => {
    write(common(), 'LOG_LEVEL=debug', 'REQUEST_TIMEOUT=5s', 'MAX_CONNECTIONS=5', 'REQUEST_TIMOUT=6s');
    const records = await hangUp();
    expect(records.map(({ level, message }) => `${String(level)} ${String(message)}`)).to.deep.equal([
      `warn REQUEST_TIMOUT in ${dir}/llmp.env is not a setting; did you mean REQUEST_TIMEOUT?`,
      'warn MAX_CONNECTIONS changed; restart the daemon to apply',
      'info settings reloaded',
    ]);
    expect(records.at(-1)?.changed).to.deep.equal({
      LOG_LEVEL: { from: 'info', to: 'debug' },
      REQUEST_TIMEOUT: { from: '600s', to: '5s' },
    });

    const seen = daemon.logged.length;
    expect((await fetch(`${daemon.url}/v1/models`)).status).to.equal(401);
    await eventually('a record at debug', () => daemon.logged.slice(seen).some((line) => /"level":"debug"/.test(line)));
  });

  it('changes nothing if a setting is invalid, and logs all problems', async () => {
    write(
      common(),
      'LOG_LEVEL=error',
      'REQUEST_TIMEOUT=5',
      'MANAGEMENT_TOKEN_FILE=/nowhere',
      'MAX_REQUEST_SIZE=hidden',
    );
    const [record, ...others] = await hangUp();
    expect(others).to.deep.equal([]);
    expect(record).to.include({ level: 'error', message: 'settings not reloaded' });
    expect((record?.problems as string[]).map((problem) => /^[A-Z_]+/.exec(problem)?.[0])).to.deep.equal([
      'REQUEST_TIMEOUT',
      'MAX_REQUEST_SIZE',
    ]);
    write(common(), 'LOG_LEVEL=info');
    expect((await hangUp()).at(-1)).to.deep.include({ message: 'settings reloaded', changed: {} });
  });

  it('changes nothing if the file is no longer a valid env file', async () => {
    writeFileSync(join(dir, 'llmp.env'), 'no settings at all');
    expect((await hangUp()).at(-1)).to.deep.include({
      message: 'settings not reloaded',
      problems: [`--env-file: ${dir}/llmp.env, line 1: not NAME=value`],
    });
    expect((await fetch(`${daemon.url}/ready`)).status).to.equal(200);
  });

  it('reads files again that settings name', async () => {
    const level = join(dir, 'level');
    writeFileSync(level, 'info\n');
    write(common(), `LOG_LEVEL_FILE=${level}`);
    expect((await hangUp()).at(-1)).to.deep.include({ changed: {} });
    writeFileSync(level, 'warn\n');
    expect((await hangUp()).at(-1)).to.deep.include({ changed: { LOG_LEVEL: { from: 'info', to: 'warn' } } });
  });

  it('reads PRICES_FILE again; a broken one leaves the prices in force, and a start records only what has changed', async () => {
    const prices = join(dir, 'prices.json');
    const price = (input: string) => {
      writeFileSync(prices, JSON.stringify({ prices: [{ model: 'house', input, output: '0' }] }));
    };
    const asked = async (path: string) =>
      (await (
        await fetch(`${daemon.url}/manage/${path}`, { headers: { authorization: `Bearer ${MANAGEMENT_TOKEN}` } })
      ).json()) as never;
    const inForce = async () => {
      const { prices: found } = await asked('prices?model=house');
      return (found as { model: string; input: string }[]).find(({ model }) => model === 'house')?.input ?? null;
    };
    /** They are recorded soon after they are in force. */
    const expectPrice = async (input: string, changes: number) => {
      expect(await inForce()).to.equal(input);
      const recorded = async () => ((await asked('audit?action=prices.change')) as unknown[]).length;
      await eventually(`${changes} records`, async () => (await recorded()) === changes);
    };

    expect(await inForce()).to.equal(null);
    price('1.50');
    write(common(), `PRICES_FILE=${prices}`);
    await hangUp();
    await expectPrice('1.5', 1);

    writeFileSync(prices, '{ "prices": [{ "model": "house", "input": "2', { mode: 0o600 });
    const [record] = await hangUp();
    expect(record).to.include({ level: 'error', message: 'settings not reloaded' });
    expect(String(record?.problems)).to.contain('PRICES_FILE').and.to.contain(prices);
    await expectPrice('1.5', 1);

    const again = async () => {
      await daemon.kill();
      daemon = await spawnDaemon({ MANAGEMENT_TOKEN, SHUTDOWN_DELAY: '0' }, '--env-file', join(dir, 'llmp.env'));
    };
    price('1.50');
    await again();
    await expectPrice('1.5', 1);
    price('2');
    await again();
    await again();
    await expectPrice('2', 2);
  });
});

describe('SIGHUP, for the roles of people', function () {
  this.timeout(60_000);

  it('reads their file again; a wrong one changes nothing, and is logged with its row', async () => {
    const dir = temporaryFolder();
    const OIDC_ROLES = join(dir, 'roles.json');
    const write = (...roles: string[]) => {
      writeFileSync(OIDC_ROLES, JSON.stringify(roles.map((role) => ({ match: { groups: role }, role }))));
    };
    write('viewer');
    const daemon = await spawnDaemon({
      MANAGEMENT_TOKEN,
      SHUTDOWN_DELAY: '0',
      DATABASE_URL: join(dir, 'llmp.db'),
      OIDC_ISSUER: 'http://127.0.0.1:9',
      OIDC_CLIENT_ID: 'llmp',
      OIDC_CLIENT_SECRET: canary('password'),
      OIDC_ROLES,
      PUBLIC_URL: 'https://llmp.example.com',
    });
    const hangUp = async (message: string) => {
      const seen = daemon.logged.length;
      daemon.child.kill('SIGHUP');
      const record = () =>
        daemon.logged
          .slice(seen)
          .map((line) => JSON.parse(line) as Record<string, unknown>)
          .find((it) => it.message === message);
      await eventually(message, record);
      return record();
    };
    write('viewer', 'root');
    expect(await hangUp('settings not reloaded')).to.deep.include({
      problems: [`OIDC_ROLES: ${OIDC_ROLES}, row 2: role must be one of viewer, auditor, issuer, operator, admin`],
    });
    write('viewer', 'admin');
    expect(await hangUp('roles read')).to.include({ rows: 2 });
    await daemon.kill();
  });
});

describe('a daemon on a terminal', function () {
  this.timeout(60_000);

  it('ends when the terminal is closed', async function () {
    if (spawnSync('script', ['--version']).status !== 0) this.skip();
    const dir = temporaryFolder();
    const llmp = fileURLToPath(new URL('../../cli/main.js', import.meta.url));
    const terminal = spawn('script', ['-qfc', `echo pid=$$; exec ${process.execPath} -- ${llmp} daemon`, '/dev/null'], {
      cwd: dir,
      env: { PATH: process.env.PATH, MANAGEMENT_TOKEN, LISTEN_ADDR: '127.0.0.1:0', SHUTDOWN_DELAY: '0' },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    let shown = '';
    terminal.stdout.on('data', (text: Buffer) => (shown += text.toString()));
    await eventually('listening', () => /listening/.test(shown), 20_000);
    const pid = Number(/pid=(\d+)/.exec(shown)?.[1]);
    const isThere = () => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    expect(isThere()).to.equal(true);
    terminal.kill('SIGKILL');
    try {
      await eventually('the end of the daemon', () => !isThere());
    } finally {
      if (isThere()) process.kill(pid, 'SIGKILL');
    }
  });
});
