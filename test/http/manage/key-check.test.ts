/** A provider's key is checked with the provider before it is stored. */
import { expect } from 'chai';
import type { ServerResponse } from 'node:http';
import type { WireAuditRecord, WireProject, WireProjectChanged } from '../../../daemon/api/contract.js';
import { canary } from '../../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon, UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { bodyOf, problemOf } from '../../support/management.js';
import { type Answer, json, type Provider, startProvider } from '../../support/provider.js';

const KEY = canary('upstream');
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

/** A response that quotes the key in every place. */
const quoting =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (_req, res) => {
    res.writeHead(status, { 'x-request-id': KEY, 'content-type': 'application/json', ...headers });
    res.end(JSON.stringify({ error: { message: `key ${KEY}` } }));
  };

describe('the check of a key', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let project: WireProject;

  beforeEach(async () => {
    provider = await startProvider();
    daemon = await startDaemon({ upstream: provider.url });
    project = await daemon.createProject();
  });
  afterEach(async () => {
    expect(daemon.logged.join('\n')).not.to.contain(KEY);
    await daemon.stop();
    await provider.stop();
  });

  const path = () => `/manage/projects/${project.id}`;
  const setKey = (more: object = {}) => daemon.manage('PATCH', path(), { api_key: KEY, check_key: true, ...more });
  const stored = async () => (await bodyOf<WireProject>(daemon.manage('GET', path()))).api_key_hint;
  const lastRecord = async () => {
    const [record] = await bodyOf<WireAuditRecord[]>(daemon.manage('GET', '/manage/audit?limit=1'));
    expect(JSON.stringify(record)).not.to.contain(KEY);
    return record!;
  };
  const expectUnchanged = async () => {
    expect(await stored()).to.equal(UPSTREAM_KEY.slice(-4));
    const { token } = await daemon.createToken(project.id);
    provider.answer = undefined;
    await daemon.call(token, '/v1/models');
    expect(provider.received.at(-1)?.headers.authorization).to.equal(`Bearer ${UPSTREAM_KEY}`);
  };

  it('requests the list of models with the new key, and stores the key if the provider accepts it', async () => {
    const changed = await bodyOf<WireProjectChanged>(setKey());
    expect(changed).to.include({ id: project.id, api_key_hint: KEY.slice(-4), key_check: 'accepted' });
    expect(provider.received).to.have.length(1);
    const [asked] = provider.received;
    expect(asked).to.include({ method: 'GET', url: '/v1/models' });
    expect(asked!.headers.authorization).to.equal(`Bearer ${KEY}`);
    expect(asked!.headers['x-request-id']).to.be.a('string');
    const { action, outcome, details } = await lastRecord();
    expect({ action, outcome }).to.deep.equal({ action: 'project.update', outcome: 'success' });
    expect(details).to.deep.equal({
      api_key_hint: [UPSTREAM_KEY.slice(-4), KEY.slice(-4)],
      key_check: 'accepted',
    });
    expect(await bodyOf<WireProject>(daemon.manage('GET', path()))).not.to.have.property('key_check');
  });

  it('is not made unless it was requested', async () => {
    for (const check of [{}, { check_key: false }]) {
      const changed = await bodyOf<WireProjectChanged>(daemon.manage('PATCH', path(), { api_key: KEY, ...check }));
      expect(changed).not.to.have.property('key_check');
      expect((await lastRecord()).details).not.to.have.property('key_check');
    }
    expect(provider.received).to.have.length(0);
  });

  for (const status of [401, 403]) {
    it(`does not store a key that the provider refuses with ${status}, and records the attempt`, async () => {
      provider.answer = quoting(status);
      const error = problemOf(await setKey(), 422, 'key_refused');
      expect(error).to.equal(`the provider refused the key with status ${status}; nothing was changed`);
      const { action, outcome, project_id, details } = await lastRecord();
      expect({ action, outcome, project_id }).to.deep.equal({
        action: 'project.update',
        outcome: 'denied',
        project_id: project.id,
      });
      expect(details).to.deep.equal({ refused: error });
      await expectUnchanged();
    });
  }

  for (const status of [301, 302, 307, 400, 404, 405, 418, 429]) {
    it(`stores a key unconfirmed if the provider responds with ${status}`, async () => {
      provider.answer = quoting(status, { location: `${provider.url}/elsewhere` });
      const changed = await bodyOf<WireProjectChanged>(setKey());
      expect(changed).to.include({ api_key_hint: KEY.slice(-4), key_check: 'not_confirmed' });
      expect((await lastRecord()).details).to.include({ key_check: 'not_confirmed' });
      expect(provider.received.map(({ url }) => url)).to.deep.equal(['/v1/models']);
    });
  }

  for (const status of [500, 503, 599]) {
    it(`does not store a key if the provider responds with ${status}`, async () => {
      provider.answer = quoting(status);
      const error = problemOf(await setKey(), 502, 'key_not_checked');
      expect(error).to.equal(
        `the key could not be checked: the provider responded with status ${status}. Nothing was changed. To store the key without a check, omit check_key`,
      );
      expect((await lastRecord()).outcome).to.equal('denied');
      await expectUnchanged();
    });
  }

  it('does not store a key if the provider closes the connection, or does not speak HTTP', async () => {
    const closes: Answer = (_req, res) => void res.destroy();
    const speaks: Answer = (_req, res) => void res.socket?.end(`garbage ${KEY}\r\n\r\n`);
    for (const answer of [closes, speaks]) {
      provider.answer = answer;
      problemOf(await setKey(), 502, 'key_not_checked');
    }
    await expectUnchanged();
  });

  it('does not store a key if nothing listens at the upstream', async () => {
    await provider.stop();
    expect(problemOf(await setKey(), 502, 'key_not_checked')).to.contain('upstream unreachable (ECONNREFUSED)');
    expect(await stored()).to.equal(UPSTREAM_KEY.slice(-4));
  });

  it('waits up to 10 s for a response', async () => {
    provider.answer = () => undefined;
    const answer = setKey();
    await eventually('the request arrived', () => provider.received.length === 1);
    daemon.clock.advance(9_000);
    expect(provider.received[0]!.wasAborted).to.equal(false);
    daemon.clock.advance(1_000);
    const error = problemOf(await answer, 502, 'key_not_checked');
    expect(error).to.contain('the provider did not respond within 10 s');
    await eventually('its connection ended', () => provider.received[0]!.wasAborted);
    await expectUnchanged();
  });

  it('reads no body: neither one that never ends nor a huge one', async () => {
    for (const status of [200, 401]) {
      const block = Buffer.alloc(1024 * 1024, 'x');
      let written = 0;
      provider.answer = (_req, res: ServerResponse) => {
        res.writeHead(status);
        const fill = () => {
          while (!res.destroyed) {
            written += block.length;
            if (!res.write(block)) return void res.once('drain', fill);
          }
        };
        fill();
      };
      expect((await setKey()).status).to.equal(status === 200 ? 200 : 422);
      const received = provider.received.at(-1)!;
      await eventually('its connection ended', () => received.wasAborted);
      expect(written).to.be.lessThan(50 * block.length);
    }
  });

  it('returns its upstream connection, so that requests of clients can use it', async () => {
    const narrow = await startDaemon({ upstream: provider.url, env: { UPSTREAM_CONNECTIONS: '1' } });
    const its = await narrow.createProject();
    for (const status of [200, 401, 404, 500, 204]) {
      provider.answer = quoting(status);
      await narrow.manage('PATCH', `/manage/projects/${its.id}`, { api_key: KEY, check_key: true });
    }
    provider.answer = undefined;
    const { token } = await narrow.createToken(its.id);
    expect((await narrow.call(token, '/v1/models')).status).to.equal(200);
    await narrow.stop();
  });

  it('ends when the operator disconnects, and stores nothing', async () => {
    provider.answer = () => undefined;
    const leave = new AbortController();
    const request = fetch(daemon.url + path(), {
      method: 'PATCH',
      headers: { authorization: `Bearer ${MANAGEMENT_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ api_key: KEY, check_key: true }),
      signal: leave.signal,
    }).catch(() => 'gone');
    await eventually('the request arrived', () => provider.received.length === 1);
    leave.abort();
    expect(await request).to.equal('gone');
    await eventually('the check ended', () => provider.received[0]!.wasAborted);
    expect((await lastRecord()).action).to.equal('project.create');
    await expectUnchanged();
  });

  it('runs up to four times at once, holds no transaction, and leaves slots for later checks', async () => {
    const waiting: ServerResponse[] = [];
    provider.answer = (_req, res) => void waiting.push(res);
    const four = Array.from({ length: 4 }, () => setKey());
    await eventually('four checks', () => waiting.length === 4);
    const fifth = await setKey();
    problemOf(fifth, 503, 'unavailable');
    expect(fifth.headers.get('retry-after')).to.equal('1');
    // A change of the same project does not wait for them.
    await bodyOf(daemon.manage('PATCH', path(), { name: 'renamed meanwhile' }));
    for (const res of waiting) json(res, 200, { data: [] });
    for (const answer of await Promise.all(four)) expect(answer.body).to.include({ key_check: 'accepted' });
    provider.answer = undefined;
    expect((await setKey()).body).to.include({ key_check: 'accepted' });
  });

  it('a key that one provider accepted is not stored for another, set meanwhile', async () => {
    const other = await startProvider();
    const otherKey = canary('upstream');
    const waiting: ServerResponse[] = [];
    provider.answer = (_req, res) => void waiting.push(res);
    const first = setKey();
    await eventually('the check is waiting', () => provider.received.length === 1);
    const moved = { upstream_base_url: other.url, api_key: otherKey };
    await bodyOf(daemon.manage('PATCH', path(), moved));
    json(waiting[0]!, 200, { data: [] });
    const error = problemOf(await first, 409, 'upstream_changed');
    expect(await lastRecord()).to.deep.include({ outcome: 'denied', details: { refused: error } });
    const { token } = await daemon.createToken(project.id);
    await daemon.call(token, '/v1/models');
    expect(other.received.map(({ headers }) => headers.authorization)).to.deep.equal([`Bearer ${otherKey}`]);
    await other.stop();
  });

  it('is not made for another header than that in which the key is sent then', async () => {
    const waiting: ServerResponse[] = [];
    provider.answer = (_req, res) => void waiting.push(res);
    const first = setKey();
    await eventually('the check is waiting', () => provider.received.length === 1);
    await bodyOf(daemon.manage('PATCH', path(), { upstream_auth: 'x-api-key' }));
    json(waiting[0]!, 200, { data: [] });
    problemOf(await first, 409, 'upstream_changed');
    expect(await stored()).to.equal(UPSTREAM_KEY.slice(-4));
  });

  it('is not made if If-Match does not match: the key might be meant for another provider', async () => {
    const { headers } = await daemon.manage('GET', path());
    await bodyOf(daemon.manage('PATCH', path(), { name: 'renamed' }));
    const body = { api_key: KEY, check_key: true };
    const answer = await daemon.manage('PATCH', path(), body, { 'if-match': headers.get('etag')! });
    problemOf(answer, 412, 'precondition_failed');
    expect(provider.received).to.have.length(0);
    expect((await lastRecord()).outcome).to.equal('denied');
  });

  it('comes before the creation of a project', async () => {
    const create = (name: string) => daemon.manage('POST', '/manage/projects', { name, api_key: KEY, check_key: true });
    provider.answer = quoting(401);
    problemOf(await create('refused'), 422, 'key_refused');
    const { action, outcome, details } = await lastRecord();
    expect({ action, outcome }).to.deep.equal({ action: 'project.create', outcome: 'denied' });
    expect(details).to.include({ name: 'refused' });
    provider.answer = undefined;
    const created = await bodyOf<WireProjectChanged>(create('accepted'), 201);
    expect(created).to.include({ name: 'accepted', key_check: 'accepted' });
    expect((await lastRecord()).details).to.deep.equal({ name: 'accepted', key_check: 'accepted' });
    const names = (await bodyOf<WireProject[]>(daemon.manage('GET', '/manage/projects'))).map(({ name }) => name);
    expect(names).to.have.members([project.name, 'accepted']);
  });

  it('sends no key for an unknown project, and needs a key', async () => {
    const body = { api_key: KEY, check_key: true };
    problemOf(await daemon.manage('PATCH', `/manage/projects/${UNKNOWN_ID}`, body), 404, 'not_found');
    problemOf(await daemon.manage('PATCH', '/manage/projects/nonsense', body), 404, 'not_found');
    const without = await daemon.manage('PATCH', path(), { name: 'other', check_key: true });
    expect(problemOf(without, 400, 'invalid_request')).to.equal('check_key requires api_key');
    const nothing = await daemon.manage('PATCH', path(), { check_key: false });
    expect(problemOf(nothing, 400, 'invalid_request')).to.contain('nothing to change');
    expect(provider.received).to.have.length(0);
  });
});
