/** Requests that workers pass on to their primary: the same as in one process. */
import { expect } from 'chai';
import type { WireProject } from '../../../daemon/api/contract.js';
import { TestClock } from '../../support/clock.js';
import { daemonForSuite, MANAGEMENT_TOKEN } from '../../support/daemon.js';
import { perSuite } from '../../support/per-test.js';
import { startProvider } from '../../support/provider.js';
import { ask, head, RawClient } from '../../support/raw.js';

for (const workers of [1, 3]) {
  describe(`/manage with ${workers} worker${workers === 1 ? '' : 's'}`, () => {
    const provider = perSuite(startProvider);
    const daemon = daemonForSuite(() => ({
      upstream: provider.url,
      env: { WORKERS: String(workers), ENABLE_METRICS: 'true' },
      clock: new TestClock({ standsStill: true }), // Nothing is written because of the time.
    }));
    let project: WireProject;

    before(async () => {
      project = await daemon.createProject();
    });

    const counted = async (id: string) => {
      const sql = 'SELECT request_count AS n FROM tokens WHERE id = $id';
      const [row] = await daemon.daemon.stores.database.select<{ n: number }>(sql, { id });
      return Number(row?.n);
    };

    it('only a request with the management token makes the daemon write counts', async () => {
      const { id, token } = await daemon.createToken(project.id);
      expect((await daemon.call(token)).status).to.equal(200);
      for (const path of [`/manage/tokens/${id}`, '/manage/status', '/manage/nothing', '/elsewhere', '/metrics']) {
        for (const secret of [null, 'wrong']) await ask(daemon.url, head(`GET ${path}`, secret));
      }
      expect(await counted(id)).to.equal(0);
      const { request_count } = (await daemon.manage('GET', `/manage/tokens/${id}`)).body as { request_count: number };
      expect([request_count, await counted(id)]).to.deep.equal([1, 1]);
    });

    it('metrics contain requests that were just completed', async () => {
      const { token } = await daemon.createToken(project.id);
      const total = async () => {
        const { text } = await ask(daemon.url, head('GET /metrics', null));
        const lines = text.split('\n').filter((line) => line.startsWith('llmp_requests_total{'));
        return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
      };
      const before = await total();
      for (let requests = 0; requests < 6; requests++) await (await daemon.call(token)).text();
      expect((await total()) - before).to.equal(6);
    });

    it('the body of a request is asked for only after the request is authenticated', async () => {
      const body = JSON.stringify({ name: 'a project that waits', api_key: 'sk-upstream-0' });
      const fields = {
        Expect: '100-continue',
        'Content-Type': 'application/json',
        'Content-Length': String(body.length),
      };
      const refused = await ask(daemon.url, head('POST /manage/projects', 'wrong', fields));
      expect(refused.status).to.equal(401);

      const client = await RawClient.to(daemon.url);
      client.send(head('POST /manage/projects', MANAGEMENT_TOKEN, fields));
      expect((await client.response()).status).to.equal(100);
      client.send(body);
      expect((await client.response()).status).to.equal(201);
      // The connection can be used again.
      client.send(head('GET /manage/projects', MANAGEMENT_TOKEN));
      expect((await client.response()).status).to.equal(200);
      client.destroy();
    });

    it('an expectation that is not supported is refused', async () => {
      const { status } = await ask(daemon.url, head('GET /manage/projects', MANAGEMENT_TOKEN, { Expect: 'a miracle' }));
      expect(status).to.equal(417);
    });
  });
}
