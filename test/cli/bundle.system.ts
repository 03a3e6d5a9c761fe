import { expect } from 'chai';
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { codeCacheOf, readCodeCache, scriptOf } from '../../cli/bundled-program.js';
import { cacheCode } from '../../packaging/bundled-command-line.js';
import { temporaryFolder } from '../support/daemon.js';
import { startStandIn } from './stand-in.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const BUNDLE = join(ROOT, 'dist/cli/llmp.cjs');
const MAIN = join(ROOT, 'dist/cli/main.js');

/** The path of the only file in dist/cli of the bundle, or of its code cache. */
function bundled(ending: '.cjs' | '.cjs.map' | '.cache'): string {
  const folder = join(ROOT, 'dist/cli');
  const found = readdirSync(folder).filter((name) => name.startsWith('llmp-') && name.endsWith(ending));
  expect(found).to.have.length(1);
  return join(folder, found[0] ?? '');
}

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
    const text = readFileSync(bundled('.cjs'), 'utf8');
    const { sources } = JSON.parse(readFileSync(bundled('.cjs.map'), 'utf8')) as { sources: string[] };
    const modules = sources.map((source) => relative(ROOT, resolve(ROOT, 'dist/cli', source)));
    expect(modules).to.include('cli/program.ts');
    const separate = modules.filter((path) =>
      /^(?:dist\/)?(?:tui|migrations|daemon\/(?!api\/)|cli\/manual)/.test(path),
    );
    expect(separate).to.deep.equal([]);
    expect(text.length).to.be.below(1_000_000);
    expect(text, 'ASCII, which it is read as').to.match(/^[\0-\x7f]*$/);
  });

  it('has the same code cache on a slow machine and in any environment', () => {
    const program = join(temporaryFolder(), basename(bundled('.cjs')));
    copyFileSync(bundled('.cjs'), program);
    symlinkSync(join(ROOT, 'node_modules'), join(program, '../node_modules'));
    const written = (delayMs: number) => {
      const delayed = `import http from 'node:http';
        import { syncBuiltinESMExports } from 'node:module';
        const { createServer } = http;
        const { setTimeout: begin } = globalThis;
        http.createServer = (respond) => createServer((req, res) => begin(() => respond(req, res), ${delayMs}));
        syncBuiltinESMExports();`;
      const modified = ['--import', `data:text/javascript,${encodeURIComponent(delayed)}`];
      expect(cacheCode(program, [process.execPath, ...modified])).to.equal(true);
      return readFileSync(codeCacheOf(program));
    };
    const usual = written(0);
    // After 300 ms a command says what it waits for.
    expect(written(400).equals(usual), 'slow').to.equal(true);
    const { NODE_OPTIONS } = process.env;
    Object.assign(process.env, { FORCE_COLOR: '1', NODE_OPTIONS: '--enable-source-maps' });
    try {
      expect(written(0).equals(usual), 'environment').to.equal(true);
    } finally {
      delete process.env.FORCE_COLOR;
      if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS;
      else process.env.NODE_OPTIONS = NODE_OPTIONS;
    }
  });

  it('starts with the code cache of this version of Node.js, and without one', () => {
    const program = bundled('.cjs');
    expect(bundled('.cache')).to.equal(codeCacheOf(program));
    expect(scriptOf(program, readCodeCache(program)).cachedDataRejected).to.equal(false);

    const folder = join(temporaryFolder(), 'dist/cli');
    mkdirSync(folder, { recursive: true });
    copyFileSync(join(ROOT, 'package.json'), join(folder, '../../package.json'));
    for (const file of [BUNDLE, program]) copyFileSync(file, join(folder, basename(file)));
    const start = () => ran(join(folder, 'llmp.cjs'), ['help', 'token', 'list']);
    const expected = ran(BUNDLE, ['help', 'token', 'list']);
    expect(start()).to.deep.equal(expected);
    // V8 rejects the cache of another version, and a file that is not a cache.
    const cache = join(folder, basename(codeCacheOf(program)));
    writeFileSync(cache, 'not a cache');
    expect(start()).to.deep.equal(expected);
    const other = readFileSync(codeCacheOf(program));
    other.writeUInt32LE((other.readUInt32LE(4) ^ 1) >>> 0, 4); // The version of V8.
    writeFileSync(cache, other);
    expect(scriptOf(join(folder, basename(program)), other).cachedDataRejected).to.equal(true);
    expect(start()).to.deep.equal(expected);
  });

  // One for each way through the program: without a daemon, with separate modules, with an error, with data.
  for (const line of [
    'help token generate',
    'completion bash',
    'token lits',
    'man token',
    'tui --print-keys',
    'daemon --check',
    'migrate status --direct',
    'context list --jq length',
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
