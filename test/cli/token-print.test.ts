import { expect } from 'chai';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WireToken } from '../../daemon/api/contract.js';
import { TokenFile } from '../../cli/token-cache.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { freePort } from '../support/ports.js';
import { type Provider, startProvider } from '../support/provider.js';
import { type Captured, llmp, type Situation } from './captured.js';

const HOUR_MS = 3_600_000;

describe('llmp token print', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let runtime: string;
  let nowMs: number;
  let projectName: string;

  before(async () => {
    provider = await startProvider();
  });
  after(() => provider.stop());
  beforeEach(async () => {
    daemon = await startDaemon({ upstream: provider.url });
    projectName = (await daemon.createProject({ name: 'web' })).name;
    // Not a folder of `temporaryFolder`, where no secrets may be.
    runtime = mkdtempSync(join(tmpdir(), 'llmp-runtime-'));
    nowMs = daemon.clock.now();
  });
  afterEach(async () => {
    await daemon.stop();
    rmSync(runtime, { recursive: true, force: true });
  });

  const print = (args = '', more: Situation = {}): Promise<Captured> =>
    llmp(`token print --project-id ${projectName} ${args}`.trim(), {
      nowMs,
      ...more,
      env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, XDG_RUNTIME_DIR: runtime, ...more.env },
    });
  const secret = async (args = '', more: Situation = {}): Promise<string> => {
    const { exitCode, out, err } = await print(args, more);
    expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
    expect(out).to.match(/^sk-wt-[0-9A-Za-z]{49}\n$/);
    return out.trim();
  };
  const tokens = async () => (await daemon.manage('GET', '/manage/tokens')).body as WireToken[];
  const cacheFolder = () => join(runtime, 'llmp');
  const files = () => readdirSync(cacheFolder());
  const onlyFile = () => {
    const [only, ...others] = files();
    expect(others).to.deep.equal([]);
    return join(cacheFolder(), only ?? '');
  };

  it('prints the secret of a working token, also on a terminal, and the same one again', async () => {
    const first = await secret('--duration 1h');
    expect((await daemon.call(first)).status).to.equal(200);
    expect((await print('--duration 1h', { terminal: 80 })).out).to.equal(`${first}\n`);
    expect(await secret('--duration 1h')).to.equal(first);
    const [only, ...others] = await tokens();
    expect(others).to.deep.equal([]);
    expect(only).to.include({ name: 'token print', project_name: projectName });
  });

  it('replaces it if it was revoked', async () => {
    const first = await secret();
    const [token] = await tokens();
    await daemon.manage('DELETE', `/manage/tokens/${token?.id}`);
    const next = await secret();
    expect(next).not.to.equal(first);
    expect(await secret()).to.equal(next);
    expect((await daemon.call(next)).status).to.equal(200);
  });

  it('saves it in a folder and a file that are private', async () => {
    await secret();
    const modes = [cacheFolder(), onlyFile()].map((path) => (statSync(path).mode & 0o777).toString(8));
    expect(modes).to.deep.equal(['700', '600']);
  });

  it('prints JSON', async () => {
    const { out } = await print('-o json');
    const [token] = await tokens();
    const { token: printed, ...rest } = JSON.parse(out) as { token: string };
    expect(rest).to.deep.equal({ id: token?.id, expires_at: token?.expires_at });
    expect(printed).to.equal(await secret());
  });

  it('replaces it after 80 % of its lifetime', async () => {
    const first = await secret();
    nowMs += 0.79 * HOUR_MS;
    expect(await secret()).to.equal(first);
    nowMs += 0.02 * HOUR_MS;
    const second = await secret();
    expect(second).not.to.equal(first);
    expect(await secret()).to.equal(second);
    expect(files()).to.have.lengthOf(1);
  });

  it('has one for each project, lifetime, name and daemon', async () => {
    const all = [await secret(), await secret('--duration 2h'), await secret('--name other')];
    const other = (await daemon.createProject()).id;
    all.push(await secret('', { env: { LLMP_SERVER: daemon.url.replace('127.0.0.1', 'localhost') } }));
    all.push(await secret(`--project-id ${other}`));
    expect(new Set(all).size).to.equal(5);
  });

  it('has another one for each session of a context, and none without one', async () => {
    const [config, tokenFile] = [join(runtime, 'config.toml'), join(runtime, 'here.session')];
    const env = { LLMP_CONFIG: config, LLMP_SERVER: '', MANAGEMENT_TOKEN: '' };
    const contextWith = (session: string) => {
      writeFileSync(config, `current = "here"\n[contexts.here]\nserver = "${daemon.url}"\n${session}\n`);
    };
    const loggedIn = (session: string) => {
      contextWith(`token_file = "${tokenFile}"\nsession_id = "${session}"`);
      return secret('', { env });
    };
    writeFileSync(tokenFile, MANAGEMENT_TOKEN, { mode: 0o600 });
    const [ana, bo] = ['0b5e4a1e-0000-4000-8000-000000000001', '0b5e4a1e-0000-4000-8000-000000000002'];
    const first = await loggedIn(ana);
    expect(await loggedIn(ana)).to.equal(first);
    expect(await loggedIn(bo)).not.to.equal(first);
    contextWith('');
    const { exitCode, out } = await print('', { env });
    expect({ exitCode, out }).to.deep.equal({ exitCode: 3, out: '' });
  });

  it('issues one token for many that ask at once', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => secret()));
    expect(new Set(all).size).to.equal(1);
    expect(await tokens()).to.have.lengthOf(1);
    expect(files()).to.have.lengthOf(1);
  });

  it('does not wait for one that is being replaced', async () => {
    const first = await secret();
    nowMs += 0.9 * HOUR_MS;
    const file = onlyFile();
    writeFileSync(`${file}.lock`, JSON.stringify({ pid: process.pid, untilMs: nowMs + 60_000 }));
    expect(await secret()).to.equal(first);
  });

  for (const [what, content] of [
    ['of a process that has ended', () => JSON.stringify({ pid: 2 ** 22 + 1, untilMs: nowMs + 60_000 })],
    ['that is too old', () => JSON.stringify({ pid: process.pid, untilMs: nowMs })],
    ['that is damaged', () => '{'],
  ] as const) {
    it(`takes over a lock ${what}`, async () => {
      const first = await secret();
      const file = onlyFile();
      rmSync(file);
      writeFileSync(`${file}.lock`, content());
      const all = await Promise.all(Array.from({ length: 4 }, () => secret()));
      expect(new Set(all).size).to.equal(1);
      expect(all[0]).not.to.equal(first);
      expect(files()).to.have.lengthOf(1);
    });
  }

  it('gives up after the timeout if another one holds the lock', async () => {
    await secret();
    const file = onlyFile();
    rmSync(file);
    writeFileSync(`${file}.lock`, JSON.stringify({ pid: process.pid, untilMs: nowMs + HOUR_MS }));
    const pause = () => {
      nowMs += 100;
      return Promise.resolve();
    };
    const { exitCode, err } = await print('--timeout 1s', { pause, nowMs: () => nowMs });
    expect(exitCode).to.equal(1);
    expect(err).to.contain('another llmp has not finished issuing a token');
  });

  it('issues another one for other terms, and when the cap of the last one is used up', async () => {
    const capped = await secret('--max-requests 1 --rpm 60');
    expect(await secret('--rpm 60 --max-requests 1')).to.equal(capped);
    expect(await secret('--max-requests 1 --rpm 30')).not.to.equal(capped);
    const [token] = (await tokens()).filter(({ limits }) => limits?.requests_per_minute === 60);
    expect(token).to.include({ max_requests: 1 });
    expect((await daemon.call(capped)).status).to.equal(200);
    expect(await secret('--max-requests 1 --rpm 60')).not.to.equal(capped);
  });

  it('uses the last one while the daemon is away, until it expires', async () => {
    const first = await secret();
    const away = { env: { LLMP_SERVER: `http://127.0.0.1:${await freePort()}` } };
    const other = new TokenFile(
      cacheFolder(),
      [away.env.LLMP_SERVER, undefined, undefined, projectName, '[]'],
      () => nowMs,
    );
    other.write(JSON.parse(readFileSync(onlyFile(), 'utf8')) as Parameters<TokenFile['write']>[0]);
    nowMs += 0.9 * HOUR_MS;
    const late = await print('', away);
    expect({ exitCode: late.exitCode, out: late.out }).to.deep.equal({ exitCode: 0, out: `${first}\n` });
    expect(late.err).to.contain('cannot reach the daemon').and.to.contain('using the last token, until ');
    nowMs += 0.2 * HOUR_MS;
    const expired = await print('', away);
    expect({ exitCode: expired.exitCode, out: expired.out }).to.deep.equal({ exitCode: 6, out: '' });
  });

  it('does not use it if the management token is refused', async () => {
    await secret();
    nowMs += 0.9 * HOUR_MS;
    const { exitCode, out } = await print('', { env: { MANAGEMENT_TOKEN: 'x'.repeat(40) } });
    expect({ exitCode, out }).to.deep.equal({ exitCode: 3, out: '' });
  });

  it('ignores a file that others can read, or that is damaged', async () => {
    const first = await secret();
    const file = onlyFile();
    chmodSync(file, 0o644);
    const second = await secret();
    expect(second).not.to.equal(first);
    for (const text of ['', '{}', '[]', 'null', '{"token":']) {
      writeFileSync(file, text);
      expect(await secret()).not.to.equal(second);
    }
    expect((statSync(file).mode & 0o777).toString(8)).to.equal('600');
  });

  it('refuses folders that others can write, and links', async () => {
    mkdirSync(cacheFolder());
    chmodSync(cacheFolder(), 0o777);
    const { exitCode, err } = await print();
    expect(exitCode).to.equal(2);
    expect(err).to.contain('is writable by other users');
    rmSync(cacheFolder(), { recursive: true });
    symlinkSync(tmpdir(), cacheFolder());
    expect((await print()).err).to.contain('is not a folder');
    rmSync(cacheFolder());
    chmodSync(runtime, 0o777);
    expect((await print()).exitCode).to.equal(2);
    expect(await tokens()).to.deep.equal([]);
  });
});
