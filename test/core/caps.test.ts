import { expect } from 'chai';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { json, type Provider, startProvider } from '../support/provider.js';
import { itInOneProcess } from '../support/test-workers.js';

describe('a capped token', function () {
  this.timeout(60_000);
  let provider: Provider;
  let daemon: TestDaemon;

  beforeEach(async () => {
    provider = await startProvider();
    daemon = await startDaemon({ upstream: provider.url });
  });
  afterEach(async () => {
    await daemon.stop();
    await provider.stop();
  });

  async function callAtOnce(secret: string, times: number): Promise<Record<number, number>> {
    const statuses = await Promise.all(
      Array.from({ length: times }, async () => {
        const response = await daemon.call(secret);
        await response.arrayBuffer();
        return response.status;
      }),
    );
    const counts: Record<number, number> = {};
    for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  it('F01 lets exactly as many of 1,000 concurrent requests reach the upstream as it has uses left', async () => {
    const project = await daemon.createProject();
    const token = await daemon.createToken(project.id, { max_requests: 100 });
    expect(await callAtOnce(token.token, 1_000)).to.deep.equal({ 200: 100, 429: 900 });
    expect(provider.received).to.have.length(100);
    expect(await daemon.token(token.id)).to.include({ request_count: 100, state: 'rate_limited' });
  });

  it('keeps its cap across a restart, and gives back leased units that were not used', async () => {
    const project = await daemon.createProject();
    const token = await daemon.createToken(project.id, { max_requests: 1_000 });
    expect(await callAtOnce(token.token, 30)).to.deep.equal({ 200: 30 });
    await daemon.stop();

    daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir });
    expect(await daemon.token(token.id)).to.include({ request_count: 30 });
    expect(await callAtOnce(token.token, 1_000)).to.deep.equal({ 200: 970, 429: 30 });
    expect(provider.received).to.have.length(1_000);
  });

  it('F21 counts a use even if the upstream fails', async () => {
    const project = await daemon.createProject();
    const token = await daemon.createToken(project.id, { max_requests: 2 });
    provider.answer = (_req, res) => {
      json(res, 500, { error: { message: 'broken' } });
    };
    expect(await callAtOnce(token.token, 5)).to.deep.equal({ 500: 2, 429: 3 });
    expect(await daemon.token(token.id)).to.include({ request_count: 2 });
  });

  // Units that another process has leased count as used.
  itInOneProcess('reports the number of requests left to its client, unless it is unlimited', async () => {
    const project = await daemon.createProject();
    const capped = await daemon.createToken(project.id, { max_requests: 40 });
    const unlimited = await daemon.createToken(project.id);
    for (const remaining of ['39', '38', '37']) {
      const { headers } = await daemon.call(capped.token);
      expect(headers.get('x-token-requests-remaining')).to.equal(remaining);
    }
    expect((await daemon.call(unlimited.token)).headers.get('x-token-requests-remaining')).to.equal(null);
  });
});
