import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { MAIN } from './processes.js';
import { type StandIn, startStandIn } from './stand-in.js';

const DIST = resolve(import.meta.dirname, '../..');
const HOOK = new URL('../support/module-hook.js', import.meta.url).href;

// Loaded modules determine the startup time and, unlike a time measurement, do not depend on the load of the machine.
describe('what a command loads', () => {
  let daemon: StandIn;

  before(async () => {
    daemon = await startStandIn();
  });
  after(() => daemon.stop());

  /** Packages by name, and files of llmp by path. */
  async function loadedBy(args: string): Promise<{ packages: string[]; files: string[] }> {
    const path = join(temporaryFolder(), 'loaded');
    writeFileSync(path, '');
    const registering = `import { register } from 'node:module'; register('${HOOK}', { data: ${JSON.stringify({ path })} });`;
    const child = spawn(
      process.execPath,
      [
        '--import',
        `data:text/javascript,${encodeURIComponent(registering)}`,
        '--',
        MAIN,
        ...args.split(' ').filter(Boolean),
      ],
      {
        env: { PATH: process.env.PATH, HOME: temporaryFolder(), LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN },
        stdio: 'ignore',
      },
    );
    expect((await once(child, 'close'))[0], args).to.equal(0);
    const urls = readFileSync(path, 'utf8')
      .split('\n')
      .filter((url) => url.startsWith('file:'));
    const paths = urls.map((url) => fileURLToPath(url));
    // Bundled packages share code in dist/node_modules/.shared.
    const packages = paths.flatMap((file) => /.*node_modules\/((?:@[^/]+\/)?[^/.]+)/.exec(file)?.[1] ?? []);
    const files = paths.filter((file) => !file.includes('node_modules')).map((file) => relative(DIST, file));
    return { packages: [...new Set(packages)].sort(), files };
  }

  for (const args of ['--version', '', 'help token generate', 'token list -o json']) {
    it(`llmp ${args}: only the package that parses, and of the daemon only the client, without schemas`, async () => {
      const { packages, files } = await loadedBy(args);
      expect(packages).to.deep.equal(['commander']);
      expect(
        files.filter((file) => /^(?:daemon\/(?!api\/)|daemon\/api\/(?:schemas|operations)|tui\/)/.test(file)),
      ).to.deep.equal([]);
    });
  }

  it('one library for YAML and for jq, only if it is requested', async () => {
    expect((await loadedBy('project list -o yaml')).packages).to.deep.equal(['commander', 'yaml']);
    expect((await loadedBy('project list --jq .')).packages).to.deep.equal(['commander', 'jq-wasm']);
    expect((await loadedBy('project list --template {{.id}}')).packages).to.deep.equal(['commander']);
  });

  it('llmp --version: no other command', async () => {
    const { files } = await loadedBy('--version');
    expect(files).to.include('cli/parser.js');
    for (const file of [
      'cli/commands/token.js',
      'cli/commands/run.js',
      'console/table.js',
      'cli/connection/connection.js',
      'config/settings.js',
    ]) {
      expect(files).not.to.include(file);
    }
  });

  it('llmp daemon: nothing of the Admin UI, which is loaded on demand', async () => {
    const { packages, files } = await loadedBy('daemon --check');
    expect(packages).to.include('express');
    for (const name of ['react', 'react-dom', 'helmet']) expect(packages).not.to.include(name);
    expect(files.filter((file) => file.startsWith('daemon/admin/'))).to.deep.equal([]);
  });
});
