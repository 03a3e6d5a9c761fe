/** The commands in the documentation, as a reader pastes them: the quick start of the README at a terminal, and blocks of docs/. */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { MAIN } from '../cli/processes.js';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { freePort } from '../support/ports.js';
import { spawnDaemon } from '../support/process.js';
import { startProvider } from '../support/provider.js';
import { Terminal, WITHOUT_TMUX } from '../support/tmux.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const SHOWN_ADDRESS = '127.0.0.1:8080';
const SHOWN_TOKEN = '3fa91c2e';
const SHOWN_PROJECT = '77ab10f3-91d4-4e6a-b3c8-5f02a6d9e417';
// Not canaries: the pages tell readers to write these into files.
const MANAGEMENT_TOKEN = 'the-management-token-of-the-documentation';
const UPSTREAM_KEY = 'sk-the-key-of-the-documentation';
const execute = promisify(execFile);
const ending: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

/** The commands of a block, each with the lines that continue it. */
const commandsIn = (block: string) =>
  block
    .replaceAll('\\\n', '\\\n\0')
    .split(/\n(?!\0)/)
    .map((line) => line.replaceAll('\0', ''))
    .filter((line) => line.trim() !== '' && !line.startsWith('#'));

/** A folder for programs that replace or wrap others, at the beginning of PATH. */
function programs(folder: string, scripts: Record<string, string> = {}): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  symlinkSync(MAIN, join(bin, 'llmp'));
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(bin, name), text);
    chmodSync(join(bin, name), 0o755);
  }
  return [bin, process.env.PATH].join(delimiter);
}

describe(`the quick start of the README${WITHOUT_TMUX}`, function () {
  this.timeout(120_000);

  it('works as it is written', async function () {
    if (WITHOUT_TMUX !== '') this.skip();
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const blocks = [...readme.matchAll(/^<!-- runs: quick-start -->\n\n```sh\n([^]*?)^```/gm)];
    const provider = await startProvider();
    ending.push(() => provider.stop());
    const port = await freePort();
    const folder = temporaryFolder();
    copyFileSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
    symlinkSync(join(ROOT, 'dist'), join(folder, 'dist'));
    // Both terminals of the reader. Only the addresses differ: others may use port 8080 here, and there is no provider.
    const env = {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      PS1: '> ',
      LISTEN_ADDR: `127.0.0.1:${port}`,
      LLMP_SERVER: `http://127.0.0.1:${port}`,
      UPSTREAM_BASE_URL: provider.url,
    };
    const bash = ['bash', '--norc', '--noprofile', '-i'];
    const open = async () => {
      const terminal = await Terminal.open(bash, { env, cwd: folder, columns: 160 });
      ending.push(() => terminal.close());
      await terminal.shows(/^>$/m);
      return terminal;
    };

    const [start = '', ...commands] = blocks.flatMap(([, block = '']) => commandsIn(block));
    expect(commands.map((command) => command.split(/[ =]/)[0])).to.deep.equal([
      'alias',
      'export',
      'llmp',
      'TOKEN',
      'curl',
      'llmp',
      'llmp',
    ]);
    const daemon = await open();
    await daemon.type(start.replace(/ +#.*/, ''));
    await daemon.press('Enter');
    await daemon.shows('listening', 60_000);

    const reader = await open();
    const enter = async (command: string, shown: RegExp) => {
      await reader.press('C-l');
      for (const line of command.replaceAll(SHOWN_ADDRESS, `127.0.0.1:${port}`).split('\n')) {
        await reader.type(line);
        await reader.press('Enter');
      }
      return reader.shows(shown, 30_000);
    };
    const [alias = '', exported = '', create = '', generate = '', curl = '', list = '', revoke = ''] = commands;
    await enter(alias, /^>$/m);
    await enter(exported, /^>$/m);
    await enter(create, /key/i);
    await reader.typeSecret(canary('upstream'));
    await reader.press('Enter');
    await reader.shows(/Created project web[^]*^>$/m, 30_000);
    await enter(generate, /^>$/m);
    await enter(`${curl}; echo`, /"choices":/);
    const listed = await enter(list, /● active[^]*^>$/m);
    const id = /^([0-9a-f]{8}) /m.exec(listed)?.[1] ?? '';
    await enter(revoke.replace(SHOWN_TOKEN, id), new RegExp(`Revoked ${id}`));
    await enter(`${curl}; echo`, /"code":"unauthorized"/);
    // Without the check of the key.
    expect(provider.received.filter(({ method }) => method === 'POST')).to.have.length(1);
  });
});

/** Blocks of docs/ that run one after the other, those of a page together. */
const BLOCKS = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((page) => ({
    page,
    blocks: [
      ...readFileSync(join(ROOT, 'docs', page), 'utf8').matchAll(/^<!-- runs: commands -->\n\n```sh\n([^]*?)^```/gm),
    ].map(([, block = '']) => block),
  }))
  .filter(({ blocks }) => blocks.length > 0);

describe('the commands in docs/', function () {
  this.timeout(120_000);

  for (const { page, blocks } of BLOCKS) {
    it(`docs/${page}: each of them succeeds`, async () => {
      const provider = await startProvider();
      ending.push(() => provider.stop());
      const folder = temporaryFolder();
      const database = join(folder, 'llmp.db');
      const audit = join(folder, 'audit.log');
      const uses = join(folder, 'audit-use.log');
      const daemonEnv = { DATABASE_URL: database, AUDIT_LOG_FILE: audit, AUDIT_USE_LOG_FILE: uses };
      const daemon = await spawnDaemon({
        MANAGEMENT_TOKEN,
        UPSTREAM_BASE_URL: provider.url,
        HTTP_CACHE_ENABLED: 'true',
        SHUTDOWN_DELAY: '0',
        ...daemonEnv,
      });
      ending.push(() => daemon.kill());
      const secretFile = (name: string, text: string) => {
        writeFileSync(join(folder, name), text, { mode: 0o600 });
      };
      secretFile('key.txt', UPSTREAM_KEY);
      secretFile('new-key.txt', `${UPSTREAM_KEY}-2`);
      secretFile('.llmp-prod', MANAGEMENT_TOKEN);
      writeFileSync(join(folder, 'batch.py'), 'import os\nassert os.environ["OPENAI_API_KEY"].startswith("sk-wt-")\n');
      const env = {
        PATH: programs(folder, {
          // A stand-in for the password manager of the page.
          pass: `#!/bin/sh\ncat ${join(folder, '.llmp-prod')}\n`,
          // What follows events runs until it is interrupted.
          'llmp-for-a-moment': '#!/bin/sh\ntimeout --signal=INT 3 llmp "$@"; [ $? -eq 124 ] || [ $? -eq 0 ]\n',
        }),
        HOME: folder,
        LC_ALL: 'C.UTF-8',
        LLMP_SERVER: daemon.url,
        MANAGEMENT_TOKEN_FILE: join(folder, '.llmp-prod'),
        ...daemonEnv,
      };
      const sh = async (command: string) => {
        const script = command.replace(/^llmp(?= (?:audit|events) tail\b)/, 'llmp-for-a-moment');
        const { stdout } = await execute('bash', ['-ec', script], { cwd: folder, env, timeout: 60_000 });
        return stdout.trim();
      };
      const project = await sh('llmp project create --name web --key-file key.txt -o id');
      await sh('llmp token generate -q');
      const token = await sh('llmp token list -o id');
      for (const command of blocks.flatMap(commandsIn)) {
        const asHere = command
          .replaceAll(SHOWN_PROJECT, project)
          .replaceAll(SHOWN_TOKEN, token)
          .replaceAll(/https:\/\/(?:llmp|staging)\.example/g, daemon.url)
          // A context would be overruled by the variables of this test.
          .replace(
            /^llmp(?= (?:context|-c) | token list +# of staging)/,
            'unset LLMP_SERVER MANAGEMENT_TOKEN_FILE; llmp',
          );
        await sh(asHere).catch((error: unknown) => {
          throw new Error(`${command}: ${error instanceof Error ? error.message : ''}`, { cause: error });
        });
        // Commands of a page that stop all traffic are undone, so that those after it find the state that they assume.
        if (command.startsWith('llmp project deactivate')) await sh('llmp project activate web');
      }
      // Pages write secrets into these.
      for (const name of ['llmp-token', 'class-secrets.csv', 'again.csv']) rmSync(join(folder, name), { force: true });
    });
  }

  it('are those of the pages on everyday work', () => {
    expect(BLOCKS.map(({ page }) => page)).to.include.members(['quick-start.md', 'providers.md', 'operate/audit.md']);
  });
});
