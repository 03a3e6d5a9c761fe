/** The Debian package, installed in fresh roots of the releases of Debian. systemd does not run there: see test/vm. */
import { expect } from 'chai';
import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { packageRoot } from '../../config/package-root.js';
import { entriesBelow, textIn } from '../../packaging/files.js';
import { canary } from '../support/canaries.js';
import { permit } from '../support/leaks.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { type Provider, startProvider } from '../support/provider.js';
import { Chroot, type Suite } from './chroot.js';
import { firstAnswer, PROMISED_MS } from './first-answer.js';
import { debianPackage, released, WITHOUT_ROOTS } from './released.js';

/** What apt and dpkg write themselves. */
const OF_PACKAGING =
  /^(?:proc|dev|root|tmp|var\/lib\/(?:dpkg|apt|systemd)|var\/cache|var\/log)(?:\/|$)|^etc\/(?:passwd|group|shadow|gshadow)-$/;

/** The commands of a block of docs/install.md that is marked `runs: NAME`. */
function documented(name: string): string[] {
  const page = textIn(packageRoot(), 'docs/install.md');
  const [, block = ''] = new RegExp(`<!-- runs: ${name} -->\n\n\`\`\`sh\n([^]*?)\n\`\`\``).exec(page) ?? [];
  return block.split('\n');
}

function filesIn(root: string): string[] {
  return entriesBelow(root)
    .map(({ path }) => relative(root, path))
    .filter((path) => !OF_PACKAGING.test(path))
    .sort();
}

describe(`the Debian package${WITHOUT_ROOTS}`, function () {
  this.timeout(600_000);
  before(function () {
    if (WITHOUT_ROOTS !== '') this.skip();
  });

  for (const architecture of ['amd64', 'arm64'])
    it(`has no error for lintian, for ${architecture}`, () => {
      const { status, stdout, stderr } = spawnSync('lintian', ['--fail-on', 'error', debianPackage(architecture)], {
        encoding: 'utf8',
      });
      expect(status, stdout + stderr).to.equal(0);
    });

  it('has no override for lintian without a reason', () => {
    const lines = execFileSync('dpkg-deb', ['--fsys-tarfile', debianPackage()], { maxBuffer: 2 ** 30 });
    const overrides = execFileSync('tar', ['-xO', './usr/share/lintian/overrides/llmp'], {
      input: lines,
      encoding: 'utf8',
    });
    overrides.split('\n').forEach((line, index, all) => {
      if (line !== '' && !line.startsWith('#')) expect(all[index - 1], line).to.match(/^#|^llmp/);
    });
  });

  for (const suite of ['bookworm', 'trixie'] as const)
    describe(`on Debian ${suite}`, () => {
      onDebian(suite);
    });
});

function onDebian(suite: Suite): void {
  let debian: Chroot;
  let provider: Provider;
  let fresh: { files: string[]; users: string };
  const started: ChildProcess[] = [];
  const users = () =>
    ['passwd', 'group', 'shadow'].map((name) => readFileSync(join(debian.root, 'etc', name), 'utf8')).join();
  const textOf = (path: string) => readFileSync(join(debian.root, path), 'utf8');

  before(async () => {
    debian = Chroot.open(suite);
    provider = await startProvider();
    await debian.succeed('apt-get update');
    // What the package needs that this root lacks comes from Debian, and is no part of the package.
    await debian.succeed(
      'apt-get install --yes --no-install-recommends libstdc++6 systemd-standalone-sysusers systemd-standalone-tmpfiles passwd',
    );
    fresh = { files: filesIn(debian.root), users: users() };
  });
  after(async () => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
    await provider.stop();
    debian.remove();
  });

  it('installs without Node.js, and creates its users', async () => {
    debian.add(debianPackage());
    const install = documented('debian')[0] ?? '';
    expect(install).to.match(/^apt install /);
    const output = await debian.succeed(
      `cd /root; ${install.replace('apt install', 'apt-get install --yes --no-install-recommends')}`,
    );
    expect(output)
      .to.include('Setting up llmp')
      .and.not.to.match(/warning|Unpacking node/i);
    expect(await debian.succeed('id -un llmp; id -Gn llmp-dispatcher')).to.equal('llmp\nllmp-dispatcher llmp\n');
    expect(await debian.succeed("stat -c '%a %U:%G' /etc/llmp /etc/llmp/llmp.env /etc/llmp/credentials")).to.equal(
      '750 root:llmp\n640 root:llmp\n700 root:root\n',
    );
    expect((await debian.run('command -v node')).exitCode).not.to.equal(0);
    expect(await debian.succeed('llmp --version')).to.match(/^\d+\.\d+\.\d+\n$/);
  });

  it('has manual pages, completions, units and examples where Debian has them', async () => {
    const paths = [
      'usr/share/man/man1/llmp.1.gz',
      'usr/share/man/man5/llmp.env.5.gz',
      'usr/share/man/man8/llmp-daemon.8.gz',
      'usr/share/bash-completion/completions/llmp',
      'usr/share/zsh/vendor-completions/_llmp',
      'usr/share/fish/vendor_completions.d/llmp.fish',
      'usr/lib/systemd/system/llmp@.service',
      'usr/lib/sysusers.d/llmp.conf',
      'usr/lib/tmpfiles.d/llmp.conf',
      'etc/logrotate.d/llmp',
      'usr/share/doc/llmp/copyright',
      'usr/share/doc/llmp/examples/compose/compose.yaml',
    ];
    const installed = (await debian.succeed('dpkg -L llmp')).split('\n');
    // dpkg of a minimal root does not unpack the documentation, but knows of it.
    expect(installed).to.include.members(paths.map((path) => `/${path}`));
    expect(await debian.succeed('llmp man token')).to.include('llmp token');
    expect(
      await debian.succeed('bash -c ". /usr/share/bash-completion/completions/llmp; complete -p llmp"'),
    ).to.include('_llmp');
  });

  it('answers a first request with llmp demo', async () => {
    expect(await timeToFirstAnswer(debian, documented('debian').at(-1) ?? '')).to.be.lessThan(PROMISED_MS);
  });

  it('serves with the command of its unit, as the user of its unit', async () => {
    permit(/^stdout of unshare/, ['token'], 'the same for an operator');
    const upstreamKey = canary('upstream');
    const unit = textOf('usr/lib/systemd/system/llmp.service');
    const command = /^ExecStart=(.*)$/m.exec(unit)?.[1] ?? '';
    expect(command).to.match(/^\/usr\/bin\/llmp daemon /);
    const port = await freePort();
    writeFileSync(
      join(debian.root, 'etc/llmp/llmp.env'),
      `LISTEN_ADDR=127.0.0.1:${port}\nUPSTREAM_BASE_URL=${provider.url}\n`,
    );
    const folders = ['/var/lib/llmp', '/var/log/llmp', '/run/llmp', '/run/credentials'];
    await debian.succeed(`install -d -o llmp -g llmp -m 700 ${folders.join(' ')}`);
    const secret = async (path: string, text: string, owner: string) => {
      writeFileSync(join(debian.root, path), `${text}\n`, { mode: 0o400 });
      await debian.succeed(`chown ${owner} /${path}`);
    };
    await secret('run/credentials/management-token', canary('management'), 'llmp');
    await secret('root/key', upstreamKey, 'root');
    // The shell stays: a process that changes its user is no longer killed together with its parent.
    const daemon = debian.start(`setpriv --reuid=llmp --regid=llmp --clear-groups --no-new-privs ${command}; exit $?`, {
      STATE_DIRECTORY: '/var/lib/llmp',
      LOGS_DIRECTORY: '/var/log/llmp',
      RUNTIME_DIRECTORY: '/run/llmp',
      CREDENTIALS_DIRECTORY: '/run/credentials',
      NODE_ENV: 'production',
    });
    started.push(daemon);
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
    const env = { LLMP_SERVER: `http://127.0.0.1:${port}`, MANAGEMENT_TOKEN_FILE: '/run/credentials/management-token' };
    await debian.succeed('llmp project create --name web --key-file /root/key', env);
    const token = (await debian.succeed('llmp token generate --quiet', env)).trim();
    const response = await fetch(`http://127.0.0.1:${port}/v1/models`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(response.status).to.equal(200);
    expect(provider.received.at(-1)?.headers.authorization).to.equal(`Bearer ${upstreamKey}`);
    expect(await debian.succeed("stat -c '%U %a' /var/lib/llmp/llmp.db")).to.equal('llmp 600\n');
    daemon.kill('SIGKILL');
  });

  it('leaves nothing after a purge', async () => {
    const env = textOf('etc/llmp/llmp.env');
    await debian.succeed('apt-get remove --yes llmp');
    expect(textOf('etc/llmp/llmp.env'), 'settings stay until the purge').to.equal(env);
    await debian.succeed('apt-get purge --yes llmp && rm -rf /run/credentials');
    expect(filesIn(debian.root)).to.deep.equal(fresh.files);
    expect(users()).to.equal(fresh.users);
  });

  it('is not needed: the tarball answers a first request within a minute', async () => {
    for (const ending of ['-linux-x64.tar.gz', 'SHA256SUMS']) debian.add(released(ending));
    const commands = documented('tarball');
    const begun = performance.now();
    for (const command of commands.slice(0, -1)) await debian.succeed(`cd /root; ${command}`);
    await timeToFirstAnswer(debian, `/root/${commands.at(-1)}`);
    const took = performance.now() - begun;
    console.log(`      tarball to first answer on ${suite}: ${Math.round(took)} ms`);
    expect(took).to.be.lessThan(PROMISED_MS);
  });
}

/** Starts the demo with a command, and waits for a first answer. @returns how long that took, in milliseconds. */
async function timeToFirstAnswer(debian: Chroot, command: string): Promise<number> {
  const begun = performance.now();
  const demo = debian.start(`exec ${command} --json`);
  try {
    await firstAnswer(demo);
    return performance.now() - begun;
  } finally {
    demo.kill('SIGKILL');
  }
}
