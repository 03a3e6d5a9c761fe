/** The other files of a release: checksums, the container image, the same bytes from a second build. */
import { expect } from 'chai';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { packageRoot } from '../../config/package-root.js';
import { readVersion } from '../../config/version.js';
import { textIn } from '../../packaging/files.js';
import { installNodeRuntimes, nodeRuntime } from '../../packaging/node-runtime.js';
import { type Target, TARGETS } from '../../packaging/targets.js';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { emulatorFor, released, withoutEmulator, WITHOUT_ROOTS } from './released.js';

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

  it('is not made with a Node.js that has another checksum than the pinned one', () => {
    const sources = temporaryFolder();
    const lock = textIn(packageRoot(), 'packaging/runtime/package-lock.json');
    const { integrity } = nodeRuntime(TARGETS[0]!);
    writeFileSync(join(sources, 'package-lock.json'), lock.replace(integrity, `sha512-${'A'.repeat(86)}==`));
    writeFileSync(join(sources, 'package.json'), textIn(packageRoot(), 'packaging/runtime/package.json'));
    expect(() => {
      installNodeRuntimes(join(sources, 'installed'), sources);
    }).to.throw('EINTEGRITY');
  });

  it('has the same bytes from a build in another folder, with another umask and time zone', () => {
    const root = packageRoot();
    const work = temporaryFolder();
    try {
      const sources = join(work, 'sources');
      execFileSync('git', ['clone', '--quiet', '--shared', root, sources]);
      // Not a link: what is compiled then has other paths too.
      execFileSync('cp', ['-a', join(root, 'node_modules'), sources]);
      const script = 'umask 077 && npm run --silent release >&2';
      execFileSync('sh', ['-ec', script], { cwd: sources, env: { ...process.env, TZ: 'Asia/Tokyo' }, stdio: 'pipe' });
      expect(readFileSync(join(sources, 'release/SHA256SUMS'), 'utf8')).to.equal(
        readFileSync(released('SHA256SUMS'), 'utf8'),
      );
    } finally {
      // The tests among the sources contain what looks like secrets, which no test may leave behind.
      rmSync(work, { recursive: true });
    }
  });
});

for (const target of TARGETS)
  describe(`the container image for ${target.debianArch}${WITHOUT_SKOPEO || WITHOUT_ROOTS || withoutEmulator(target)}`, function () {
    this.timeout(300_000);
    before(function () {
      if (WITHOUT_SKOPEO || WITHOUT_ROOTS || withoutEmulator(target)) this.skip();
    });
    image(target);
  });

function image(target: Target): void {
  const archive = () => `oci-archive:${released('-oci.tar')}`;
  const ofTarget = [`--override-arch=${target.debianArch}`, '--override-os=linux'];
  let layout: string;
  let root: string;
  let config: Config;
  const blob = ({ digest }: Blob) => readFileSync(join(layout, 'blobs', digest.replace(':', '/')));
  const parsed = (content: Buffer) => JSON.parse(content.toString()) as unknown;

  before(() => {
    layout = temporaryFolder();
    root = join(temporaryFolder(), 'root');
    mkdirSync(root);
    execFileSync('tar', ['-xf', released('-oci.tar'), '-C', layout]);
  });
  after(() => {
    if (root) rmSync(root, { recursive: true, force: true });
  });

  it('is one that skopeo accepts', () => {
    const inspected = execFileSync('skopeo', [...ofTarget, 'inspect', archive()], { encoding: 'utf8' });
    const { Os, Architecture, Layers } = JSON.parse(inspected) as {
      Os: string;
      Architecture: string;
      Layers: string[];
    };
    expect([Os, Architecture, Layers.length]).to.deep.equal(['linux', target.debianArch, 3]);
    // It reads and verifies every layer.
    execFileSync('skopeo', [...ofTarget, 'copy', '--quiet', archive(), `dir:${temporaryFolder()}`]);
  });

  it('has digests, sizes and layers as stated', () => {
    const { manifests } = parsed(readFileSync(join(layout, 'index.json'))) as {
      manifests: [Blob & { annotations: Record<string, string> }];
    };
    expect(manifests[0].annotations).to.deep.equal({
      'org.opencontainers.image.ref.name': readVersion(),
      'io.containerd.image.name': `docker.io/library/llmp:${readVersion()}`,
    });
    const index = parsed(blob(manifests[0])) as { manifests: (Blob & { platform: object })[] };
    expect(index.manifests.map(({ platform }) => platform)).to.deep.equal([
      { architecture: 'amd64', os: 'linux' },
      { architecture: 'arm64', os: 'linux' },
    ]);
    const named = index.manifests[TARGETS.indexOf(target)]!;
    const manifest = parsed(blob(named)) as { config: Blob; layers: Blob[] };
    for (const each of [manifests[0], named, manifest.config, ...manifest.layers]) {
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
    const emulator = emulatorFor(target);
    if (emulator) copyFileSync(emulator, join(root, 'emulator'));
    const command = [...(emulator ? ['/emulator'] : []), ...Entrypoint, ...Cmd];
    const daemon = spawn('/usr/sbin/chroot', [`--userspec=${User}`, '--groups=', root, ...command], {
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
      await eventually('it is ready', isReady, 300_000).catch((error: unknown) => {
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
}
