import { expect } from 'chai';
import type { WireProject } from '../../../daemon/api/contract.js';
import { canary } from '../../support/canaries.js';
import { startDaemon, type TestDaemon, UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { bodyOf, pagesOf, problemOf, write } from '../../support/management.js';
import { type Provider, startProvider } from '../../support/provider.js';
import { aWireProject } from '../../support/factories.js';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const ANOTHER_KEY = canary('upstream');

describe('projects', () => {
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

  const patch = (id: string, changes: object) =>
    bodyOf<WireProject>(daemon.manage('PATCH', `/manage/projects/${id}`, changes));
  const detail = (id: string) => bodyOf<WireProject>(daemon.manage('GET', `/manage/projects/${id}`));

  describe('creation', () => {
    it('returns 201 with an active project, all its fields and no upstream key', async () => {
      const answer = daemon.manage('POST', '/manage/projects', { name: 'Alpha', api_key: UPSTREAM_KEY });
      const created = await bodyOf<WireProject>(answer, 201);
      const { id, created_at } = created;
      expect(id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(created_at).to.match(TIMESTAMP);
      expect(created).to.deep.equal(
        aWireProject({
          id,
          name: 'Alpha',
          api_key_hint: UPSTREAM_KEY.slice(-4),
          created_at,
          token_count: 0,
          active_token_count: 0,
        }),
      );
    });

    it('stores no hint for a short key', async () => {
      const { api_key_hint } = await daemon.createProject({ api_key: 'short-key' });
      expect(api_key_hint).to.equal('');
    });

    it('refuses an existing name with 409, and creates nothing', async () => {
      await daemon.createProject({ name: 'Alpha' });
      const answer = await daemon.manage('POST', '/manage/projects', { name: 'Alpha', api_key: ANOTHER_KEY });
      problemOf(answer, 409, 'name_taken');
      expect(await pagesOf(daemon, '/manage/projects')).to.have.nested.property('[0].length', 1);
    });

    it('gives a name to exactly one of many concurrent requests', async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () =>
          daemon.manage('POST', '/manage/projects', { name: 'Alpha', api_key: canary('upstream') }),
        ),
      );
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([201, ...Array<number>(7).fill(409)]);
    });

    for (const [written, stored] of [
      [' web ', 'web'],
      ['web\t', 'web'],
      ['\u00a0web\u3000\ufeff\u200b', 'web'],
      ['cafe\u0301', 'café'],
      ['\u212b', 'Å'],
    ] as const) {
      it(`stores ${JSON.stringify(written)} as ${JSON.stringify(stored)}, in projects and tokens`, async () => {
        const { id } = await daemon.createProject({ name: 'other' });
        await daemon.createProject({ name: written });
        const taken = await daemon.manage('POST', '/manage/projects', { name: stored, api_key: UPSTREAM_KEY });
        problemOf(taken, 409, 'name_taken');
        const renamed = await daemon.manage('PATCH', `/manage/projects/${id}`, { name: written });
        problemOf(renamed, 409, 'name_taken');
        const token = await daemon.createToken(id, { name: written });
        expect(token.name).to.equal(stored);
        const q = encodeURIComponent(written.trim());
        const found = await bodyOf<{ id: string }[]>(daemon.manage('GET', `/manage/tokens?q=${q.slice(0, 30)}`));
        if (!/[\ufeff]/.test(written)) expect(found.map((it) => it.id)).to.deep.equal([token.id]);
      });
    }

    it('refuses a secret as a name, and does not repeat it', async () => {
      for (const name of [`sk-wt-${'a'.repeat(49)}`, `my sk-proj-${'a'.repeat(40)}`]) {
        const answer = await daemon.manage('POST', '/manage/projects', { name, api_key: UPSTREAM_KEY });
        expect(problemOf(answer, 400, 'invalid_request')).to.match(/^name must be .* and secrets$/);
      }
    });

    for (const key of ['', 'two words', 'line\nbreak', 'ключ', 'x'.repeat(513), 7, null]) {
      it(`refuses the upstream key ${JSON.stringify(key).slice(0, 40)} with 400, without repeating it`, async () => {
        const answer = await daemon.manage('POST', '/manage/projects', { name: 'Alpha', api_key: key });
        expect(problemOf(answer, 400, 'invalid_request')).to.equal(
          'api_key must be the upstream key: 1 to 512 visible ASCII characters',
        );
      });
    }

    it('reports all missing fields', async () => {
      const error = problemOf(await daemon.manage('POST', '/manage/projects', {}), 400, 'invalid_request');
      expect(error).to.include('name is required').and.to.include('api_key is required');
    });
  });

  describe('the list', () => {
    const create = async (count: number) => {
      for (let i = 0; i < count; i++) await daemon.createProject();
    };

    it('is an empty array without projects', async () => {
      const answer = await daemon.manage('GET', '/manage/projects');
      expect(await bodyOf(answer)).to.deep.equal([]);
      expect(answer.headers.get('x-total-count')).to.equal('0');
      expect(answer.headers.get('link')).to.equal(null);
    });

    it('shows the newest first, each as in its detail', async () => {
      const first = await daemon.createProject();
      daemon.clock.advance(1);
      const second = await daemon.createProject();
      expect(await pagesOf(daemon, '/manage/projects')).to.deep.equal([[second, first]]);
    });

    it('is complete by following Link, even if many were created at the same time', async () => {
      await create(7);
      await write(daemon, 'UPDATE projects SET created_at = 1700000000000');
      const pages = await pagesOf<WireProject>(daemon, '/manage/projects?limit=3');
      expect(pages.map((page) => page.length)).to.deep.equal([3, 3, 1]);
      expect(new Set(pages.flat().map(({ id }) => id)).size).to.equal(7);
    });

    it('has the same filter and total on all pages', async () => {
      await create(5);
      const [{ id }] = (await pagesOf<WireProject>(daemon, '/manage/projects')).flat() as [WireProject];
      await patch(id, { is_active: false });
      const pages = await pagesOf<WireProject>(daemon, '/manage/projects?is_active=true&limit=2');
      expect(pages.map((page) => page.length)).to.deep.equal([2, 2]);
      const { headers } = await daemon.manage('GET', '/manage/projects?is_active=true&limit=2');
      expect(headers.get('x-total-count')).to.equal('4');
    });

    it('shows only active or only inactive projects with is_active', async () => {
      const active = await daemon.createProject();
      const inactive = await patch((await daemon.createProject()).id, { is_active: false });
      expect(await pagesOf(daemon, '/manage/projects?is_active=true')).to.deep.equal([[active]]);
      expect(await pagesOf(daemon, '/manage/projects?is_active=false')).to.deep.equal([[inactive]]);
    });

    for (const query of [
      'limit=0',
      'limit=1001',
      'limit=1e2',
      'limit=',
      'limit=-1',
      'is_active=TRUE',
      'is_active=1',
      'is_active=',
    ]) {
      it(`refuses ?${query} with 400`, async () => {
        const answer = await daemon.manage('GET', `/manage/projects?${query}`);
        expect(problemOf(answer, 400, 'invalid_request')).to.match(new RegExp(`^${query.split('=')[0]} must be `));
      });
    }

    it('refuses the cursor of other filters, which would skip entries', async () => {
      await daemon.createProject();
      await daemon.createProject();
      const link = (await daemon.manage('GET', '/manage/projects?limit=1&is_active=true')).headers.get('link');
      const cursor = /cursor=([^&>]+)/.exec(link!)![1]!;
      for (const query of ['', 'is_active=false&']) {
        problemOf(await daemon.manage('GET', `/manage/projects?${query}cursor=${cursor}`), 400, 'invalid_request');
      }
      await bodyOf(daemon.manage('GET', `/manage/projects?is_active=true&cursor=${cursor}`));
    });

    it('refuses an invalid cursor, and one of another list', async () => {
      const { id } = await daemon.createProject();
      await daemon.createToken(id);
      await daemon.createToken(id);
      const link = (await daemon.manage('GET', '/manage/tokens?limit=1')).headers.get('link');
      const foreign = /cursor=([^&>]+)/.exec(link!)![1]!;
      for (const cursor of ['x', foreign, Buffer.from('["projects",{},1]').toString('base64url'), 'x'.repeat(1001)]) {
        problemOf(await daemon.manage('GET', `/manage/projects?cursor=${cursor}`), 400, 'invalid_request');
      }
    });
  });

  describe('the detail', () => {
    it('is the same as the response to the creation', async () => {
      const project = await daemon.createProject();
      expect(await detail(project.id)).to.deep.equal(project);
    });
  });

  describe('a change', () => {
    it('changes the given fields, and updates updated_at', async () => {
      const project = await daemon.createProject();
      daemon.clock.advance(1_000);
      const changed = await patch(project.id, { name: 'Renamed' });
      expect({ ...changed, updated_at: '' }).to.deep.equal({ ...project, name: 'Renamed', updated_at: '' });
      expect(Date.parse(changed.updated_at)).to.be.at.least(Date.parse(project.updated_at) + 1_000);
      expect(await detail(project.id)).to.deep.equal(changed);
    });

    it('can change all fields at once', async () => {
      const { id } = await daemon.createProject();
      const changed = await patch(id, { name: 'Renamed', api_key: ANOTHER_KEY, is_active: false });
      expect(changed).to.include({ name: 'Renamed', api_key_hint: ANOTHER_KEY.slice(-4), is_active: false });
    });

    it('of the upstream key applies to the next request', async () => {
      const { id } = await daemon.createProject();
      const { token } = await daemon.createToken(id);
      await daemon.call(token);
      await patch(id, { api_key: ANOTHER_KEY });
      await daemon.call(token);
      const keys = provider.received.map(({ headers }) => headers.authorization);
      expect(keys).to.deep.equal([`Bearer ${UPSTREAM_KEY}`, `Bearer ${ANOTHER_KEY}`]);
    });

    it('to the current name succeeds', async () => {
      const { id, name } = await daemon.createProject();
      expect((await patch(id, { name })).name).to.equal(name);
    });

    it('to an existing name is 409 and changes no other field', async () => {
      await daemon.createProject({ name: 'Alpha' });
      const project = await daemon.createProject();
      const changes = { name: 'Alpha', api_key: ANOTHER_KEY, is_active: false };
      problemOf(await daemon.manage('PATCH', `/manage/projects/${project.id}`, changes), 409, 'name_taken');
      expect(await detail(project.id)).to.deep.equal(project);
    });

    it('of a project that does not exist is 404', async () => {
      const answer = await daemon.manage('PATCH', `/manage/projects/${UNKNOWN_ID}`, { is_active: false });
      expect(problemOf(answer, 404, 'not_found')).to.equal('project not found');
    });
  });

  describe('deactivation', () => {
    it('shows deactivated_at until the project is reactivated', async () => {
      const { id } = await daemon.createProject();
      const { deactivated_at } = await patch(id, { is_active: false });
      expect(deactivated_at).to.match(TIMESTAMP);
      daemon.clock.advance(60_000);
      expect(await patch(id, { is_active: false, name: 'Renamed' })).to.include({ deactivated_at });
      expect(await patch(id, { is_active: true })).to.include({ deactivated_at: null, is_active: true });
    });

    it('H16 makes the tokens unusable without revoking them, and reactivation makes them usable again', async () => {
      const { id } = await daemon.createProject();
      const { token, id: tokenId } = await daemon.createToken(id);
      expect((await daemon.call(token)).status).to.equal(200);

      await patch(id, { is_active: false });
      const refused = await daemon.call(token);
      expect(refused.status).to.equal(403);
      expect(await refused.json()).to.include({ error: 'project is inactive', code: 'project_inactive' });
      expect(await daemon.token(tokenId)).to.include({ is_active: true, state: 'project_inactive', request_count: 1 });

      await patch(id, { is_active: true });
      expect((await daemon.call(token)).status).to.equal(200);
      expect((await daemon.token(tokenId)).state).to.equal('active');
    });
  });

  it('show their tokens, and the use and requests of these, also in lists and in the response to a change', async () => {
    const project = await daemon.createProject();
    const token = await daemon.createToken(project.id);
    await daemon.createToken(project.id);
    await daemon.manage('DELETE', `/manage/tokens/${(await daemon.createToken(project.id)).id}`);
    await (await daemon.call(token.token)).arrayBuffer();
    await eventually('it has ended', () => daemon.ended.length === 1);
    const { last_used_at } = await daemon.token(token.id);
    expect(last_used_at).to.match(TIMESTAMP);
    daemon.clock.advance(6_000);
    const figures = { token_count: 3, active_token_count: 2, last_used_at, requests_24h: 1, errors_24h: 0 };
    await eventually('the request is counted', async () => (await detail(project.id)).requests_24h === 1);
    expect(await detail(project.id)).to.include(figures);
    expect((await pagesOf<WireProject>(daemon, '/manage/projects'))[0]?.[0]).to.include(figures);
    expect(await patch(project.id, { name: 'Renamed' })).to.include(figures);
    expect(await patch(project.id, { is_active: false })).to.include({ ...figures, active_token_count: 0 });
  });

  it('never show the upstream key', async () => {
    const key = canary('upstream');
    const { id, name } = await daemon.createProject({ api_key: key });
    const answers = [
      await daemon.manage('GET', '/manage/projects'),
      await daemon.manage('GET', `/manage/projects/${id}`),
      await daemon.manage('PATCH', `/manage/projects/${id}`, { api_key: `${key}-new` }),
      await daemon.manage('PATCH', `/manage/projects/${id}`, { api_key: `${key} ` }),
      await daemon.manage('POST', '/manage/projects', { name, api_key: key }),
      await daemon.manage('DELETE', `/manage/projects/${id}`),
    ];
    expect(JSON.stringify(answers.map(({ body }) => body as unknown))).not.to.include(key);
  });
});
