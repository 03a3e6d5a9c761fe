/** The other files of a release: checksums, the container image, the same bytes from a second build. */
import { expect } from 'chai';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { packageRoot } from '../../config/package-root.js';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { released, WITHOUT_ROOTS } from './released.js';

interface Blob {
  digest: string;
  size: number;
}

interface Config {
  config: { User: string; Env: string[]; Entrypoint: string[]; Cmd: string[]; Volumes: object; WorkingDir: string };
  rootfs: { diff_ids: string[] };
}

const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');

const WITHOUT_SKOPEO =
  process.env.CI !== 'true' && spawnSync('skopeo', ['--version']).error ? ' (skipped: skopeo is not installed)' : '';

describe('a release', function () {
  this.timeout(1_800_000);

  it('has checksums of all its files', () => {
    const folder = dirname(released('SHA256SUMS'));
    execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: folder });
    const named = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').match(/\S+$/gm) ?? [];
    expect([...named, 'SHA256SUMS'].sort()).to.deep.equal(readdirSync(folder).sort());
  });

  it('has the same bytes from a build in another folder, with another umask and time zone', () => {
    const root = packageRoot();
    const work = temporaryFolder();
    const sources = join(work, 'sources');
    execFileSync('git', ['clone', '--quiet', '--shared', root, sources]);
    symlinkSync(join(root, 'node_modules'), join(sources, 'node_modules'));
    const script = 'umask 077 && npm run --silent release >&2';
    execFileSync('sh', ['-ec', script], { cwd: sources, env: { ...process.env, TZ: 'Asia/Tokyo' }, stdio: 'pipe' });
    expect(readFileSync(join(sources, 'release/SHA256SUMS'), 'utf8')).to.equal(
      readFileSync(released('SHA256SUMS'), 'utf8'),
    );
    // The tests among the sources contain what looks like secrets, which no test may leave behind.
    rmSync(work, { recursive: true });
  });
});

describe(`the container image${WITHOUT_SKOPEO || WITHOUT_ROOTS}`, function () {
  this.timeout(300_000);
  let layout: string;
  let root: string;
  let config: Config;
  const blob = ({ digest }: Blob) => readFileSync(join(layout, 'blobs', digest.replace(':', '/')));
  const parsed = (content: Buffer) => JSON.parse(content.toString()) as unknown;

  before(function () {
    if (WITHOUT_SKOPEO || WITHOUT_ROOTS) this.skip();
    layout = temporaryFolder();
    root = join(temporaryFolder(), 'root');
    mkdirSync(root);
    execFileSync('tar', ['-xf', released('.tar'), '-C', layout]);
  });
  after(() => {
    if (root) rmSync(root, { recursive: true, force: true });
  });

  it('is one that skopeo accepts', () => {
    const inspected = execFileSync('skopeo', ['inspect', `oci-archive:${released('.tar')}`], { encoding: 'utf8' });
    const { Os, Architecture, Layers } = JSON.parse(inspected) as {
      Os: string;
      Architecture: string;
      Layers: string[];
    };
    expect([Os, Architecture, Layers.length]).to.deep.equal(['linux', 'amd64', 3]);
    // It reads and verifies every layer.
    execFileSync('skopeo', ['copy', '--quiet', `oci-archive:${released('.tar')}`, `dir:${temporaryFolder()}`]);
  });

  it('has digests, sizes and layers as stated', () => {
    const { manifests } = parsed(readFileSync(join(layout, 'index.json'))) as { manifests: [Blob] };
    const manifest = parsed(blob(manifests[0])) as { config: Blob; layers: Blob[] };
    for (const each of [manifests[0], manifest.config, ...manifest.layers]) {
      expect(`sha256:${sha256(blob(each))}`).to.equal(each.digest);
      expect(blob(each).length).to.equal(each.size);
    }
    config = parsed(blob(manifest.config)) as Config;
    manifest.layers.forEach((layer, index) => {
      const content = execFileSync('gzip', ['-dc'], { input: blob(layer), maxBuffer: 2 ** 30 });
      expect(`sha256:${sha256(content)}`).to.equal(config.rootfs.diff_ids[index]);
      execFileSync('tar', ['-xpf', '-', '-C', root], { input: content });
    });
  });

  it('runs llmp daemon as an unprivileged user that can write to /data only', async () => {
    const { User, Env, Entrypoint, Cmd, WorkingDir } = config.config;
    expect([User, Cmd, WorkingDir]).to.deep.equal(['65532:65532', ['daemon'], '/']);
    expect(Object.keys(config.config.Volumes)).to.deep.equal(['/data']);
    const port = await freePort();
    const env = Object.fromEntries(Env.map((line) => line.split('=', 2) as [string, string]));
    expect(env.LISTEN_ADDR).to.equal(':8080');
    chownSync(root, 0, 0);
    const daemon = spawn('/usr/sbin/chroot', [`--userspec=${User}`, '--groups=', root, ...Entrypoint, ...Cmd], {
      env: { ...env, LISTEN_ADDR: `127.0.0.1:${port}`, MANAGEMENT_TOKEN: canary('management') },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    try {
      let log = '';
      for (const stream of [daemon.stdout, daemon.stderr]) stream.on('data', (data) => (log += String(data)));
      const isReady = () =>
        fetch(`http://127.0.0.1:${port}/ready`).then(
          (response) => response.status === 200,
          () => false,
        );
      await eventually('it is ready', isReady, 60_000).catch((error: unknown) => {
        throw new Error(log, { cause: error });
      });
    } finally {
      daemon.kill('SIGKILL');
    }
    expect(readdirSync(join(root, 'data')))
      .to.include('llmp.db')
      .and.to.include('audit.log');
    const writable = spawnSync('find', [root, '-xdev', '-perm', '/o+w', '!', '-type', 'l'], { encoding: 'utf8' });
    expect(writable.stdout).to.equal('');
    expect(readdirSync(join(root, 'usr/bin')), 'no shell').to.deep.equal(['llmp']);
    expect(basename(Entrypoint[0] ?? '')).to.equal('node');
  });
});
