import { expect } from 'chai';
import { problemOf } from '../support/management.js';
import { startDaemon, type TestResponse, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { scraped, seriesIn, sumOf } from '../support/scrape.js';

const asAnswer = async (response: Response): Promise<TestResponse> => ({
  status: response.status,
  headers: response.headers,
  body: await response.json(),
});

describe('metrics', () => {
  describe('of a daemon with one listener', () => {
    let scene: ProxyFixture;
    before(async () => {
      scene = await ProxyFixture.open({ ENABLE_METRICS: 'true' });
    });
    afterEach(() => scene.end());
    after(() => scene.close());

    const metrics = () => scraped(`${scene.daemon.url}/metrics`);

    it('are in the text format of Prometheus, without a credential', async () => {
      const response = await fetch(`${scene.daemon.url}/metrics`);
      expect(response.status).to.equal(200);
      expect(response.headers.get('content-type')).to.equal('text/plain; version=0.0.4; charset=utf-8');
      expect(response.headers.get('cache-control')).to.equal('no-store');
      expect(seriesIn(await response.text())).not.to.be.empty;
    });

    it('are read with GET and HEAD; any other method is 405', async () => {
      const url = `${scene.daemon.url}/metrics`;
      const head = await fetch(url, { method: 'HEAD' });
      expect({ status: head.status, text: await head.text() }).to.deep.equal({ status: 200, text: '' });
      const options = await fetch(url, { method: 'OPTIONS' });
      expect({ status: options.status, allow: options.headers.get('allow') }).to.deep.equal({
        status: 204,
        allow: 'GET, HEAD, OPTIONS',
      });
      problemOf(await asAnswer(await fetch(url, { method: 'POST' })), 405, 'method_not_allowed');
      problemOf(await asAnswer(await fetch(`${url}/more`)), 404, 'not_found');
    });

    it('count what roles and ceilings refuse, changes and reads', async () => {
      const issuer = { name: 'ana', role: 'issuer', ceilings: { hours: 8 } };
      const created = await scene.daemon.manage('POST', '/manage/operators', issuer);
      const headers = { authorization: `Bearer ${(created.body as { secret: string }).secret}` };
      const ask = (method: string, path: string, body?: object) => scene.daemon.manage(method, path, body, headers);
      problemOf(await ask('GET', '/manage/audit'), 403, 'not_permitted');
      problemOf(await ask('POST', '/manage/projects', {}), 403, 'not_permitted');
      const beyond = { project_id: scene.project.id, duration_hours: 9 };
      problemOf(await ask('POST', '/manage/tokens', beyond), 403, 'beyond_ceiling');
      problemOf(await ask('GET', '/manage/tokens/nonsense'), 404, 'not_found');
      const refused = async (code?: string) =>
        sumOf(await metrics(), 'llmp_management_refusals_total', code === undefined ? {} : { code });
      expect([await refused('not_permitted'), await refused('beyond_ceiling'), await refused()]).to.deep.equal([
        2, 1, 3,
      ]);
    });

    it('count a completed request with its times and bytes', async () => {
      await scene.begin();
      const before = await metrics();
      const response = await scene.daemon.call(scene.secret, '/v1/echo', { method: 'POST', body: '12345' });
      expect(await response.text()).to.equal('12345');
      const ended = await scene.onlyRecord();
      const after = await metrics();
      const grown = (name: string, labels = {}) => sumOf(after, name, labels) - sumOf(before, name, labels);
      const labels = { method: 'POST', status_class: '2xx', cache: 'miss', code: 'none' };
      expect(grown('llmp_requests_total', labels)).to.equal(1);
      expect(grown('llmp_requests_total')).to.equal(1);
      expect(grown('llmp_request_outcomes_total', { outcome: 'ok' })).to.equal(1);
      expect(grown('llmp_request_bytes_total')).to.equal(5);
      expect(grown('llmp_response_bytes_total')).to.equal(5);
      const overheadMs = (ended.firstByteMs ?? NaN) - (ended.upstreamMs ?? NaN);
      expect(grown('llmp_request_duration_seconds_sum')).to.be.closeTo(ended.durationMs / 1000, 1e-6);
      expect(grown('llmp_time_to_first_byte_seconds_sum')).to.be.closeTo((ended.firstByteMs ?? NaN) / 1000, 1e-6);
      expect(grown('llmp_overhead_seconds_sum')).to.be.closeTo(overheadMs / 1000, 1e-6);
      expect(grown('llmp_overhead_seconds_bucket', { le: '+Inf' })).to.equal(1);
    });

    it('show requests in flight', async () => {
      await scene.begin();
      const { client } = await scene.midStream();
      const inFlight = async () => sumOf(await metrics(), 'llmp_in_flight_requests', { kind: 'http' });
      expect(await inFlight()).to.equal(1);
      client.destroy();
      await scene.inFlight(0);
      await eventually('nothing is in flight', async () => (await inFlight()) === 0);
    });

    it('count settlements, and measure the propagation of a revocation', async () => {
      await scene.begin();
      const before = await metrics();
      await scene.get();
      expect(await scene.uses()).to.equal(1);
      await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
      const after = await metrics();
      const grown = (name: string) => sumOf(after, name) - sumOf(before, name);
      expect(grown('llmp_settle_duration_seconds_count')).to.be.at.least(1);
      expect(grown('llmp_settle_failures_total')).to.equal(0);
      expect(grown('llmp_revocation_propagation_seconds_count')).to.equal(1);
      expect(grown('llmp_events_published_total')).to.be.at.least(2);
    });

    it('are cumulative within a histogram, and its last bucket is its count', async () => {
      const series = await metrics();
      const names = new Set(series.map(({ name }) => name).filter((name) => /^llmp_.*_bucket$/.test(name)));
      expect(names.size).to.be.at.least(5);
      for (const name of names) {
        for (const cache of [undefined, 'hit', 'miss']) {
          const own = series.filter((it) => it.name === name && it.labels.cache === cache);
          const values = own.map(({ value }) => value);
          expect(values, name).to.deep.equal([...values].sort((a, b) => a - b));
          const bounds = own.map(({ labels }) => Number(labels.le?.replace('+Inf', 'Infinity')));
          expect(bounds, name).to.deep.equal([...bounds].sort((a, b) => a - b));
        }
        expect(sumOf(series, name, { le: '+Inf' })).to.equal(sumOf(series, name.replace('_bucket', '_count')));
      }
    });
  });

  describe('of a daemon with a listener for management', () => {
    let daemon: TestDaemon;
    before(async () => {
      daemon = await startDaemon({
        env: { ENABLE_METRICS: 'true', METRICS_PATH: '/own.metrics', MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' },
      });
    });
    after(() => daemon.stop());

    it('are served there, at METRICS_PATH', async () => {
      expect(await scraped(`${daemon.managementUrl}/own.metrics`)).not.to.be.empty;
      for (const path of ['/metrics', '/ownxmetrics', '/own.metrics/']) {
        problemOf(await asAnswer(await fetch(daemon.managementUrl + path)), 404, 'not_found');
      }
    });

    it('and not on the address of /v1', async () => {
      problemOf(await asAnswer(await fetch(`${daemon.url}/own.metrics`)), 404, 'not_found');
    });
  });

  it('contain the hits, misses and size of the cache', async () => {
    const scene = await ProxyFixture.open({ ENABLE_METRICS: 'true', HTTP_CACHE_ENABLED: 'true' });
    try {
      await scene.get();
      await scene.get();
      await eventually('both requests are completed', () => scene.daemon.ended.length === 2);
      const series = await scraped(`${scene.daemon.url}/metrics`);
      expect(sumOf(series, 'llmp_cache_hits_total')).to.equal(1);
      expect(sumOf(series, 'llmp_cache_misses_total')).to.equal(1);
      expect(sumOf(series, 'llmp_cache_entries', { backend: 'memory' })).to.be.at.least(1);
      expect(sumOf(series, 'llmp_cache_bytes', { backend: 'memory' })).to.be.at.least(1);
      expect(sumOf(series, 'llmp_requests_total', { cache: 'hit' })).to.equal(1);
      expect(sumOf(series, 'llmp_request_duration_seconds_count', { cache: 'hit' })).to.equal(1);
    } finally {
      await scene.close();
    }
  });

  it('count what each rate limit refuses', async () => {
    const scene = await ProxyFixture.open({ ENABLE_METRICS: 'true', IP_RATE_LIMIT: '3', GLOBAL_RATE_LIMIT: '1' });
    try {
      const statuses: number[] = [];
      for (let i = 0; i < 5; i++) statuses.push((await scene.get()).status);
      expect(statuses).to.deep.equal([200, 429, 429, 429, 429]);
      const series = await scraped(`${scene.daemon.url}/metrics`);
      expect(sumOf(series, 'llmp_ratelimit_refusals_total', { policy: 'global' })).to.equal(2);
      expect(sumOf(series, 'llmp_ratelimit_refusals_total', { policy: 'address' })).to.equal(2);
    } finally {
      await scene.close();
    }
  });
});
