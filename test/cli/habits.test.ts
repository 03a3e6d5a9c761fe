/** Behaviour that operators expect of a command line. */
import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GROUPS } from '../../cli/commands.js';
import { csvCell } from '../../console/escape.js';
import { parse } from '../../cli/parser.js';
import type { Shell } from '../../cli/shell.js';
import { describeSettings } from '../../config/settings.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type Captured, llmp } from './captured.js';
import { ended, start } from './processes.js';

describe('the command line, as operators use it', function () {
  this.timeout(30_000);
  let daemon: TestDaemon;
  let env: NodeJS.ProcessEnv;
  let projectId: string;

  before(async () => {
    daemon = await startDaemon();
    env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, LC_ALL: 'C.UTF-8' };
    projectId = (await daemon.createProject()).id;
  });
  after(() => daemon.stop());

  const run = (line: string, more: Parameters<typeof llmp>[1] = {}): Promise<Captured> => llmp(line, { env, ...more });

  it('accepts several states, in one option or in repeated ones (finding A12)', async () => {
    const [active, revoked] = [await daemon.createToken(projectId), await daemon.createToken(projectId)];
    await run(`token revoke ${revoked.id}`);
    for (const given of ['--state active,revoked', '--state active --state revoked']) {
      const { out } = await run(`token list -o id ${given}`);
      expect(out.trim().split('\n'), given).to.include.members([active.id, revoked.id]);
    }
    const { out } = await run('token list -o id --state !revoked');
    expect(out).to.include(active.id).and.not.to.include(revoked.id);
    for (const given of ['--state !revoked,active', '--state !revoked --state !active']) {
      const { out: others } = await run(`token list -o id ${given}`);
      expect(others, given).not.to.include(active.id).and.not.to.include(revoked.id);
    }
    for (const given of ['dead', 'active,!revoked', '!revoked --state active', 'active --state !revoked']) {
      expect((await run(`token list --state ${given}`)).exitCode, given).to.equal(2);
    }
  });

  it('accepts the parts of a report in one option or in repeated ones (finding A12)', async () => {
    const fields = async (line: string) => (await run(`usage -o csv ${line}`)).out.split('\r\n')[0];
    expect(await fields('--by token --by model'))
      .to.equal(await fields('--by token,model'))
      .and.to.include('model');
  });

  it('shows no invalid example (finding A12)', async () => {
    const commands = (await Promise.all(Object.values(GROUPS).map(({ load }) => load()))).flat();
    const examples = commands.flatMap(({ examples }) => examples).map(([line]) => line);
    expect(examples).to.have.length.above(50);
    for (const line of examples) {
      const [words = ''] = line.split(/ [|<>]/);
      const argv = words.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", '')) ?? [];
      const { result } = await parse(argv, { env } as Shell);
      expect(result.kind === 'failed' ? result.failure.message : 'chosen', line).to.equal('chosen');
    }
  });

  it('accepts days as well as hours (finding A12)', async () => {
    const { out } = await run('token generate --duration 7d --json');
    const { created_at: from, expires_at: to } = JSON.parse(out) as { created_at: string; expires_at: string };
    expect((Date.parse(to) - Date.parse(from)) / 86_400_000).to.be.closeTo(7, 0.01);
    expect((await run('token generate --duration 366d')).exitCode).to.equal(2);
  });

  it('summarises a long batch in one sentence (finding A12)', async () => {
    const tokens = await Promise.all(Array.from({ length: 25 }, () => daemon.createToken(projectId)));
    const { err, exitCode } = await run(`token revoke --yes ${tokens.map(({ id }) => id).join(' ')}`);
    expect(exitCode).to.equal(0);
    expect(err.trim().split('\n')).to.deep.equal([
      'Revoked 25 of 25 tokens. Undo: pass the same IDs to llmp token reactivate',
    ]);
  });

  it('asks on a terminal before it deactivates a project (finding A12)', async () => {
    const other = await daemon.createProject({ name: 'another' });
    const { exitCode, err } = await run(`project deactivate ${other.id}`, { terminal: 100, answer: 'n\r' });
    expect(err).to.include('not confirmed');
    expect(exitCode).to.equal(2);
    expect((await run(`project deactivate ${other.id}`)).exitCode, 'a script is not asked').to.equal(0);
  });

  it('knows the actions of audit records (finding A12)', async () => {
    const { exitCode, err } = await run('audit list --action foo');
    expect(exitCode).to.equal(2);
    expect(err).to.include('token.revoke');
  });

  it('shows which migrations would be applied, and applies none (finding A12)', async () => {
    const { exitCode, err } = await run('migrate up --dry-run');
    expect(exitCode).to.equal(0);
    expect(err).to.include('Would apply nothing. Nothing was changed.');
  });

  it('mentions the demo and the terminal UI in the introduction (finding A12)', async () => {
    const { out } = await llmp([], { env });
    expect(out).to.include('llmp demo').and.to.include('llmp tui');
  });

  it('prints its version as JSON (finding A12)', async () => {
    const { out } = await run('version -o json');
    expect(JSON.parse(out)).to.include.keys('version', 'node');
  });

  it('names commands by the name it was called by (finding A12)', async () => {
    const { err } = await run(`token generate`, { program: 'npx llmp' });
    expect(err)
      .to.include('Undo: npx llmp token revoke')
      .and.not.to.match(/(?<!npx )llmp token/);
    const failed = await run('token get none', { program: 'npx llmp' });
    expect(failed.err)
      .to.match(/See: npx llmp token list/)
      .and.not.to.include('npx npx');
  });

  it('replaces the name in commands once, and nowhere else (finding A12)', async () => {
    const { err } = await run('token lst', { program: 'npx llmp' });
    expect(err).to.include('See: npx llmp help token');
    const foreign = join(temporaryFolder(), 'foreign.db');
    writeFileSync(foreign, 'no database'.repeat(1_000));
    const direct = await run('migrate status --direct', { env: { DATABASE_URL: foreign }, program: 'npx llmp' });
    expect(direct.err).to.include('not an llmp database');
  });

  it('describes the health of a daemon in words (finding A12)', async () => {
    const { out } = await run('status --no-color', { terminal: 120 });
    expect(out)
      .to.match(/^uptime +\d+s \(started/m)
      .and.not.to.match(/uptime_s|event_bus/);
  });

  it('limits lines of `events tail` to the width of the terminal (finding A12)', async () => {
    const secret = (await daemon.createToken(projectId)).token;
    for (const width of [80, 100]) {
      let press: (value?: unknown) => void = () => undefined;
      const interrupted = new Promise((resolve) => (press = resolve));
      let out = '';
      const running = run('events tail', { terminal: width, interrupted, onOut: (text) => (out += text) });
      await eventually('an event is shown', async () => {
        await fetch(`${daemon.url}/v1/${'a-long-path-'.repeat(12)}`, {
          headers: { authorization: `Bearer ${secret}` },
        });
        return out.includes('a-long-path');
      });
      press();
      await running;
      // eslint-disable-next-line no-control-regex -- colors
      const lines = out.replaceAll(/\x1b\[[\d;]*m/g, '').split('\n');
      for (const line of lines) expect(line.length, line).to.be.at.most(width);
    }
  });

  it('exits with the code of SIGTERM after SIGTERM (finding A12)', async () => {
    const child = start(['events', 'tail'], env);
    const exit = ended(child);
    let isHeard = false;
    child.stdout.once('data', () => (isHeard = true));
    await eventually('it shows what happens', async () => {
      await daemon.createToken(projectId);
      return isHeard;
    });
    child.kill('SIGTERM');
    expect((await exit).exitCode).to.equal(143);
  });

  it('shows incomplete settings, and reports the problem (finding A18)', async () => {
    const { out, err, exitCode } = await llmp('config show', { env: { LISTEN_ADDR: '127.0.0.1:9999' } });
    expect(out).to.include('127.0.0.1:9999');
    expect(err).to.include('MANAGEMENT_TOKEN is required');
    expect(exitCode).to.equal(9);
  });

  it('`init --no-input` asks nothing (finding A18)', async () => {
    const dir = temporaryFolder();
    const { exitCode, err } = await llmp(['init', '--no-input', '-n', '--no-systemd', '--dir', dir], { env: {} });
    expect(err).not.to.include('there is no terminal');
    expect(exitCode).to.equal(0);
  });

  it('disables formulas in spreadsheets with any cell separator (finding C9)', () => {
    expect(csvCell('a;=1+1')).to.equal('"a;=1+1"');
    for (const sign of ['＝', '＋', '－', '＠']) expect(csvCell(`${sign}1`)).to.equal(`'${sign}1`);
  });

  it('accepts the base URL of an SDK as that of the provider, with a warning (finding A14)', () => {
    const warnings = (url: string) =>
      describeSettings({ MANAGEMENT_TOKEN, UPSTREAM_BASE_URL: url, DATABASE_URL: 'sqlite:x' }).warnings.join('\n');
    expect(warnings('https://api.openai.com/v1')).to.include('/v1, which is ignored');
    expect(warnings('https://api.groq.com/openai/v1/')).to.include('https://api.groq.com/openai/v1/…');
    expect(warnings('https://api.openai.com')).to.equal('');
    expect(warnings('http://provider.example')).to.include('unencrypted');
    expect(warnings('http://127.0.0.1:11434')).to.equal('');
    expect(warnings('http://localhost:11434')).to.equal('');
  });
});
