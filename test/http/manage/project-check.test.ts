/** A project's provider is asked with the stored key. */
import { expect } from 'chai';
import type { ServerResponse } from 'node:http';
import type { WireAuditRecord, WireProject, WireProjectCheck } from '../../../daemon/api/contract.js';
import { startDaemon, type TestDaemon, UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { bodyOf, problemOf } from '../../support/management.js';
import { json, type Provider, startProvider } from '../../support/provider.js';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

describe('POST /manage/projects/{id}/check', () => {
  let provider: Provider;
  let other: Provider;
  let daemon: TestDaemon;
  let project: WireProject;

  beforeEach(async () => {
    provider = await startProvider();
    other = await startProvider();
    daemon = await startDaemon({ upstream: provider.url });
    project = await daemon.createProject();
  });
  afterEach(async () => {
    expect(daemon.logged.join('\n')).not.to.contain(UPSTREAM_KEY);
    await daemon.stop();
    await provider.stop();
    await other.stop();
  });

  const check = (id = project.id) => daemon.manage('POST', `/manage/projects/${id}/check`);
  const result = async () => {
    const checked = await bodyOf<WireProjectCheck>(check());
    expect(JSON.stringify(checked)).not.to.contain(UPSTREAM_KEY);
    return checked;
  };

  it('requests the list of models with the stored key, and returns how long that took', async () => {
    const { latency_ms: latency, ...checked } = await result();
    expect(checked).to.deep.equal({ result: 'accepted', reason: null, status: 200 });
    expect(latency).to.be.a('number').and.to.be.at.least(0);
    expect(provider.received).to.have.length(1);
    expect(provider.received[0]).to.include({ method: 'GET', url: '/v1/models' });
    expect(provider.received[0]!.headers.authorization).to.equal(`Bearer ${UPSTREAM_KEY}`);
  });

  it('measures until the response begins', async () => {
    const waiting: ServerResponse[] = [];
    provider.answer = (_req, res) => void waiting.push(res);
    const checked = result();
    await eventually('the request arrived', () => waiting.length === 1);
    daemon.clock.advance(1234);
    json(waiting[0]!, 200, {});
    // This clock goes on by itself, too.
    expect((await checked).latency_ms).to.be.within(1234, 10_000);
  });

  it('asks the provider of the project, in the way that it takes keys', async () => {
    other.answer = (_req, res) => {
      json(res, 200, {});
    };
    for (const [auth, url] of [
      ['x-api-key', '/base/v1/models'],
      ['api-key', '/base/openai/models?api-version=2024-10-21'],
      ['x-goog-api-key', '/base/v1beta/models'],
    ] as const) {
      const upstream = { upstream_base_url: `${other.url}/base`, upstream_auth: auth };
      await bodyOf(daemon.manage('PATCH', `/manage/projects/${project.id}`, { ...upstream, api_key: UPSTREAM_KEY }));
      expect(await result()).to.include({ result: 'accepted' });
      const asked = other.received.at(-1)!;
      expect(asked.url).to.equal(url);
      expect(asked.headers[auth]).to.equal(UPSTREAM_KEY);
      expect(asked.headers).not.to.have.property('authorization');
    }
    expect(provider.received).to.have.length(0);
  });

  for (const [status, expected, reason] of [
    [401, 'key_refused', 'the provider refused the key with status 401'],
    [403, 'key_refused', 'the provider refused the key with status 403'],
    [404, 'not_confirmed', 'the provider responded with status 404, which says nothing about the key'],
    [429, 'not_confirmed', 'the provider responded with status 429, which says nothing about the key'],
    [500, 'provider_error', 'the provider responded with status 500'],
    [503, 'provider_error', 'the provider responded with status 503'],
  ] as const) {
    it(`returns ${expected} after a response with ${status}, and nothing of its text`, async () => {
      provider.answer = (_req, res) => {
        json(res, status, { error: { message: `key ${UPSTREAM_KEY}` } });
      };
      expect(await result()).to.deep.include({ result: expected, reason, status });
    });
  }

  it('returns unreachable with the reason, if nothing listens there', async () => {
    await provider.stop();
    const checked = await result();
    expect(checked).to.deep.equal({
      result: 'unreachable',
      reason: 'upstream unreachable (ECONNREFUSED)',
      status: null,
      latency_ms: null,
    });
  });

  it('returns unreachable if the provider does not respond within 10 s', async () => {
    provider.answer = () => undefined;
    const checked = result();
    await eventually('the request arrived', () => provider.received.length === 1);
    daemon.clock.advance(10_000);
    expect(await checked).to.include({
      result: 'unreachable',
      reason: 'the provider did not respond within 10 s',
    });
    await eventually('its connection ended', () => provider.received[0]!.wasAborted);
  });

  it('sends nothing for an unknown project', async () => {
    problemOf(await check(UNKNOWN_ID), 404, 'not_found');
    problemOf(await check('nonsense'), 404, 'not_found');
    expect(provider.received).to.have.length(0);
  });

  it('changes nothing and records nothing', async () => {
    provider.answer = (_req, res) => {
      json(res, 401, {});
    };
    const read = async () => ({
      project: await bodyOf<WireProject>(daemon.manage('GET', `/manage/projects/${project.id}`)),
      records: await bodyOf<WireAuditRecord[]>(daemon.manage('GET', '/manage/audit')),
    });
    const before = await read();
    await result();
    expect(await read()).to.deep.equal(before);
  });

  it('shares the limit of four checks at once with checks of new keys', async () => {
    const waiting: ServerResponse[] = [];
    provider.answer = (_req, res) => void waiting.push(res);
    const four = [check(), check(), check(), check()];
    await eventually('four checks', () => waiting.length === 4);
    problemOf(await check(), 503, 'unavailable');
    const key = { api_key: UPSTREAM_KEY, check_key: true };
    problemOf(await daemon.manage('PATCH', `/manage/projects/${project.id}`, key), 503, 'unavailable');
    for (const res of waiting) json(res, 200, {});
    for (const answer of await Promise.all(four)) expect(answer.body).to.include({ result: 'accepted' });
  });
});
