import { expect } from 'chai';
import type { WireTop } from '../../../daemon/api/contract.js';
import { eventually } from '../../support/eventually.js';
import { startDaemon } from '../../support/daemon.js';
import { type Answer, json } from '../../support/provider.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { head } from '../../support/raw.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const answering =
  (status: number, model = 'gpt-test'): Answer =>
  (_req, res) => {
    json(res, status, { model, choices: [], usage: { prompt_tokens: 10, completion_tokens: 3 } });
  };

describe('the top rows', () => {
  let scene: ProxyFixture;
  let requests: number;

  beforeEach(async () => {
    scene = await ProxyFixture.open({});
    scene.provider.answer = answering(200);
    requests = 0;
    // To the start of a step, so that the test determines which step a request is in, and an hour or more after the start of the daemon.
    scene.daemon.clock.advance(2 * HOUR_MS - (scene.daemon.clock.now() % HOUR_MS));
  });
  afterEach(() => scene.close());

  const chat = async (secret = scene.secret, status = 200, model = 'gpt-test') => {
    scene.provider.answer = answering(status, model);
    const body = JSON.stringify({ model });
    await scene.send(head('POST /v1/chat', secret, { 'Content-Length': String(body.length) }) + body);
    requests += 1;
    await eventually('it has ended', () => scene.daemon.ended.length === requests);
  };
  const top = async (query = ''): Promise<WireTop> => {
    const answer = await scene.daemon.manage('GET', `/manage/top?${query}`);
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
    return answer.body as WireTop;
  };
  const another = async (name: string) =>
    scene.daemon.createToken((await scene.daemon.createProject({ name: `project of ${name}` })).id, { name });

  for (const window of ['5m', '1h', '24h']) {
    it(`in ${window} are tokens by their failures, which are counted by kind`, async () => {
      const failing = await another('failing');
      await chat();
      await chat(failing.token);
      await chat(failing.token, 429);
      await chat(failing.token, 500);
      await scene.daemon.manage('DELETE', `/manage/tokens/${failing.id}`);
      await chat(failing.token);
      const { rows, total, row_count } = await top(`window=${window}`);
      expect(rows.map((row) => row.token_id)).to.deep.equal([failing.id, scene.token.id]);
      expect(rows[0]).to.deep.include({
        token_name: 'failing',
        project_name: 'project of failing',
        requests: 4,
        errors: 3,
        refused: 1,
        upstream_refused: 1,
        failed: 1,
        cut: 0,
        cache_hits: 0,
      });
      expect(total).to.deep.include({ requests: 5, errors: 3, refused: 1, upstream_refused: 1, failed: 1 });
      expect(row_count).to.equal(2);
      expect(rows[0]!.history.at(-1)).to.equal(4);
      expect(rows[0]!.error_history.at(-1)).to.equal(3);
      expect(rows[0]!.history).to.have.length({ '5m': 5, '1h': 20, '24h': 24 }[window]!);
    });

    it(`in ${window} are projects, models of projects, or the rows of a project or token`, async () => {
      const other = await another('other');
      await chat();
      await chat(scene.secret, 200, 'large');
      await chat(other.token, 200, 'large');
      const projects = await top(`by=project&sort=requests&window=${window}`);
      expect(projects.rows.map((row) => [row.project_id, row.requests, row.prompt_tokens])).to.deep.equal([
        [scene.project.id, 2, 20],
        [other.project_id, 1, 10],
      ]);
      expect(projects.rows[0]).not.to.have.any.keys('token_id', 'model');
      const models = await top(`by=model&sort=tokens&window=${window}`);
      expect(models.rows.map((row) => [row.project_id, row.model, row.requests])).to.have.deep.members([
        [scene.project.id, 'gpt-test', 1],
        [scene.project.id, 'large', 1],
        [other.project_id, 'large', 1],
      ]);
      const ofProject = await top(`by=model&project_id=${other.project_id}&window=${window}`);
      expect(ofProject.rows.map((row) => [row.model, row.history.at(-1)])).to.deep.equal([['large', 1]]);
      expect(ofProject.total.requests).to.equal(1);
      const ofToken = await top(`by=model&token_id=${scene.token.id}&window=${window}`);
      expect(ofToken.rows.map((row) => row.model)).to.have.members(['gpt-test', 'large']);
      const first = await top(`limit=1&sort=requests&window=${window}`);
      expect([first.rows.length, first.row_count]).to.deep.equal([1, 2]);
      expect((await top(`project_id=unknown&window=${window}`)).rows).to.deep.equal([]);
    });
  }

  it('are sorted by what they cost, and say of how many requests that is unknown', async () => {
    const [dear, unknown] = [await another('dear'), await another('unknown')];
    await chat();
    const [ended] = scene.daemon.ended;
    const add = ({ id, project_id }: { id: string; project_id: string }, costNano: number | null) => {
      scene.daemon.daemon.usage.record({ ...ended!, tokenId: id, projectId: project_id, costNano });
    };
    for (const nano of [1, 1_250_000_000, null]) add(dear, nano);
    for (const nano of [null, null, null, null]) add(unknown, nano);
    add(scene.token, 999_999_999);
    for (const window of ['5m', '1h', '24h']) {
      const { rows, total } = await top(`sort=cost&window=${window}`);
      expect(rows.map((row) => [row.token_id, row.cost_usd, row.unpriced_requests])).to.deep.equal([
        [dear.id, '1.250000001', 1],
        [scene.token.id, '0.999999999', 1], // The model of the first request has no price.
        [unknown.id, null, 4],
      ]);
      expect(total).to.include({ cost_usd: '2.25', unpriced_requests: 6 });
    }
  });

  it('leave a window with their last step', async () => {
    await chat();
    scene.daemon.clock.advance(4 * MINUTE_MS);
    await chat();
    const [row] = (await top('window=5m')).rows;
    expect(row!.history).to.deep.equal([1, 0, 0, 0, 1]);
    expect((await top('window=1h')).rows[0]!.history.slice(-2)).to.deep.equal([1, 1]);
    scene.daemon.clock.advance(2 * MINUTE_MS);
    expect((await top('window=5m')).rows[0]!.history).to.deep.equal([0, 0, 1, 0, 0]);
    scene.daemon.clock.advance(3 * MINUTE_MS);
    expect((await top('window=5m')).rows).to.deep.equal([]);
    expect((await top('window=1h')).rows[0]!.requests).to.equal(2);
    scene.daemon.clock.advance(HOUR_MS);
    expect((await top('window=1h')).rows).to.deep.equal([]);
    expect((await top('window=24h')).rows[0]!.history.slice(-2)).to.deep.equal([2, 0]);
  });

  it('begin with the first step, and end now', async () => {
    const { from, to, step_seconds: step } = await top('window=5m');
    expect(Date.parse(from) % (step * 1000)).to.equal(0);
    expect(Date.parse(to) - Date.parse(from)).to.be.within(4 * MINUTE_MS, 5 * MINUTE_MS);
  });

  for (const window of ['5m', '1h', '24h']) {
    it(`in ${window} are the same after a restart, with their times`, async () => {
      await chat();
      await chat(scene.secret, 500);
      scene.daemon.clock.advance(2.5 * MINUTE_MS);
      await chat();
      const usedMs = scene.daemon.ended.at(-1)!.timeMs;
      scene.daemon.clock.advance(1_000);
      let before = await top(`window=${window}`);
      await eventually('the last use is written', async () => {
        before = await top(`window=${window}`);
        return Date.parse(before.rows[0]!.last_used_at) >= usedMs - 10_000;
      });
      expect(before.rows[0]).to.include({ requests: 3, errors: 1 });
      await scene.daemon.stop();
      scene.daemon = await startDaemon({ dir: scene.daemon.dir, clock: scene.daemon.clock });
      expect({ ...(await top(`window=${window}`)), to: null }).to.deep.equal({ ...before, to: null });
    });
  }

  it('have the totals of each model over all projects', async () => {
    const other = await another('other');
    await chat(scene.secret, 200, 'shared');
    await chat(other.token, 200, 'shared');
    await chat(other.token, 500, 'shared');
    await chat(other.token, 200, 'own');
    for (const window of ['5m', '1h', '24h']) {
      expect((await top(`by=model&window=${window}`)).rows).to.have.lengthOf(3);
      const { rows, row_count: count, total } = await top(`by=model_total&window=${window}&sort=requests`);
      expect(rows.map((row) => [row.model, row.requests, row.errors])).to.deep.equal([
        ['shared', 3, 1],
        ['own', 1, 0],
      ]);
      expect([count, total.requests]).to.deep.equal([2, 4]);
      expect(rows[0]).not.to.have.any.keys('project_id', 'token_id');
      expect(rows[0]!.history.at(-1)).to.equal(3);
    }
    const ofOther = await top(`by=model_total&project_id=${other.project_id}`);
    expect(ofOther.rows.map((row) => [row.model, row.requests])).to.deep.equal([
      ['shared', 2],
      ['own', 1],
    ]);
  });

  it('have the time until the response started, except in a day', async () => {
    await chat();
    expect((await top()).rows[0]!.p50_ms).to.be.a('number');
    expect((await top('window=24h&sort=p95')).rows[0]).to.include({ p50_ms: null, p95_ms: null });
  });

  it('do not contain requests with an unknown token, which are in the total', async () => {
    await chat('sk-wt-unknown');
    const { rows, total } = await top();
    expect([rows, total.requests, total.refused]).to.deep.equal([[], 1, 1]);
  });
});
