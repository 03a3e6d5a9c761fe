/**
 * Purges, and changes of the upstream key, while responses are in flight. The plain cases are in test/http/manage/cache-management.test.ts.
 */
import { expect } from 'chai';
import type { WireCachePurged, WireProject } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { eventually } from '../support/eventually.js';
import { bodyOf } from '../support/management.js';
import { head, type RawResponse } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const HALF = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=600\r\n\r\n01234';
const REST = '56789';

describe('G: purges of the cache', () => {
  const { stage, it, itInOneProcess } = staged({
    env: { HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_DEFAULT_TTL_PATHS: '*' },
  });

  const purge = (body: object) => bodyOf<WireCachePurged>(stage.daemon.manage('POST', '/manage/cache/purge', body));
  const get = (target = '/v1/models', secret = stage.secret) => stage.ask(head(`GET ${target}`, secret));
  const cacheOf = (answer: RawResponse) => answer.header('x-proxy-cache');
  const exchanges = (count: number) =>
    eventually(`${count} requests at the upstream`, () => stage.upstream.exchanges.length === count);
  /** The first response of the upstream is older than the purge, so no client may get it afterwards. */
  const answerInTurn = () => {
    let answered = 0;
    stage.upstream.script = (exchange) => {
      exchange.respond(200, 'Cache-Control: max-age=600\r\n', `{"answer":${++answered}}`);
    };
  };
  /** A client in the middle of a response that can be stored. */
  const filling = async (target = '/v1/models', secret = stage.secret) => {
    const before = stage.upstream.exchanges.length;
    let exchange: Exchange | undefined;
    stage.upstream.script = (it) => {
      exchange = it;
      it.send(HALF);
    };
    const client = await stage.client(head(`GET ${target}`, secret));
    await client.seen('01234');
    await exchanges(before + 1);
    return { client, finish: () => exchange?.send(REST) };
  };

  // Each case begins with an empty cache.
  beforeEach(() => stage.daemon.manage('POST', '/manage/cache/purge', { all: true }));

  const selections = {
    'its request line': () => ({ method: 'GET', url: '/v1/models' }),
    'its project': () => ({ project_id: stage.project.id }),
    everything: () => ({ all: true }),
  };

  describe('while a response is in flight', () => {
    for (const [what, selection] of Object.entries(selections)) {
      it(`G23 purge of ${what}: the response in flight is forwarded completely and not stored`, async () => {
        const { client, finish } = await filling();
        expect((await purge(selection())).purged_count).to.equal(0);
        finish();
        expect((await client.response()).text).to.equal('0123456789');
        answerInTurn();
        const after = await get();
        expect([cacheOf(after), after.text]).to.deep.equal(['miss', '{"answer":1}']);
        expect(cacheOf(await get())).to.equal('hit');
      });

      it(`G23 purge of ${what}: a later request does not join a request from before`, async () => {
        const { client, finish } = await filling();
        await purge(selection());
        answerInTurn();
        const after = await get();
        expect([cacheOf(after), after.text]).to.deep.equal(['miss', '{"answer":1}']);
        finish();
        expect((await client.response()).text).to.equal('0123456789');
        // Nor does the older response, which arrived later, replace the newer one.
        expect((await get()).text).to.equal('{"answer":1}');
      });
    }

    it('G23 a purge before the first byte of the response: it is not stored either', async () => {
      let exchange: Exchange | undefined;
      stage.upstream.script = (it) => {
        exchange = it;
      };
      const client = await stage.client(stage.get());
      await exchanges(1);
      await purge({ all: true });
      exchange?.send(HALF + REST);
      expect((await client.response()).text).to.equal('0123456789');
      answerInTurn();
      expect(cacheOf(await get())).to.equal('miss');
    });

    it('G23 a purge of something else: the response is stored', async () => {
      const other = await stage.daemon.createProject();
      const { client, finish } = await filling();
      await purge({ method: 'GET', url: '/v1/models?' });
      await purge({ method: 'POST', url: '/v1/models' });
      await purge({ project_id: other.id });
      await purge({ all: true, dry_run: true });
      finish();
      await client.response();
      const after = await get();
      expect([cacheOf(after), after.text]).to.deep.equal(['hit', '0123456789']);
    });

    it('G23 a hundred purges at random moments: no response from before a purge is served after it', async () => {
      let version = 0;
      stage.upstream.script = (exchange) => {
        const body = String(version);
        setImmediate(() => {
          exchange.respond(200, 'Cache-Control: max-age=600\r\n', body);
        });
      };
      for (let round = 1; round <= 100; round++) {
        const before = Array.from({ length: 3 }, () => get());
        if (round % 3 === 0) await Promise.race(before);
        version = round;
        await purge({ method: 'GET', url: '/v1/models' });
        expect(Number((await get()).text), 'the version served').to.equal(round);
        await Promise.all(before);
      }
    });
  });

  describe('by a change of the upstream key', () => {
    let project: WireProject;
    let secret: string;
    const [first, second] = [canary('upstream'), canary('upstream')];

    const setKey = async (key: string) => {
      stage.upstreamKeys.add(key);
      await bodyOf(stage.daemon.manage('PATCH', `/manage/projects/${project.id}`, { api_key: key }));
    };
    const begin = async () => {
      stage.upstreamKeys.add(first);
      project = await stage.daemon.createProject({ api_key: first });
      secret = (await stage.issue({ project_id: project.id })).token;
    };
    const keyOf = (exchange: Exchange | undefined) => exchange?.all('authorization').join();

    it('G30 after the change, entries of the former key are not served, and other projects keep theirs', async () => {
      await begin();
      answerInTurn();
      await get('/v1/models', secret);
      await get();
      await setKey(second);
      expect(cacheOf(await get('/v1/models', secret))).to.equal('miss');
      expect(keyOf(stage.upstream.exchanges.at(-1))).to.equal(`Bearer ${second}`);
      expect(cacheOf(await get())).to.equal('hit');
    });

    it('G30 when the former key is set again, its entries are not served either', async () => {
      await begin();
      answerInTurn();
      await get('/v1/models', secret);
      await setKey(second);
      await setKey(first);
      const after = await get('/v1/models', secret);
      expect([cacheOf(after), after.text]).to.deep.equal(['miss', '{"answer":2}']);
      expect(cacheOf(await get('/v1/models', secret))).to.equal('hit');
    });

    it('G30 a response that was in flight during the change is not served under either key', async () => {
      await begin();
      const { client, finish } = await filling('/v1/models', secret);
      await setKey(second);
      await setKey(first);
      finish();
      expect((await client.response()).text).to.equal('0123456789');
      answerInTurn();
      expect(cacheOf(await get('/v1/models', secret))).to.equal('miss');
    });

    it('G30 no unreachable entries are left', async () => {
      await begin();
      answerInTurn();
      await get('/v1/models', secret);
      await setKey(second);
      expect(await purge({ project_id: project.id, dry_run: true })).to.include({ purged_count: 0 });
    });

    // Another process drops the entries of a project for any change of it.
    itInOneProcess('G30 a change of the name leaves entries as they are', async () => {
      await begin();
      answerInTurn();
      await get('/v1/models', secret);
      await stage.daemon.manage('PATCH', `/manage/projects/${project.id}`, { name: `${project.name}, renamed` });
      expect(cacheOf(await get('/v1/models', secret))).to.equal('hit');
    });
  });
});
