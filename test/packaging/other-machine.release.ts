/**
 * The files for another architecture than that of this machine, whose programs run with an emulator. Scripts of the Debian package do not
 * run: they are those of the package for this machine.
 */
import { expect } from 'chai';
import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { APPLICATION, NODE, SCRIPT } from '../../packaging/application.js';
import { nodeRuntime } from '../../packaging/node-runtime.js';
import { isThisMachine, type Target, TARGETS } from '../../packaging/targets.js';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { type Provider, startProvider } from '../support/provider.js';
import { firstAnswer } from './first-answer.js';
import { debianPackage, emulatorFor, released, withoutEmulator, WITHOUT_ROOTS } from './released.js';

type Running = ChildProcessByStdio<null, Readable, Readable>;

/** The demo computes for 3 s, and for 45 s in an emulator; on a busy machine that takes minutes. */
const LIMIT_MS = 600_000;

/** The oldest release of Debian that is supported, so with the oldest libraries. */
const SUITE = 'bookworm';

for (const target of TARGETS.filter((each) => !isThisMachine(each)))
  describe(`on ${target.debianArch}, emulated${WITHOUT_ROOTS || withoutEmulator(target)}`, function () {
    this.timeout(2 * LIMIT_MS);
    emulated(target);
  });

function emulated(target: Target): void {
  let root: string;
  let provider: Provider;
  const started: Running[] = [];

  before(async function () {
    if (WITHOUT_ROOTS || withoutEmulator(target)) this.skip();
    root = join(temporaryFolder(), 'root');
    makeRoot(target, root);
    provider = await startProvider();
  });
  after(async () => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
    await provider.stop();
    rmSync(root, { recursive: true });
  });

  /** Starts llmp from one of the files, with the Node.js in it. */
  function start(file: 'Debian package' | 'tarball', args: string[], env: Record<string, string> = {}): Running {
    const [tarball = ''] = readdirSync(join(root, 'opt'));
    const folder = file === 'tarball' ? `/opt/${tarball}` : `/${APPLICATION}`;
    return startNode([`${folder}/${NODE}`, '--', `${folder}/${SCRIPT}`, ...args], env);
  }

  function startNode(command: string[], env: Record<string, string> = {}): Running {
    const child = spawn('/usr/sbin/chroot', [root, '/emulator', ...command], {
      env: { HOME: '/root', PATH: '/usr/bin', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    started.push(child);
    return child;
  }

  async function outputOf(child: Running): Promise<string> {
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += String(data)));
    const [code] = (await once(child, 'close')) as [number | null];
    expect(code, output).to.equal(0);
    return output;
  }

  for (const file of ['Debian package', 'tarball'] as const)
    it(`forwards a request with llmp daemon of the ${file}, and ends on SIGTERM`, async () => {
      const upstreamKey = canary('upstream');
      const managementToken = canary('management');
      const port = await freePort();
      const daemon = start(file, ['daemon'], {
        MANAGEMENT_TOKEN: managementToken,
        LISTEN_ADDR: `127.0.0.1:${port}`,
        UPSTREAM_BASE_URL: provider.url,
        DATABASE_URL: `/root/${port}.db`,
        AUDIT_LOG_FILE: `/root/${port}.log`,
      });
      let log = '';
      for (const stream of [daemon.stdout, daemon.stderr]) stream.on('data', (data) => (log += String(data)));
      const ask = (path: string, credential: string, body?: object) =>
        fetch(`http://127.0.0.1:${port}${path}`, {
          headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
          ...(body && { method: 'POST', body: JSON.stringify(body) }),
        });
      const isReady = () =>
        ask('/ready', '').then(
          ({ status }) => status === 200,
          () => false,
        );
      await eventually('it is ready', isReady, LIMIT_MS).catch((error: unknown) => {
        throw new Error(log, { cause: error });
      });
      const created = async (path: string, body: object) =>
        (await (await ask(`/manage/${path}`, managementToken, body)).json()) as { id: string; token: string };
      const project = await created('projects', { name: 'web', api_key: upstreamKey });
      const token = await created('tokens', { project_id: project.id });
      expect((await ask('/v1/models', token.token)).status).to.equal(200);
      expect(provider.received.at(-1)?.headers.authorization).to.equal(`Bearer ${upstreamKey}`);
      daemon.kill('SIGTERM');
      expect(await once(daemon, 'close'), log).to.deep.equal([0, null]);
    });

  it('answers a first request with llmp demo, and ends on SIGTERM', async () => {
    const demo = start('Debian package', ['demo', '--json']);
    await firstAnswer(demo, LIMIT_MS);
    demo.kill('SIGTERM');
    expect(await once(demo, 'close')).to.deep.equal([0, null]);
  });

  it('contains the pinned Node.js and SQLite, and uses the code cache', async () => {
    const version = await outputOf(start('Debian package', ['version', '-v']));
    expect(version)
      .to.include(`\nNode.js  ${nodeRuntime(target).version}\n`)
      .and.to.match(/\nSQLite {3}3\./);
    const commandLine = join(root, APPLICATION, 'dist/cli');
    const cache = readdirSync(commandLine).find((name) => name.endsWith('.cache')) ?? '';
    const program = readdirSync(commandLine).find((name) => /^llmp-.*\.cjs$/.test(name)) ?? '';
    const script = `const { readFileSync } = require('node:fs');
      const of = (name) => readFileSync('/${APPLICATION}/dist/cli/' + name);
      const options = { filename: 'llmp.cjs', cachedData: of('${cache}') };
      console.log(new (require('node:vm').Script)(of('${program}').toString('latin1'), options).cachedDataRejected);`;
    writeFileSync(join(root, 'root/cached.cjs'), script);
    expect(await outputOf(startNode([`/${APPLICATION}/${NODE}`, '/root/cached.cjs']))).to.equal('false\n');
  });
}

/** Unpacks what a Debian has for the package, the package, and the tarball in /opt. */
function makeRoot(target: Target, root: string): void {
  const file = debianPackage(target.debianArch);
  expect(execFileSync('dpkg-deb', ['--field', file, 'Architecture'], { encoding: 'utf8' }).trim()).to.equal(
    target.debianArch,
  );
  const depends = execFileSync('dpkg-deb', ['--field', file, 'Depends'], { encoding: 'utf8' });
  const names = depends.split(',').map((each) => each.trim().split(' ')[0] ?? '');
  const options = ['--variant=extract', `--architectures=${target.debianArch}`, `--include=${names.join(',')}`];
  execFileSync('mmdebstrap', ['--quiet', ...options, SUITE, root], { stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync('dpkg-deb', ['--extract', file, root]);
  for (const name of ['opt', 'root', 'tmp']) mkdirSync(join(root, name), { recursive: true });
  execFileSync('tar', ['-xf', released(`-linux-${target.arch}.tar.gz`), '-C', join(root, 'opt')]);
  copyFileSync(emulatorFor(target) ?? '', join(root, 'emulator'));
}
