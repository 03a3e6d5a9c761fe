import { expect } from 'chai';

import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { llmp } from '../cli/captured.js';
import { ended, MAIN, start } from '../cli/processes.js';
import { answerJson, type StandIn, startStandIn } from '../cli/stand-in.js';
import { daemonForEachTest, MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { aWireToken } from '../support/factories.js';

const run = promisify(execFile);

/** What each name would do to a terminal that received it raw. */
const HOSTILE: readonly (readonly [what: string, name: string])[] = [
  ['clears the screen', '\u001b[2J\u001b[H'],
  ['sets the title', '\u001b]0;PWNED\u0007'],
  ['fills the clipboard', '\u001b]52;c;UFdORUQ=\u0007'],
  ['is a link', '\u001b]8;;http://evil.example\u001b\\here\u001b]8;;\u001b\\'],
  ['has controls of 8 bits', '\u009b2J\u009d0;PWNED\u009c'],
  ['is a device control string', '\u001bP1$r0m\u001b\\'],
  ['rings', '\u0007\u0007'],
  ['moves the cursor back', 'good\rbad\b\b'],
  ['has several lines', 'one\ntwo\u2028three\u0085four'],
  ['reverses the direction', 'abc\u202edef\u2066ghi'],
  ['ends a text early', 'a\u0000b'],
];

// eslint-disable-next-line no-control-regex
const RAW = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

const TOKEN = aWireToken({ request_count: 1 });

describe('Q: output of the command line', () => {
  describe('with names that control a terminal', () => {
    let daemon: StandIn;
    let env: NodeJS.ProcessEnv;

    beforeEach(async () => {
      daemon = await startStandIn();
      env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, LANG: 'C.UTF-8', TERM: 'xterm' };
    });
    afterEach(() => daemon.stop());

    /** Responds with one object of the requested kind, with this name in all of its texts. */
    function answerWith(name: string): void {
      const thing = { ...TOKEN, name, state: name, obfuscated: name, api_key_hint: name, action: name, actor: name };
      const one = { ...thing, timestamp: TOKEN.created_at, reason: name, details: { [name]: name }, message: name };
      daemon.answer = (req, res) => {
        const path = (req.url ?? '').replace(/\?.*/, '');
        const isList = req.method === 'GET' && /\/(tokens|projects|audit|usage)$/.test(path);
        if (path.endsWith('/migrations')) answerJson(res, 200, { applied: [], pending: [name] });
        else answerJson(res, 200, isList ? [one] : one);
      };
    }

    for (const [what, name] of HOSTILE) {
      it(`Q01 a name that ${what} is printed as escapes by every command, on a terminal or not`, async () => {
        answerWith(name);
        for (const args of [
          'token list --no-color',
          `token get ${TOKEN.id} --no-color`,
          `token revoke ${TOKEN.id} --no-color -v`,
          'project list --no-color',
          'audit list --no-color',
          'token list -o csv',
          'token list -o id',
          'token list -o jsonl',
          'migrate status --no-color',
        ]) {
          for (const situation of [{ terminal: 300 }, {}]) {
            const { out, err } = await llmp(args, { env, ...situation });
            expect(out.replaceAll('\r\n', '\n'), args).not.to.match(RAW);
            // The progress indicator is removed by an escape of our own.
            // eslint-disable-next-line no-control-regex
            expect(err.replace(/\r[^\r\n]*\u001b\[K/g, ''), args).not.to.match(RAW);
          }
        }
      });
    }

    it('Q01 wide, combining and joined characters keep the columns aligned', async () => {
      const names = ['plain', '東京', 'e\u0301tude', '👩‍👩‍👧', 'ﷺ'];
      daemon.answer = (_req, res) => {
        answerJson(
          res,
          200,
          names.map((name) => ({ ...TOKEN, name })),
        );
      };
      const { out } = await llmp('token list --no-color', { env, terminal: 200 });
      const { default: widthOf } = await import('string-width');
      const columns = out
        .trimEnd()
        .split('\n')
        .slice(1)
        .map((line) => widthOf(line.slice(0, line.indexOf('77ab10f3'))));
      expect(columns).to.have.length(names.length);
      expect(new Set(columns).size).to.equal(1);
    });

    it('Q01 in a real terminal the title, the clipboard and earlier text are unchanged', async function () {
      this.timeout(60_000);
      if (spawnSync('tmux', ['-V']).status !== 0) {
        if (process.env.CI) throw new Error('tmux is missing');
        this.skip();
      }
      answerWith(HOSTILE.map(([, name]) => name).join(''));
      const socket = join(temporaryFolder(), 'tmux');
      const tmux = async (...args: string[]) =>
        (await run('tmux', ['-S', socket, ...args], { env: { PATH: process.env.PATH, ...env } })).stdout;
      const line = `'${process.execPath}' -- '${MAIN}'`;
      await tmux('-f', '/dev/null', 'new-session', '-d', '-x', '150', '-y', '50', 'sh');
      try {
        await tmux('set-option', '-s', 'set-clipboard', 'on');
        await tmux('select-pane', '-T', 'as it was');
        const shows = `echo before; ${line} token list; ${line} token get ${TOKEN.id}; ${line} token revoke ${TOKEN.id}; echo aft''er`;
        await tmux('send-keys', '-l', shows);
        await tmux('send-keys', 'Enter');
        const screen = () => tmux('capture-pane', '-p', '-S', '-');
        await eventually('everything is there', async () => /^after$/m.test(await screen()), 30_000);
        expect(await screen())
          .to.match(/^before$/m)
          .and.to.contain('\\x1b[2J');
        expect((await tmux('display-message', '-p', '#{pane_title}')).trim()).to.equal('as it was');
        expect(await tmux('list-buffers')).to.equal('');
      } finally {
        await tmux('kill-server');
      }
    });
  });

  for (const [what, name, cell] of [
    ['a tab', '\t=1+1', '\\x09=1+1'],
    ['a carriage return', '\r=1+1', '\\x0d=1+1'],
    ['a NUL', '\u0000=1+1', '\\x00=1+1'],
    ['=cmd', '=cmd|" /C calc"!A0', `"'=cmd|"" /C calc""!A0"`],
  ] as const) {
    it(`Q02 in csv a value that begins with ${what} becomes text`, async () => {
      const daemon = await startStandIn();
      daemon.answer = (_req, res) => {
        answerJson(res, 200, [{ ...TOKEN, name }]);
      };
      const { out } = await llmp('token list -o csv', { env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN } });
      await daemon.stop();
      expect(out.split('\r\n')[1]).to.contain(`,${cell},`);
    });
  }

  describe('of a daemon', () => {
    let env: NodeJS.ProcessEnv;

    const daemon = daemonForEachTest();
    beforeEach(() => {
      env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
    });

    it('Q03 with -o json stdout is one JSON value and stderr is empty; an error is one JSON value on stderr', async function () {
      this.timeout(60_000);
      const project = await daemon.createProject();
      const { id } = await daemon.createToken(project.id);
      const none = '00000000-0000-4000-8000-000000000000';
      for (const [args, exitCode] of [
        ['token list', 0],
        [`token get ${id}`, 0],
        [`token revoke ${id}`, 0],
        [`token reactivate ${id}`, 0],
        ['token generate --duration 1000', 0],
        ['project list', 0],
        [`project get ${project.id}`, 0],
        ['audit list', 0],
        ['usage', 0],
        ['cache stats', 0],
        ['migrate status', 0],
        ['status', 0],
        [`token get ${none}`, 4],
        ['token list --sort nonsense', 2],
        [`token revoke ${id} ${none}`, 2],
      ] as const) {
        const all = await ended(start([...args.split(' '), '-o', 'json'], env));
        expect(all.exitCode, args).to.equal(exitCode);
        if (exitCode === 0) expect(() => JSON.parse(all.out) as unknown, args).not.to.throw();
        else expect(all.out, args).to.equal('');
        for (const line of all.err.split('\n').slice(0, -1))
          expect(() => JSON.parse(line) as unknown, args).not.to.throw();
        if (exitCode !== 0) expect(JSON.parse(all.err)).to.include({ exit_code: exitCode });
      }
    });

    it('Q04 --env prints one assignment for a shell, whatever the name of the token', async () => {
      await daemon.createProject();
      const folder = temporaryFolder();
      const name = `a'b"c $(touch pwned) \`touch pwned\`;touch pwned`;
      const line = `eval "$('${process.execPath}' -- '${MAIN}' token generate --env KEY --name "$NAME")"; echo "\${#KEY} \${KEY%%[!a-z-]*}"`;
      const { stdout } = await run('bash', ['-c', line], {
        cwd: folder,
        env: { PATH: process.env.PATH, ...env, NAME: name },
      });
      expect(stdout).to.match(/^55 sk-wt-/);
      expect(existsSync(join(folder, 'pwned'))).to.equal(false);
    });

    it('Q05 only `token generate` prints a secret, with a note that it is shown once; -q prints only the secret', async () => {
      const project = await daemon.createProject();
      const onTerminal = await llmp('token generate --no-color', { env, terminal: 100 });
      expect(onTerminal.err).to.contain('The secret is not shown again');
      expect(onTerminal.err).not.to.match(/sk-wt-\w/);
      const piped = await ended(start(['token', 'generate', '-q'], env));
      expect(piped.out).to.match(/^sk-wt-[0-9A-Za-z]{49}\n$/);
      expect(piped.err).to.equal('');
      for (const args of [
        'token list --json -v',
        `token list --project-id ${project.id} -o csv`,
        'audit list --json',
      ]) {
        const { out, err } = await llmp(args, { env });
        expect(out + err, args)
          .not.to.match(/sk-wt-[0-9A-Za-z]{49}/)
          .and.not.to.contain(UPSTREAM_KEY);
      }
    });
  });
});
