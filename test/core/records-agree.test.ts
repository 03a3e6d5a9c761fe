import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireUsageLine } from '../../daemon/api/contract.js';
import { sumOfCosts, usdOf } from '../../daemon/api/money.js';
import type { RequestEnded } from '../../daemon/core/events.js';
import { failureKindOf } from '../../daemon/core/failure-kind.js';
import type { EventJson } from '../../daemon/store/event-json.js';
import { eventually } from '../support/eventually.js';
import { json } from '../support/provider.js';
import { head } from '../support/raw.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { ProxyFixture } from '../support/proxy-fixture.js';

interface Use {
  request_id: string | null;
  token_id: string | null;
  count: number | null;
  details: { code: string | null; status?: number; outcome?: string; cache?: string; cost_usd?: string | null };
}

/** Produces every possible outcome of a request once, and then compares all records of them. */
const USAGE = {
  ...{ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
  prompt_tokens_details: { cached_tokens: 2 },
};

describe(`metrics, events, usage and audit agree${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);
  let redis: TestRedis;
  let scene: ProxyFixture;
  let ended: RequestEnded[];
  let known: RequestEnded[];
  let metrics: string;
  let usage: WireUsageLine[];

  before(async function () {
    if (WITHOUT_REDIS) this.skip();
    redis = await TestRedis.start();
    scene = await ProxyFixture.open({
      REDIS_ADDR: redis.address,
      HTTP_CACHE_ENABLED: 'true',
      ENABLE_METRICS: 'true',
      REQUEST_TIMEOUT: '60s',
    });
    await play();
    ended = scene.daemon.ended;
    known = ended.filter(({ tokenId }) => tokenId !== null);
    metrics = await (await fetch(`${scene.daemon.url}/metrics`)).text();
    usage = (await scene.daemon.manage('GET', '/manage/usage?by=token')).body as typeof usage;
    await scene.daemon.stop(); // Writes all that is still buffered.
  });
  after(async () => {
    await scene.provider.stop();
    await redis.stop();
  });

  async function play(): Promise<void> {
    const { daemon, provider } = scene;
    const chat = { 'Content-Type': 'application/json' };
    provider.answer = (_req, res) => {
      json(res, 200, { model: 'gpt-4o', usage: USAGE });
    };
    for (let n = 0; n < 5; n++) await scene.send(scene.post(chat, '{"model":"gpt-4o"}'));
    (await scene.midStream()).client.destroy();
    await eventually('the client disconnects', () => daemon.ended.length === 6);
    (await scene.midStream()).upstream.destroy();
    await eventually('the stream is truncated', () => daemon.ended.length === 7);
    provider.answer = undefined;
    await scene.get();
    await eventually('the response is stored', async () => {
      const { entries } = (await daemon.manage('GET', '/manage/cache')).body as { entries: number };
      return entries === 1;
    });
    for (let n = 0; n < 2; n++) await scene.get();
    for (const status of [500, 404, 401]) {
      provider.answer = (_req, res) => {
        json(res, status, {});
      };
      await scene.send(scene.post(chat, '{}'));
    }
    const capped = await daemon.createToken(scene.project.id, { max_requests: 2 });
    for (let n = 0; n < 4; n++) await scene.send(scene.post(chat, '{}', capped.token));
    const revoked = await daemon.createToken(scene.project.id);
    await daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
    for (let n = 0; n < 2; n++) await scene.get(revoked.token);
    for (let n = 0; n < 3; n++) await scene.get(null);
    await scene.send('GET /v1/models HTTP/1.1\r\nHost: a\r\nbroken line\r\n\r\n');
    await scene.send(head('CONNECT evil.example:443', scene.secret));
    provider.answer = (_req, res) => {
      json(res, 200, { model: 'has-no-price', usage: USAGE });
    };
    await scene.send(scene.post(chat, '{"model":"has-no-price"}'));
    await eventually('all requests end', () => daemon.ended.length === 25);
  }

  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  const facts = ({ requestId, status, code, outcome, cache }: RequestEnded) => [
    requestId,
    status,
    code,
    outcome,
    cache,
  ];
  const uses = () =>
    readFileSync(join(scene.daemon.dir, 'audit-use.log'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Use);

  it('an event with the outcome is published for each request with a known token', async () => {
    const entries = await redis.client.xrange('llmp:events', '-', '+');
    const events = entries
      .map(([, fields]) => JSON.parse(fields[1] ?? '') as EventJson)
      .filter((event) => event.kind === 'request.completed');
    expect(events.map((it) => [it.request_id, it.status, it.code, it.outcome, it.cache])).to.have.deep.members(
      known.map(facts),
    );
    expect(new Set(events.map(({ id }) => id)).size).to.equal(known.length);
  });

  it('the audit log has a line for each of them', () => {
    const lines = uses().filter(({ token_id }) => token_id !== null);
    expect(
      lines.map(({ request_id, details: it }) => [request_id, it.status, it.code, it.outcome, it.cache]),
    ).to.have.deep.members(known.map(facts));
  });

  it('the audit log counts the others by refusal code', () => {
    const unknown = ended.filter(({ tokenId }) => tokenId === null);
    const counted = uses().filter(({ token_id }) => token_id === null);
    expect(sum(counted.map(({ count }) => count ?? 0))).to.equal(unknown.length);
    for (const { details, count } of counted) {
      expect(count, String(details.code)).to.equal(unknown.filter(({ code }) => code === details.code).length);
    }
  });

  it('the usage adds up to the same numbers', () => {
    const of = (outcomes: readonly string[]) => known.filter(({ outcome }) => outcomes.includes(outcome)).length;
    expect(sum(usage.map(({ requests }) => requests))).to.be.oneOf([known.length, ended.length]);
    expect(sum(usage.map(({ hits }) => hits)))
      .to.equal(known.filter(({ cache }) => cache === 'hit').length)
      .and.to.equal(2);
    expect(sum(usage.map((line) => line.upstream_refused)))
      .to.equal(of(['upstream_refused']))
      .and.to.equal(1);
    expect(sum(usage.map(({ failed }) => failed))).to.equal(of(['upstream_error', 'timeout', 'truncated', 'drained']));
    const failures = known.filter((it) => failureKindOf(it) !== null).length;
    expect(sum(usage.map(({ errors }) => errors))).to.be.oneOf([failures, failures + ended.length - known.length]);
    expect(sum(usage.map(({ prompt_tokens }) => prompt_tokens))).to.equal(18);
    expect(sum(usage.map((line) => line.cache_read_tokens))).to.equal(12);
    expect(metrics).to.include('llmp_model_prompt_cache_tokens_total{model="gpt-4o",kind="read"} 10\n');
  });

  it('they agree on what was paid, and on how often that is unknown', async () => {
    // 1 prompt token at 2.50 USD per million, 2 from the provider's cache at 1.25, 4 completion tokens at 10.00.
    const costs = known.map(({ costNano }) => costNano);
    expect(costs.filter((nano) => nano !== 0 && nano !== null)).to.deep.equal(Array(5).fill(45_000));
    const unpriced = costs.filter((nano) => nano === null).length;
    expect(unpriced).to.be.above(0);
    expect(sumOfCosts(usage)).to.deep.equal({ cost_usd: '0.000225', unpriced_requests: unpriced });
    const entries = await redis.client.xrange('llmp:events', '-', '+');
    const events = entries.map(([, fields]) => JSON.parse(fields[1] ?? '') as EventJson);
    const told = known.map(({ requestId, costNano }) => [requestId, costNano === null ? null : usdOf(costNano)]);
    expect(
      events.flatMap((event) => (event.kind === 'request.completed' ? [[event.request_id, event.cost_usd]] : [])),
    ).to.have.deep.members(told);
    const lines = uses().filter(({ token_id }) => token_id !== null);
    expect(lines.map(({ request_id, details }) => [request_id, details.cost_usd])).to.have.deep.members(told);
    expect(metrics).to.include(`llmp_cost_usd_total{project="${scene.project.name}"} 0.000225\n`);
    expect(metrics).to.include(`llmp_unpriced_requests_total ${unpriced}\n`);
  });

  it('the metrics count each outcome', () => {
    for (const outcome of ['ok', 'refused', 'upstream_refused', 'upstream_error'] as const) {
      const times = ended.filter((it) => it.outcome === outcome).length;
      expect(metrics).to.include(`llmp_request_outcomes_total{outcome="${outcome}"} ${times}\n`);
      expect(times, outcome).to.be.above(0);
    }
  });

  it('the metrics count every request, and each kind of refusal', () => {
    const samples = metrics.split('\n').filter((line) => line.startsWith('llmp_requests_total{'));
    const counted = (wanted: string) =>
      sum(samples.filter((line) => line.includes(wanted)).map((line) => Number(line.slice(line.lastIndexOf(' ') + 1))));
    expect(counted('')).to.equal(ended.length);
    for (const code of new Set(ended.map((it) => it.code))) {
      if (code !== null)
        expect(counted(`code="${code}"`), code).to.equal(ended.filter((it) => it.code === code).length);
    }
    expect(counted('cache="hit"')).to.equal(2);
  });
});
