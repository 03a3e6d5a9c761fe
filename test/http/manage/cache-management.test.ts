import { expect } from 'chai';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WireCache, WireCachePurged, WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { canary } from '../../support/canaries.js';
import type { TestResponse } from '../../support/daemon.js';
import { auditOf, bodyOf, changesOf, lastAuditOf, problemOf, write } from '../../support/management.js';
import { eventually } from '../../support/eventually.js';
import { head } from '../../support/raw.js';
import { freePort } from '../../support/ports.js';
import { TestRedis, LENIENT_REDIS_TIMEOUT_MS, WITHOUT_REDIS } from '../../support/redis.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { itInOneProcess, TEST_WORKERS } from '../../support/test-workers.js';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const MODELS = { method: 'GET', url: '/v1/models' };
const CACHE_ON = { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_DEFAULT_TTL_PATHS: '*' };

describe('the management of the cache', () => {
  let scene: ProxyFixture;

  const withDaemon = (env: () => Record<string, string> | Promise<Record<string, string>>) => {
    before(async () => {
      scene = await ProxyFixture.open(await env(), undefined, LENIENT_REDIS_TIMEOUT_MS);
    });
    beforeEach(() => scene.begin());
    afterEach(() => scene.end());
    after(() => scene.close());
  };

  const purge = (body: object, headers?: Record<string, string>): Promise<TestResponse> =>
    scene.daemon.manage('POST', '/manage/cache/purge', body, headers);
  const refused = async (body: object): Promise<string> => problemOf(await purge(body), 400, 'invalid_request');
  const shown = () => bodyOf<WireCache>(scene.daemon.manage('GET', '/manage/cache'));

  /** The response to a purge, and the audit records that it adds. */
  const added = async (...asked: Parameters<typeof purge>) => {
    const before = (await auditOf(scene.daemon)).length;
    const answer = await purge(...asked);
    const records = (await auditOf(scene.daemon)).slice(before).map((record) => ({
      action: record.action,
      outcome: record.outcome,
      project_id: record.project_id,
      count: record.count,
      details: JSON.parse(record.details ?? 'null') as unknown,
    }));
    return { answer, records };
  };

  function inputs(): void {
    const URL =
      'url must be a path that is forwarded, such as /v1/models, in its plain form, with its query if it has one, at most 8 KiB';
    const METHOD = 'method must be GET or POST, the methods whose responses are cached';
    const ONE = 'give exactly one of: method with url, project_id, or all';

    for (const method of ['get', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'FOO', '', ' GET', '*', 5, null]) {
      it(`refuses ${JSON.stringify(method)} as method`, async () => {
        expect(await refused({ method, url: '/v1/models' })).to.equal(METHOD);
      });
    }

    for (const [what, url] of Object.entries({
      'a full URL': 'http://localhost/v1/models',
      'no path': '',
      'a relative path': 'v1/models',
      'a path that is not forwarded': '/manage/tokens',
      'a path that begins like /v1': '/v1x/models',
      'another host': '//evil.example/v1/models',
      'two slashes': '/v1//models',
      'dot segments': '/v1/../v1/models',
      'encoded dot segments': '/v1/%2e%2e/models',
      'dot segments with parameters': '/v1/..;/models',
      'a backslash': '/v1\\models',
      'a fragment': '/v1/models#top',
      'an incomplete escape': '/v1/%zz',
      'a space': '/v1/mod els',
      'a line break': '/v1/models\n',
      'a non-ASCII letter': '/v1/modèles',
      'more than 8 KiB': `/v1/${'a'.repeat(8189)}`,
      'a number': 5,
    })) {
      it(`refuses ${what} as url`, async () => {
        expect(await refused({ method: 'GET', url })).to.equal(URL);
      });
    }

    it('accepts a url of the maximum length, and every form that /v1 accepts', async () => {
      for (const url of [
        `/v1/${'a'.repeat(8188)}`,
        '/v1',
        '/v1?',
        '/v1/a%2Fb',
        '/v1/models?a=//b/../c',
        '/v1/a:b@c,d;e',
      ]) {
        expect((await purge({ method: 'POST', url })).body, url).to.include({ purged_count: 0 });
      }
    });

    for (const [what, body] of Object.entries<object>({
      nothing: {},
      'a dry run of nothing': { dry_run: true },
      'a method without a url': { method: 'GET' },
      'a url without a method': { url: '/v1/models' },
      'a url and a project': { ...MODELS, project_id: UNKNOWN_ID },
      'a url and all': { ...MODELS, all: true },
      'a project and all': { project_id: UNKNOWN_ID, all: true },
      'a method and a project': { method: 'GET', project_id: UNKNOWN_ID },
      'all three': { ...MODELS, project_id: UNKNOWN_ID, all: true },
    })) {
      it(`refuses ${what} with one message`, async () => {
        expect(await refused(body)).to.equal(ONE);
      });
    }

    for (const all of [false, 'true', 1, null]) {
      it(`refuses ${JSON.stringify(all)} as all`, async () => {
        expect(await refused({ all })).to.equal('all must be true');
      });
    }

    it('refuses a dry_run that is not a boolean, and unknown fields', async () => {
      expect(await refused({ all: true, dry_run: 'true' })).to.equal('dry_run must be true or false');
      expect(await refused({ all: true, force: true })).to.equal('unknown field: force');
    });

    for (const id of [UNKNOWN_ID, 'nonsense', '*']) {
      it(`answers 404 for the project ${id}, also to a dry run`, async () => {
        for (const dry_run of [false, true]) {
          const answer = await purge({ project_id: id, dry_run });
          expect(problemOf(answer, 404, 'not_found')).to.equal('project not found');
        }
      });
    }

    it('records neither malformed requests nor a change', async () => {
      const before = [await auditOf(scene.daemon), await changesOf(scene.daemon)];
      await refused({});
      await refused({ method: 'PUT', url: '/v1/models' });
      await purge({ project_id: 'nonsense' });
      expect([await auditOf(scene.daemon), await changesOf(scene.daemon)]).to.deep.equal(before);
    });
  }

  describe('while it is off', () => {
    withDaemon(() => ({}));

    it('shows that it is off', async () => {
      expect(await shown()).to.deep.equal({ backend: 'off', entries: 0, bytes: 0, hits: 0, misses: 0 });
    });

    it('purges nothing, and returns the reason', async () => {
      for (const selection of [{ method: 'GET', url: '/v1/models' }, { project_id: scene.project.id }, { all: true }]) {
        expect(await bodyOf(purge(selection))).to.deep.equal({
          message: '0 responses purged: the cache is off',
          purged_count: 0,
        });
        expect(await bodyOf(purge({ ...selection, dry_run: true }))).to.deep.equal({
          message: '0 responses would be purged: the cache is off',
          purged_count: 0,
        });
      }
    });

    describe('and is to be purged', inputs);
  });

  describe('in memory', () => {
    withDaemon(() => CACHE_ON);
    itIsManaged('memory');

    it('purges nothing while the purge cannot be recorded: 503, and the responses are still stored', async () => {
      const own = await ProxyFixture.open(CACHE_ON);
      await own.get();
      own.daemon.daemon.stores.records.refuseChangesWhile(() => 'the audit file is full');
      const answer = await own.daemon.manage('POST', '/manage/cache/purge', { all: true });
      problemOf(answer, 503, 'unavailable');
      expect(answer.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
      expect(await bodyOf<WireCache>(own.daemon.manage('GET', '/manage/cache'))).to.include({ entries: 1 });
      await own.close();
    });

    it('does not count entries that would no longer be served', async () => {
      await scene.get();
      scene.daemon.clock.advance(3_600_000);
      expect(await bodyOf(purge({ all: true }))).to.include({ purged_count: 0 });
    });
  });

  describe(`in Redis${WITHOUT_REDIS}`, () => {
    let redis: TestRedis;
    before(async function () {
      if (WITHOUT_REDIS) this.skip();
      redis = await TestRedis.start();
    });
    withDaemon(() => ({ ...CACHE_ON, REDIS_ADDR: redis.address }));
    after(() => (WITHOUT_REDIS ? undefined : redis.stop()));
    itIsManaged('redis');
  });

  describe('in a Redis that cannot be reached', () => {
    withDaemon(async () => ({ ...CACHE_ON, REDIS_ADDR: `127.0.0.1:${await freePort()}` }));

    const expectAway = (answer: TestResponse) => {
      expect(problemOf(answer, 503, 'unavailable')).to.equal('temporarily unavailable');
      expect(answer.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
    };

    it('is not shown: 503', async () => {
      expectAway(await scene.daemon.manage('GET', '/manage/cache'));
    });

    it('is not purged: 503, with no count, and a record of the refusal', async () => {
      const { id } = scene.project;
      for (const [selection, subject] of [
        [MODELS, { project_id: null, details: { ...MODELS, refused: 'temporarily unavailable' } }],
        [{ project_id: id }, { project_id: id, details: { refused: 'temporarily unavailable' } }],
        [{ all: true }, { project_id: null, details: { all: true, refused: 'temporarily unavailable' } }],
      ] as const) {
        const { answer, records } = await added(selection);
        expectAway(answer);
        expect(records).to.deep.equal([{ action: 'cache.purge', outcome: 'denied', count: null, ...subject }]);
      }
    });

    it('is not counted either: 503, and no record', async () => {
      const { answer, records } = await added({ all: true, dry_run: true });
      expectAway(answer);
      expect(records).to.deep.equal([]);
    });

    it('does not delay a change of an upstream key', async () => {
      const path = `/manage/projects/${scene.project.id}`;
      expect((await scene.daemon.manage('PATCH', path, { api_key: canary('upstream') })).status).to.equal(200);
      await eventually('the failure is logged', () =>
        scene.daemon.logged.some((line) => line.includes('cannot purge outdated responses')),
      );
    });
  });

  /** @param backend the daemon's cache backend. */
  function itIsManaged(backend: string): void {
    beforeEach(async () => {
      await purge({ all: true });
      if (TEST_WORKERS === undefined) return;
      // A worker also reads changes from the database, up to half a second later, and then drops the entries once more.
      scene.daemon.clock.advance(1_000);
      await sleep(50);
    });

    let other: WireProject;
    let token: WireTokenCreated;
    before(async () => {
      other = await scene.daemon.createProject();
      token = await scene.daemon.createToken(other.id);
    });

    const fetched = async (target: string, { secret = scene.secret, method = 'GET', fields = {}, body = '' } = {}) => {
      const length = method === 'GET' ? {} : { 'Content-Length': String(body.length) };
      const selection = { method, url: target };
      const before = await countOf(selection);
      const answer = await scene.send(head(`${method} ${target}`, secret, { ...length, ...fields }) + body);
      const cache = String(answer.header('x-proxy-cache'));
      // Redis is written after the response was sent.
      if (cache === 'miss') await eventually('it is stored', async () => (await countOf(selection)) === before + 1);
      return cache;
    };
    /** Responds like the provider, but to any path. */
    const answerAnything = () => {
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
      };
    };
    const countOf = async (selection: object) =>
      (await bodyOf<WireCachePurged>(purge({ ...selection, dry_run: true }))).purged_count;

    describe('shows', () => {
      it('its entries, and the hits and misses of this instance', async () => {
        const before = await shown();
        expect(before).to.include({ backend, entries: 0, bytes: 0 });
        await fetched('/v1/models');
        await fetched('/v1/models');
        await fetched('/v1/models');
        const after = await shown();
        expect(after).to.include({ entries: 1, hits: before.hits + 2, misses: before.misses + 1 });
        expect(after.bytes).to.be.greaterThan(0);
      });
    });

    describe('is purged', () => {
      it('of one request line in every project, and nothing else', async () => {
        answerAnything();
        const lines = ['/v1/models', '/v1/models?', '/v1/models?a=1', '/v1/models?a=%31', '/v1/models/x', '/v1/Models'];
        for (const line of lines) await fetched(line);
        await fetched('/v1/models', { secret: token.token });
        expect(await bodyOf(purge({ method: 'GET', url: '/v1/models' }))).to.deep.equal({
          message: '2 responses purged',
          purged_count: 2,
        });
        for (const line of lines.slice(1)) expect(await fetched(line), line).to.equal('hit');
        expect(await fetched('/v1/models')).to.equal('miss');
        expect(await fetched('/v1/models', { secret: token.token })).to.equal('miss');
      });

      for (const [url, near] of [
        ['/v1/models?', '/v1/models'],
        ['/v1/%41', '/v1/A'],
        ['/v1/a%2fb', '/v1/a%2Fb'],
        ['/v1/models?a=1&b=2', '/v1/models?b=2&a=1'],
        ['/v1/models/', '/v1/models'],
      ] as const) {
        it(`G24 by ${url} byte for byte: ${near} is a different entry`, async () => {
          answerAnything();
          await fetched(near);
          expect(await bodyOf(purge({ method: 'GET', url }))).to.deep.equal({
            message: '0 responses purged',
            purged_count: 0,
          });
          expect(await fetched(near)).to.equal('hit');
          await fetched(url);
          expect(await bodyOf(purge({ method: 'GET', url }))).to.deep.equal({
            message: '1 response purged',
            purged_count: 1,
          });
          expect(await fetched(near)).to.equal('hit');
          expect(await fetched(url)).to.equal('miss');
        });
      }

      it('of every variant of a response, and counts the variants', async () => {
        answerAnything();
        for (const accept of ['application/json', 'text/plain', '*/*']) {
          await fetched('/v1/models', { fields: { Accept: accept } });
        }
        expect(await countOf({ method: 'GET', url: '/v1/models' })).to.equal(3);
        expect(await bodyOf(purge({ method: 'GET', url: '/v1/models' }))).to.include({ message: '3 responses purged' });
        expect(await fetched('/v1/models', { fields: { Accept: '*/*' } })).to.equal('miss');
      });

      it('of responses to POST separately from those to GET, whatever the body was', async () => {
        answerAnything();
        const fields = { 'Cache-Control': 'public' };
        const post = (body: string) => fetched('/v1/embeddings', { method: 'POST', fields, body });
        await post('one');
        await post('two');
        await fetched('/v1/embeddings');
        expect(await countOf({ method: 'GET', url: '/v1/embeddings' })).to.equal(1);
        expect(await bodyOf(purge({ method: 'POST', url: '/v1/embeddings' }))).to.include({ purged_count: 2 });
        expect(await post('one')).to.equal('miss');
      });

      it('of one project only', async () => {
        answerAnything();
        await fetched('/v1/models');
        await fetched('/v1/models/x');
        await fetched('/v1/models', { secret: token.token });
        expect(await bodyOf(purge({ project_id: scene.project.id }))).to.deep.equal({
          message: '2 responses purged',
          purged_count: 2,
        });
        expect(await fetched('/v1/models')).to.equal('miss');
        expect(await fetched('/v1/models', { secret: token.token })).to.equal('hit');
      });

      // Another process drops the entries of a project for any change of it.
      itInOneProcess('of an inactive project too', async () => {
        const { id } = await scene.daemon.createProject();
        await fetched('/v1/models', { secret: (await scene.daemon.createToken(id)).token });
        await scene.daemon.manage('PATCH', `/manage/projects/${id}`, { is_active: false });
        expect(await bodyOf(purge({ project_id: id }))).to.include({ purged_count: 1 });
      });

      it('of everything', async () => {
        answerAnything();
        await fetched('/v1/models');
        await fetched('/v1/models', { secret: token.token });
        await fetched('/v1/other');
        expect(await bodyOf(purge({ all: true }))).to.deep.equal({ message: '3 responses purged', purged_count: 3 });
        expect(await shown()).to.include({ entries: 0, bytes: 0 });
        expect(await bodyOf(purge({ all: true }))).to.deep.equal({ message: '0 responses purged', purged_count: 0 });
      });

      it('of nothing in a dry run, which returns the count', async () => {
        await fetched('/v1/models');
        for (const selection of [
          { method: 'GET', url: '/v1/models' },
          { project_id: scene.project.id },
          { all: true },
        ]) {
          expect(await bodyOf(purge({ ...selection, dry_run: true }))).to.deep.equal({
            message: '1 response would be purged',
            purged_count: 1,
          });
        }
        expect(await fetched('/v1/models')).to.equal('hit');
      });
    });

    describe('is audited', () => {
      const success = { action: 'cache.purge', outcome: 'success', project_id: null };

      it('with the selection and the count', async () => {
        await fetched('/v1/models');
        const details = { method: 'GET', url: '/v1/models' };
        expect((await added(details)).records).to.deep.equal([{ ...success, count: 1, details }]);
        expect((await added(details)).records).to.deep.equal([{ ...success, count: 0, details }]);
      });

      it('with the project, if it was one', async () => {
        await fetched('/v1/models');
        const { id } = scene.project;
        expect((await added({ project_id: id })).records).to.deep.equal([
          { ...success, project_id: id, count: 1, details: null },
        ]);
      });

      it('when it was everything', async () => {
        await fetched('/v1/models');
        expect((await added({ all: true })).records).to.deep.equal([{ ...success, count: 1, details: { all: true } }]);
      });

      it('with caller, reason and request, like every change', async () => {
        await purge({ all: true }, { 'x-llmp-actor': 'tui', 'x-audit-reason': 'new%20prices', 'x-request-id': 'this' });
        expect(await lastAuditOf(scene.daemon)).to.include({ actor: 'tui', reason: 'new prices', request_id: 'this' });
      });

      it('without a token that the query contains', async () => {
        await purge({ method: 'GET', url: `/v1/models?key=${scene.secret}&limit=1` });
        const { details } = await lastAuditOf(scene.daemon);
        expect(details).to.contain('limit=1').and.not.to.contain(scene.secret);
      });

      it('never for a dry run, refused or not', async () => {
        expect((await added({ all: true, dry_run: true })).records).to.deep.equal([]);
        expect((await added({ project_id: UNKNOWN_ID, dry_run: true })).records).to.deep.equal([]);
      });

      it('as denied if the project does not exist', async () => {
        expect((await added({ project_id: UNKNOWN_ID })).records).to.deep.equal([
          {
            action: 'cache.purge',
            outcome: 'denied',
            project_id: UNKNOWN_ID,
            count: null,
            details: { refused: 'project not found' },
          },
        ]);
      });

      it('or else is 503: the responses are purged, and a retry is recorded', async () => {
        await fetched('/v1/models');
        await write(scene.daemon, "CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END");
        const answer = await purge({ all: true });
        await write(scene.daemon, 'DROP TRIGGER broken');
        problemOf(answer, 503, 'unavailable');
        expect(answer.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
        expect((await added({ all: true })).records).to.deep.equal([{ ...success, count: 0, details: { all: true } }]);
      });

      it('and is a change that other instances receive, without the URL, which may contain secrets', async () => {
        const before = await changesOf(scene.daemon);
        await purge({ project_id: scene.project.id });
        await purge({ method: 'GET', url: '/v1/models?key=1' });
        const heard = (await changesOf(scene.daemon)).slice(before.length);
        expect(heard.map(({ kind, project_id }) => [kind, project_id])).to.deep.equal([
          ['cache.purged', scene.project.id],
          ['cache.purged', ''],
        ]);
        expect(JSON.stringify(heard)).not.to.include('/v1');
      });
    });
  }
});
