import { expect } from 'chai';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { Terminal, WITHOUT_TMUX } from '../support/tmux.js';
import { BUNDLE, ended, start } from './processes.js';
import { answerJson, type StandIn, startStandIn } from './stand-in.js';

const TOKEN = { id: '3fa91c2e-0000-4000-8000-000000000001', name: 'ci-deploy', state: 'active' };
const PROJECTS = [
  { id: '77ab10f3-0000-4000-8000-000000000001', name: 'website', is_active: true },
  { id: '88ab10f3-0000-4000-8000-000000000002', name: '$(touch pwned)`touch pwned`', is_active: true },
  { id: '99ab10f3-0000-4000-8000-000000000003', name: "x'; touch pwned; '\n\x1b[31m%F{red}\\", is_active: true },
];

interface Completing {
  /** Whether the shell must be installed in CI. */
  isRequired: boolean;
  argv: (folder: string) => string[];
  files: Record<string, string>;
  showsMeanings: boolean;
}

const SHELLS: Record<string, Completing> = {
  bash: {
    isRequired: true,
    argv: (folder) => ['bash', '--noprofile', '--rcfile', join(folder, '.bashrc'), '-i'],
    files: { '.bashrc': "PS1='ready> '\nbind 'set show-all-if-ambiguous on'\nsource <(llmp completion bash)\n" },
    showsMeanings: false,
  },
  zsh: {
    isRequired: false,
    argv: () => ['zsh', '-d', '-i'],
    files: { '.zshrc': "autoload -Uz compinit\ncompinit -D\nPS1='ready> '\nsource <(llmp completion zsh)\n" },
    showsMeanings: true,
  },
  fish: {
    isRequired: false,
    argv: (folder) => ['fish', '--no-config', '-i', '-C', `source ${join(folder, 'config.fish')}`],
    files: {
      'config.fish':
        "set -g fish_greeting\nset -g fish_autosuggestion_enabled 0\nfunction fish_prompt\n  printf 'ready> '\nend\nllmp completion fish | source\n",
    },
    showsMeanings: true,
  },
};

for (const [name, shell] of Object.entries(SHELLS)) {
  const isMissing =
    spawnSync(name, ['--version']).error !== undefined && !(process.env.CI === 'true' && shell.isRequired);
  const why = isMissing ? ` (skipped: no ${name} here)` : WITHOUT_TMUX;

  describe(`completion in ${name}${why}`, () => {
    let daemon: StandIn;
    let folder: string;
    let terminal: Terminal;

    before(function () {
      if (why !== '') this.skip();
    });

    beforeEach(async () => {
      daemon = await startStandIn();
      daemon.answer = (req, res) => {
        answerJson(res, 200, req.url?.startsWith('/manage/tokens') ? [TOKEN] : PROJECTS);
      };
      folder = temporaryFolder();
      mkdirSync(join(folder, 'bin'));
      const llmp = join(folder, 'bin', 'llmp');
      writeFileSync(llmp, `#!/bin/sh\nexec '${process.execPath}' -- '${BUNDLE}' "$@"\n`);
      chmodSync(llmp, 0o700);
      for (const [file, text] of Object.entries(shell.files)) writeFileSync(join(folder, file), text);
      writeFileSync(join(folder, 'my settings.env'), '');
      writeFileSync(join(folder, 'token'), MANAGEMENT_TOKEN, { mode: 0o600 });
      const env = {
        HOME: folder,
        ZDOTDIR: folder,
        PATH: `${join(folder, 'bin')}:${process.env.PATH ?? ''}`,
        LLMP_SERVER: daemon.url,
        MANAGEMENT_TOKEN_FILE: join(folder, 'token'),
      };
      terminal = await Terminal.open(shell.argv(folder), { env, cwd: folder, columns: 120 });
      await terminal.shows(/^ready>$/m);
    });

    afterEach(async () => {
      await terminal.close();
      await daemon.stop();
    });

    /** Presses Tab until it has an effect: on a busy machine completion may end after 800 ms without a result. */
    async function completes(typed: string, shown: RegExp | string): Promise<void> {
      await terminal.type(typed);
      for (let tries = 1; ; tries += 1) {
        await terminal.press('Tab');
        try {
          await terminal.shows(shown, 3_000);
          return;
        } catch (error) {
          if (tries === 5) throw error;
        }
      }
    }

    it('completes from a command to a token ID', async () => {
      await completes('llmp tok', /^ready> llmp token\s*$/m);
      await completes('rev', /^ready> llmp token revoke\s*$/m);
      await completes('3f', /^ready> llmp token revoke 3fa91c2e-0000-4000-8000-000000000001\s*$/m);
    });

    it('completes values of options, as separate words and after =', async () => {
      await completes('llmp token list --state exp', /--state expired\s*$/m);
      await completes('--sort=last', /--state expired --sort=last_used_at\s*$/m);
      await completes('-o js', /-o json/m);
    });

    it('completes the keys and values of a query, without a space between them', async () => {
      await completes('llmp token list sta', /list state:$/m);
      await completes('exp', /list state:expired\s*$/m);
      await completes('proj', /list state:expired project:$/m);
      await completes('web', /project:website\s*$/m);
    });

    it('completes names of tokens', async () => {
      await completes('llmp token get ci', /get ci-deploy\s*$/m);
    });

    it('completes after an address with colons', async () => {
      await completes(`llmp --server ${daemon.url} project get web`, /get website\s*$/m);
    });

    it('completes within quotes, and after other commands', async () => {
      await completes('llmp "tok', /^ready> llmp "token"/m);
      await terminal.press('C-u');
      await completes('true; llmp   token  rea', /^ready> true; llmp {3}token {2}reactivate\s*$/m);
    });

    it('leaves file names to the shell', async () => {
      await completes('llmp daemon --env-file my', /--env-file (my\\ settings\.env|'my settings\.env')/);
      await terminal.press('C-u');
      await completes('llmp daemon --env-file=my', /--env-file='?my\\? settings\.env/);
    });

    it('never evaluates project names, and offers such projects by ID', async () => {
      await completes('llmp project get ', /88ab10f3[\s\S]*99ab10f3|99ab10f3[\s\S]*88ab10f3/);
      if (shell.showsMeanings)
        expect(await terminal.screen())
          .to.contain('$(touch pwned)`touch')
          .and.to.contain('\\x0a\\x1b[31m');
      await completes('88', /^ready> llmp project get 88ab10f3-0000-4000-8000-000000000002\s*$/m);
      await terminal.press('C-u');
      await terminal.type('echo still here');
      await terminal.press('Enter');
      await terminal.shows(/^still here$/m);
      expect(existsSync(join(folder, 'pwned'))).to.be.false;
    });
  });
}

describe('what a shell waits for', () => {
  const BUSY_MACHINE_MS = 10_000;

  it('ends without output when a file does not respond', async function () {
    this.timeout(BUSY_MACHINE_MS * 2);
    const pipe = join(temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const child = start(['__complete', '--', 'token', 'revoke', ''], { MANAGEMENT_TOKEN_FILE: pipe }, BUNDLE);
    const { out, err, signal } = await ended(child);
    expect({ err, signal }).to.deep.equal({ err: '', signal: 'SIGKILL' });
    // On a busy machine it is killed before it writes the first line. To a shell this is the same.
    expect(out).to.be.oneOf(['words\n', '']);
  });

  it('ends by itself when a daemon does not respond', async function () {
    this.timeout(BUSY_MACHINE_MS * 6);
    const daemon = await startStandIn();
    daemon.answer = () => undefined;
    // On a busy machine the program may need all of its 800 ms to start, and is then killed; a user would press Tab again.
    let tries = 0;
    let completion;
    do {
      const child = start(
        ['__complete', '--', 'token', 'revoke', ''],
        { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN },
        BUNDLE,
      );
      completion = await ended(child);
      tries += 1;
    } while (completion.signal === 'SIGKILL' && tries < 20);
    const { out, err, signal } = completion;
    expect({ out, err, signal }).to.deep.equal({ out: 'words\n', err: '', signal: null });
    await daemon.stop();
  });
});
