import { expect } from 'chai';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { daemonForEachTest, UPSTREAM_KEY } from '../support/daemon.js';
import { commandsAt } from './captured.js';

describe('llmp: routes, models and limits', () => {
  const daemon = daemonForEachTest();
  const { here, json } = commandsAt(daemon);
  const words = (...args: string[]) => args;
  const undo = async (err: string) => {
    const line = /Undo: llmp (.+)\n/.exec(err)?.[1] ?? '';
    const args = Array.from(line.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, bare = '']) => quoted ?? bare);
    expect((await here(args)).exitCode, line).to.equal(0);
  };
  let project: WireProject;
  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });

  it('are those of the options of a new token, given several times or as a list', async () => {
    const token = await json<WireToken>(
      words('token', 'generate', '--allow-route', 'inference', '--allow-route', 'GET /v1/*', '--allow-model', 'a,b-*'),
    );
    expect(token.allow).to.deep.equal({ routes: ['inference', 'GET /v1/*'], models: ['a', 'b-*'] });
    const like = await json<WireToken>(words('token', 'generate', '--like', token.id, '--allow-model', 'c'));
    expect(like.allow).to.deep.equal({ routes: ['inference', 'GET /v1/*'], models: ['c'] });
    const open = await json<WireToken>(
      words('token', 'generate', '--like', token.id, '--allow-model', 'none', '--allow-route', 'none'),
    );
    expect(open.allow).to.equal(null);
    const { out } = await here(`token get ${token.id}`, { terminal: 160 });
    expect(out).to.match(/allow.*routes inference, GET \/v1\/\*; models a, b-\*/);
  });

  for (const what of ['token', 'project'] as const) {
    it(`of a ${what} are changed one by one, with an undo command that works`, async () => {
      const allow = { routes: ['inference'], models: ['a'] };
      const { id } = what === 'token' ? await daemon.createToken(project.id) : project;
      const read = async () => (await json<WireToken | WireProject>(`${what} get ${id}`)).allow;
      const change = async (...options: string[]) => {
        const { exitCode, err } = await here([what, 'update', id, ...options]);
        expect(exitCode, err).to.equal(0);
        return err;
      };
      await change('--allow-route', 'inference', '--allow-model', 'a');
      expect(await read()).to.deep.equal(allow);
      const changed = await change('--allow-model', 'b', '--allow-model', 'c-*');
      expect(await read()).to.deep.equal({ ...allow, models: ['b', 'c-*'] });
      await undo(changed);
      expect(await read()).to.deep.equal(allow);
      await change('--allow-route', 'none');
      expect(await read()).to.deep.equal({ models: ['a'] });
      const removed = await change('--allow-model', 'none');
      expect(await read()).to.equal(null);
      await undo(removed);
      expect(await read()).to.deep.equal({ models: ['a'] });
    });
  }

  it('are those of the options of a new project', async () => {
    await here('project create --name new --no-check --allow-model a,b --rpm 9', { stdin: UPSTREAM_KEY });
    expect(await json<WireProject>('project get new')).to.deep.include({
      allow: { models: ['a', 'b'] },
      limits: { requests_per_minute: 9 },
    });
    expect((await here('project get new', { terminal: 160 })).out).to.match(/limits.* 9 requests\/min/);
  });

  it('limit a new token; --rpm alone keeps the other limits of the token that it is like', async () => {
    const token = await json<WireToken>('token generate --rpm 60 --tpm 200000 --concurrent 4');
    const limits = { requests_per_minute: 60, tokens_per_minute: 200_000, concurrent: 4 };
    expect(token).to.deep.include({ allow: null, limits });
    const like = (options: string) => json<WireToken>(`token generate --like ${token.id} ${options}`);
    expect((await like('--rpm 5')).limits).to.deep.equal({ ...limits, requests_per_minute: 5 });
    expect((await like('--rpm none --tpm none')).limits).to.deep.equal({ concurrent: 4 });
    expect((await like('--rpm none --tpm none --concurrent none')).limits).to.equal(null);
    expect((await like('--allow-model m')).limits).to.deep.equal(limits);
    const { out } = await here(`token get ${token.id}`, { terminal: 160 });
    expect(out).to.match(/limits.* 60 requests\/min, 200,000 model tokens\/min, 4 at a time/);
  });

  for (const what of ['token', 'project'] as const) {
    it(`limit a ${what}, one by one, with an undo command that works`, async () => {
      const { id } = what === 'token' ? await daemon.createToken(project.id, { allow: { models: ['m'] } }) : project;
      const read = async () => (await json<WireToken | WireProject>(`${what} get ${id}`)).limits;
      const change = async (options: string) => {
        const { exitCode, err } = await here(`${what} update ${id} ${options}`);
        expect(exitCode, err).to.equal(0);
        return err;
      };
      await change('--rpm 60 --concurrent 4');
      const changed = await change('--rpm 30');
      expect(changed).to.contain('30 requests/min, 4 at a time');
      expect(await read()).to.deep.equal({ requests_per_minute: 30, concurrent: 4 });
      // Another change in the meantime stays.
      await change('--tpm 1000');
      await undo(changed);
      expect(await read()).to.deep.equal({ requests_per_minute: 60, tokens_per_minute: 1000, concurrent: 4 });
      const removed = await change('--rpm none --tpm none --concurrent none');
      expect(await read()).to.equal(null);
      await undo(removed);
      expect(await read()).to.deep.equal({ requests_per_minute: 60, tokens_per_minute: 1000, concurrent: 4 });
      if (what === 'token') expect((await daemon.token(id)).allow).to.deep.equal({ models: ['m'] });
    });
  }

  it('are columns of a file of tokens to issue, and options for all of its rows', async () => {
    const template = await daemon.createToken(project.id, { limits: { concurrent: 2, tokens_per_minute: 7 } });
    const file = `name,allow-model,rpm,like\nana,"m,n-*",5,${template.id}\nben,none,none,${template.id}\n`;
    const { exitCode, err } = await here('token generate --from - --yes --concurrent 3 --allow-route inference', {
      stdin: file,
    });
    expect(exitCode, err).to.equal(0);
    const named = async (name: string) => (await json<WireToken[]>(`token list ${name}`))[0];
    const limits = { tokens_per_minute: 7, concurrent: 3 };
    expect(await named('ana')).to.deep.include({
      allow: { routes: ['inference'], models: ['m', 'n-*'] },
      limits: { requests_per_minute: 5, ...limits },
    });
    expect(await named('ben')).to.deep.include({ allow: { routes: ['inference'] }, limits });
    const wrong = await here('token generate --from - --yes', { stdin: 'name,rpm\na,0\n' });
    expect(wrong.err).to.contain('line 2, column rpm: must be a whole number from 1 to');
  });

  it('of tokens that a query selects are replaced by the options', async () => {
    await daemon.createToken(project.id, { name: 'old', limits: { concurrent: 2, requests_per_minute: 7 } });
    const { exitCode, err } = await here('token generate --query old --yes --rpm 8 --name new --allow-model m');
    expect(exitCode, err).to.equal(0);
    expect((await json<WireToken[]>('token list new'))[0]).to.deep.include({
      allow: { models: ['m'] },
      limits: { requests_per_minute: 8, concurrent: 2 },
    });
    const [planned] = await json<{ limits: unknown }[]>('token generate --query old --rpm 8 --dry-run');
    expect(planned?.limits).to.deep.equal({ requests_per_minute: 8, concurrent: 2 });
  });

  it('of a token are shown to its holder, with what is left', async () => {
    const { token } = await daemon.createToken(project.id, {
      allow: { models: ['m'] },
      limits: { requests_per_minute: 60, concurrent: 4 },
    });
    await daemon.manage('PATCH', `/manage/projects/${project.id}`, { allow: { routes: ['inference'] } });
    const { out, err } = await here('self', { env: { OPENAI_API_KEY: token }, terminal: 160 });
    expect(out, err).to.match(/allow.* models m, and of these only routes inference/);
    expect(out).to.match(/limits.* 60 requests\/min \(\d+ left\), 4 at a time \(\d left\)/);
  });

  it('are refused without a request if they are none', async () => {
    for (const options of [
      ['--allow-route', 'everything'],
      ['--allow-route', '/v1/models'],
      ['--allow-route', 'get /v1/models'],
      ['--allow-model', 'a b'],
      ['--allow-model', 'none,a'],
      ['--allow-model', ''],
      ['--allow-model', 'm'.repeat(201)],
      ['--rpm', '0'],
      ['--rpm', '-1'],
      ['--tpm', '1.5'],
      ['--concurrent', 'some'],
      ['--concurrent', '2147483648'],
    ]) {
      expect((await here(['token', 'generate', ...options])).exitCode, options.join(' ')).to.equal(2);
    }
    expect((await here('token update 3fa91c2e')).err).to.contain('nothing to change');
    expect((await here('token list -o id')).out).to.equal('');
  });
});
