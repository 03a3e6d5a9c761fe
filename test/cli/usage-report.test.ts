import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { json, type Provider, startProvider } from '../support/provider.js';
import { type Captured, llmp, type Situation } from './captured.js';

describe('llmp usage', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let project: WireProject;
  let token: WireTokenCreated;

  before(async () => {
    provider = await startProvider();
    provider.answer = (_req, res) => {
      json(res, 200, { model: 'gpt-test', usage: { prompt_tokens: 10, completion_tokens: 3 } });
    };
    daemon = await startDaemon({ upstream: provider.url });
    project = await daemon.createProject({ name: 'web' });
    token = await daemon.createToken(project.id, { name: 'ci-deploy' });
    for (let n = 0; n < 2; n++) await (await daemon.call(token.token)).arrayBuffer();
    await eventually('they are over', () => daemon.ended.length === 2);
  });
  after(async () => {
    await daemon.stop();
    await provider.stop();
  });

  const here = (args: string, situation: Situation = {}): Promise<Captured> =>
    llmp(args, { env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN }, ...situation });

  it('sums all requests (finding A13)', async () => {
    const { exitCode, out } = await here('usage --json');
    expect(exitCode).to.equal(0);
    expect(JSON.parse(out)).to.deep.equal([
      {
        requests: 2,
        hits: 0,
        refused: 0,
        errors: 0,
        prompt_tokens: 20,
        completion_tokens: 6,
        upstream_refused: 0,
        upstream_errors: 0,
        cut: 0,
      },
    ]);
  });

  it('groups as requested, in every format', async () => {
    const by = 'usage --by model,token --since 24h';
    expect((await here(by)).out).to.equal(`${token.id}\tgpt-test\t2\t0\t0\t0\t20\t6\t0\t0\t0\tci-deploy\n`);
    expect((await here(`${by} -o csv`)).out).to.equal(
      `token_id,model,requests,hits,refused,errors,prompt_tokens,completion_tokens,upstream_refused,upstream_errors,cut,token_name\r\n${token.id},gpt-test,2,0,0,0,20,6,0,0,0,ci-deploy\r\n`,
    );
    expect((await here(`${by} -o id`)).out).to.equal(`${token.id} gpt-test\n`);
    expect(JSON.parse((await here(`${by} -o jsonl`)).out)).to.include({ token_id: token.id, model: 'gpt-test' });
  });

  it('names tokens and projects on a terminal', async () => {
    const { out } = await here('usage --by token,project,day --no-color', { terminal: 140 });
    const [titles, line] = out.split('\n');
    expect(titles).to.match(
      /TOKEN +PROJECT +DAY \(UTC\) +REQUESTS +HITS +REFUSED +ERRORS +PROMPT +COMPLETION +UPSTREAM 4XX/,
    );
    expect(line).to.match(/^ci-deploy +web +\d{4}-\d\d-\d\d +2 +0 +0 +0 +20 +6 +0/);
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

  it('refuses invalid options', async () => {
    for (const args of ['--by tokens', '--by token,token', '--since yesterday', '--until 2020-13-01']) {
      const { exitCode, err } = await here(`usage ${args}`);
      expect(exitCode, `${args}: ${err}`).to.equal(2);
    }
    expect((await here('usage --project-id nobody')).exitCode).to.equal(4);
    expect((await here('usage --token-id nobody')).exitCode).to.equal(4);
    expect((await here('usage --since 1h --until 2h')).exitCode).to.equal(1);
  });
});
