import { expect } from 'chai';
import type { WireStatus } from '../daemon/api/contract.js';
import { eventually } from './support/eventually.js';
import { bodyOf, problemOf, rawRequest, write } from './support/management.js';
import { Scene } from './support/scene.js';

describe('GET /manage/status', () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.open({ HTTP_CACHE_ENABLED: 'true' });
  });
  afterEach(() => scene.close());

  const status = () => bodyOf<WireStatus>(scene.daemon.manage('GET', '/manage/status'));

  it('is for operators only', async () => {
    const refused = await rawRequest(scene.daemon, { path: '/manage/status', headers: { authorization: undefined } });
    problemOf(refused, 401, 'management_token_refused');
  });

  it('shows what requests were like in the last minute, and forgets them after it', async () => {
    await scene.get();
    await scene.get();
    scene.provider.answer = (_req, res) => void res.destroy();
    await scene.send(scene.post({}, 'x'));
    await eventually('all are over', () => scene.daemon.ended.length === 3);
    const now = await status();
    expect(now.requests.per_second).to.be.greaterThan(0);
    expect(now.requests.errors_per_second).to.be.closeTo(now.requests.per_second / 3, 0.002);
    expect(now.cache).to.deep.equal({ backend: 'memory', hit_ratio: 0.333 });
    expect(now.upstream.p50_ms).to.be.greaterThan(0);
    scene.daemon.clock.advance(61_000);
    const later = await status();
    expect(later.requests).to.deep.equal({ in_flight: 0, per_second: 0, errors_per_second: 0 });
    expect(later.cache.hit_ratio).to.equal(null);
    expect(later.upstream).to.deep.equal({ p50_ms: null, p95_ms: null });
    expect(later.uptime_s).to.be.at.least(61);
  });

  it('counts what is in flight', async () => {
    const { upstream } = await scene.midStream();
    expect((await status()).requests.in_flight).to.equal(1);
    upstream.end();
  });

  it('counts tokens as their states are shown', async () => {
    const off = await scene.daemon.createProject();
    const capped = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
    await scene.daemon.createToken(off.id);
    await scene.daemon.createToken(off.id, { max_requests: 1 });
    await write(scene.daemon, 'UPDATE tokens SET request_count = 1 WHERE max_requests = 1');
    await scene.daemon.manage('PATCH', `/manage/projects/${off.id}`, { is_active: false });
    expect((await scene.daemon.token(capped.id)).state).to.equal('rate_limited');
    scene.daemon.clock.advance(5_000);
    const { tokens, projects } = await status();
    expect(projects).to.deep.equal({ active: 1, all: 2 });
    expect(tokens).to.deep.equal({ active: 1, expired: 0, revoked: 0, rate_limited: 1, project_inactive: 2 });
  });
});
