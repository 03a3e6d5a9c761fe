import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { canary } from '../../support/canaries.js';
import { daemonForEachTest } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { problemOf, rawRequest, write } from '../../support/management.js';

describe('conditional requests of management', () => {
  let project: WireProject;
  let token: WireTokenCreated;

  const daemon = daemonForEachTest();
  beforeEach(async () => {
    project = await daemon.createProject();
    token = await daemon.createToken(project.id, { duration_hours: 1 });
  });

  const paths = () => ({
    'the list of projects': '/manage/projects?limit=1',
    'a project': `/manage/projects/${project.id}`,
    'the list of tokens': '/manage/tokens?limit=1',
    'a token': `/manage/tokens/${token.id}`,
    usage: '/manage/usage?by=token',
    'the list of audit records': '/manage/audit?limit=1',
    'the cache': '/manage/cache',
    'the migrations': '/manage/migrations',
    'the description': '/manage/openapi.json',
  });
  const tagOf = async (path: string) => {
    const answer = await daemon.manage('GET', path);
    expect(answer.status).to.equal(200);
    return answer.headers.get('etag')!;
  };
  const again = (path: string, ifNoneMatch: string, method = 'GET') =>
    daemon.manage(method, path, undefined, { 'if-none-match': ifNoneMatch });

  for (const what of [
    'the list of projects',
    'a project',
    'the list of tokens',
    'a token',
    'usage',
    'the list of audit records',
    'the cache',
    'the migrations',
    'the description',
  ] as const) {
    it(`to ${what} get 304 without a body while the response is unchanged, with GET and HEAD`, async () => {
      const path = paths()[what];
      const tag = await tagOf(path);
      expect(tag).to.match(/^"[\w-]+"$/);
      for (const method of ['GET', 'HEAD']) {
        const answer = await again(path, tag, method);
        expect(answer).to.deep.include({ status: 304, body: null });
        expect(answer.headers.get('etag')).to.equal(tag);
        expect(answer.headers.get('x-request-id')).to.be.a('string');
        expect(answer.headers.get('content-type')).to.equal(null);
      }
      expect((await again(path, '"another"')).status).to.equal(200);
    });
  }

  it('have the headers of a 200 on the 304: total, next page and Cache-Control', async () => {
    await daemon.createProject();
    const whole = await daemon.manage('GET', '/manage/projects?limit=1');
    const unchanged = await again('/manage/projects?limit=1', whole.headers.get('etag')!);
    expect(unchanged.status).to.equal(304);
    for (const name of ['x-total-count', 'link', 'cache-control']) {
      expect(unchanged.headers.get(name), name).to.be.a('string').and.equal(whole.headers.get(name));
    }
    expect(unchanged.headers.get('x-total-count')).to.equal('2');
    expect(unchanged.headers.get('cache-control')).to.equal('private, no-cache');
  });

  for (const [what, header, status] of [
    ['the tag', '<tag>', 304],
    ['the ETag as a weak one', 'W/<tag>', 304],
    ['a list with the ETag', '"x", W/"y" ,<tag>', 304],
    ['a star', '*', 304],
    ['a star with spaces', ' * ', 304],
    ['a list without the ETag', '"x", W/"y"', 200],
    ['the ETag without its quotes', '<bare>', 200],
    ['nothing', '', 200],
    ['a star in quotes', '"*"', 200],
  ] as const) {
    it(`with ${what} in If-None-Match are ${status}`, async () => {
      const path = paths()['a token'];
      const tag = await tagOf(path);
      const value = header.replace('<tag>', tag).replace('<bare>', tag.slice(1, -1));
      const answer = await rawRequest(daemon, { path, headers: { 'if-none-match': value } });
      expect(answer.status).to.equal(status);
    });
  }

  it('work with Cache-Control: no-cache, which fetch adds to every If-None-Match', async () => {
    const path = paths()['a token'];
    const headers = { 'if-none-match': await tagOf(path), 'cache-control': 'no-cache', pragma: 'no-cache' };
    expect((await rawRequest(daemon, { path, headers })).status).to.equal(304);
  });

  it('do not affect refusals', async () => {
    const missing = '/manage/tokens/00000000-0000-4000-8000-000000000000';
    problemOf(await again(missing, '*'), 404, 'not_found');
    problemOf(await again('/manage/tokens?limit=0', '*'), 400, 'invalid_request');
    expect((await again('/manage/tokens?limit=0', '*')).headers.get('etag')).to.equal(null);
  });

  it('are for reads only: the response to a change is complete', async () => {
    const changed = await daemon.manage('PATCH', paths()['a token'], { is_active: true }, { 'if-none-match': '*' });
    expect(changed).to.have.nested.property('body.id', token.id);
    expect(changed.status).to.equal(200);
  });

  describe('notice immediately', () => {
    /** Checks that each of these responses differs after `change`, for conditional requests. */
    const expectSeen = async (what: (keyof ReturnType<typeof paths>)[], change: () => unknown) => {
      const before = await Promise.all(what.map((it) => tagOf(paths()[it])));
      await change();
      for (const [index, it] of what.entries()) {
        expect((await again(paths()[it], before[index]!)).status, it).to.equal(200);
      }
    };

    it('a use that is not settled yet', () =>
      expectSeen(['a token', 'the list of tokens'], () => daemon.call(token.token)));

    it('a token that expired, although no row changed', () =>
      expectSeen(['a token', 'the list of tokens'], () => {
        daemon.clock.advance(3_600_000);
      }));

    it('a revocation', () =>
      expectSeen(['a token', 'the list of tokens'], () => daemon.manage('DELETE', paths()['a token'])));

    it('a deactivated project, also in the state of its tokens', () =>
      expectSeen(['a project', 'the list of projects', 'a token', 'the list of tokens'], () =>
        daemon.manage('PATCH', paths()['a project'], { is_active: false }),
      ));

    it('a change, in the audit log', () =>
      expectSeen(['the list of audit records'], () => daemon.manage('DELETE', paths()['a token'])));

    it('a use, in the usage records', () =>
      expectSeen(['usage'], async () => {
        await (await daemon.call(token.token)).arrayBuffer();
        await eventually('it has ended', () => daemon.ended.length === 1);
      }));

    it('another upstream key, by its hint', () =>
      expectSeen(['a project', 'the list of projects'], () =>
        daemon.manage('PATCH', paths()['a project'], { api_key: canary('upstream') }),
      ));

    it('a change made directly in the database', () =>
      expectSeen(['a token', 'the list of tokens'], () => write(daemon, "UPDATE tokens SET name = 'renamed'")));

    it('a changed total, although the page itself is unchanged', async () => {
      const path = '/manage/tokens?sort=created_at&limit=1';
      const first = await daemon.manage('GET', path);
      daemon.clock.advance(1);
      await daemon.createToken(project.id);
      const second = await again(path, first.headers.get('etag')!);
      expect(second.body).to.deep.equal(first.body);
      const third = daemon.createToken(project.id).then(() => again(path, second.headers.get('etag')!));
      expect([second.status, (await third).status]).to.deep.equal([200, 200]);
    });
  });

  it('notice that a page became the last one, although it and the total are unchanged', async () => {
    const [first, , third] = [token, await later(), await later()];
    const setActive = (id: string, isActive: boolean) =>
      daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: isActive });
    const earliest = '/manage/tokens?active_only=true&sort=created_at&limit=1';
    const [, next] = /^<([^>]+)>/.exec((await daemon.manage('GET', earliest)).headers.get('link')!)!;
    await setActive(first.id, false);
    const before = await daemon.manage('GET', next!);
    await setActive(first.id, true);
    await setActive(third.id, false);
    const after = await again(next!, before.headers.get('etag')!);
    expect(after.body).to.deep.equal(before.body);
    expect(after.headers.get('x-total-count')).to.equal(before.headers.get('x-total-count'));
    expect([before.headers.has('link'), after.headers.has('link')]).to.deep.equal([true, false]);
  });

  const later = () => {
    daemon.clock.advance(1);
    return daemon.createToken(project.id);
  };

  it('have ETags that differ exactly if the responses differ', async () => {
    const other = await daemon.createToken(project.id);
    const tags = [
      await tagOf('/manage/tokens?limit=1'),
      await tagOf('/manage/tokens'),
      await tagOf(`/manage/tokens/${other.id}`),
      await tagOf(paths()['a token']),
    ];
    expect(new Set(tags).size).to.equal(4);
    expect(await tagOf('/manage/tokens')).to.equal(tags[1]);
  });
});
