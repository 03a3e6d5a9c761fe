import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { startDaemon, temporaryFolder, type TestDaemon } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { type DatabaseOutage, makeDatabaseUnreachable } from '../../support/database-outage.js';
import { type Answer, json } from '../../support/provider.js';
import { type Fields, head } from '../../support/raw.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { SOME_REQUEST } from '../../support/request-follower.js';
import { ModelNames } from '../../../daemon/core/model-names.js';
import type { UsageStore } from '../../../daemon/core/ports.js';
import { type Cost, MAX_NANO, sumOfCosts, usdOf } from '../../../daemon/api/money.js';
import { UsageStatistics } from '../../../daemon/core/usage.js';
import { silent } from '../../support/cache-model/instance.js';
import type { SqliteDatabase } from '../../../daemon/store/sql/sqlite-database.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NONE = {
  requests: 0,
  hits: 0,
  errors: 0,
  refused: 0,
  upstream_refused: 0,
  failed: 0,
  cut: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_usd: '0.00',
  unpriced_requests: 0,
};

/** What was read from a response without a prompt cache. */
const counted = (promptTokens: number | null, completionTokens: number | null, totalTokens: number | null = null) => ({
  ...{ promptTokens, completionTokens, totalTokens },
  ...{ cacheReadTokens: null, cacheWriteTokens: null },
});

const answering =
  (promptTokens: number, completionTokens: number, model = 'gpt-test'): Answer =>
  (_req, res) => {
    json(res, 200, { model, choices: [], usage: { prompt_tokens: promptTokens, completion_tokens: completionTokens } });
  };

async function report(daemon: TestDaemon, query = ''): Promise<Record<string, unknown>[]> {
  const answer = await daemon.manage('GET', `/manage/usage${query === '' ? '' : `?${query}`}`);
  expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
  return answer.body as Record<string, unknown>[];
}

describe('usage', () => {
  const prices = join(temporaryFolder(), 'prices.json');
  let scene: ProxyFixture;

  before(() => {
    const free = { model: '*', input: '0', output: '0' };
    const priced = { model: 'gpt-priced', input: '2.50', output: '10.00' };
    writeFileSync(prices, JSON.stringify({ prices: [priced, free] }));
  });

  beforeEach(async () => {
    scene = await ProxyFixture.open({ HTTP_CACHE_ENABLED: 'true', PRICES_FILE: prices });
    scene.provider.answer = answering(10, 3);
  });
  afterEach(() => scene.close());

  const chat = async (secret = scene.secret, fields: Fields = {}) => {
    const body = '{"model":"asked-for"}';
    const answer = await scene.send(
      head('POST /v1/chat', secret, { 'Content-Length': String(body.length), ...fields }) + body,
    );
    await scene.inFlight(0);
    return answer;
  };
  const ended = (requests: number) => eventually('all have ended', () => scene.daemon.ended.length === requests);

  it('without requests is a line of zeros, or no lines when grouped', async () => {
    expect(await report(scene.daemon)).to.deep.equal([NONE]);
    expect(await report(scene.daemon, 'by=token')).to.deep.equal([]);
  });

  it('adds up requests, model tokens and costs', async () => {
    scene.provider.answer = answering(10, 3, 'gpt-priced');
    for (let n = 0; n < 3; n++) await chat();
    expect(await report(scene.daemon)).to.deep.equal([
      { ...NONE, requests: 3, prompt_tokens: 30, completion_tokens: 9, cost_usd: '0.000165' },
    ]);
  });

  it("adds up the tokens of the provider's prompt cache, which are part of the prompt", async () => {
    scene.provider.answer = (_req, res) => {
      const usage = {
        input_tokens: 4,
        cache_creation_input_tokens: 20,
        cache_read_input_tokens: 100,
        output_tokens: 5,
      };
      json(res, 200, { type: 'message', model: 'claude-test', content: [], usage });
    };
    for (let n = 0; n < 2; n++) await chat();
    await ended(2);
    const counts = { prompt_tokens: 248, completion_tokens: 10, cache_read_tokens: 200, cache_write_tokens: 40 };
    expect(await report(scene.daemon)).to.deep.equal([{ ...NONE, requests: 2, ...counts }]);
    expect(await report(scene.daemon, 'by=token,model')).to.have.length(1);
    const [day] = await report(scene.daemon, 'by=day,token');
    expect(day).to.include(counts);
    const audit = await scene.daemon.manage('GET', '/manage/audit?action=token.use');
    expect((audit.body as { details: object }[])[0]?.details).to.include(counts);
  });

  it('can be grouped by tokens, projects, models, hours and days', async () => {
    const other = await scene.daemon.createToken((await scene.daemon.createProject()).id, { name: 'nightly tests' });
    await chat();
    scene.provider.answer = answering(100, 30, 'other-model');
    await chat();
    await chat(other.token);
    await ended(3);
    const [, second, third] = scene.daemon.ended;
    const hour = (timeMs: number) => new Date(timeMs - (timeMs % HOUR_MS)).toISOString();
    const one = { ...NONE, requests: 1, prompt_tokens: 10, completion_tokens: 3 };
    const large = { ...NONE, requests: 1, prompt_tokens: 100, completion_tokens: 30 };
    const own = { token_id: scene.token.id, token_name: null };
    const ofProject = { project_id: scene.project.id, project_name: scene.project.name };
    const others = { token_id: other.id, token_name: 'nightly tests' };
    const othersProject = { project_id: other.project_id, project_name: other.project_name };
    expect(await report(scene.daemon, 'by=token')).to.have.deep.members([
      { ...own, ...NONE, requests: 2, prompt_tokens: 110, completion_tokens: 33 },
      { ...others, ...large },
    ]);
    expect(await report(scene.daemon, 'by=model,token,project')).to.have.deep.members([
      { ...own, ...ofProject, model: 'gpt-test', ...one },
      { ...own, ...ofProject, model: 'other-model', ...large },
      { ...others, ...othersProject, model: 'other-model', ...large },
    ]);
    expect(await report(scene.daemon, `by=hour,day&token_id=${other.id}`)).to.deep.equal([
      { hour: hour(third!.timeMs), day: `${hour(third!.timeMs).slice(0, 10)}T00:00:00.000Z`, ...large },
    ]);
    expect(await report(scene.daemon, `by=model&project_id=${scene.project.id}`)).to.have.deep.members([
      { model: 'gpt-test', ...one },
      { model: 'other-model', ...large },
    ]);
    expect(second!.usage).to.deep.equal(counted(100, 30));
  });

  it('counts refusals, failures and disconnected clients', async () => {
    await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
    await chat();
    await scene.daemon.manage('PATCH', `/manage/tokens/${scene.token.id}`, { is_active: true });
    scene.provider.answer = (_req, res) => {
      json(res, 500, { error: {} });
    };
    await chat();
    scene.provider.answer = (_req, res) => {
      json(res, 404, { error: {} });
    };
    await chat();
    const { client, upstream } = await scene.midStream();
    client.destroy();
    await ended(4);
    upstream.destroy(); // The connection may have been kept open.
    expect(await report(scene.daemon, 'by=token,model')).to.deep.equal([
      { token_id: scene.token.id, token_name: null, model: null, ...NONE, requests: 2, errors: 1, refused: 1 },
      {
        token_id: scene.token.id,
        token_name: null,
        model: 'asked-for',
        ...NONE,
        requests: 2,
        errors: 2,
        upstream_refused: 1,
        failed: 1,
      },
    ]);
  });

  it('counts responses from the cache as hits without model tokens', async () => {
    const opted = { 'Cache-Control': 'public' };
    for (let n = 0; n < 3; n++) await chat(scene.secret, opted);
    await ended(3);
    expect(await report(scene.daemon, 'by=model')).to.deep.equal([
      { model: 'gpt-test', ...NONE, requests: 3, hits: 2, prompt_tokens: 10, completion_tokens: 3 },
    ]);
    expect(scene.daemon.ended.map(({ usage }) => usage?.promptTokens ?? null)).to.deep.equal([10, null, null]);
  });

  it('counts no model tokens of a response that is only retrieved, revalidated or not', async () => {
    scene.provider.answer = (req, res) => {
      if (req.headers['if-none-match'] === '"v"')
        res.writeHead(304, { ETag: '"v"', 'Cache-Control': 'max-age=60' }).end();
      else json(res, 200, { model: 'm', usage: { prompt_tokens: 5 } }, { ETag: '"v"', 'Cache-Control': 'max-age=1' });
    };
    await scene.send(head('GET /v1/a', scene.secret));
    scene.daemon.clock.advance(2_000);
    await scene.send(head('GET /v1/a', scene.secret));
    await ended(2);
    expect(
      scene.daemon.ended.map(({ model, usage, cache }) => [model, usage?.promptTokens ?? null, cache]),
    ).to.deep.equal([
      ['m', null, 'miss'],
      ['m', null, 'miss'],
    ]);
  });

  it('is read from streams, even if the client disconnects early', async () => {
    const event = (usage: object | null) => `data: ${JSON.stringify({ model: 'gpt-s', choices: [], usage })}\n\n`;
    scene.provider.answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      res.write(event(null) + event({ prompt_tokens: 4, completion_tokens: 1 }).slice(0, 20));
      setImmediate(() => res.write(`${event({ prompt_tokens: 4, completion_tokens: 1 }).slice(20)}: more\n\n`));
    };
    const client = await scene.client(head('POST /v1/stream', scene.secret, { 'Content-Length': '0' }));
    await client.seen(': more');
    client.destroy();
    expect(await scene.onlyRecord()).to.deep.include({
      outcome: 'client_closed',
      model: 'gpt-s',
      usage: counted(4, 1, null),
    });
  });

  it('is read from compressed responses, including large ones, which are forwarded unchanged', async () => {
    const noise = Array.from({ length: 30_000 }, (_, n) => ((n * 2_654_435_761) >>> 0).toString(36)).join('');
    const compressed = gzipSync(JSON.stringify({ model: 'm', choices: [noise], usage: { prompt_tokens: 7 } }));
    scene.provider.answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }).end(compressed);
    };
    const answer = await chat();
    expect(answer.body.equals(compressed)).to.equal(true);
    expect(await scene.onlyRecord()).to.deep.include({
      model: 'm',
      usage: counted(7, null, null),
    });
    expect(await report(scene.daemon, 'by=model')).to.deep.equal([
      { model: 'm', ...NONE, requests: 1, prompt_tokens: 7 },
    ]);
  });

  it('includes compressed responses when the daemon stops at once', async () => {
    const noise = Array.from({ length: 90_000 }, (_, n) => ((n * 2_654_435_761) >>> 0).toString(36)).join('');
    const compressed = gzipSync(JSON.stringify({ model: 'm', choices: [noise], usage: { prompt_tokens: 7 } }));
    scene.provider.answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }).end(compressed);
    };
    await Promise.all(
      Array.from({ length: 8 }, () => scene.send(head('POST /v1/a', scene.secret, { 'Content-Length': '0' }))),
    );
    await scene.daemon.stop();
    expect(scene.daemon.ended.map(({ usage }) => usage?.promptTokens)).to.deep.equal(Array(8).fill(7));
    const next = await startDaemon({ upstream: scene.provider.url, dir: scene.daemon.dir });
    expect(await report(next, 'by=model')).to.deep.equal([{ model: 'm', ...NONE, requests: 8, prompt_tokens: 56 }]);
    await next.stop();
  });

  it('of requests with unknown tokens is one line per reason', async () => {
    for (let n = 0; n < 20; n++) await chat(`sk-wt-${String(n).padStart(49, '0')}`);
    await scene.get(null);
    await scene.send('OPTIONS /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await ended(22);
    expect(await report(scene.daemon, 'by=token,project,model')).to.deep.equal([
      {
        ...{ token_id: null, token_name: null, project_id: null, project_name: null, model: null },
        ...NONE,
        requests: 21,
        errors: 21,
        refused: 21,
      },
    ]);
    const rows = await scene.daemon.daemon.stores.database.select('SELECT code FROM usage_hourly');
    expect(rows).to.deep.equal([{ code: 'unauthorized' }]);
  });

  it('does not grow with model names that a client invents', async () => {
    scene.provider.answer = (_req, res) => {
      json(res, 404, { error: { code: 'model_not_found' } });
    };
    const ask = (model: string, secret: string) => {
      const body = JSON.stringify({ model });
      return scene.send(head('POST /v1/chat', secret, { 'Content-Length': String(body.length) }) + body);
    };
    for (let n = 0; n < 15; n++) await ask(`made-up-${n}`, scene.secret);
    const other = await scene.daemon.createToken(scene.project.id);
    await ask('also-made-up', other.token);
    await ended(16);
    expect(scene.daemon.ended.map(({ model }) => model)).to.include('made-up-14');
    const lines = await report(scene.daemon, `by=model`);
    expect(lines).to.have.lengthOf(12);
    expect(lines[0]).to.deep.equal({ model: 'other', ...NONE, requests: 5, errors: 5, upstream_refused: 5 });
    expect(lines.map(({ model }) => model)).to.include.members(['made-up-0', 'made-up-9', 'also-made-up']);
  });

  it('shows models whose requests only failed, up to 100 a day', async () => {
    const { usage } = scene.daemon.daemon;
    await chat();
    const ended = await scene.onlyRecord();
    const failed = { status: 404, outcome: 'upstream_refused' } as const;
    for (let n = 0; n < 300; n++) usage.record({ ...ended, ...failed, model: `failed-${n}`, tokenId: `t${n}` });
    const models = (await report(scene.daemon, 'by=model')).map(({ model }) => String(model));
    expect(models.filter((model) => model.startsWith('failed-'))).to.have.lengthOf(100);
    expect(models).to.have.lengthOf(102);
    // None of them uses the slot of a model for which the provider responds.
    usage.record({ ...ended, model: 'answered' });
    usage.record({ ...ended, ...failed, model: 'answered', tokenId: 't299' });
    const answered = (await report(scene.daemon, 'by=model')).find(({ model }) => model === 'answered');
    expect(answered).to.include({ requests: 2, upstream_refused: 1 });
  });

  it("distinguishes the provider's refusals, the proxy's refusals and failures", async () => {
    const statuses = [400, 401, 404, 429, 429, 500, 503];
    for (const status of statuses) {
      scene.provider.answer = (_req, res) => {
        json(res, status, { error: {} });
      };
      await chat();
    }
    const capped = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
    scene.provider.answer = answering(1, 1);
    await chat(capped.token);
    await chat(capped.token);
    await ended(9);
    // The provider's 401 means that the project's key is rejected: the client gets a 502.
    const own = { ...NONE, requests: 7, errors: 7, upstream_refused: 4, failed: 3 };
    for (const by of ['token', 'token,hour']) {
      const lines = await report(scene.daemon, `by=${by}`);
      const [first, second] = lines.map(({ token_id: _, token_name: __, hour: ___, ...counts }) => counts);
      expect(first).to.deep.equal(own);
      expect(second).to.include({ requests: 2, errors: 1, refused: 1, upstream_refused: 0, failed: 0, cut: 0 });
    }
    const outcomes = scene.daemon.ended.map(({ outcome }) => outcome);
    expect(outcomes).to.deep.equal([
      'upstream_refused',
      'upstream_error',
      'upstream_refused',
      'upstream_refused',
      'upstream_refused',
      'upstream_error',
      'upstream_error',
      'ok',
      'refused',
    ]);
  });

  it('counts requests cut by a revocation separately from refused ones', async () => {
    const { client } = await scene.midStream();
    const waiting = await scene.beforeHeaders();
    await eventually('both are at the provider', () => scene.provider.received.length === 2);
    await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
    await chat();
    await ended(3);
    client.destroy();
    waiting.destroy();
    expect(scene.daemon.ended.map(({ outcome }) => outcome)).to.have.members(['revoked', 'revoked', 'refused']);
    for (const query of ['', `token_id=${scene.token.id}`]) {
      expect(await report(scene.daemon, query)).to.deep.equal([
        { ...NONE, requests: 3, errors: 3, refused: 1, cut: 2 },
      ]);
    }
  });

  describe('with model names that a client invents', () => {
    const answers: [what: string, answer: Answer][] = [
      [
        'answers 200 without a model',
        (_req, res) => {
          json(res, 200, { data: [] });
        },
      ],
      ['redirects', (_req, res) => void res.writeHead(307, { location: '/elsewhere' }).end()],
    ];
    for (const [what, answer] of answers) {
      it(`names the real models of all projects, if the provider ${what} for 600 others`, async function () {
        this.timeout(30_000);
        const { daemon, provider } = scene;
        provider.answer = answer;
        const tokens = await Promise.all(Array.from({ length: 60 }, () => daemon.createToken(scene.project.id)));
        const ask = (secret: string, model: string) =>
          daemon.call(secret, '/v1/chat', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ model }),
          });
        for (const [index, { token }] of tokens.entries())
          await Promise.all(Array.from({ length: 10 }, (_, n) => ask(token, `invented-${index}-${n}`)));
        const names = async (projectId: string) =>
          (await report(daemon, `by=model&project_id=${projectId}`)).map(({ model }) => model);
        await eventually('all are recorded', () => daemon.ended.length === 600);
        expect(await names(scene.project.id))
          .to.have.lengthOf(101)
          .and.include('other');

        const other = await daemon.createToken((await daemon.createProject()).id);
        for (const { token } of [scene.token, other]) {
          // Without usage, as an event stream is by default; and without a model, as some providers are.
          provider.answer = (_req, res) => {
            json(res, 200, { model: 'names-itself' });
          };
          await ask(token, 'names-itself');
          provider.answer = (_req, res) => {
            json(res, 200, { usage: { prompt_tokens: 1 } });
          };
          await ask(token, 'has-usage');
        }
        await eventually('all are recorded', () => daemon.ended.length === 604);
        for (const projectId of [scene.project.id, other.project_id]) {
          expect(await names(projectId)).to.include.members(['names-itself', 'has-usage']);
        }
      });
    }

    it('takes no names from another project, if the providers of many repeat every name', async () => {
      await chat();
      const ended = await scene.onlyRecord();
      const names = new ModelNames();
      const nameFor = (projectId: string, model: string) => names.nameFor({ ...ended, projectId, model });
      for (let project = 0; project < 100; project++) {
        for (let n = 0; n < 1_000; n++) nameFor(`p${project}`, `invented-${project}-${n}`);
      }
      expect(nameFor('p0', 'another')).to.equal('other');
      for (let n = 0; n < 50; n++) expect(nameFor('real', `model-${n}`)).to.equal(`model-${n}`);
    });
  });

  it('distinguishes up to 500 models a day in each project', async () => {
    const { usage } = scene.daemon.daemon;
    await chat();
    const ended = await scene.onlyRecord();
    for (let n = 0; n < 1_000; n++) usage.record({ ...ended, model: `model-${n}` });
    expect(await report(scene.daemon, 'by=model')).to.have.lengthOf(501);
    usage.record({ ...ended, model: 'model-of-the-next-day', timeMs: ended.timeMs + DAY_MS });
    const tomorrow = `until=${new Date(ended.timeMs + 2 * DAY_MS).toISOString()}`;
    expect(await report(scene.daemon, `by=model&${tomorrow}`)).to.have.lengthOf(502);
  });

  it('is written every few seconds, and survives a kill', async () => {
    await chat();
    await ended(1);
    scene.daemon.clock.advance(5_000);
    const { database } = scene.daemon.daemon.stores;
    const written = () => database.select<{ requests: number }>('SELECT requests FROM usage_hourly');
    await eventually('it is written', async () => (await written()).length > 0);
    expect(await written()).to.deep.equal([{ requests: 1 }]);
    await chat();
    await ended(2);
    scene.daemon.clock.advance(5_000);
    await eventually('it is added', async () => (await written())[0]?.requests === 2);
  });

  it('refuses invalid queries', async () => {
    const asked = (query: string) => scene.daemon.manage('GET', `/manage/usage?${query}`);
    for (const query of [
      'by=',
      'by=tokens',
      'by=token,',
      'by=token%20,day',
      'since=yesterday',
      'until=2020-01-01',
      'limit=3',
      'project_id=',
    ]) {
      expect((await asked(query)).status, query).to.equal(400);
    }
    const backwards = await asked('since=2030-01-02T00:00:00Z&until=2030-01-01T00:00:00Z');
    expect(backwards.body).to.include({
      error: 'since must not be after until (default: now)',
      code: 'invalid_request',
    });
    expect((await asked('since=2030-01-02T00:00:00Z')).status).to.equal(400);
    const denied = await fetch(`${scene.daemon.url}/manage/usage`);
    expect(denied.status).to.equal(401);
  });

  it('has a limited number of lines', async function () {
    this.timeout(60_000);
    const { database } = scene.daemon.daemon.stores;
    const make = (rows: number) =>
      database.transact((tx) =>
        tx.execute(
          `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < $last)
           INSERT OR REPLACE INTO usage_sums (kind, from_ms, project_id, token_id, model, requests, hits, prompt_tokens, completion_tokens, refused, failed)
           SELECT 'token_day', $dayMs, 'p', 't' || i, 'm', 1, 0, 0, 0, 0, 0 FROM n`,
          { last: rows - 1, dayMs: Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS },
        ),
      );
    await make(50_000);
    expect(await report(scene.daemon, 'by=token')).to.have.lengthOf(50_000);
    await make(50_001);
    const answer = await scene.daemon.manage('GET', '/manage/usage?by=token');
    expect(answer.status).to.equal(400);
    expect(JSON.stringify(answer.body)).to.match(/^\{"error":"the report has more than 50000 lines/);
  });
});

describe('usage over time', () => {
  let daemon: TestDaemon;
  let outage: DatabaseOutage | undefined;

  beforeEach(async () => {
    daemon = await startDaemon({ dir: temporaryFolder(), env: { USAGE_RETENTION: '72h' } });
  });
  afterEach(async () => {
    outage?.end();
    outage = undefined;
    await daemon.stop();
  });

  const DAY = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const ended = (timeMs: number, more: object = {}) => ({
    ...SOME_REQUEST,
    timeMs,
    model: 'm',
    usage: counted(2, 1, 3),
    ...more,
  });
  const keep = (...args: Parameters<typeof ended>) => {
    daemon.daemon.usage.record(ended(...args));
  };
  const span = (fromMs: number, toMs: number) =>
    `since=${new Date(fromMs).toISOString()}&until=${new Date(toMs).toISOString()}`;
  /** The tokens of the stored minutes. */
  const minutes = async () =>
    (
      await daemon.daemon.stores.database.select<{ token_id: string }>(
        'SELECT DISTINCT token_id FROM usage_minutes ORDER BY token_id',
      )
    ).map(({ token_id }) => token_id);
  const requests = async (query: string) => (await report(daemon, query)).map((line) => Number(line.requests));

  it('says what is known of the cost: 0 if nothing was to be paid, and null if it is unknown', async () => {
    const costs: Record<string, (number | null)[]> = {
      free: [0, 0],
      unknown: [null, 0, null],
      known: [1, 2_500_000_000],
      both: [123_456_789, null],
      more: [MAX_NANO, MAX_NANO, 1],
    };
    for (const [model, known] of Object.entries(costs))
      for (const costNano of known) keep(DAY - 5, { model, costNano });
    const lines = await report(daemon, `by=model&${span(DAY - DAY_MS, DAY)}`);
    expect(lines.map((it) => [it.model, it.cost_usd, it.unpriced_requests])).to.have.deep.members([
      ['free', '0.00', 0],
      ['unknown', null, 2],
      ['known', '2.500000001', 0],
      ['both', '0.123456789', 1],
      ['more', '9000000.00', 0],
    ]);
    expect(await report(daemon, span(DAY - DAY_MS, DAY))).to.deep.include.members([
      { ...NONE, requests: 12, prompt_tokens: 24, completion_tokens: 12, cost_usd: '9000000.00', unpriced_requests: 3 },
    ]);
  });

  it('adds up costs that are more than an integer of the database', async () => {
    for (let n = 0; n < 1_100; n++) keep(DAY - 5, { tokenId: `t${n}`, projectId: `p${n}`, costNano: MAX_NANO });
    expect(await report(daemon, span(DAY - DAY_MS, DAY))).to.have.nested.property('[0].cost_usd', '9000000.00');
    const top = await daemon.manage('GET', '/manage/top?by=model_total&window=24h&sort=cost');
    expect(top.status, JSON.stringify(top.body)).to.equal(200);
  });

  it('has the same sums by hour and by day', async () => {
    const from = DAY - 2 * DAY_MS;
    for (let hour = 0; hour < 48; hour++) {
      for (const tokenId of ['t1', 't2']) {
        for (const model of ['m1', 'm2']) {
          keep(from + hour * HOUR_MS + 5, { tokenId, model, costNano: 1_500_000_001 });
          const cut = { outcome: 'timeout', code: 'upstream_timeout', costNano: null };
          keep(from + hour * HOUR_MS + 6, { tokenId, model, ...cut });
        }
      }
    }
    for (const [sinceHour, untilHour] of [
      [0, 48],
      [0, 24],
      [24, 48],
      [5, 43],
      [7, 8],
      [3, 24],
      [24, 31],
      [10, 40],
    ] as const) {
      const hours = untilHour - sinceHour;
      const query = span(from + sinceHour * HOUR_MS + 1, from + untilHour * HOUR_MS);
      const line = {
        ...NONE,
        requests: hours * 8,
        errors: hours * 4,
        failed: hours * 4,
        prompt_tokens: hours * 16,
        completion_tokens: hours * 8,
        cost_usd: usdOf(hours * 4 * 1_500_000_001),
        unpriced_requests: hours * 4,
      };
      expect(await report(daemon, query), query).to.deep.equal([line]);
      for (const by of [
        'token',
        'project',
        'model',
        'day',
        'hour',
        'token,hour',
        'token,model,day',
        'project,hour,model',
      ]) {
        const lines = await report(daemon, `by=${by}&${query}`);
        const sum = (name: keyof typeof NONE) => lines.reduce((all, each) => all + Number(each[name]), 0);
        const sums = Object.fromEntries(Object.keys(NONE).map((name) => [name, sum(name as keyof typeof NONE)]));
        const costs = sumOfCosts(lines as unknown as Cost[]);
        expect({ ...sums, ...costs }, `${by} ${query}`).to.deep.equal(line);
      }
      expect(await requests(`by=token&token_id=t1&${query}`)).to.deep.equal([hours * 4]);
      expect(await requests(`token_id=t1&project_id=p&${query}`)).to.deep.equal([hours * 4]);
      expect(await requests(`project_id=q&${query}`)).to.deep.equal([0]);
    }
    const days = await report(daemon, `by=day&${span(from + 5 * HOUR_MS, DAY)}`);
    expect(days.map(({ day, requests: count }) => [day, count])).to.deep.equal([
      [new Date(from).toISOString(), 19 * 8],
      [new Date(from + DAY_MS).toISOString(), 24 * 8],
    ]);
  });

  it('counts a request in the hour in which it ended, up to its last millisecond', async () => {
    keep(DAY - 1);
    keep(DAY);
    expect(await requests(span(DAY - HOUR_MS, DAY))).to.deep.equal([1]);
    expect(await requests(span(DAY, DAY + 1))).to.deep.equal([1]);
    expect(await requests(span(DAY - 1, DAY + 1))).to.deep.equal([2]);
  });

  it('covers the last seven days by default', async () => {
    const nowMs = daemon.clock.now();
    keep(nowMs - 7 * DAY_MS - HOUR_MS - 1);
    keep(nowMs - 7 * DAY_MS + HOUR_MS);
    keep(nowMs);
    keep(nowMs + 2 * HOUR_MS);
    expect(await requests('')).to.deep.equal([2]);
    expect(await requests(`since=${new Date(nowMs - 8 * DAY_MS).toISOString()}`)).to.deep.equal([3]);
    // The seven days before `until`.
    expect(await requests(`until=${new Date(nowMs - 7 * DAY_MS + HOUR_MS + 1).toISOString()}`)).to.deep.equal([2]);
    expect(await requests(span(nowMs - 8 * DAY_MS, nowMs + DAY_MS))).to.deep.equal([4]);
  });

  it('of a project includes only its tokens, in each hour and each day', async () => {
    for (const timeMs of [DAY - 2 * DAY_MS, DAY]) {
      keep(timeMs);
      keep(timeMs, { projectId: 'q', tokenId: 'u' });
    }
    const both = span(DAY - 2 * DAY_MS, DAY + 1);
    for (const by of ['token', 'token,hour', 'token,day', 'project', 'model,hour']) {
      const sum = (await requests(`by=${by}&project_id=q&${both}`)).reduce((all, each) => all + each, 0);
      expect(sum, by).to.equal(2);
    }
    expect(await requests(`by=token&project_id=q&${span(DAY, DAY + 1)}`)).to.deep.equal([1]);
    expect(await requests(`token_id=t&project_id=q&${both}`)).to.deep.equal([0]);
  });

  it('deletes whole days older than USAGE_RETENTION', async () => {
    for (let day = 1; day <= 8; day++) for (let n = 0; n < 300; n++) keep(DAY - day * DAY_MS + 7, { tokenId: `t${n}` });
    const lasting = () => requests(`by=day&${span(DAY - 9 * DAY_MS, DAY)}`);
    expect(await lasting()).to.deep.equal(Array(8).fill(300));
    daemon.clock.advance(600_000);
    await eventually('old usage is deleted', async () => (await lasting()).length < 8 && (await lasting()).length <= 4);
    const { database } = daemon.daemon.stores;
    const before = new Date(daemon.clock.now() - 72 * HOUR_MS).toISOString().slice(0, 10);
    const firstKeptMs = Date.parse(`${before}T00:00:00Z`);
    await eventually('hours and sums agree', async () => {
      const [rows] = await database.select<{ n: number }>(
        'SELECT COUNT(*) AS n FROM usage_hourly WHERE hour_ms < $firstKeptMs',
        { firstKeptMs },
      );
      const [sums] = await database.select<{ n: number }>(
        'SELECT COUNT(*) AS n FROM usage_sums WHERE from_ms < $firstKeptMs',
        { firstKeptMs },
      );
      return rows?.n === 0 && sums?.n === 0;
    });
    expect(await requests(`by=hour&${span(firstKeptMs, DAY)}`)).to.deep.equal(
      Array((DAY - firstKeptMs) / DAY_MS).fill(300),
    );
  });

  it('deletes only its minutes if USAGE_RETENTION is 0', async () => {
    await daemon.stop();
    daemon = await startDaemon({ dir: daemon.dir, env: { USAGE_RETENTION: '0' } });
    keep(DAY - 3_000 * DAY_MS);
    expect(await requests(span(DAY - 4_000 * DAY_MS, DAY))).to.deep.equal([1]);
    daemon.clock.advance(600_000);
    await eventually('its minutes are deleted', async () => (await minutes()).length === 0);
    expect(await requests(span(DAY - 4_000 * DAY_MS, DAY))).to.deep.equal([1]);
  });

  it('has minutes for an hour and a little longer', async () => {
    const now = daemon.clock.now();
    for (const ago of [0, 59, 90]) keep(now - ago * 60_000, { tokenId: `${ago}` });
    await daemon.daemon.usage.flush();
    expect(await minutes()).to.deep.equal(['', '0', '59', '90']);
    daemon.clock.advance(300_000);
    await eventually('the oldest are deleted', async () => !(await minutes()).includes('90'));
    expect(await minutes()).to.deep.equal(['', '0', '59']);
  });

  it('is buffered while the database is unavailable, and written once', async () => {
    keep(DAY - 1);
    outage = makeDatabaseUnreachable(daemon);
    daemon.clock.advance(5_000);
    await eventually('it was tried', () =>
      daemon.logged.some((line) => line.includes('cannot write usage to the database')),
    );
    const refused = await daemon.manage('GET', '/manage/usage');
    expect(refused.status).to.equal(503);
    expect(refused.body).to.include({ code: 'unavailable' });
    keep(DAY - 1);
    outage.end();
    daemon.clock.advance(5_000);
    expect(await requests(span(DAY - HOUR_MS, DAY))).to.deep.equal([2]);
  });

  it('is added once if the confirmation of the write is lost', async () => {
    const { usage, database } = { usage: daemon.daemon.usage, database: daemon.daemon.stores.database };
    const { writer } = database as SqliteDatabase;
    const run = writer.run.bind(writer);
    keep(DAY - 1);
    for (const isDone of [true, false, true]) {
      writer.run = async (sql, bind) => {
        if (sql !== 'COMMIT') return run(sql, bind);
        if (isDone) await run(sql, bind);
        throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' });
      };
      await usage.flush().then(
        () => expect.fail('it was heard'),
        () => undefined,
      );
      writer.run = run;
      keep(DAY - 1);
    }
    expect(await requests(span(DAY - HOUR_MS, DAY))).to.deep.equal([4]);
    expect(await requests(`by=token&${span(DAY - 2 * DAY_MS, DAY)}`)).to.deep.equal([4]);
  });

  it('is written every few seconds under load, not again and again', async () => {
    const { stores } = daemon.daemon;
    let writes = 0;
    const busy: Pick<UsageStore, 'add'> = {
      add: async (flush) => {
        writes += 1;
        await stores.usage.add(flush);
        usage.record(ended(DAY - 1)); // A request ends while each flush is written.
      },
    };
    const usage = new UsageStatistics({
      store: Object.assign(Object.create(stores.usage) as UsageStore, busy),
      clock: daemon.clock,
      log: silent,
      instanceId: 'busy',
      models: new ModelNames(),
      isReady: () => true,
      retentionMs: 0,
    });
    usage.record(ended(DAY - 1));
    await usage.flush();
    expect({ writes, waiting: usage.waiting }).to.deep.equal({ writes: 1, waiting: 1 });
    daemon.clock.advance(5_000);
    await eventually('the next flush', () => writes === 2 && usage.waiting === 1);
    await usage.close();
    expect(await requests(span(DAY - HOUR_MS, DAY))).to.deep.equal([3]);
  });

  it('is dropped above the buffer limit, which is logged', async () => {
    const { stores } = daemon.daemon;
    const said: string[] = [];
    const log = { ...silent, warn: (...words: unknown[]) => said.push(JSON.stringify(words)) };
    const usage = new UsageStatistics({
      store: stores.usage,
      clock: daemon.clock,
      log,
      instanceId: 'another',
      models: new ModelNames(),
      isReady: () => true,
      retentionMs: 0,
      maxWaiting: 200,
    });
    for (let n = 0; n < 210; n++) usage.record(ended(DAY - 1, { tokenId: `t${n}` }));
    for (let n = 0; n < 210; n++) usage.record(ended(DAY - 1, { tokenId: `t${n}` }));
    expect(usage.waiting).to.equal(200);
    await usage.close();
    expect(await requests(span(DAY - HOUR_MS, DAY))).to.deep.equal([400]);
    expect(said.join('\n')).to.match(/usage of some requests was lost.*"requests":20\b/);
  });

  it('above the buffer limit keeps the hours of earlier minutes', async () => {
    const said: string[] = [];
    const usage = new UsageStatistics({
      store: daemon.daemon.stores.usage,
      clock: daemon.clock,
      log: { ...silent, warn: (...words: unknown[]) => said.push(JSON.stringify(words)) },
      instanceId: 'another',
      models: new ModelNames(),
      isReady: () => true,
      retentionMs: 0,
      maxWaiting: 200,
    });
    for (let minute = 0; minute < 30; minute++) {
      for (let n = 0; n < 80; n++) usage.record(ended(DAY + minute * 60_000, { tokenId: `t${n}` }));
      expect(usage.waiting).to.be.at.most(200);
    }
    await usage.close();
    expect(await requests(`by=token&${span(DAY, DAY + HOUR_MS)}`)).to.deep.equal(Array(80).fill(30));
    expect(said).to.deep.equal([]);
  });

  it('has rows with stable IDs in time order', async () => {
    keep(DAY - HOUR_MS);
    keep(DAY, { tokenId: 'a' });
    keep(DAY - 5 * HOUR_MS, { tokenId: 'z' });
    await daemon.daemon.usage.flush();
    const { database } = daemon.daemon.stores;
    const ids = () =>
      database.select<{ id: string; hour_ms: number }>('SELECT id, hour_ms FROM usage_hourly ORDER BY id');
    const before = await ids();
    expect(before.map(({ hour_ms }) => hour_ms)).to.deep.equal([DAY - 5 * HOUR_MS, DAY - HOUR_MS, DAY]);
    for (const { id } of before)
      expect(id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
    keep(DAY - HOUR_MS);
    await daemon.daemon.usage.flush();
    expect(await ids()).to.deep.equal(before);
  });
});

describe('bodies in events', () => {
  const CAPTURING = { OBSERVABILITY_CAPTURE_BODIES: 'true', OBSERVABILITY_MAX_BODY_BYTES: '80' };
  const post = (scene: ProxyFixture, body: string) =>
    scene.send(scene.post({ 'Content-Type': 'application/json' }, body));

  it('are absent by default', async () => {
    const scene = await ProxyFixture.open();
    await post(scene, '{"model":"m"}');
    expect(await scene.onlyRecord()).to.include({ model: 'm', requestBody: null, responseBody: null });
    await scene.close();
  });

  it('are truncated and masked, streams are assembled to text, and the log has none of it', async () => {
    const scene = await ProxyFixture.open(CAPTURING);
    await post(scene, `{"model":"m","x":"${scene.secret} ${'word '.repeat(50)}"}`);
    const { requestBody, responseBody } = await scene.onlyRecord();
    expect(requestBody).to.match(/^\{"model":"m","x":"\*{8} (?:word )+\w{0,3}…\[cut: 80 of 326 bytes\]$/);
    expect(responseBody).to.equal(requestBody);
    expect(scene.daemon.logged.join('')).to.not.include('word word');

    scene.daemon.ended.length = 0;
    scene.provider.answer = undefined;
    await scene.send(scene.post({}, '{"model":"gpt-test","stream":true}').replace('/v1/echo', '/v1/chat/completions'));
    expect((await scene.onlyRecord()).responseBody).to.match(/^\{"id":"chatcmpl-1","object":"chat\.completion",/);
    await scene.close();
  });

  it('include responses from the cache', async () => {
    const scene = await ProxyFixture.open({ ...CAPTURING, HTTP_CACHE_ENABLED: 'true' });
    scene.provider.answer = (_req, res) => {
      json(res, 200, { a: 1 }, { 'Cache-Control': 'max-age=60' });
    };
    for (let n = 0; n < 2; n++) await scene.send(head('GET /v1/a', scene.secret));
    await eventually('both have ended', () => scene.daemon.ended.length === 2);
    expect(scene.daemon.ended.map(({ cache, responseBody }) => [cache, responseBody])).to.deep.equal([
      ['miss', '{"a":1}'],
      ['hit', '{"a":1}'],
    ]);
    await scene.close();
  });
});
