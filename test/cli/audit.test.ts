import { expect } from 'chai';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireAuditRecord, WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { chainLines, fieldsOf } from '../../daemon/store/audit-file/chain.js';
import { allCopied, changesFile, copied, rawLines } from '../support/audit-files.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { commandsAt, llmp, type Situation } from './captured.js';
import { answerJson, startStandIn } from './stand-in.js';

describe('llmp audit, against a daemon', () => {
  let daemon: TestDaemon;
  let project: WireProject;
  let token: WireTokenCreated;

  beforeEach(async () => {
    daemon = await startDaemon();
    project = await daemon.createProject({ name: 'Alpha' });
    token = await daemon.createToken(project.id, { name: 'nightly job' });
    await daemon.manage('DELETE', `/manage/tokens/${token.id}`, undefined, { 'x-audit-reason': 'leaked' });
  });
  afterEach(() => daemon.stop());

  const here = (args: string, situation: Situation = {}) => commandsAt(daemon).here(args, situation);
  const listed = async (args: string) =>
    (JSON.parse((await here(`audit list ${args} --json`)).out) as WireAuditRecord[]).map(({ action }) => action);

  describe('list', () => {
    it('shows records, the newest first', async () => {
      expect(await listed('--since 24h')).to.deep.equal(['token.revoke', 'token.create', 'project.create']);
    });

    it('applies each of its filters', async () => {
      expect(await listed('--action token.create')).to.deep.equal(['token.create']);
      expect(await listed(`--token-id ${token.id.slice(0, 8)}`)).to.deep.equal(['token.revoke', 'token.create']);
      expect(await listed('--project-id Alpha --outcome success --actor management')).to.have.length(3);
      expect(await listed('--outcome denied')).to.deep.equal([]);
      expect(await listed('--search leak')).to.deep.equal(['token.revoke']);
      expect(await listed('--until 2001-01-01')).to.deep.equal([]);
    });

    it('finds the records of a token by what is shown of its secret', async () => {
      const shown = `${token.token.slice(0, 10)}…${token.token.slice(-4)}`;
      await daemon.createToken(project.id, { name: 'other' });
      for (const args of [shown, `--search ${shown}`, `since:1d ${shown.replace('…', '...')}`]) {
        expect(await listed(args), args).to.deep.equal(['token.revoke', 'token.create']);
      }
      const { exitCode, err } = await here('audit list sk-wt-0000…0000');
      expect(exitCode).to.equal(4);
      expect(err).to.contain('no token has the name or ID');
    });

    it('is a table on a terminal', async () => {
      const { out } = await here('audit list', { terminal: 160 });
      for (const shown of ['TIME', 'ACTION', 'OUTCOME', 'token.revoke', 'leaked']) expect(out).to.include(shown);
    });

    it('has a reason also at 80 columns, if the name of the user is long', async () => {
      const user = { 'x-llmp-user': 'anastasia.petrova@build-server-17', 'x-audit-reason': 'published in a log' };
      await daemon.manage('PATCH', `/manage/tokens/${token.id}`, { is_active: true }, user);
      const { out } = await here('audit list --no-color', { terminal: 80 });
      expect(out).to.match(/token\.reactivate +success +anastas.*… +nightly.*… +publis.*…$/m);
      for (const line of out.split('\n')) expect(line.length).to.be.at.most(80);
    });

    it('shows names, the user, and the hour of uses on a terminal', async () => {
      await daemon.manage('PATCH', `/manage/projects/${project.id}`, { name: 'Beta' }, { 'x-llmp-user': 'ana@laptop' });
      await (await daemon.call(token.token)).arrayBuffer();
      await eventually('it is recorded', async () => {
        await daemon.daemon.usage.flush();
        return (await listed('--action token.use')).length > 0;
      });
      const { out } = await here('audit list --no-color', { terminal: 200 });
      expect(out).to.match(/T\d\d:\d\d:\d\dZ +project\.update +success +ana@laptop \(management\) +Beta /);
      expect(out).to.match(/\d{4}-\d\d-\d\dT\d\dh +token\.use +denied +token +nightly job /);
      expect((await here('audit list --action project.update')).out.trimEnd().split('\t').slice(-3)).to.deep.equal([
        'ana@laptop',
        '',
        'Beta',
      ]);
    });

    it('refuses an invalid time or action', async () => {
      expect((await here('audit list --since yesterday')).exitCode).to.equal(2);
      expect((await here('audit list --action nonsense')).exitCode).to.equal(2);
    });
  });

  it('export writes all pages as JSON lines, or as CSV with one heading', async () => {
    const [newest, next, oldest] = (await daemon.manage('GET', '/manage/audit')).body as WireAuditRecord[];
    const pages = await startStandIn();
    pages.answer = (req, res) => {
      if (req.url?.includes('cursor=')) answerJson(res, 200, [oldest]);
      else answerJson(res, 200, [newest, next], { link: '</manage/audit?cursor=more>; rel="next"' });
    };
    const { here } = commandsAt(pages);
    const lines = (await here('audit export')).out.trimEnd().split('\n');
    const csv = (await here('audit export -o csv')).out.trimEnd().split('\r\n');
    await pages.stop();
    expect(lines.map((line) => JSON.parse(line) as unknown)).to.deep.equal([newest, next, oldest]);
    expect(csv).to.have.length(4);
    expect(csv[0]).to.match(/^time,action,/);
  });

  it('export has the format that was requested', async () => {
    const { ids } = commandsAt(daemon);
    const [id] = await ids('audit list --limit 1');
    expect(await ids('audit export')).to.include(id);
    expect((await here('audit export -o table')).out)
      .to.match(/^TIME +ACTION +OUTCOME /)
      .and.not.to.contain('{');
  });

  it('tail writes each record as it is made, until it is interrupted', async () => {
    let out = '';
    let interrupt: () => void = () => undefined;
    const tailing = here('audit tail --action token.reactivate -o jsonl', {
      onOut: (text) => (out += text),
      interrupted: new Promise<void>((resolve) => (interrupt = resolve)),
    });
    await eventually('a record is shown', async () => {
      await daemon.manage('PATCH', `/manage/tokens/${token.id}`, { is_active: true });
      return out !== '';
    });
    interrupt();
    expect((await tailing).exitCode).to.equal(130);
    expect(JSON.parse(out.split('\n')[0]!)).to.include({ action: 'token.reactivate', token_id: token.id });
  });

  describe('verify', () => {
    let lines: string[];
    let path: string;

    beforeEach(async () => {
      for (let n = 0; n < 7; n++) await daemon.manage('DELETE', `/manage/tokens/${token.id}`);
      await copied(daemon);
      path = changesFile(daemon);
      lines = rawLines(path);
      await daemon.stop();
    });
    afterEach(async () => {
      daemon = await startDaemon();
    });

    const settings = (): Record<string, string> => ({
      DATABASE_URL: daemon.databasePath,
      AUDIT_LOG_FILE: path,
      LLMP_OUTPUT: 'json',
    });
    const verified = async (...files: string[]) => {
      const { exitCode, out } = await llmp(['audit', 'verify', ...files], { env: settings() });
      const { verdict, line, at, anchors, torn } = JSON.parse(out) as Record<string, unknown>;
      return { exitCode, verdict, line, at, anchors, torn };
    };
    const put = (changed: readonly string[]) => {
      writeFileSync(path, changed.map((line) => `${line}\n`).join(''));
    };
    const WHOLE = { exitCode: 0, verdict: 'whole', line: null, at: null, anchors: 'anchored', torn: 0 };
    const fault = (verdict: string, line: number, at: number | null) => ({
      ...WHOLE,
      exitCode: 9,
      verdict,
      line,
      at,
    });
    const without = (index: number) => lines.filter((_, each) => each !== index);
    const rechained = (from: readonly string[]) => rawTextOf(fieldsOf(Buffer.from(from.join('\n'))));
    const rawTextOf = (fields: readonly string[]) =>
      chainLines(fields, { line: 0, digest: '0'.repeat(64) })
        .bytes.toString()
        .trimEnd()
        .split('\n');

    it('N09: accepts complete files, also with rotations and torn lines', async () => {
      expect(await verified()).to.deep.equal(WHOLE);
      writeFileSync(
        `${path}.2`,
        lines
          .slice(0, 3)
          .map((line) => `${line}\n`)
          .join(''),
      );
      writeFileSync(
        `${path}-20261122`,
        lines
          .slice(3, 5)
          .map((line) => `${line}\n`)
          .join(''),
      );
      put(lines.slice(5));
      expect(await verified()).to.deep.equal(WHOLE);
      renameSync(path, join(daemon.dir, 'elsewhere'));
      expect((await verified(`${path}-20261122`, `${path}.2`)).verdict).to.equal('whole');
    });

    it('N09: names a changed line at any position', async () => {
      for (const index of [0, 4, 8]) {
        put(lines.map((line, each) => (each === index ? line.replace('success', 'denied_') : line)));
        expect(await verified()).to.deep.equal(fault('changed', index + 1, index + 1));
      }
      put(lines.map((line, each) => (each === 4 ? line.replace(/"prev":"../, '"prev":"zz') : line)));
      expect(await verified()).to.deep.equal(fault('changed', 5, 5));
      // Only its anchor protects the last line.
      put(lines.map((line, each) => (each === 9 ? line.replace('success', 'denied_') : line)));
      expect(await verified()).to.include({ exitCode: 9, verdict: 'rewritten' });
    });

    it('N09: names a removed line, and removed first lines', async () => {
      put(without(4));
      expect(await verified()).to.deep.equal(fault('removed', 5, 5));
      put(lines.slice(2));
      expect(await verified()).to.deep.equal(fault('removed', 1, 1));
    });

    it('N09: names an inserted line: forged, duplicated or invalid', async () => {
      const [forged] = rawTextOf(['"action":"token.revoke"}']);
      for (const foreign of [forged!, lines[1]!, 'nonsense', lines[4]!.replace('success', 'denied')]) {
        put([...lines.slice(0, 4), foreign, ...lines.slice(4)]);
        expect(await verified(), foreign).to.include({ exitCode: 9, verdict: 'inserted', at: 5 });
      }
    });

    it('N09: names a line that was moved', async () => {
      put([...lines.slice(0, 4), lines[5]!, lines[4]!, ...lines.slice(6)]);
      expect(await verified()).to.deep.equal(fault('reordered', 6, 5));
    });

    it('N09: detects with the anchors that the end was cut off, or that everything was rewritten', async () => {
      put(lines.slice(0, 7));
      expect(await verified()).to.deep.equal(fault('cut_off', 8, null));
      put(rechained(without(4)));
      expect(await verified()).to.include({ exitCode: 9, verdict: 'cut_off' });
      put(rechained([...without(4), lines[4]!]));
      expect(await verified()).to.include({ exitCode: 9, verdict: 'rewritten' });
    });

    it('N09: reports a torn line that the chain continued after, which is not a fault', async () => {
      put(lines);
      writeFileSync(path, readFileSync(path, 'utf8') + lines[9]!.slice(0, 50));
      daemon = await startDaemon({ dir: daemon.dir });
      await daemon.createToken(project.id);
      await allCopied(daemon);
      await daemon.stop();
      expect(await verified()).to.deep.equal({ ...WHOLE, torn: 1 });
    });

    it('reports that it is unanchored without a database', async () => {
      const env = { ...settings(), DATABASE_URL: join(daemon.dir, 'none.db') };
      const { exitCode, out, err } = await llmp('audit verify', { env });
      expect(exitCode).to.equal(0);
      expect(JSON.parse(out)).to.include({ verdict: 'whole', anchors: 'unanchored' });
      expect(err).to.include('unanchored');
    });

    it('runs beside a daemon, and describes faults in words', async () => {
      daemon = await startDaemon({ dir: daemon.dir });
      expect((await verified()).exitCode).to.equal(0);
      put(without(4));
      const { exitCode, err } = await llmp('audit verify -o table', { env: settings() });
      expect({ exitCode, err }).to.deep.equal({ exitCode: 9, err: `llmp: line 5 (${path}:5) was removed\n` });
      await daemon.stop();
    });

    it('exits with 2 for files of two chains, such as *.log, and does not report inserted lines', async () => {
      const other = `${path}.of-another`;
      writeFileSync(other, readFileSync(path));
      const { exitCode, err } = await llmp(['audit', 'verify', path, other], { env: settings() });
      expect(exitCode).to.equal(2);
      expect(err).to.include('belong to different chains');
    });

    it('exits with 4 if the file does not exist', async () => {
      expect((await llmp(`audit verify ${path}.7`, { env: settings() })).exitCode).to.equal(4);
    });
  });
});
