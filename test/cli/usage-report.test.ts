import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { startDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { perSuite, perTest } from '../support/per-test.js';
import { replies, startProvider } from '../support/provider.js';
import { commandsAt, type Situation } from './captured.js';
import { answerJson, startStandIn } from './stand-in.js';

describe('llmp usage', () => {
  const provider = perSuite(startProvider);
  const daemon = perSuite(() => startDaemon({ upstream: provider.url }));
  const { here, json } = commandsAt(daemon);
  let project: WireProject;
  let token: WireTokenCreated;

  before(async () => {
    provider.answer = replies(200, { model: 'gpt-4o', usage: { prompt_tokens: 10, completion_tokens: 3 } });
    project = await daemon.createProject({ name: 'web' });
    token = await daemon.createToken(project.id, { name: 'ci-deploy' });
    for (let n = 0; n < 2; n++)
      await (await daemon.call(token.token, '/v1/chat/completions', { method: 'POST', body: '{}' })).arrayBuffer();
    await eventually('they are over', () => daemon.ended.length === 2);
  });

  it('sums all requests', async () => {
    const [all, ...others] = await json<object[]>('usage');
    expect(all).to.include({ requests: 2, hits: 0, errors: 0, prompt_tokens: 20, completion_tokens: 6 });
    expect(others).to.be.empty;
  });

  it('groups as requested, in every format', async () => {
    const by = 'usage --by model,token --since 24h';
    expect((await here(by)).out).to.equal(
      `${token.id}\tci-deploy\tgpt-4o\t2\t0\t0\t0\t0\t0\t0\t20\t6\t0\t0\t0.00011\t0\n`,
    );
    const [titles, line] = (await here(`${by} -o csv`)).out.split('\r\n');
    expect(titles).to.match(/^token_id,token_name,model,requests,.*,prompt_tokens,completion_tokens,/);
    expect(line).to.equal(`${token.id},ci-deploy,gpt-4o,2,0,0,0,0,0,0,20,6,0,0,0.00011,0`);
    expect((await here('usage --by model --by token --since 24h -o csv')).out).to.equal(
      (await here(`${by} -o csv`)).out,
    );
    expect((await here(`${by} -o id`)).out).to.equal(`${token.id} gpt-4o\n`);
    expect(JSON.parse((await here(`${by} -o jsonl`)).out)).to.include({ token_id: token.id, model: 'gpt-4o' });
  });

  it('names tokens and projects on a terminal', async () => {
    const { out } = await here('usage --by token,project,day --no-color', { terminal: 160 });
    const [titles, line] = out.split('\n');
    expect(titles).to.match(
      /TOKEN +PROJECT +DAY \(UTC\) +REQUESTS +HITS +FAILURES +REFUSED +PROVIDER REFUSED +FAILED +CUT +PROMPT +COMPLETION +COST$/,
    );
    expect(line).to.match(/^ci-deploy +web +\d{4}-\d\d-\d\d +2 +█+ +0 +0 +0 +0 +0 +0 +20 +6 +\$0\.0001$/);
  });

  it('filters by project, token and time', async () => {
    const requests = async (args: string) => (await here(`usage ${args}`)).out.split('\t')[0];
    expect(await requests('--project-id web')).to.equal('2');
    expect(await requests(`--token-id ${token.id.slice(0, 8)}`)).to.equal('2');
    expect(await requests('--since 2020-01-01 --until 2021-01-01T00:00:00Z')).to.equal('0');
    expect(await requests('--since 30d --until 20d')).to.equal('0');
    const empty = await here('usage --by token --since 30d --until 20d');
    expect(empty).to.deep.equal({ exitCode: 0, out: '', err: 'No requests in this period.\n' });
  });

  describe('with several lines', () => {
    const MODELS = [
      { model: 'small', requests: 1200, errors: 0, tokens: 5, cost: '0.000001234', unpriced: 0 },
      { model: 'large', requests: 12345, errors: 3, tokens: 2_000_000, cost: '4.50', unpriced: 0 },
      { model: 'mini', requests: 7, errors: 90, tokens: 0, cost: '12.345678901', unpriced: 5 },
      { model: null, requests: 600, errors: 0, tokens: 70, cost: null, unpriced: 600 },
    ];
    const standIn = perTest(startStandIn);
    const there = commandsAt(standIn).here;
    let cached = 0;

    beforeEach(() => {
      cached = 0;
      standIn.answer = (_req, res) => {
        const lines = MODELS.map(({ model, requests, errors, tokens, cost, unpriced }) => ({
          ...{ model, requests, errors, hits: 0, refused: 0, prompt_tokens: tokens, completion_tokens: 1 },
          ...{ upstream_refused: 0, failed: errors, cut: 0 },
          ...{ cache_read_tokens: cached, cache_write_tokens: 0, cost_usd: cost, unpriced_requests: unpriced },
        }));
        answerJson(res, 200, lines);
      };
    });

    const report = async (args: string, situation: Situation = {}) =>
      (await there(`usage --by model ${args}`, situation)).out;
    const table = (out: string) =>
      out
        .trimEnd()
        .split('\n')
        .map((line) => line.trim().split(/ {2,}/));

    it('sorts by a count or by the sum of model tokens, in every format', async () => {
      const models = async (args: string) => (await report(`-o id ${args}`)).trim().split('\n');
      expect(await models('')).to.deep.equal(['small', 'large', 'mini', '-']);
      expect(await models('--sort requests')).to.deep.equal(['large', 'small', '-', 'mini']);
      expect(await models('--sort errors')).to.deep.equal(['mini', 'large', 'small', '-']);
      expect(await models('--sort tokens')).to.deep.equal(['large', '-', 'small', 'mini']);
      expect((JSON.parse(await report('--sort errors --json')) as object[])[0]).to.include({
        model: 'mini',
        errors: 90,
      });
    });

    it('shows grouped digits, bars and the total on a terminal', async () => {
      const out = await report('--no-color', { terminal: 120 });
      const [titles, ...lines] = table(out);
      expect(titles?.slice(0, 3)).to.deep.equal(['MODEL', 'REQUESTS', 'HITS']);
      expect(lines.map((line) => line.slice(0, 3))).to.deep.equal([
        ['small', '1,200', '█▏'],
        ['large', '12,345', '████████████'],
        ['mini', '7', '▏'],
        ['no model', '600', '▋'],
        ['total', '14,152', '0'],
      ]);
      expect(out.split('\n').every((line) => line.length <= 120)).to.equal(true);
    });

    it('sums up the other lines with --top on a terminal, and leaves them out for programs', async () => {
      const lines = table(await report('--top 1 --no-color', { terminal: 100 })).slice(1);
      expect(lines.map(([name, requests]) => [name, requests])).to.deep.equal([
        ['large', '12,345'],
        ['other (3)', '1,807'],
        ['total', '14,152'],
      ]);
      const errors = table(await report('--top 1 --sort errors --no-color', { terminal: 100 })).slice(1);
      expect(errors.map(([name]) => name)).to.deep.equal(['mini', 'other (3)', 'total']);
      expect((await report('--top 2')).split('\n').map((line) => line.split('\t')[0])).to.deep.equal([
        'large',
        'small',
        '',
      ]);
      expect(JSON.parse(await report('--top 2 --json'))).to.have.length(2);
      expect((await report('--top 9 --no-color', { terminal: 100 })).includes('other')).to.equal(false);
    });

    it('has columns for the prompt cache only if there is something in them, or if it sorts by one', async () => {
      const titles = async (args: string) => table(await report(`--no-color ${args}`, { terminal: 200 }))[0];
      expect(await titles('')).not.to.include.members(['CACHE READ']);
      expect(await titles('--sort cache_write_tokens')).to.include('CACHE WRITE');
      cached = 1_500;
      expect(await titles(''))
        .to.include('CACHE READ')
        .and.not.to.include('CACHE WRITE');
      const lines = table(await report('--no-color --top 1', { terminal: 200 }));
      expect(lines.map((line) => line.at(-3))).to.deep.equal(['CACHE READ', '1,500', '4,500', '6,000']);
    });

    it('sorts by cost, of which an unknown one comes last, and says of how many requests it is unknown', async () => {
      const out = await report('--sort cost --no-color', { terminal: 200 });
      expect(table(out).map((line) => [line[0], ...line.slice(-3)])).to.deep.equal([
        ['MODEL', 'COMPLETION', 'COST', 'UNPRICED'],
        ['mini', '$12.35+', '████████████', '5'],
        ['large', '$4.50', '████▍', '0'],
        ['small', '<$0.0001', '▏', '0'],
        ['no model', '1', 'unknown', '600'],
        ['total', '4', '$16.85+', '605'],
      ]);
      const lines = JSON.parse(await report('--sort cost --json')) as {
        model: string | null;
        cost_usd: string | null;
      }[];
      expect(lines.map(({ model, cost_usd: usd }) => [model, usd])).to.deep.equal([
        ['mini', '12.345678901'],
        ['large', '4.50'],
        ['small', '0.000001234'],
        [null, null],
      ]);
    });

    it('keeps the lines of a project together with --group, of which the most expensive comes first', async () => {
      const costs = [
        ['web', 'small', '1.50'],
        ['lab', 'large', '2.00'],
        ['web', 'large', '1.00'],
        ['lab', 'own', null],
        ['app', 'small', '0.25'],
      ] as const;
      const zero = { requests: 1, errors: 0, hits: 0, refused: 0, prompt_tokens: 0, completion_tokens: 0 };
      const none = { upstream_refused: 0, failed: 0, cut: 0, cache_read_tokens: 0, cache_write_tokens: 0 };
      standIn.answer = (_req, res) => {
        const lines = costs.map(([project, model, usd]) => ({
          ...{ project_id: project, project_name: project, model, ...zero, ...none },
          ...{ cost_usd: usd, unpriced_requests: usd === null ? 1 : 0 },
        }));
        answerJson(res, 200, lines);
      };
      const ids = async (args: string) =>
        (await there(`usage --by project,model --sort cost -o id ${args}`)).out.trim().split('\n');
      expect(await ids('')).to.deep.equal(['lab large', 'web small', 'web large', 'app small', 'lab own']);
      expect(await ids('--group')).to.deep.equal(['web small', 'web large', 'lab large', 'lab own', 'app small']);
      expect(await ids('--group --top 1')).to.deep.equal(['web small', 'web large']);
      const { out } = await there('usage --by project,model --sort cost --group --top 1 --no-color', { terminal: 120 });
      const totals = table(out).filter(([name]) => name?.startsWith('other') || name === 'total');
      expect(totals.map((line) => [line[0], ...line.slice(-2)])).to.deep.equal([
        ['other (3)', '$2.25+', '1'],
        ['total', '$4.75+', '1'],
      ]);
    });

    it('draws bars in ASCII, keeps what it sorts by on a narrow terminal, and no color if there must be none', async () => {
      const out = await report('--sort cut --top 4', { terminal: 40, env: { LLMP_ASCII: '1', NO_COLOR: '1' } });
      expect(out).to.match(/^[\x20-\x7e\n]*$/);
      expect(table(out)[0]).to.deep.equal(['MODEL', 'REQUESTS', 'CUT']);
      const ascii = await report('', { terminal: 120, env: { LLMP_ASCII: '1', NO_COLOR: '1' } });
      expect(ascii)
        .to.match(/^large +12,345 {2}#{12} /m)
        .and.to.match(/^[\x20-\x7e\n]*$/);
      expect(await report('', { terminal: 120 })).to.contain('\x1b[32m█');
      expect(await report('--sort errors', { terminal: 120 })).to.contain('\x1b[31m█');
    });
  });

  it('has neither a total nor a bar for a single line', async () => {
    const { out } = await here('usage --no-color', { terminal: 140 });
    expect(out)
      .to.match(/^REQUESTS +HITS/)
      .and.not.to.contain('total');
    expect((await here('usage --by token --no-color', { terminal: 140 })).out).not.to.contain('total');
  });

  it('refuses invalid options', async () => {
    for (const args of [
      '--by tokens',
      '--by token,token',
      '--since yesterday',
      '--until 2020-13-01',
      '--sort size',
      '--top 0',
    ]) {
      const { exitCode, err } = await here(`usage ${args}`);
      expect(exitCode, `${args}: ${err}`).to.equal(2);
    }
    expect((await here('usage --project-id nobody')).exitCode).to.equal(4);
    expect((await here('usage --token-id nobody')).exitCode).to.equal(4);
    expect((await here('usage --since 1h --until 2h')).exitCode).to.equal(1);
  });
});
