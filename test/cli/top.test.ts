import { expect } from 'chai';
import { EXIT } from '../../console/failure.js';
import type { WireTop } from '../../daemon/api/contract.js';
import { aTop, aTopRow, aWireProject } from '../support/factories.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { perTest } from '../support/per-test.js';
import { llmp, type Situation } from './captured.js';
import { eventually } from '../support/eventually.js';
import { Running } from './running.js';
import { answerJson, refuse, startStandIn } from './stand-in.js';

const WEB = aWireProject({ name: 'web' });

describe('llmp top', () => {
  const standIn = perTest(() => startStandIn());
  let top: WireTop;

  beforeEach(() => {
    top = aTop({
      rows: [
        aTopRow({
          token_name: 'ci',
          requests: 12_345,
          errors: 7,
          refused: 4,
          failed: 3,
          p95_ms: 1_730.5,
          cost_usd: '1.2345',
        }),
        aTopRow({ token_id: '0b8e7c1d-3a52-4f6b-8d1e-9c4f2a6b5d70', token_name: null, requests: 20 }),
      ],
    });
    standIn.answer = (req, res) => {
      if (req.url?.startsWith('/manage/top')) answerJson(res, 200, top);
      else answerJson(res, 200, [WEB]);
    };
  });

  const here = (args: string | readonly string[], situation: Situation = {}) =>
    llmp(args, { env: { LLMP_SERVER: standIn.url, MANAGEMENT_TOKEN, LANG: 'C.UTF-8' }, ...situation });
  const asked = () => {
    const url = standIn.asked.map((request) => request.url).findLast((it) => it.startsWith('/manage/top'));
    return Object.fromEntries(new URL(url ?? '/', 'http://daemon').searchParams);
  };

  it('lists names, figures, kinds of failures and the trend on a terminal', async () => {
    const { exitCode, out } = await here('top --no-color', { terminal: 150 });
    expect(exitCode).to.equal(0);
    const [titles, first, second, total] = out.split('\n');
    expect(titles).to.match(
      /TOKEN +PROJECT +REQUESTS +FAILURES +FAILURE KINDS +MODEL TOKENS +COST +P50 +P95 +LAST USED +TREND/,
    );
    expect(first).to.match(/^ci +web +12,345 +7 +refused 4, failed 3 +0 +\$1\.23 +- +1,731 ms .* +█$/);
    expect(second).to.match(/^0b8e7c1d +web +20 +0 /);
    expect(total).to.match(/^total +12,365 +7 /);
  });

  it('fits a narrow terminal, with the column that it is sorted by', async () => {
    const { out } = await here('top --sort p95 --no-color', { terminal: 60 });
    expect(out).to.contain('P95').and.to.contain('FAILURES').and.not.to.contain('LAST USED');
    for (const line of out.split('\n')) expect(line.length).to.be.at.most(60);
  });

  it('says of a model in which hour it was last used, because no more is known of a day', async () => {
    const hourMs = 3_600_000;
    const startMs = Date.now() - (Date.now() % hourMs);
    const at = (hours: number) => new Date(startMs - hours * hourMs).toISOString();
    top = { ...top, rows: [0, 3].map((hours) => aTopRow({ model: 'gpt', last_used_at: at(hours) })) };
    const { out } = await here('top model --since 24h --no-color', { terminal: 140 });
    expect(asked()).to.include({ by: 'model', window: '24h' });
    expect(out.split('\n')[1]).to.contain(' this hour ');
    expect(out.split('\n')[2]).to.contain(' 3h ago ');
    expect((await here('top --no-color', { terminal: 140 })).out).to.not.contain('this hour');
  });

  it('refuses two windows', async () => {
    for (const args of ['top --since 1h --window 24h', 'top model 1h --since 1h']) {
      const { exitCode, err } = await here(args);
      expect([exitCode, err.includes('the window is given twice')], args).to.deep.equal([EXIT.usage, true]);
    }
  });

  it('refuses --by and another first word', async () => {
    const { exitCode, err } = await here('top token --by model');
    expect(exitCode).to.equal(EXIT.usage);
    expect(err).to.contain('--by is model, but the query names token');
  });

  it('asks for tokens of the last hour by errors, and for models by model tokens', async () => {
    await here('top');
    expect(asked()).to.deep.equal({ by: 'token', window: '1h', sort: 'errors', limit: '20' });
    await here('top model --window 24h --limit 3');
    expect(asked()).to.deep.equal({ by: 'model', window: '24h', sort: 'tokens', limit: '3' });
    await here('top --by model --window 24h --limit 3');
    expect(asked()).to.include({ by: 'model', sort: 'tokens' });
    await here('top project --sort p95 --project-id web');
    expect(asked()).to.deep.equal({ by: 'project', window: '1h', sort: 'p95', limit: '20', project_id: WEB.id });
  });

  it('selects with a query, as the terminal UI does', async () => {
    const { out } = await here(['top', 'token', 'project:web CI', '-o', 'id']);
    expect(asked()).to.deep.equal({ by: 'token', window: '1h', sort: 'errors', limit: '200', project_id: WEB.id });
    expect(out).to.equal(`${aTopRow().token_id}\n`);
    const { exitCode, err } = await here('top token state:active');
    expect(exitCode).to.equal(EXIT.usage);
    expect(err).to.contain('no such key: state');
  });

  it('writes JSON as the daemon sent it, and CSV with stable columns', async () => {
    expect(JSON.parse((await here('top --json')).out)).to.deep.equal(top);
    const [titles, first] = (await here('top -o csv')).out.split('\r\n');
    expect(titles).to.equal(
      'token_id,token_name,project_id,project_name,requests,cache_hits,errors,refused,upstream_refused,failed,cut,prompt_tokens,completion_tokens,p50_ms,p95_ms,last_used_at,cost_usd,unpriced_requests',
    );
    expect(first).to.contain(',ci,').and.to.contain(',12345,0,7,4,0,3,0,0,0,,1730.5,');
  });

  it('warns of rows that are not shown, unless their number was given', async () => {
    top = { ...top, row_count: 90 };
    expect((await here('top')).err).to.contain('warning: first 2 of 90 rows');
    expect((await here('top --limit 2')).err).to.equal('');
  });

  describe('--watch', () => {
    /** Shows the list twice. */
    async function watched(situation: Situation): Promise<Running> {
      let pauses = 0;
      const running: Running = new Running(standIn.url, 'top --watch --limit 2 --no-color', {
        env: { LLMP_SERVER: standIn.url, MANAGEMENT_TOKEN, LANG: 'C.UTF-8' },
        pause: (_ms, signal) => {
          pauses += 1;
          if (pauses === 1) return Promise.resolve();
          return new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              resolve();
            });
          });
        },
        ...situation,
      });
      await eventually('it is shown twice', () => pauses === 2);
      expect((await running.press()).exitCode).to.equal(EXIT.interrupted);
      return running;
    }

    beforeEach(() => {
      top = { ...top, row_count: 90 };
    });

    it('shows how many rows there are below the list on a terminal', async () => {
      const { out, err } = await watched({ terminal: 120 });
      expect(out.match(/2 of 90\n/g)).to.have.length(2);
      expect(err).to.equal('');
    });

    it('writes each row once when piped', async () => {
      const { out, err } = await watched({});
      expect(out).to.contain('"token_name":"ci"');
      expect(err).to.equal('');
    });
  });

  it('says that there were no requests', async () => {
    top = aTop({ window: '5m' });
    expect(await here('top --window 5m')).to.deep.include({ exitCode: 0, out: '' });
    expect((await here('top --window 5m')).err).to.contain('No requests in the last 5 minutes.');
  });

  it('says that the daemon does not have it', async () => {
    standIn.answer = refuse(404, 'not_found', 'no such path');
    const { exitCode, err } = await here('top');
    expect(exitCode).to.equal(EXIT.notFound);
    expect(err).to.equal('llmp: the daemon does not have this operation. Is it of another release than this llmp?\n');
    const watching = await here('top --watch', { interrupted: new Promise(() => undefined) });
    expect(watching).to.include({ exitCode: EXIT.notFound, out: '', err });
    // Another server than llmp.
    standIn.answer = (_req, res) => res.writeHead(404).end('<html>');
    expect((await here('top')).err)
      .to.contain('Is it llmp?')
      .and.not.to.contain('release');
  });

  it('refuses values that it does not know', async () => {
    for (const args of ['top --window 2h', 'top --sort name', 'top --limit 201', 'top 1h --window 5m']) {
      expect((await here(args)).exitCode, args).to.equal(EXIT.usage);
    }
  });
});
