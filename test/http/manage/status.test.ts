import { expect } from 'chai';
import type { WireStatus } from '../../../daemon/api/contract.js';
import { allCopied } from '../../support/audit-files.js';
import { startDaemon, type TestDaemon } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { GROUP, STREAM } from '../../support/events.js';
import { auditOf, bodyOf, write } from '../../support/management.js';
import { makeDatabaseUnreachable } from '../../support/database-outage.js';
import { TestRedis, WITHOUT_REDIS } from '../../support/redis.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { LAST_MIGRATION, MIGRATIONS } from '../../support/migrations.js';

describe('GET /manage/status', () => {
  const scene = ProxyFixture.forEachTest({ HTTP_CACHE_ENABLED: 'true' });

  const statusOf = (daemon: TestDaemon) => bodyOf<WireStatus>(daemon.manage('GET', '/manage/status'));
  const status = () => statusOf(scene.daemon);

  it('shows the requests of the last minute only', async () => {
    await scene.get();
    await scene.get();
    scene.provider.answer = (_req, res) => void res.destroy();
    await scene.send(scene.post({}, 'x'));
    await eventually('all have ended', () => scene.daemon.ended.length === 3);
    const now = await status();
    expect(now.requests!.per_second).to.be.greaterThan(0);
    expect(now.requests!.errors_per_second).to.be.closeTo(now.requests!.per_second / 3, 0.002);
    expect(now.cache).to.deep.equal({ backend: 'memory', hit_ratio: 0.333 });
    expect(now.upstream.p50_ms).to.be.greaterThan(0);
    scene.daemon.clock.advance(61_000);
    const later = await status();
    expect(later.requests).to.deep.equal({ in_flight: 0, per_second: 0, errors_per_second: 0 });
    expect(later.cache.hit_ratio).to.equal(null);
    expect(later.upstream).to.deep.equal({ p50_ms: null, p95_ms: null });
    expect(later.uptime_s).to.be.at.least(61);
  });

  it('counts a key that the provider refuses as a failure, whatever status the client gets', async () => {
    scene.provider.answer = (_req, res) => void res.writeHead(401).end();
    const refused = await scene.get(scene.secret, { 'Anthropic-Version': '2023-06-01' });
    expect(refused.status).to.equal(403);
    await eventually('it has ended', () => scene.daemon.ended.length === 1);
    const { requests } = await status();
    expect(requests!.errors_per_second).to.equal(requests!.per_second).and.to.be.greaterThan(0);
  });

  it('counts requests in flight', async () => {
    const { upstream } = await scene.midStream();
    expect((await status()).requests!.in_flight).to.equal(1);
    upstream.end();
  });

  it('counts tokens by their states', async () => {
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

  it('shows when tokens and projects were counted', async () => {
    const from = scene.daemon.clock.now();
    const { counted_at: at } = await status();
    expect(Date.parse(at!)).to.be.within(from, scene.daemon.clock.now());
  });

  it('shows the instance, its start and a healthy state', async () => {
    const { clock } = scene.daemon;
    clock.advance(90_000);
    const { version, instance, started_at, uptime_s, ...shown } = await status();
    expect(version).to.equal('0.1.0');
    expect(instance).to.match(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(Math.abs(Date.parse(started_at) + uptime_s * 1_000 - clock.now())).to.be.below(5_000);
    expect(uptime_s).to.be.within(90, 100);
    expect(shown).to.deep.include({
      status: 'ready',
      missing: [],
      degraded: [],
      database: { driver: 'sqlite', status: 'ok', schema: LAST_MIGRATION, pending_migrations: [] },
      redis: 'off',
    });
  });

  it('counts refusals as failures, but not in the hit ratio', async () => {
    await scene.get();
    await scene.get();
    await scene.get(null);
    await scene.get('sk-wt-no-such-token');
    await eventually('all have ended', () => scene.daemon.ended.length === 4);
    const { requests, cache } = await status();
    expect(requests!.errors_per_second)
      .to.be.closeTo(requests!.per_second / 2, 0.002)
      .and.to.be.greaterThan(0);
    expect(cache.hit_ratio).to.equal(0.5);
  });

  it('shows the median and the 95th percentile of upstream response times', async () => {
    let answered = 0;
    scene.provider.answer = (_req, res) => {
      answered += 1;
      if (answered === 4) scene.daemon.clock.advance(10_000);
      res.end();
    };
    for (let n = 0; n < 4; n++) await scene.send(scene.post({}, 'x'));
    await eventually('all have ended', () => scene.daemon.ended.length === 4);
    const { upstream } = await status();
    expect(upstream.p50_ms).to.be.below(5_000);
    expect(upstream.p95_ms).to.be.within(7_500, 13_000);
  });

  it('counts published events and written audit records', async () => {
    const before = await status();
    expect(before.event_bus).to.include({ kind: 'in-memory', status: 'ok', buffered: 0, dropped: 0, lag: null });
    await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
    await scene.daemon.createToken(scene.project.id);
    await allCopied(scene.daemon);
    const now = await status();
    expect(now.event_bus.published).to.equal(before.event_bus.published! + 2);
    expect(now.audit).to.deep.equal({ status: 'ok', records: (await auditOf(scene.daemon)).length, failures: 0 });
  });

  it('shows that events, cache and audit files are off', async () => {
    const off = await startDaemon({ env: { LLM_PROXY_EVENT_BUS: 'off', AUDIT_LOG_FILE: '', AUDIT_USE_LOG_FILE: '' } });
    const shown = await statusOf(off);
    expect(shown.event_bus).to.include({ kind: 'off', status: 'off', published: 0 });
    expect(shown.audit.status).to.equal('off');
    expect(shown.cache).to.deep.equal({ backend: 'off', hit_ratio: null });
    await off.stop();
  });

  it('works while migrations are pending, and lists them', async () => {
    const own = await startDaemon({ env: { AUTO_MIGRATE: 'false' } });
    const shown = await statusOf(own);
    expect(shown).to.deep.include({
      status: 'not ready',
      missing: ['pending migrations'],
      tokens: null,
      projects: null,
    });
    expect(shown.database).to.deep.include({ status: 'ok', schema: null });
    expect(shown.database.pending_migrations).to.deep.equal(MIGRATIONS);
    await own.stop();
  });

  it('works while the database is unavailable, without its values', async () => {
    const outage = makeDatabaseUnreachable(scene.daemon);
    try {
      const shown = await status();
      expect(shown).to.deep.include({ status: 'ready', degraded: ['database'], redis: 'off' });
      expect(shown.database).to.deep.equal({
        driver: 'sqlite',
        status: 'failing',
        schema: null,
        pending_migrations: [],
      });
      expect([shown.tokens, shown.projects, shown.counted_at]).to.deep.equal([null, null, null]);
    } finally {
      outage.end();
    }
  });

  it(`shows the state of Redis and the lag of the dispatchers${WITHOUT_REDIS}`, async function () {
    if (WITHOUT_REDIS) this.skip();
    const redis = await TestRedis.start();
    const own = await startDaemon({ env: { REDIS_ADDR: redis.address, HTTP_CACHE_ENABLED: 'true' } });
    try {
      await redis.client.xgroup('CREATE', STREAM, GROUP, '0', 'MKSTREAM');
      await own.createToken((await own.createProject()).id);
      await eventually('they are published', async () => (await statusOf(own)).event_bus.published === 2);
      own.clock.advance(5_000);
      await eventually('the lag is known', async () => (await statusOf(own)).event_bus.lag === 2);
      const shown = await statusOf(own);
      expect(shown).to.include({ redis: 'ok' });
      expect(shown.cache.backend).to.equal('redis');
      expect(shown.event_bus).to.include({ kind: 'redis-streams', status: 'ok', buffered: 0, dropped: 0 });
      await redis.stop();
      await eventually('the gap is detected', async () => (await statusOf(own)).event_bus.status === 'failing');
      expect(await statusOf(own)).to.deep.include({ status: 'ready', redis: 'failing', degraded: ['redis'] });
    } finally {
      await own.stop();
      await redis.stop();
    }
  });
});
