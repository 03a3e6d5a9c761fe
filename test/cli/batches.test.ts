import { expect } from 'chai';
import type { WireToken } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { daemonForEachTest, MANAGEMENT_TOKEN } from '../support/daemon.js';
import { aWireToken } from '../support/factories.js';
import { auditOf, storedIn } from '../support/management.js';
import { type Captured, commandsAt, llmp, type Situation } from './captured.js';
import { answerJson, startStandIn } from './stand-in.js';

const NONE = '00000000-0000-4000-8000-000000000000';

describe('several tokens or projects at once', () => {
  const daemon = daemonForEachTest();
  const { here, json } = commandsAt(daemon);

  async function issued(count: number): Promise<string[]> {
    const project = await daemon.createProject();
    const ids = [];
    for (let i = 0; i < count; i++) ids.push((await daemon.createToken(project.id, { name: `t${i}` })).id);
    return ids;
  }

  const areActive = async (ids: string[]) => Promise.all(ids.map(async (id) => (await daemon.token(id)).is_active));

  describe('with - for the ids on standard input', () => {
    it('revokes the tokens of a list, with a line for each and a summary', async () => {
      const ids = await issued(10);
      const { out: stdin } = await here('token list -o id');
      const { exitCode, out, err } = await here('token revoke - --yes', { stdin });
      expect({ exitCode, out }).to.deep.equal({ exitCode: 0, out: '' });
      for (const id of ids) expect(err).to.contain(`Revoked ${id.slice(0, 8)} (t`);
      expect(err).to.match(/Revoked 10 of 10 tokens\. Undo: llmp undo [0-9a-f-]{36}\n$/);
      expect(await areActive(ids)).not.to.include(true);
    });

    it('reactivates, gets, deactivates and activates as well', async () => {
      const [id = ''] = await issued(1);
      await here(`token revoke ${id}`);
      const stdin = `${id}\n`;
      expect((await here('token reactivate - -y', { stdin })).exitCode).to.equal(0);
      expect(await json<object>('token get -', { stdin })).to.deep.equal([await daemon.token(id)]);

      const { project_id: project } = await daemon.token(id);
      await here('project deactivate - -y', { stdin: project });
      expect((await daemon.token(id)).state).to.equal('project_inactive');
      await here('project activate - -y', { stdin: project });
      expect((await daemon.token(id)).state).to.equal('active');
      expect((await here('project get - -o id', { stdin: project })).out).to.equal(`${project}\n`);
    });

    it('accepts them with IDs on the command line, as prefixes or duplicates, and with empty lines', async () => {
      const [one = '', two = ''] = await issued(2);
      const stdin = `\r\n${two.slice(0, 8)}\r\n\n  ${one}\n${one}`;
      const { err } = await here(['token', 'revoke', one, '-', '--yes'], { stdin });
      expect(err).to.contain('Revoked 2 of 2 tokens.');
    });

    it('requires --yes for a list, even of one, and for several IDs', async () => {
      const [id = '', other = ''] = await issued(2);
      for (const [args, stdin] of [
        ['token revoke -', id],
        [`token revoke ${id} ${other}`, ''],
      ] as const) {
        const { exitCode, err } = await here(args, { stdin });
        expect(exitCode).to.equal(2);
        expect(err).to.contain('--yes');
      }
      expect(await areActive([id, other])).to.deep.equal([true, true]);
    });

    it('succeeds if there are none', async () => {
      const { exitCode, err } = await here('token revoke - --yes', { stdin: '' });
      expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: 'Revoked 0 of 0 tokens.\n' });
      expect(await json('token revoke - --yes', { stdin: '' })).to.deep.equal([]);
    });

    it('are summarised in one sentence if there are many', async () => {
      const ids = await issued(25);
      const { err, exitCode } = await here(['token', 'revoke', '--yes', ...ids]);
      expect(exitCode).to.equal(0);
      expect(err).to.match(/^Revoked 25 of 25 tokens\. Undo: llmp undo [0-9a-f-]{36}\n$/);
    });

    it('sends nothing if one of them is not a valid ID, and does not repeat a secret', async () => {
      const [id = ''] = await issued(1);
      const secret = `sk-wt-${'a'.repeat(49)}`;
      const { exitCode, err } = await here('token revoke - --yes', { stdin: `${id}\n${secret}\n` });
      expect(exitCode).to.equal(2);
      expect(err).to.contain('secret').and.not.to.contain(secret);
      expect(await areActive([id])).to.deep.equal([true]);
    });

    it('continues with the rest when one of them fails, and exits with 1', async () => {
      const [id = '', other = ''] = await issued(2);
      for (const [args, stdin, revoked] of [
        ['token revoke - --yes', `${NONE}\n${id}\n`, id],
        [`token revoke --yes ${NONE} ${other}`, '', other],
      ] as const) {
        const { exitCode, err } = await here(args, { stdin });
        expect(exitCode).to.equal(1);
        expect(err).to.contain(`${NONE}: token not found`).and.to.contain('Revoked 1 of 2 tokens.');
        expect(await areActive([revoked])).to.deep.equal([false]);
      }
    });

    it('does not wait for input on a terminal', async () => {
      const { exitCode, err } = await here('token revoke - --yes', { terminal: 80 });
      expect(exitCode).to.equal(2);
      expect(err).to.contain('Pipe them, one per line');
    });

    it('cannot also read the management token from there', async () => {
      const { exitCode, err } = await llmp('token revoke - --yes --management-token-file -', {
        env: { LLMP_SERVER: daemon.url },
        stdin: NONE,
      });
      expect(exitCode).to.equal(2);
      expect(err).to.contain('standard input cannot provide both');
    });
  });

  it('show a counter on a terminal if they take long', async () => {
    const slow = await startStandIn();
    let asked = 0;
    slow.answer = (_req, res) => {
      const answer = () => {
        answerJson(res, 200, { id: NONE, name: null, is_active: false, state: 'revoked' });
      };
      asked += 1;
      // Longer than the delay before the counter is shown.
      if (asked === 1) setTimeout(answer, 350);
      else answer();
    };
    const ids = Array.from({ length: 9 }, (_, i) => `3fa91c2e-0000-4000-8000-0000000000${10 + i}`);
    const env = { LLMP_SERVER: slow.url, MANAGEMENT_TOKEN, LC_ALL: 'C.UTF-8' };
    const { exitCode, err } = await llmp(['token', 'revoke', '--yes', ...ids], { env, terminal: 80 });
    await slow.stop();
    expect(exitCode).to.equal(0);
    // The line is erased before other output.
    expect(err).to.match(/\r[^\r]*: 9 of 9\x1b\[K\r\x1b\[KRevoked /); // eslint-disable-line no-control-regex -- erases a line
    expect(err).to.match(/Revoked 9 of 9 tokens\. Undo: .*\n$/);
  });

  it('sends eight requests at a time', async () => {
    const waiting: (() => void)[] = [];
    let most = 0;
    const slow = await startStandIn();
    slow.answer = (req, res) => {
      if (req.url === '/live') {
        res.end();
        return;
      }
      waiting.push(() => {
        answerJson(res, 200, { id: NONE, name: null, is_active: false, state: 'revoked' });
      });
      most = Math.max(most, waiting.length);
      if (waiting.length === 8) void answerAll();
    };
    /** After some round trips, in which a ninth request would have arrived. */
    async function answerAll(): Promise<void> {
      for (let i = 0; i < 3; i++) await fetch(`${slow.url}/live`);
      for (const answer of waiting.splice(0)) answer();
    }
    const stdin = Array.from({ length: 24 }, (_, i) => `3fa91c2e-0000-4000-8000-0000000000${10 + i}`).join('\n');
    const env = { LLMP_SERVER: slow.url, MANAGEMENT_TOKEN };
    const { exitCode } = await llmp('token revoke - --yes', { env, stdin });
    await slow.stop();
    expect({ exitCode, most }).to.deep.equal({ exitCode: 0, most: 8 });
  });

  describe('a dry run', () => {
    /** Runs the command and checks that nothing was written, not even an audit record. */
    async function rehearsed(args: string | string[], situation?: Situation): Promise<Captured> {
      const before = await storedIn(daemon);
      const answer = await here(args, situation);
      expect(await storedIn(daemon)).to.deep.equal(before);
      return answer;
    }

    it('shows for each token what would happen, and needs no confirmation', async () => {
      const [one = '', two = ''] = await issued(2);
      await here(`token revoke ${one}`);
      const revoking = await rehearsed(`token revoke ${one} ${two} -n`);
      expect(revoking.exitCode).to.equal(0);
      expect(revoking.err.trimEnd().split('\n')).to.have.members([
        `Would leave ${one.slice(0, 8)} (t0) as it is.`,
        `Would revoke ${two.slice(0, 8)} (t1).`,
        'Would revoke 1 of 2 tokens. Nothing was changed.',
      ]);
      const reactivating = await rehearsed('token reactivate - --dry-run', { stdin: one });
      expect(reactivating.err).to.contain(`Would reactivate ${one.slice(0, 8)} (t0).`);
    });

    it('does the same for projects', async () => {
      const { id, name } = await daemon.createProject();
      const shown = `${id.slice(0, 8)} (${name})`;
      expect((await rehearsed(`project deactivate ${id} -n`)).err).to.equal(`Would deactivate ${shown}.\n`);
      expect((await rehearsed(`project activate ${id} -n`)).err).to.equal(`Would leave ${shown} as it is.\n`);
    });

    for (const command of ['token revoke --project-id', 'project revoke-tokens']) {
      it(`of ${command} lists what would be revoked: all that is active, and nothing else`, async () => {
        const [one = '', two = '', three = ''] = await issued(3);
        await here(`token revoke ${two}`);
        await issued(1);
        const { project_id: project } = await daemon.token(one);
        const { exitCode, out, err } = await rehearsed(`${command} ${project} -n -o id`);
        expect(exitCode).to.equal(0);
        expect(out.trimEnd().split('\n')).to.have.members([one, three]);
        expect(err).to.equal(`Would revoke 2 tokens of project ${project.slice(0, 8)}. Nothing was changed.\n`);
      });
    }

    it('prints the unchanged items if a format is given', async () => {
      const [id = ''] = await issued(1);
      const { out, err } = await rehearsed(`token revoke ${id} -n --json`);
      expect(JSON.parse(out)).to.include({ id, is_active: true });
      expect(err).to.equal('');
    });

    it('exits as the real command does for an unknown token', async () => {
      expect((await rehearsed(`token revoke ${NONE} -n`)).exitCode).to.equal(4);
    });

    it('is refused, and not ignored, by a command without this option', async () => {
      const { id } = await daemon.createProject();
      for (const args of [`project update ${id} --name other -n`, 'token generate -n', `-n token revoke ${NONE}`]) {
        expect((await rehearsed(args)).exitCode).to.equal(2);
      }
    });
  });

  describe('all tokens of a project', () => {
    it('are reactivated by the printed undo command, unchanged', async () => {
      const ids = await issued(3);
      const { project_id: project } = await daemon.token(ids[0] ?? '');
      const { err } = await here(`token revoke --project-id ${project} --yes`);
      const [, list = '', reactivate = ''] = /Undo: llmp (.*) \| llmp (.*)\n/.exec(err) ?? [];
      const { out: stdin } = await here(list);
      expect((await here(reactivate, { stdin })).exitCode).to.equal(0);
      expect(await areActive(ids)).to.deep.equal([true, true, true]);
    });

    it('have no such command if it would also reactivate other tokens', async () => {
      const [one = '', two = ''] = await issued(2);
      await here(`token revoke ${one}`);
      const { project_id: project } = await daemon.token(two);
      const { err } = await here(`project revoke-tokens ${project} --yes`);
      expect(err).to.contain(
        `Revoked 1 token of project ${project.slice(0, 8)}. To undo, reactivate tokens from: llmp token list`,
      );
      expect(err).not.to.contain('reactivate -');
    });

    for (const command of ['token revoke --project-id', 'project revoke-tokens']) {
      it(`are revoked by \`${command}\`, with a confirmation`, async () => {
        const [others, own] = [await issued(1), await issued(2)];
        const { project_id: project } = await daemon.token(own[0] ?? '');
        expect((await here(`${command} ${project}`)).exitCode).to.equal(2);
        expect(await areActive(own)).to.deep.equal([true, true]);
        const revoked = await json<object>(`${command} ${project.slice(0, 8)} --yes`);
        expect(revoked).to.include({ project_id: project, revoked_count: 2 });
        expect(await areActive([...own, ...others])).to.deep.equal([false, false, true]);
      });
    }

    it('are not named by IDs as well', async () => {
      expect((await here('token revoke 3fa91c2e --project-id 77ab10f3 -y')).exitCode).to.equal(2);
      expect((await here('token revoke')).exitCode).to.equal(2);
    });
  });

  describe('the tokens that a query selects', () => {
    const revoke = ['token', 'revoke', '--query'];

    it('are shown and revoked after a confirmation on a terminal', async () => {
      const ids = await issued(8);
      const { exitCode, err } = await here([...revoke, 't !t7'], { terminal: 100, answer: 'y\n' });
      expect(exitCode).to.equal(0);
      expect(err.match(/^ {2}[0-9a-f]{8} {2}t\d, .*active$/gm)).to.have.length(5);
      expect(err).to.contain('and 2 more').and.to.contain('Revoke 7 tokens?').and.to.contain('Revoked 7 of 7 tokens.');
      expect((await areActive(ids)).filter(Boolean)).to.have.length(1);
    });

    it('stay as they are without a confirmation, or with --dry-run', async () => {
      const ids = await issued(3);
      expect((await here([...revoke, 't0'], { terminal: 100, answer: 'n\n' })).exitCode).to.equal(2);
      expect((await here([...revoke, 't0'])).err).to.contain('Use --yes');
      const { out, err } = await here([...revoke, 't1', '-n', '-o', 'id']);
      expect({ out, err }).to.deep.equal({ out: `${ids[1]}\n`, err: 'Would revoke 1 token. Nothing was changed.\n' });
      expect(await areActive(ids)).not.to.include(false);
    });

    it('are revoked with --yes, with the result of each; those that are revoked already are left', async () => {
      const ids = await issued(3);
      await here(`token revoke ${ids[0]}`);
      const { out, err } = await here([...revoke, 'idle:>0s t', '--yes', '-o', 'json', '--reason', 'unused']);
      expect((JSON.parse(out) as WireToken[]).map(({ id, state }) => `${id} ${state}`)).to.have.members(
        ids.slice(1).map((id) => `${id} revoked`),
      );
      expect(err).to.equal('');
      const again = await here([...revoke, 'idle:>0s t', '--yes']);
      expect(again).to.deep.equal({ exitCode: 0, out: '', err: 'No matching tokens that are not revoked.\n' });
    });

    it('are reactivated as well, those that are revoked', async () => {
      const ids = await issued(3);
      for (const id of ids.slice(1)) await here(`token revoke ${id}`);
      const reactivate = ['token', 'reactivate', '--query'];
      const { out, err } = await here([...reactivate, 't', '-n', '-o', 'id']);
      expect(out.trim().split('\n')).to.have.members(ids.slice(1));
      expect(err).to.equal('Would reactivate 2 tokens. Nothing was changed.\n');
      expect((await here([...reactivate, 't', '--yes'])).err).to.contain('Reactivated 2 of 2 tokens.');
      expect(await areActive(ids)).not.to.include(false);
      const again = await here([...reactivate, 't', '--yes']);
      expect(again).to.deep.equal({ exitCode: 0, out: '', err: 'No matching tokens that are revoked.\n' });
      expect((await here([...reactivate, 't', ids[0]!])).exitCode).to.equal(2);
    });

    it('are undone by the printed command, only those that were changed', async () => {
      const ids = await issued(26);
      await here(`token revoke ${ids[0]}`);
      const { err } = await here([...revoke, 't', '--yes']);
      const [, undo = ''] = /^Revoked 25 of 25 tokens\. Undo: llmp (undo .*)\n$/.exec(err) ?? [];
      expect((await here(`${undo} --yes`)).exitCode).to.equal(0);
      expect(await areActive(ids)).to.deep.equal([false, ...Array<boolean>(25).fill(true)]);
    });

    it('exit with 1 if some of them could not be revoked, and with 2 for a wrong or empty query', async () => {
      const standIn = await startStandIn();
      const tokens = [aWireToken({ id: NONE }), aWireToken()];
      standIn.answer = (req, res) => {
        if (req.method === 'GET') answerJson(res, 200, tokens);
        else if (req.url?.endsWith(NONE)) answerJson(res, 404, { error: 'no such token', code: 'not_found' });
        else answerJson(res, 200, aWireToken({ is_active: false, state: 'revoked' }));
      };
      const partly = await here([...revoke, 'idle:>30d', '--yes'], {
        env: { LLMP_SERVER: standIn.url, MANAGEMENT_TOKEN },
      });
      await standIn.stop();
      expect(partly.exitCode).to.equal(1);
      expect(partly.err).to.contain(`llmp: ${NONE}: no such token`).and.to.contain('Revoked 1 of 2 tokens.');
      for (const query of ['', ' ', 'idle:', 'state:nonsense', 'project:nobody']) {
        expect((await here([...revoke, query, '--yes'])).exitCode, query).to.equal(2);
      }
      expect((await here([...revoke, 't', '--project-id', 'web'])).err).to.contain('--project-id and --query exclude');
    });
  });

  describe('are undone by llmp undo', () => {
    const batchIn = (err: string) => /llmp undo ([0-9a-f-]{36})\n/.exec(err)?.[1] ?? '';

    async function revoked(ids: readonly string[]): Promise<string> {
      return batchIn((await here(['token', 'revoke', '--yes', ...ids])).err);
    }

    it('except what somebody has changed since, which it says with exit code 1; and redone', async () => {
      const ids = await issued(5);
      const batch = await revoked(ids);
      for (const id of ids.slice(0, 2)) await daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: false });
      const { exitCode, out, err } = await here(`undo ${batch} --yes`);
      expect({ exitCode, out }).to.deep.equal({ exitCode: 1, out: '' });
      expect(err).to.match(
        /^Undid 3 of 5 changes\. 2 were changed again since and stay as they are\. Redo: llmp undo [0-9a-f-]{36}\n$/,
      );
      expect(await areActive(ids)).to.deep.equal([false, false, true, true, true]);
      expect((await here(`undo ${batchIn(err)} --yes`)).exitCode).to.equal(0);
      expect(await areActive(ids)).not.to.include(true);
    });

    it('after a confirmation that says what it was', async () => {
      const ids = await issued(3);
      const batch = await revoked(ids);
      const asked = await here(`undo ${batch}`, { terminal: 100, answer: 'n\n' });
      expect(asked.exitCode).to.equal(2);
      expect(asked.err).to.match(/Undo 3 changes \(token\.revoke by .*, .+\)\?/);
      expect((await here(`undo ${batch}`)).err).to.contain('Use --yes');
      expect(await areActive(ids)).not.to.include(true);
      expect((await here(`undo ${batch}`, { terminal: 100, answer: 'y\n' })).exitCode).to.equal(0);
      expect(await areActive(ids)).not.to.include(false);
    });

    it('once, and as a single change without a confirmation', async () => {
      const { id } = await daemon.createProject({ name: 'one' });
      await here(`project update ${id} --name two`);
      const [{ batch }] = (await json<{ batch: string }[]>('audit list --limit 1')) as [{ batch: string }];
      const { err } = await here(`undo ${batch}`);
      expect(err).to.match(/^Undid 1 of 1 change\. Redo: /);
      expect(await json<object>(`project get ${id}`)).to.include({ name: 'one' });
      const again = await here(`undo ${batch}`);
      expect(again).to.deep.equal({ exitCode: 0, out: '', err: 'Undid 0 of 1 change. 1 was undone before.\n' });
    });

    it('with the result for each as JSON, also of a large batch, which the daemon undoes in parts', async () => {
      const standIn = await startStandIn();
      const part = (id: string, next: string | null) => ({
        batch: NONE,
        undone: [{ project_id: NONE, token_id: id }],
        skipped: [],
        next,
      });
      const record = { action: 'token.revoke', actor: 'cli', user: null, count: 2, time: '2030-01-31T12:00:00.000Z' };
      const answers = [[record], part('a', '17'), part('b', null)];
      const bodies: string[] = [];
      standIn.answer = (req, res) => {
        req.on('data', (piece: Buffer) => bodies.push(piece.toString()));
        answerJson(res, 200, answers[standIn.asked.length - 1]);
      };
      const env = { LLMP_SERVER: standIn.url, MANAGEMENT_TOKEN };
      const { exitCode, out } = await here(`undo ${NONE} --yes --json`, { env });
      await standIn.stop();
      expect(exitCode).to.equal(0);
      expect(JSON.parse(out)).to.deep.equal({
        ...part('a', null),
        undone: ['a', 'b'].map((id) => ({ project_id: NONE, token_id: id })),
      });
      const sent = standIn.asked.slice(1);
      expect(bodies).to.deep.equal(['{}', '{"cursor":"17"}']);
      expect(new Set(sent.map(({ headers }) => headers['x-audit-batch'])).size).to.equal(1);
    });

    it('if they exist, and the ID is one', async () => {
      expect((await here(`undo ${NONE}`)).exitCode).to.equal(4);
      expect((await here('undo 3fa91c2e')).exitCode).to.equal(2);
    });

    it('and listed by audit list, as one record or one by one', async () => {
      const batch = await revoked(await issued(3));
      const [row] = (await json<object[]>('audit list --group batch --limit 1')) as [object];
      expect(row).to.include({ batch, count: 3, action: 'token.revoke' });
      for (const args of [`audit list --batch ${batch}`, `audit list batch:${batch}`]) {
        expect(await json<object[]>(args)).to.have.length(3);
      }
      expect((await here('audit list --group batch --limit 1', { terminal: 200 })).out).to.match(
        /token\.revoke .*\b3\b/,
      );
    });
  });

  it('record the reason in the audit log, for every change', async () => {
    const reason = 'Schlüssel weg, 100%';
    const [id = ''] = await issued(1);
    const { project_id: project } = await daemon.token(id);
    const changes: [string, string?][] = [
      [`token revoke ${id}`],
      ['token reactivate - -y', id],
      [`token revoke --project-id ${project} -y`],
      [`token generate --project-id ${project}`],
      [`project deactivate ${project}`],
      [`project activate ${project}`],
      [`project update ${project} --name other`],
      [`project set-key ${project} --no-check`, canary('upstream')],
      [`project revoke-tokens ${project} -y`],
      [`cache purge --project-id ${project} -y`],
      ['project create --name third --no-check', canary('upstream')],
    ];
    const before = (await auditOf(daemon)).length;
    for (const [args, stdin = ''] of changes) {
      expect((await here([...args.split(' '), '--reason', reason], { stdin })).exitCode, args).to.equal(0);
    }
    const records = (await auditOf(daemon)).slice(before);
    expect(records).to.have.lengthOf(changes.length);
    for (const record of records) expect(record).to.include({ reason, actor: 'cli' });
  });

  describe('a project by its name', () => {
    it('is accepted wherever a project ID is expected', async () => {
      const web = await daemon.createProject({ name: 'web front' });
      const other = await daemon.createProject({ name: 'web' });
      expect((await here(['project', 'get', 'web front', '-o', 'id'])).out).to.equal(`${web.id}\n`);
      await here('project deactivate web');
      expect(await json<object>('project get web')).to.include({ id: other.id, is_active: false });

      const generated = await here(['token', 'generate', '--project-id', 'web front', '--json']);
      expect((JSON.parse(generated.out) as WireToken).project_id).to.equal(web.id);
      const env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, LLMP_PROJECT_ID: 'web front' };
      expect((await json<WireToken>('token generate', { env })).project_id).to.equal(web.id);
      const { out } = await here(['token', 'list', '--project-id', 'web front', '-o', 'id']);
      expect(out.trimEnd().split('\n')).to.have.lengthOf(2);
      expect((await here(['token', 'revoke', '--project-id', 'web front', '-y'])).err).to.contain('Revoked 2 tokens');
    });

    it('must be the full name, with the same letter case', async () => {
      await daemon.createProject({ name: 'website' });
      for (const name of ['web', 'Website', 'websites', 'an-upstream-key-of-another-provider']) {
        const { exitCode, err } = await here(`project get ${name}`);
        expect(exitCode).to.equal(4);
        expect(err)
          .to.contain('no project has the name or ID')
          .and.to.contain('llmp project list')
          .and.not.to.contain('upstream-key');
      }
    });

    it("is refused if it is also a prefix of another project's ID", async () => {
      const one = await daemon.createProject();
      const two = await daemon.createProject({ name: one.id.slice(0, 8) });
      const { exitCode, err } = await here(`project deactivate ${one.id.slice(0, 8)}`);
      expect(exitCode).to.equal(2);
      expect(err).to.contain(one.id).and.to.contain(two.id);
    });

    it('may look like a prefix of an ID', async () => {
      const { id } = await daemon.createProject({ name: 'deadbeef' });
      expect((await here('project get deadbeef -o id')).out).to.equal(`${id}\n`);
    });

    it('is searched on all pages', async () => {
      const pages = await startStandIn();
      const [first, wanted] = [NONE, NONE.replace('4000', '4001')];
      pages.answer = (req, res) => {
        if (req.url?.includes('cursor=')) answerJson(res, 200, [{ id: wanted, name: 'web' }]);
        else answerJson(res, 200, [{ id: first, name: 'x' }], { link: '</manage/projects?cursor=more>; rel="next"' });
      };
      await commandsAt(pages).here('project deactivate web');
      await pages.stop();
      expect(pages.asked.at(-1)).to.include({ method: 'PATCH', url: `/manage/projects/${wanted}` });
    });
  });
});
