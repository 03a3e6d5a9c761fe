import { expect } from 'chai';
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { temporaryFolder } from '../support/daemon.js';
import { startStandIn } from './stand-in.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const BUNDLE = join(ROOT, 'dist/cli/llmp.cjs');
const MAIN = join(ROOT, 'dist/cli/main.js');

const SEPARATE = /import\('(?:\.\.\/)+(?:tui\/|migrations\/|daemon\/(?!api\/))|import\('\.\.\/manual\//;

function ran(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--', file, ...args], {
    env: { PATH: process.env.PATH, HOME: temporaryFolder(), ...env },
    encoding: 'utf8',
  });
  // Hints name the file that was started.
  return { status, stdout, stderr: stderr.replaceAll(file, 'llmp') };
}

describe('the bundled command line', () => {
  it('runs unbundled every command that loads the daemon or the terminal UI', () => {
    const files = readdirSync(join(ROOT, 'cli'), { recursive: true, encoding: 'utf8' }).filter((it) =>
      it.endsWith('.ts'),
    );
    const loading = files.filter((file) => SEPARATE.test(readFileSync(join(ROOT, 'cli', file), 'utf8')));
    expect(loading).to.include('commands/tui.ts');
    const undeclared = loading.filter(
      (file) => !readFileSync(join(ROOT, 'cli', file), 'utf8').includes('runsUnbundled: true'),
    );
    expect(undeclared, 'without runsUnbundled: true').to.deep.equal([]);
  });

  it('does not contain the daemon, the terminal UI, or large packages', () => {
    const text = readFileSync(BUNDLE, 'utf8');
    const modules = [...text.matchAll(/^\/\/ (?:dist|node_modules|\.\.)\/.*$/gm)].map(([line]) => line);
    expect(modules.some((line) => line.endsWith('dist/cli/program.js'))).to.equal(true);
    const separate = modules.filter((line) => /dist\/(?:tui|migrations|daemon\/(?!api\/)|cli\/manual)/.test(line));
    expect(separate).to.deep.equal([]);
    expect(statSync(BUNDLE).size).to.be.below(1_000_000);
  });

  for (const line of [
    '--version',
    'version',
    'help token generate',
    'completion bash',
    '__complete -- tok',
    '__complete -- tui --s',
    'token lits',
    'man token',
    'tui --print-keys',
    'tui --once',
    'daemon --check',
    'migrate status --direct',
    'config show',
    'context list',
    'audit verify',
  ]) {
    it(`llmp ${line}: as the separate modules`, () => {
      const args = line.split(' ');
      expect(ran(BUNDLE, args)).to.deep.equal(ran(MAIN, args));
    });
  }

  it('lists tokens, also when started through a link in another folder', async () => {
    const daemon = await startStandIn();
    try {
      const link = join(temporaryFolder(), 'llmp');
      symlinkSync(BUNDLE, link);
      const env = {
        PATH: process.env.PATH,
        HOME: temporaryFolder(),
        LLMP_SERVER: daemon.url,
        MANAGEMENT_TOKEN: 'x'.repeat(40),
      };
      const child = spawn(link, ['token', 'list', '-o', 'json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
      let out = '';
      for await (const piece of child.stdout) out += String(piece);
      expect(JSON.parse(out)).to.deep.equal([]);
      expect(daemon.asked.map(({ method }) => method)).to.deep.equal(['GET']);
    } finally {
      await daemon.stop();
    }
  });

  it('llmp init writes a unit that starts the separate modules', () => {
    const dir = join(temporaryFolder(), 'etc');
    const args = ['init', '--no-input', '--dir', dir, '--set', 'UPSTREAM_BASE_URL=http://127.0.0.1:9'];
    ran(BUNDLE, args, { SYSTEMD_UNIT_PATH: dir });
    expect(readFileSync(join(dir, 'llmp.service'), 'utf8')).to.match(
      /^ExecStart=\S+node .*\/dist\/cli\/main\.js daemon/m,
    );
  });
});
