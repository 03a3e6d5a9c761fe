import { expect } from 'chai';
import { ManagementClient } from '../../daemon/api/client.js';
import { type Demo, startDemo } from '../../daemon/demo/demo.js';
import type { RequestEnded } from '../../daemon/core/events.js';
import { eventually } from '../support/eventually.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('the past of the demo', function () {
  this.timeout(30_000);
  let demo: Demo;
  let client: ManagementClient;
  const listed: RequestEnded[] = [];
  const problems: string[] = [];

  before(async () => {
    demo = await startDemo({
      port: 0,
      upstreamKey: 'sk-demo-key',
      hasPast: true,
      timeoutMs: 30_000,
      onEnded: (ended) => listed.push(ended),
      onProblem: (problem) => problems.push(problem),
    });
    const { url: server, managementToken } = demo;
    client = new ManagementClient({ server, managementToken, frontEnd: 'cli', timeoutMs: 10_000, fetch });
  });
  after(() => demo.stop());

  const tokenNamed = async (name: string) => {
    const found = (await client.tokens({ limit: '200' })).items.find((token) => token.name === name);
    if (!found) throw new Error(`there is no token ${name}`);
    return found;
  };

  it('has tokens in every state', async () => {
    const { items } = await client.tokens({ limit: '200' });
    expect(new Set(items.map(({ state }) => state))).to.deep.equal(
      new Set(['active', 'expired', 'revoked', 'rate_limited', 'project_inactive']),
    );
    expect(await tokenNamed('contractor-kim')).to.include({
      revoked_by: 'ana@laptop',
      revoke_reason: 'leaked in a CI log',
    });
    expect(await tokenNamed('support-macros')).to.include({ last_used_at: null, request_count: 0 });
    const idleMs = Date.now() - Date.parse((await tokenNamed('old-laptop')).last_used_at ?? '');
    expect(idleMs).to.be.greaterThan(30 * DAY_MS);
    const leftMs = Date.parse((await tokenNamed('ci-deploy')).expires_at) - Date.now();
    expect(leftMs).to.be.within(0, HOUR_MS);
  });

  it('has counted, published and audited the same requests', async () => {
    const data = await client.usage({ since: '8d', by: 'model' });
    const requests = data.reduce((sum, row) => sum + row.requests, 0);
    expect(requests).to.be.greaterThan(4_000);
    expect(data.map(({ model }) => model)).to.include.members(['gpt-4o', 'gpt-4o-mini', 'house-70b', 'gpt-4-32k']);
    const { items } = await client.tokens({ limit: '200' });
    const forwarded = items.reduce((sum, { request_count }) => sum + request_count, 0);
    // Requests that llmp refused are in the usage report, but are not uses. Clients go on meanwhile.
    const refused = data.reduce((sum, row) => sum + row.refused, 0);
    const hits = data.reduce((sum, row) => sum + row.hits, 0);
    expect(requests - refused - hits).to.be.within(forwarded - 50, forwarded + 50);
    const hours = await client.usage({ since: '8d', by: 'hour' });
    expect(hours.length).to.be.greaterThan(7 * 24 - 10);
  });

  it('has costs, but for a model without a price, and budgets that are almost spent, hard and shadow', async () => {
    const costs = new Map((await client.usage({ since: '8d', by: 'model' })).map((line) => [line.model, line]));
    expect(Number(costs.get('gpt-4o')?.cost_usd)).to.be.within(3, 30);
    expect(Number(costs.get('gpt-4o-mini')?.cost_usd)).to.be.within(0.1, 3);
    expect(costs.get('house-70b')?.cost_usd).to.equal(null);
    expect(costs.get('house-70b')?.unpriced_requests).to.be.above(100);
    const { budget, spent } = await tokenNamed('eval-runner');
    expect(Number(spent.usd) / Number(budget?.usd)).to.be.within(0.85, 1);
    expect((await tokenNamed('translations')).budget?.mode).to.equal('hard');
    expect((await client.projects()).items.find(({ name }) => name === 'web')?.budget?.mode).to.equal('shadow');
    const [week] = await client.usage({ since: '8d', token_id: (await tokenNamed('translations')).id });
    const { usd } = (await tokenNamed('translations')).spent;
    // Budgets are also charged for what was cut.
    expect(Number(usd)).to.be.closeTo(Number(week?.cost_usd), 0.5);
    expect(week?.refused, 'it has room').to.equal(0);
  });

  it('has cache hits, which cost no use, and goes on with them', async () => {
    const [total] = await client.usage({ since: '8d', token_id: (await tokenNamed('docs-search')).id });
    expect(total!.hits / total!.requests).to.be.within(0.5, 0.7);
    expect((await tokenNamed('docs-search')).cache_hit_count).to.be.within(total!.hits - 20, total!.hits + 20);
    await eventually('there is another hit', async () => ((await client.status()).cache.hit_ratio ?? 0) > 0, 25_000);
  });

  it('records who did what and when', async () => {
    const { items } = await client.auditRecords({ action: 'token.revoke' });
    const [newest] = items;
    expect(newest).to.include({ user: 'ana@laptop', token_name: 'contractor-kim', reason: 'leaked in a CI log' });
    expect(Date.now() - Date.parse(newest!.time)).to.be.within(25 * HOUR_MS, 27 * HOUR_MS);
  });

  it('goes on: requests of a client whose key the provider rejects, which are not listed as those of others', async () => {
    const { id } = await tokenNamed('mobile-app');
    const found = () => client.storedEvents({ token_id: id, limit: '200' });
    const before = (await found()).items.length;
    expect(before).to.be.greaterThan(5);
    await eventually('another request has failed', async () => {
      const [newest] = (await found()).items;
      return (
        newest?.kind === 'request.completed' &&
        newest.code === 'upstream_key_rejected' &&
        Date.now() - Date.parse(newest.time) < 5_000
      );
    });
    expect(listed).to.deep.equal([]);
    expect(problems).to.deep.equal([]);
  });
});
