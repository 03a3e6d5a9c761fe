import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireProject } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { daemonForEachTest, MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../support/daemon.js';
import { replies, startProvider } from '../support/provider.js';
import { perTest } from '../support/per-test.js';
import { commandsAt } from './captured.js';
import { answerJson, startStandIn } from './stand-in.js';

describe('llmp project, against a daemon', () => {
  const provider = perTest(startProvider);
  const daemon = daemonForEachTest(() => ({ upstream: provider.url }));
  const { here, json, ids } = commandsAt(daemon);

  const hint = UPSTREAM_KEY.slice(-4);

  describe('create', () => {
    it('reads the upstream key from a file, and shows only its hint', async () => {
      const file = join(temporaryFolder(), 'key.txt');
      writeFileSync(file, `${UPSTREAM_KEY}\n`);
      const { exitCode, out, err } = await here(`project create --name web --key-file ${file} --json`);
      expect(exitCode).to.equal(0);
      expect(JSON.parse(out)).to.include({ name: 'web', is_active: true, api_key_hint: hint });
      expect(out + err).not.to.contain(UPSTREAM_KEY);
    });

    it('reads the upstream key from standard input', async () => {
      const { out } = await here('manage project create --name web --json', { stdin: `${UPSTREAM_KEY}\n` });
      expect((JSON.parse(out) as WireProject).api_key_hint).to.equal(hint);
    });

    it('asks for the upstream key on a terminal without showing it', async () => {
      const { exitCode, out, err } = await here('project create --name web', {
        terminal: 100,
        answer: `${UPSTREAM_KEY}\n`,
      });
      expect(exitCode).to.equal(0);
      expect(out).to.contain(hint);
      expect(err).to.contain("Type the provider's API key:");
      expect(out + err).not.to.contain(UPSTREAM_KEY);
    });

    it('does not ask with --no-input', async () => {
      await daemon.createProject({ name: 'other' });
      for (const command of ['project create --name web', 'project set-key other']) {
        const { exitCode, err } = await here(`${command} --no-input`, { terminal: 100 });
        expect(exitCode).to.equal(2);
        expect(err).to.contain('--key-file');
      }
    });

    it('has no option for the key itself', async () => {
      const { exitCode, err } = await here(`project create --name web --api-key=${UPSTREAM_KEY}`);
      expect(exitCode).to.equal(2);
      expect(err).to.contain("unknown option '--api-key'").and.not.to.contain(UPSTREAM_KEY);
    });

    it('refuses an empty key, and a missing name', async () => {
      expect((await here('project create --name web', { stdin: '\n' })).exitCode).to.equal(2);
      expect((await here('project create', { stdin: UPSTREAM_KEY })).exitCode).to.equal(2);
      await daemon.createProject({ name: 'other' });
      expect((await here('project set-key other', { stdin: '\n' })).exitCode).to.equal(2);
    });

    it('exits 5 when the name is taken', async () => {
      await here('project create --name web', { stdin: UPSTREAM_KEY });
      const { exitCode, err } = await here('project create --name web', { stdin: UPSTREAM_KEY });
      expect(exitCode).to.equal(5);
      expect(err).to.contain('a project of this name exists already');
    });

    it('does not repeat a key that the daemon refuses', async () => {
      const odd = `with space-${canary('upstream')}`;
      const { exitCode, err } = await here('project create --name web', { stdin: odd });
      expect(exitCode).to.equal(1);
      expect(err).not.to.contain(odd);
    });
  });

  it('lists projects, and gets one by the first characters of its ID', async () => {
    const [one, two] = [await daemon.createProject(), await daemon.createProject()];
    expect(await ids('project list')).to.have.members([one.id, two.id]);
    expect((await here(`project get ${two.id.slice(0, 8)} -o id`)).out).to.equal(`${two.id}\n`);
    expect((await here('project get 00000000')).exitCode).to.equal(4);
  });

  describe('update', () => {
    it('renames a project, and prints an undo command that works', async () => {
      const { id } = await daemon.createProject({ name: "the cat's" });
      const { exitCode, out, err } = await here(`project update ${id.slice(0, 8)} --name web`);
      expect({ exitCode, out }).to.deep.equal({ exitCode: 0, out: '' });
      const undo = `llmp project update ${id} --name 'the cat'\\''s'`;
      expect(err).to.equal(`Renamed ${id.slice(0, 8)} from the cat's to web. Undo: ${undo}\n`);
      expect(await json<object>('project get web')).to.include({ id, name: 'web' });
    });

    it('changes nothing if somebody changes it after it was read, and exits with 5', async () => {
      const { id } = await daemon.createProject({ name: 'one' });
      const between = await startStandIn();
      between.answer = (req, res) => {
        void (async () => {
          const headers = { ...(req.headers as Record<string, string>), host: new URL(daemon.url).host };
          const body = req.method === 'PATCH' ? { body: '{"name":"two"}' } : {};
          const answer = await fetch(`${daemon.url}${req.url}`, { method: req.method!, headers, ...body });
          // Somebody else, after the first request.
          if (req.method === 'GET') await daemon.manage('PATCH', `/manage/projects/${id}`, { name: 'theirs' });
          answerJson(res, answer.status, await answer.json(), { etag: answer.headers.get('etag') ?? '' });
        })();
      };
      const env = { LLMP_SERVER: between.url, MANAGEMENT_TOKEN };
      const { exitCode, err } = await here(`project update ${id} --name two`, { env });
      await between.stop();
      expect(exitCode, err).to.equal(5);
      expect(await json<object>(`project get ${id}`)).to.include({ name: 'theirs' });
    });

    it('prints the project if a format is given', async () => {
      const { id } = await daemon.createProject();
      expect(await json<object>(`project update ${id} --name web`)).to.include({ id, name: 'web' });
    });

    it('exits with 2 without a change, 5 if the name is taken, 4 for an unknown project', async () => {
      const one = await daemon.createProject();
      await daemon.createProject({ name: 'taken' });
      expect((await here(`project update ${one.id}`)).exitCode).to.equal(2);
      expect((await here(`project update ${one.id} --name taken`)).exitCode).to.equal(5);
      expect((await here('project update 00000000 --name web')).exitCode).to.equal(4);
    });
  });

  describe('set-key', () => {
    const key = canary('upstream');

    for (const [from, args, situation] of [
      ['standard input', '', { stdin: `${key}\n` }],
      ['a hidden prompt', '', { terminal: 100, answer: `${key}\n` }],
      ['a file', ' --key-file FILE', {}],
    ] as const) {
      it(`takes the new key from ${from}, and does not show it`, async () => {
        const { id } = await daemon.createProject({ name: 'web' });
        const file = join(temporaryFolder(), 'key.txt');
        writeFileSync(file, key);
        const { exitCode, out, err } = await here(`project set-key web${args.replace('FILE', file)}`, situation);
        expect(exitCode).to.equal(0);
        expect(err).to.contain(`Changed the key of ${id.slice(0, 8)} (web).`);
        expect(out + err).not.to.contain(key);
        expect((await here('project get web --json')).out).to.contain(`"api_key_hint": "${key.slice(-4)}"`);
      });
    }
  });

  describe('the check of a key', () => {
    const key = canary('upstream');
    const set = (more = '') => here(`project set-key web${more}`, { stdin: key });
    const hintNow = async () => await json<WireProject>('project get web');

    beforeEach(async () => {
      await daemon.createProject({ name: 'web' });
    });

    it('is the default, and its result is shown', async () => {
      const { exitCode, err } = await set();
      expect(exitCode).to.equal(0);
      expect(err).to.contain('The provider accepted the key.');
      expect(provider.received.at(-1)?.headers.authorization).to.equal(`Bearer ${key}`);
      const created = await here('project create --name other --json', { stdin: key });
      expect(JSON.parse(created.out)).to.include({ key_check: 'accepted' });
    });

    it('keeps the old key if the provider refuses the new one, or does not respond properly', async () => {
      for (const [status, exitCode, why] of [
        [401, 1, 'the provider refused the key with status 401; nothing was changed'],
        [500, 8, 'the key could not be checked: the provider responded with status 500.'],
      ] as const) {
        provider.answer = replies(status, { error: key });
        const failed = await set();
        expect(failed.exitCode).to.equal(exitCode);
        expect(failed.err)
          .to.contain(why)
          .and.to.contain('Store it without a check: --no-check')
          .and.not.to.contain(key);
        expect((await hintNow()).api_key_hint).to.equal(hint);
        expect((await here('project create --name other', { stdin: key })).exitCode).to.equal(exitCode);
      }
    });

    it('warns if the response says nothing about the key, and exits with 0', async () => {
      provider.answer = replies(404, {});
      const { exitCode, err } = await set();
      expect(exitCode).to.equal(0);
      expect(err).to.contain('llmp: warning: the key is stored, but the response of the provider does not show');
      expect(err).not.to.contain('accepted');
      expect((await hintNow()).api_key_hint).to.equal(key.slice(-4));
    });

    it('is skipped with --no-check', async () => {
      const { exitCode, err } = await set(' --no-check');
      expect(exitCode).to.equal(0);
      expect(err).not.to.contain('provider');
      expect((await here('project create --name other --no-check', { stdin: key })).exitCode).to.equal(0);
      expect(provider.received).to.have.length(0);
    });
  });

  it('asks on a terminal before it deactivates a project', async () => {
    const { id } = await daemon.createProject();
    const { exitCode, err } = await here(`project deactivate ${id}`, { terminal: 100, answer: 'n\r' });
    expect(err).to.include('not confirmed');
    expect(exitCode).to.equal(2);
  });

  it('deactivates and activates, and prints an undo command', async () => {
    const { id, name } = await daemon.createProject();
    const off = await here(`project deactivate ${id.slice(0, 8)}`);
    expect(off.err).to.equal(`Deactivated ${id.slice(0, 8)} (${name}). Undo: llmp project activate ${id}\n`);
    expect((await here(`project get ${id} --json`)).out).to.contain('"is_active": false');
    const on = await here(`project activate ${id}`);
    expect(on.err).to.contain(`Undo: llmp project deactivate ${id}`);
    expect((await here(`project get ${id} --json`)).out).to.contain('"is_active": true');
  });
});
