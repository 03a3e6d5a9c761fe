import { expect } from 'chai';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { daemonForEachTest, temporaryFolder } from '../support/daemon.js';
import { commandsAt, type Situation } from './captured.js';

const HOUR_MS = 3_600_000;
const SECRET = /sk-wt-[0-9A-Za-z]{49}/;

describe('llmp token, against a daemon', () => {
  const daemon = daemonForEachTest();
  const { here, json, ids } = commandsAt(daemon);

  const hoursLeft = (token: WireToken) => (Date.parse(token.expires_at) - Date.parse(token.created_at)) / HOUR_MS;

  /** A token of a new project. */
  const issue = async (fields: object = {}) => daemon.createToken((await daemon.createProject()).id, { ...fields });

  describe('generate', () => {
    it('issues a token for the only active project and shows its secret', async () => {
      const project = await daemon.createProject();
      const { exitCode, out } = await here('token generate --name ci-deploy --max-requests 7 --json');
      expect(exitCode).to.equal(0);
      const created = JSON.parse(out) as WireTokenCreated;
      expect(created).to.include({ project_id: project.id, name: 'ci-deploy', max_requests: 7 });
      expect(created.token).to.match(SECRET);
      expect(hoursLeft(created)).to.equal(24);
    });

    for (const [duration, hours] of [
      ['48', 48],
      ['48h', 48],
      ['90m', 1.5],
      ['7d', 168],
      ['2w', 336],
      ['120s', 1 / 30],
    ] as const) {
      it(`understands --duration ${duration}`, async () => {
        await daemon.createProject();
        const { out } = await here(`manage token generate --duration ${duration} --json`);
        expect(hoursLeft(JSON.parse(out) as WireToken)).to.equal(hours);
      });
    }

    for (const duration of ['0', '-1', '1.5', '8761', '525601m', '366d', '53w', '90s', '-2h', '1y', '']) {
      it(`refuses --duration ${JSON.stringify(duration)}`, async () => {
        const { exitCode, err } = await here(['token', 'generate', '--duration', duration]);
        expect(exitCode).to.equal(2);
        expect(err).to.contain('--duration must be hours from 1 to 8760');
      });
    }

    it('warns above 720 hours, but issues the token', async () => {
      await daemon.createProject();
      const { exitCode, err } = await here('token generate --duration 721');
      expect(exitCode).to.equal(0);
      expect(err).to.contain('warning: a lifetime of 721 hours');
      expect((await here('token generate --duration 720')).err).not.to.contain('warning');
    });

    it('Q05 prints the secret and nothing else with -q', async () => {
      await daemon.createProject();
      const { out, err } = await here('token generate -q --duration 1000');
      expect(out).to.match(/^sk-wt-[0-9A-Za-z]{49}\n$/);
      expect(err).to.equal('');
    });

    it('Q04 prints a line for a shell with --env', async () => {
      await daemon.createProject();
      const { out } = await here('token generate --env OPENAI_API_KEY');
      expect(out).to.match(/^export OPENAI_API_KEY='sk-wt-[0-9A-Za-z]{49}'\n$/);
    });

    it('Q04 refuses --env with another format', async () => {
      const { exitCode, err } = await here('token generate --env A --json');
      expect(exitCode).to.equal(2);
      expect(err).to.contain('--env and --json exclude each other');
    });

    it('Q04 refuses a --env that is not the name of a variable', async () => {
      const { exitCode, err } = await here(['token', 'generate', '--env', 'A=1;rm']);
      expect(exitCode).to.equal(2);
      expect(err).to.contain('--env must be a variable name');
    });

    it('I17 writes the secret to a new file with --out, and shows it nowhere', async () => {
      await daemon.createProject();
      const file = join(temporaryFolder(), 'token.txt');
      const { out, err } = await here(`token generate --out ${file} --json`);
      expect(statSync(file).mode & 0o777).to.equal(0o600);
      expect(readFileSync(file, 'utf8')).to.match(/^sk-wt-[0-9A-Za-z]{49}\n$/);
      expect(out + err).not.to.match(SECRET);
      expect(JSON.parse(out)).to.have.property('id');
    });

    it('does not overwrite a file with --out, and issues no token in that case', async () => {
      await daemon.createProject();
      const file = join(temporaryFolder(), 'token.txt');
      writeFileSync(file, 'precious');
      const { exitCode } = await here(`token generate --out ${file}`);
      expect(exitCode).to.equal(2);
      expect(readFileSync(file, 'utf8')).to.equal('precious');
      expect((await here('token list -o id')).out).to.equal('');
    });

    it('leaves no file when the daemon refuses the request', async () => {
      const project = await daemon.createProject();
      await daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: false });
      const file = join(temporaryFolder(), 'token.txt');
      const { exitCode, err } = await here(`token generate --project-id ${project.id} --out ${file}`);
      expect(exitCode).to.equal(5);
      expect(err).to.contain('cannot generate tokens for inactive project');
      expect(existsSync(file)).to.equal(false);
    });

    it('lists the active projects and exits 2 when there are several', async () => {
      const [one, two] = [await daemon.createProject(), await daemon.createProject()];
      const { exitCode, out, err } = await here('token generate');
      expect(exitCode).to.equal(2);
      expect(out).to.equal('');
      expect(err).to.contain(one.id).and.to.contain(two.id).and.to.contain('--project-id');
    });

    it('uses LLMP_PROJECT_ID, or --project-id first, both as prefixes', async () => {
      const [one, two] = [await daemon.createProject(), await daemon.createProject()];
      const env = { LLMP_PROJECT_ID: one.id.slice(0, 8) };
      const byEnvironment = await json<WireToken>('token generate', { env });
      expect(byEnvironment.project_id).to.equal(one.id);
      const byOption = await here(`token generate --json --project-id ${two.id.slice(0, 8)}`, { env });
      expect((JSON.parse(byOption.out) as WireToken).project_id).to.equal(two.id);
    });

    describe('--like', () => {
      const termsOf = ({ project_id: project, name, max_requests: cap, ...token }: WireToken) => ({
        project,
        name,
        cap,
        hours: hoursLeft(token as WireToken),
      });
      const issued = async (args: string, situation?: Situation) =>
        await json<WireTokenCreated>(`token generate ${args}`, situation);

      it('issues an expired token again with its project, name, cap and lifetime, whatever the default project is', async () => {
        const [project, other] = [await daemon.createProject(), await daemon.createProject()];
        const first = await daemon.createToken(project.id, { name: 'ci', max_requests: 9, duration_minutes: 90 });
        daemon.clock.advance(2 * HOUR_MS);
        const again = await issued('--like ci', { env: { LLMP_PROJECT_ID: other.id } });
        expect(termsOf(again)).to.deep.equal({ project: project.id, name: 'ci', cap: 9, hours: 1.5 });
        expect(again.id).not.to.equal(first.id);
        expect(again.token).to.match(SECRET);
      });

      it('replaces the terms that are given', async () => {
        const [project, other] = [await daemon.createProject(), await daemon.createProject()];
        const { id } = await daemon.createToken(project.id, { name: 'ci', max_requests: 9, duration_hours: 5 });
        const again = await issued(
          `--like ${id.slice(0, 8)} --duration 48 --max-requests 0 --name new --project-id ${other.id}`,
        );
        expect(termsOf(again)).to.deep.equal({ project: other.id, name: 'new', cap: 0, hours: 48 });
      });

      it('accepts a name that several tokens have only if their terms are the same', async () => {
        const project = await daemon.createProject();
        const terms = { name: 'ci', max_requests: 9, duration_hours: 5 };
        await daemon.createToken(project.id, terms);
        await issued('--like ci');
        expect((await issued('--like ci')).max_requests).to.equal(9);
        const { id } = await daemon.createToken(project.id, { ...terms, max_requests: 10 });
        const { exitCode, err } = await here('token generate --like ci');
        expect(exitCode).to.equal(2);
        expect(err).to.contain('"ci" matches several tokens').and.to.contain(id);
        expect(await ids('token list')).to.have.length(4);
      });

      it('issues nothing for a name that no token has, nor for an inactive project', async () => {
        const project = await daemon.createProject();
        const { id } = await daemon.createToken(project.id, { name: 'ci' });
        expect(await here('token generate --like cj')).to.include({ exitCode: 4 });
        await daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: false });
        const { exitCode, err } = await here(`token generate --like ${id}`);
        expect(exitCode).to.equal(5);
        expect(err).to.contain('cannot generate tokens for inactive project');
      });
    });

    it('shows an undo command with the name that it was called by', async () => {
      await daemon.createProject();
      const { err } = await here('token generate', { program: 'npx llmp' });
      expect(err)
        .to.include('Undo: npx llmp token revoke')
        .and.not.to.match(/(?<!npx )llmp token/);
    });

    it('refuses -o id, which would lose the secret', async () => {
      expect((await here('token generate -o id')).exitCode).to.equal(2);
    });
  });

  describe('list', () => {
    it('stops at --limit and says that there is more', async () => {
      const project = await daemon.createProject();
      for (let i = 0; i < 3; i++) await daemon.createToken(project.id);
      const { out, err } = await here('token list -o id --limit 2');
      expect(out.trim().split('\n')).to.have.length(2);
      expect(err).to.contain('only the first 2 of 3');
    });

    it('finds tokens that expire within a time, and not expired ones', async () => {
      const { project_id: project } = await issue({ duration_minutes: 1 });
      const soon = await daemon.createToken(project, { duration_minutes: 90 });
      await daemon.createToken(project, { duration_hours: 5 });
      daemon.clock.advance(2 * 60_000);
      expect(await ids('token list --expires-within 2h')).to.deep.equal([soon.id]);
    });

    it('sorts in descending order by a field with a leading -', async () => {
      const project = await daemon.createProject();
      for (const name of ['b', 'c', 'a']) await daemon.createToken(project.id, { name });
      const { out } = await here('token list --sort -name');
      expect(out.split('\n').map((line) => line.split('\t')[1])).to.deep.equal(['c', 'b', 'a', undefined]);
    });

    it('reports on stderr that there are none', async () => {
      const { exitCode, out, err } = await here('token list');
      expect({ exitCode, out }).to.deep.equal({ exitCode: 0, out: '' });
      expect(err).to.equal('No matching tokens.\n');
    });
  });

  describe('get', () => {
    it('shows one token by the first characters of its ID, in any letter case', async () => {
      const { id } = await issue();
      expect(await ids(`token get ${id.slice(0, 13).toUpperCase()}`)).to.deep.equal([id]);
      const { out } = await here(`token get ${id.slice(0, 8)} --json`);
      expect(JSON.parse(out)).to.include({ id, request_count: 0, cache_hit_count: 0 });
    });

    it('exits with 4 for an unknown token, by full ID or prefix', async () => {
      expect((await here('token get 00000000-0000-4000-8000-000000000000')).exitCode).to.equal(4);
      expect((await here('token get 00000000')).exitCode).to.equal(4);
    });

    it('finds a token by its name, among others whose names contain it', async () => {
      const { id, project_id: project } = await issue({ name: 'nightly tests' });
      for (const name of ['nightly tests 2', 'Nightly Tests']) await daemon.createToken(project, { name });
      expect(await ids(['token', 'get', 'nightly tests'])).to.deep.equal([id]);
    });

    it('lists the tokens with the same name, and changes none of them', async () => {
      const project = await daemon.createProject();
      const tokens = [
        await daemon.createToken(project.id, { name: 'deadbeef' }),
        await daemon.createToken(project.id, { name: 'deadbeef' }),
      ];
      await here(`token revoke ${tokens[0]!.id}`);
      const { exitCode, err } = await here('token reactivate deadbeef');
      expect(exitCode).to.equal(2);
      expect(err)
        .to.match(/^llmp: deadbeef matches several tokens\n/)
        .and.to.match(/\n {2}Give one of these IDs\n$/);
      const states = ['revoked', 'active'];
      for (const [at, { id }] of tokens.entries()) {
        expect(err).to.match(
          new RegExp(`\n  ${id}  deadbeef  ${states[at]}, created \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d\n`),
        );
        expect((await daemon.token(id)).state).to.equal(states[at]);
      }
    });

    it('shows the first of many candidates', async () => {
      const project = await daemon.createProject();
      for (let i = 0; i < 7; i++) await daemon.createToken(project.id, { name: 'same' });
      const { err } = await here('token get same');
      expect(err.match(/ {2}same {2}/g)).to.have.length(5);
      expect(err).to.contain('Give an ID. See: llmp token list');
    });

    it('names similar tokens if none has the name', async () => {
      const project = await daemon.createProject();
      for (const name of ['ci-deploy', 'CI-test']) await daemon.createToken(project.id, { name });
      const { exitCode, err } = await here('token get ci');
      expect(exitCode).to.equal(4);
      expect(err).to.equal(
        'llmp: no token has the name or ID "ci"\n  Similar names: CI-test, ci-deploy\n  See: llmp token list\n',
      );
    });

    it('says how long a prefix of an ID has to be', async () => {
      const project = await daemon.createProject();
      const { id } = await daemon.createToken(project.id, { name: 'ci' });
      const short = id.slice(0, 5);
      const { exitCode, err } = await here(`token revoke ${short}`);
      expect(exitCode).to.equal(4);
      expect(err).to.equal(
        `llmp: no token has the name or ID "${short}"\n` +
          '  If this is the beginning of an ID: at least 6 characters are needed\n  See: llmp token list\n',
      );
      expect((await here(`token get ${id.slice(0, 6)}`)).exitCode).to.equal(0);
    });

    it('does not repeat what may be a credential', async () => {
      const given = 'an-upstream-key-of-another-provider';
      const { exitCode, err } = await here(['token', 'get', given]);
      expect(exitCode).to.equal(4);
      expect(err).to.contain(`the given value (${given.length} characters)`).and.not.to.contain('upstream');
    });

    it('refuses what can be neither a name nor an ID, and sends nothing', async () => {
      const env = { LLMP_SERVER: 'http://127.0.0.1:9' };
      for (const given of ['', ' ', 'a\nb', 'x'.repeat(101), 'sk-proj-aaaaaaaaaaaaaaaaaaaaaaaa']) {
        expect((await here(['token', 'get', given], { env })).exitCode, given).to.equal(2);
      }
    });
  });

  describe('revoke and reactivate', () => {
    it('revokes a token, and prints an undo command that works', async () => {
      const { id } = await issue({ name: 'ci-deploy' });
      const { exitCode, out, err } = await here(`token revoke ${id.slice(0, 8)}`);
      expect({ exitCode, out }).to.deep.equal({ exitCode: 0, out: '' });
      expect(err).to.equal(`Revoked ${id.slice(0, 8)} (ci-deploy). Undo: llmp token reactivate ${id}\n`);
      expect((await daemon.token(id)).state).to.equal('revoked');
      await here(`token reactivate ${id}`);
      expect((await daemon.token(id)).state).to.equal('active');
    });

    it('succeeds when there was nothing to do', async () => {
      const { id } = await issue();
      await here(`token revoke ${id}`);
      expect((await here(`token revoke ${id}`)).exitCode).to.equal(0);
    });

    it('says when a reactivated token still cannot be used', async () => {
      const { id } = await issue({ duration_minutes: 1 });
      daemon.clock.advance(60_000);
      expect((await here(`token reactivate ${id}`)).err).to.contain('It still cannot be used: it has expired.');
    });

    it('prints the changed token as data if a format is given', async () => {
      const { id } = await issue();
      const { out, err } = await here(`token revoke ${id} --json`);
      expect(JSON.parse(out)).to.include({ id, state: 'revoked' });
      expect(err).to.equal('');
    });

    for (const [answer, isActive] of [
      ['y\n', false],
      ['n\n', true],
    ] as const) {
      it(`asks before several on a terminal, and takes ${JSON.stringify(answer)} for an answer`, async () => {
        const project = await daemon.createProject();
        const [one, two] = [await daemon.createToken(project.id), await daemon.createToken(project.id)];
        const { exitCode, out, err } = await here(`token revoke ${one.id} ${two.id}`, { terminal: 120, answer });
        expect(err).to.contain('Revoke 2 tokens?');
        expect(out).to.equal('');
        expect(exitCode).to.equal(isActive ? 2 : 0);
        expect((await daemon.token(two.id)).is_active).to.equal(isActive);
      });
    }
  });

  describe('whois', () => {
    it('finds the token of a secret on standard input, and does not show the secret', async () => {
      const { id, token } = await issue({ name: 'leaked' });
      const { exitCode, out, err } = await here('token whois --json -v', { stdin: `${token}\n` });
      expect(exitCode).to.equal(0);
      expect(JSON.parse(out)).to.include({ id, name: 'leaked' });
      expect(out + err).not.to.contain(token);
      expect((await here('token whois -o id', { stdin: token })).out).to.equal(`${id}\n`);
    });

    it('asks for the secret on a terminal without showing it', async () => {
      const { id, token } = await issue();
      const { out, err } = await here('token whois', { terminal: 120, answer: `${token}\n` });
      expect(out).to.contain(id);
      expect(err).to.contain('Type the secret:');
      expect(out + err).not.to.contain(token);
    });

    it('does not read the secret from a terminal that would show it', async () => {
      const { exitCode, err } = await here('token whois --no-input', { terminal: 120 });
      expect(exitCode).to.equal(2);
      expect(err).to.contain('Pipe it to standard input');
    });

    it('finds it by what lists show of the secret, as get, list and revoke do', async () => {
      const { id, token } = await issue({ name: 'leaked' });
      await issue({ name: 'other' });
      const shown = `${token.slice(0, 10)}…${token.slice(-4)}`;
      expect((await here('token whois -o id', { stdin: `${shown}\n` })).out).to.equal(`${id}\n`);
      for (const args of [`get ${shown}`, `list ${shown}`, `list --search ${shown.replace('…', '...')}`])
        expect(await ids(`token ${args}`), args).to.deep.equal([id]);
      expect((await here(`token revoke ${shown}`)).err).to.contain('Revoked');
      expect(await ids(`token list state:revoked ${shown}`)).to.deep.equal([id]);
      expect((await here('token get sk-wt-0000…0000')).exitCode).to.equal(4);
    });

    it('exits 4 for the secret of no token', async () => {
      const { exitCode, err } = await here('token whois', { stdin: `sk-wt-${'c'.repeat(49)}` });
      expect(exitCode).to.equal(4);
      expect(err).not.to.contain('ccc');
    });

    it('neither sends nor repeats text that is not such a secret', async () => {
      const key = 'sk-proj-0123456789';
      const env = { LLMP_SERVER: 'http://127.0.0.1:9' };
      for (const stdin of [key, '', `Bearer sk-wt-${'c'.repeat(49)}`]) {
        const { exitCode, err } = await here('token whois', { stdin, env });
        expect(exitCode).to.equal(2);
        expect(err).not.to.contain('0123').and.not.to.contain('ccc');
      }
    });

    it('accepts no secret on the command line, and does not repeat it', async () => {
      const { exitCode, err } = await here(`token whois sk-wt-${'c'.repeat(49)}`);
      expect(exitCode).to.equal(2);
      expect(err).not.to.contain('ccc');
    });
  });
});
