import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { join } from 'node:path';
import type { WireToken } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { MAIN } from './processes.js';
import { responds, type StandIn, startStandIn } from './stand-in.js';

const run = promisify(execFile);

describe('llmp in a script', function () {
  this.timeout(60_000);
  let daemon: TestDaemon;
  let many: StandIn;

  before(async () => {
    daemon = await startDaemon();
    await daemon.createProject({ name: 'web' });
    many = await startStandIn();
    const ids = Array.from({ length: 1000 }, (_, i) => ({
      id: `3fa91c2e-0000-4000-8000-${String(i).padStart(12, '0')}`,
    }));
    many.answer = responds(ids, 200, { link: '</manage/tokens?cursor=more>; rel="next"' });
  });
  after(async () => {
    await many.stop();
    await daemon.stop();
  });

  /** Runs a script in real bash, with `llmp` as a function. The exit code is the last line of stdout. */
  async function bash(script: string, env: NodeJS.ProcessEnv = {}): Promise<{ out: string; err: string }> {
    const llmp = `llmp() { '${process.execPath}' -- '${MAIN}' "$@"; }`;
    const { stdout: out, stderr: err } = await run('bash', ['--norc', '-c', `${llmp}\n${script}`], {
      env: { PATH: process.env.PATH, LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, MANY: many.url, ...env },
    });
    return { out, err };
  }

  it('exits with 141 and no message when `head` closes the pipe', async () => {
    const { out, err } = await bash(
      `llmp token list -q -o id --server "$MANY" --limit 100000 | head -n 2; echo "\${PIPESTATUS[@]}"`,
    );
    expect(out.trimEnd().split('\n').at(-1)).to.equal('141 0');
    expect(out.split('\n')).to.have.length(4);
    expect(err).to.equal('');
  });

  it('exits with 141 when the reader of its messages is gone', async () => {
    const { out } = await bash(
      `{ llmp token list --server "$MANY" -v 2>&1 >&3 | head -n 1 >/dev/null; echo "\${PIPESTATUS[0]}"; } 3>/dev/null`,
    );
    expect(out).to.equal('141\n');
  });

  it('works with any of its three streams closed', async () => {
    for (const closed of ['<&-', '2>&-', '<&- 2>&-']) {
      const { out } = await bash(`llmp project list -o csv ${closed} | wc -l; echo "\${PIPESTATUS[0]}"`);
      expect(out, closed).to.equal('2\n0\n');
    }
    expect((await bash('llmp project list >&-; echo $?')).out).to.equal('0\n');
  });

  it('exits with 1 when the output device is full', async () => {
    const { out, err } = await bash('llmp project list > /dev/full; echo $?');
    expect(out).to.equal('1\n');
    expect(err)
      .to.contain('llmp: cannot write the output')
      .and.to.contain('ENOSPC')
      .and.not.to.match(/^\s+at /m);
  });

  for (const options of ['-q', '', '-o json', '--env KEY', '--jq .token']) {
    it(`findings-3 B18: names the token whose secret cannot be written: token generate ${options}`, async () => {
      for (const [to, why, exitCode] of [
        ['> /dev/full', 'ENOSPC', '1'],
        ['|', 'EPIPE', '141'],
      ] as const) {
        // The reader of the pipe is gone before anything is written.
        const status = '"${PIPESTATUS[0]}"';
        const script = to.startsWith('|')
          ? `{ until [ -e "$GONE" ]; do sleep 0.02; done; llmp token generate ${options}; } | { exec 0<&-; touch "$GONE"; }; echo ${status}`
          : `llmp token generate ${options} ${to}; echo $?`;
        const { out, err } = await bash(script, { GONE: join(temporaryFolder(), 'gone') });
        expect(out.trim(), err).to.equal(exitCode);
        // The newest is first.
        const [lost] = (await daemon.manage('GET', '/manage/tokens')).body as WireToken[];
        expect(lost?.state).to.equal('active');
        if (options === '-o json') {
          const [line = ''] = err.split('\n');
          const error = JSON.parse(line) as { advice: string };
          expect(error).to.include({ code: 'secret_lost', why });
          expect(error.advice).to.match(new RegExp(`^Revoke the token: .* token revoke ${lost?.id}$`));
        } else {
          expect(err).to.contain(`llmp: cannot write the secret of token ${lost?.id}; the secret is lost\n  ${why}\n`);
          expect(err).to.match(new RegExp(`^  Revoke the token: .* token revoke ${lost?.id}$`, 'm'));
        }
      }
    });
  }

  it('findings-3 B18: token print issues no token that it cannot keep', async () => {
    const folder = { XDG_RUNTIME_DIR: temporaryFolder() };
    const newest = async () => ((await daemon.manage('GET', '/manage/tokens')).body as WireToken[])[0]?.id;
    const before = await newest();
    const { out, err } = await bash('(ulimit -f 0; llmp token print); echo $?', folder);
    expect(out).to.equal('1\n');
    expect(err).to.match(/^llmp: cannot write in .*\n {2}EFBIG$/m);
    expect(await newest()).to.equal(before);
  });

  it('does not prompt without a terminal, and names the option to use instead', async () => {
    const bare = { MANAGEMENT_TOKEN: undefined };
    const { out, err } = await bash('llmp token list </dev/null; echo $?', bare);
    expect(out).to.equal('3\n');
    expect(err).to.contain('MANAGEMENT_TOKEN');
    const several = await bash('printf "%s\\n" 3fa91c2e 77ab10f3 | llmp token revoke -; echo $?');
    expect(several.out).to.equal('2\n');
    expect(several.err).to.contain('--yes');
  });

  it('stops streaming commands when the reader closes the pipe', async () => {
    const { out } = await bash(`llmp status --watch | head -n 1 >/dev/null; echo "\${PIPESTATUS[0]}"`);
    expect(out).to.equal('141\n');
  });

  it('passes IDs from one command to the next', async () => {
    const { out } = await bash(`set -eo pipefail
llmp token generate -q --duration 2 >/dev/null
llmp token generate -q --duration 3 >/dev/null
llmp token list -o id --active-only | llmp token revoke - --yes -q
llmp token list -o id --active-only | wc -l`);
    expect(out.trim()).to.equal('0');
  });
});
