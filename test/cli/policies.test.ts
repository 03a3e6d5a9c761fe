import { expect } from 'chai';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { daemonForEachTest, UPSTREAM_KEY } from '../support/daemon.js';
import { commandsAt } from './captured.js';

describe('llmp: routes, models, limits and budgets', () => {
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

  it('give a new token a budget; an option alone keeps the other members of the token that it is like', async () => {
    const token = await json<WireToken>('token generate --budget-usd 25 --budget-tokens 2000000 --budget-period month');
    const budget = { usd: '25.00', tokens: 2_000_000, period: 'month', mode: 'soft' };
    expect(token.budget).to.deep.equal(budget);
    const like = async (options: string) =>
      (await json<WireToken>(`token generate --like ${token.id} ${options}`)).budget;
    expect(await like('--name x')).to.deep.equal(budget);
    expect(await like('--budget-mode hard')).to.deep.equal({ ...budget, mode: 'hard' });
    expect(await like('--budget-usd 0.5 --budget-tokens none')).to.deep.equal({
      usd: '0.50',
      period: 'month',
      mode: 'soft',
    });
    expect(await like('--budget-usd none --budget-tokens none')).to.equal(null);
    const { out } = await here(`token get ${token.id}`, { terminal: 160 });
    expect(out).to.match(
      /budget.* \$25 and 2,000,000 model tokens a month, soft; at the limit, new requests are refused with 402 until the/,
    );
    expect(out).to.match(/spent.* \$0 and 0 model tokens this month\n/);
  });

  for (const what of ['token', 'project'] as const) {
    it(`give a ${what} a budget, member by member, with an undo command that works`, async () => {
      const { id } = what === 'token' ? await daemon.createToken(project.id) : project;
      const read = async () => (await json<WireToken | WireProject>(`${what} get ${id}`)).budget;
      const change = async (options: string) => {
        const { exitCode, err } = await here(`${what} update ${id} ${options}`);
        expect(exitCode, err).to.equal(0);
        return err;
      };
      const first = await change('--budget-usd 1000000');
      expect(first).to.contain('$1,000,000, soft');
      expect(await read()).to.deep.equal({ usd: '1000000.00', period: 'none', mode: 'soft' });
      await undo(first);
      expect(await read()).to.equal(null);
      await change('--budget-tokens 7 --budget-mode hard --budget-period day');
      const changed = await change('--budget-usd 0.000001 --budget-period none');
      expect(await read()).to.deep.equal({ usd: '0.000001', tokens: 7, period: 'none', mode: 'hard' });
      await undo(changed);
      expect(await read()).to.deep.equal({ tokens: 7, period: 'day', mode: 'hard' });
      const removed = await change('--budget-tokens none');
      expect(removed).to.contain('none.');
      expect(await read()).to.equal(null);
      await undo(removed);
      expect(await read()).to.deep.equal({ tokens: 7, period: 'day', mode: 'hard' });
    });
  }

  it('of a budget need an amount', async () => {
    const { id } = await daemon.createToken(project.id);
    for (const command of [
      `token update ${id} --budget-mode hard`,
      `token update ${id} --budget-usd none --budget-period day`,
      'token generate --budget-period day',
      'project update web --budget-period day',
    ]) {
      const { exitCode, err } = await here(command);
      expect(exitCode, command).to.equal(2);
      expect(err).to.contain('a budget needs an amount').and.to.contain('Add --budget-usd AMOUNT or --budget-tokens');
    }
  });

  it('are columns of a file of tokens to issue, and options for all of its rows', async () => {
    const template = await daemon.createToken(project.id, { limits: { concurrent: 2, tokens_per_minute: 7 } });
    const file = `name,allow-model,rpm,like,budget-usd\nana,"m,n-*",5,${template.id},2.5\nben,none,none,${template.id},none\n`;
    const { exitCode, err } = await here('token generate --from - --yes --concurrent 3 --allow-route inference', {
      stdin: file,
    });
    expect(exitCode, err).to.equal(0);
    const named = async (name: string) => (await json<WireToken[]>(`token list ${name}`))[0];
    const limits = { tokens_per_minute: 7, concurrent: 3 };
    expect(await named('ana')).to.deep.include({
      allow: { routes: ['inference'], models: ['m', 'n-*'] },
      limits: { requests_per_minute: 5, ...limits },
      budget: { usd: '2.50', period: 'none', mode: 'soft' },
    });
    expect(await named('ben')).to.deep.include({ allow: { routes: ['inference'] }, limits, budget: null });
    const wrong = await here('token generate --from - --yes', { stdin: 'name,rpm\na,0\n' });
    expect(wrong.err).to.contain('line 2, column rpm: must be a whole number from 1 to');
    const partial = await here('token generate --from - --yes', { stdin: 'name,budget-period\na,day\n' });
    expect(partial.err).to.contain('line 2, column budget-period: a budget needs an amount');
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
      budget: { usd: '25', period: 'month' },
    });
    const restricted = { allow: { routes: ['inference'] }, budget: { tokens: 5, mode: 'hard' } };
    await daemon.manage('PATCH', `/manage/projects/${project.id}`, restricted);
    const { out, err } = await here('self', { env: { OPENAI_API_KEY: token }, terminal: 160 });
    expect(out, err).to.match(/allow.* models m, and of these only routes inference/);
    expect(out).to.match(/limits.* 60 requests\/min \(\d+ left\), 4 at a time \(\d left\)/);
    expect(out).to.match(/spent.* \$0 and 0 model tokens this month\n/);
    expect(out).to.match(
      /budget.* \$25 a month, soft \(\$25\.00 left\); for all tokens of its project 5 model tokens, hard \(5 model tokens left\)/,
    );
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
      ['--budget-usd', '0'],
      ['--budget-usd', '€5'],
      ['--budget-usd', '1e3'],
      ['--budget-usd', '0.0000001'],
      ['--budget-usd', '1000000.01'],
      ['--budget-tokens', '1.5'],
      ['--budget-tokens', '1000000000001'],
      ['--budget-period', 'week'],
      ['--budget-mode', 'none'],
    ]) {
      expect((await here(['token', 'generate', ...options])).exitCode, options.join(' ')).to.equal(2);
    }
    expect((await here('token update 3fa91c2e')).err).to.contain('nothing to change');
    expect((await here('token list -o id')).out).to.equal('');
  });
});
