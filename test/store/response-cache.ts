/** Contract of the port `CacheStore`. */
import { expect } from 'chai';
import type { CacheKey, CacheStore, WriteLease, FoundEntry, CacheEntry, CacheLookup } from '../../daemon/core/ports.js';

export interface CacheStage {
  cache: CacheStore;
  /** Lets at least this much time pass. */
  pass(ms: number): void | Promise<void>;
  close?(): Promise<void>;
}

export const MODELS: CacheKey = { projectId: 'one', resource: 'GET /v1/models', variant: '' };
export const FRESH_MS = 60_000;
export const KEEP_MS = 100_000;

/** A response with this body. */
export function kept(body: string | Buffer = 'the models', more: Partial<CacheEntry> = {}): CacheEntry {
  const content = {
    kind: 'answer',
    status: 200,
    headers: ['Content-Type', 'text/plain'],
    ageMs: 0,
    isForOptedIn: false,
  } as const;
  return { content: { ...content, body: Buffer.from(body) }, freshMs: FRESH_MS, keepMs: KEEP_MS, ...more };
}

const VARY_MARKER: CacheEntry = {
  content: { kind: 'vary', names: ['accept', 'x-mode'] },
  freshMs: FRESH_MS,
  keepMs: KEEP_MS,
};

export async function begin(cache: CacheStore, place = MODELS): Promise<WriteLease> {
  const { writeLease } = await cache.lookUp(place, { mayRead: false, mayStore: true });
  if (writeLease === null) throw new Error('no writeLease was begun');
  return writeLease;
}

export async function keep(cache: CacheStore, place = MODELS, what = kept()): Promise<boolean> {
  return (await begin(cache, place)).store([{ key: place, entry: what }]);
}

export async function find(cache: CacheStore, place = MODELS): Promise<FoundEntry | null> {
  return (await cache.lookUp(place, { mayRead: true, mayStore: false })).found;
}

export const bodyOf = (found: FoundEntry | null): string | null =>
  found?.content.kind === 'answer' ? found.content.body.toString() : null;

export function behavesAsCacheStore(open: () => CacheStage | Promise<CacheStage>): void {
  let stage: CacheStage;
  let cache: CacheStore;

  beforeEach(async () => {
    stage = await open();
    cache = stage.cache;
  });
  afterEach(() => stage.close?.());

  const look = async (reads: boolean, fills: boolean): Promise<CacheLookup> =>
    cache.lookUp(MODELS, { mayRead: reads, mayStore: fills });

  describe('a look-up', () => {
    it('finds nothing if nothing is stored, and begins a write lease if wanted', async () => {
      expect(await look(true, false)).to.deep.equal({ found: null, writeLease: null });
      const { found, writeLease } = await look(true, true);
      expect(found).to.equal(null);
      expect(writeLease).not.to.equal(null);
    });

    it('finds a stored response, byte for byte, and then begins no write lease', async () => {
      const body = Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * 7) % 256));
      const headers = ['Set', 'one', 'set', 'zwei é \xff', 'X', ''];
      const content = { kind: 'answer', status: 404, headers, body, ageMs: 1234, isForOptedIn: true } as const;
      expect(await keep(cache, MODELS, { content, freshMs: FRESH_MS, keepMs: KEEP_MS })).to.equal(true);
      const { found, writeLease } = await look(true, true);
      expect(found?.content).to.deep.equal(content);
      expect(found?.freshMs).to.equal(FRESH_MS);
      expect(writeLease).to.equal(null);
    });

    it('finds a response without a body', async () => {
      await keep(cache, MODELS, kept(''));
      expect(bodyOf(await find(cache))).to.equal('');
    });

    it('finds a Vary marker', async () => {
      await keep(cache, MODELS, VARY_MARKER);
      expect((await find(cache))?.content).to.deep.equal(VARY_MARKER.content);
    });

    it('reports how long a response has been stored', async () => {
      await keep(cache);
      expect((await find(cache))?.residentMs).to.be.within(0, 5_000);
      await stage.pass(30_000);
      expect((await find(cache))?.residentMs).to.be.within(30_000, 35_000);
    });

    it('finds a stale response, and begins a write lease', async () => {
      await keep(cache);
      await stage.pass(FRESH_MS);
      const { found, writeLease } = await look(true, true);
      expect(found?.residentMs).to.be.at.least(FRESH_MS);
      expect(bodyOf(found)).to.equal('the models');
      expect(await writeLease?.store([{ key: MODELS, entry: kept('new') }])).to.equal(true);
      expect(bodyOf(await find(cache))).to.equal('new');
    });

    it('finds no expired response', async () => {
      await keep(cache);
      await stage.pass(KEEP_MS);
      expect(await find(cache)).to.equal(null);
      expect(await cache.count({ kind: 'all' })).to.equal(0);
    });

    it('without reading finds nothing, and leaves stored entries alone', async () => {
      await keep(cache);
      const { found, writeLease } = await look(false, true);
      expect(found).to.equal(null);
      expect(writeLease).not.to.equal(null);
      expect(bodyOf(await find(cache))).to.equal('the models');
    });

    for (const [what, other] of [
      ['project', { ...MODELS, projectId: 'another' }],
      ['resource', { ...MODELS, resource: 'GET /v1/models?limit=1' }],
      ['variant', { ...MODELS, variant: 'accept: text/html' }],
    ] as const) {
      it(`finds nothing of another ${what}`, async () => {
        await keep(cache);
        expect(await find(cache, other)).to.equal(null);
      });
    }

    it('does not confuse cache keys whose parts look alike when joined', async () => {
      await keep(cache, { projectId: 'a', resource: 'b:c', variant: 'd' });
      expect(await find(cache, { projectId: 'a:b', resource: 'c', variant: 'd' })).to.equal(null);
      expect(await find(cache, { projectId: 'a', resource: 'b', variant: 'c:d' })).to.equal(null);
    });
  });

  describe('a write lease', () => {
    it('replaces an old response by a new one', async () => {
      await keep(cache, MODELS, kept('a long one'));
      await keep(cache, MODELS, kept('short'));
      expect(bodyOf(await find(cache))).to.equal('short');
      expect((await cache.size()).entries).to.equal(1);
    });

    it('stores several entries together', async () => {
      const writeLease = await begin(cache);
      const html = { ...MODELS, variant: 'accept: text/html' };
      const both = [
        { key: MODELS, entry: VARY_MARKER },
        { key: html, entry: kept('<html>') },
      ];
      expect(await writeLease.store(both)).to.equal(true);
      expect((await find(cache))?.content).to.deep.equal(VARY_MARKER.content);
      expect(bodyOf(await find(cache, html))).to.equal('<html>');
    });

    it('stores once, and nothing after it is dropped', async () => {
      const writeLease = await begin(cache);
      const entry = { key: MODELS, entry: kept() };
      expect(await writeLease.store([entry])).to.equal(true);
      expect(await writeLease.store([entry])).to.equal(false);
      const dropped = await begin(cache);
      dropped.release();
      dropped.release();
      expect(await dropped.store([{ key: MODELS, entry: kept('dropped') }])).to.equal(false);
      expect(bodyOf(await find(cache))).to.equal('the models');
    });

    it('is independent of others', async () => {
      const [one, other] = [await begin(cache), await begin(cache)];
      one.release();
      expect(await other.store([{ key: MODELS, entry: kept('other') }])).to.equal(true);
      expect(bodyOf(await find(cache))).to.equal('other');
    });
  });

  describe('a change of a resource', () => {
    const html = { ...MODELS, variant: 'accept: text/html' };

    it('removes all its responses from the next look-up on, and nothing else', async () => {
      const others = [
        { ...MODELS, projectId: 'another' },
        { ...MODELS, resource: 'GET /v1/models/a' },
        { ...MODELS, resource: 'GET /v1/model' },
      ];
      for (const place of [MODELS, html, ...others]) await keep(cache, place);
      await cache.invalidate(MODELS.projectId, MODELS.resource);
      expect(await find(cache)).to.equal(null);
      expect(await find(cache, html)).to.equal(null);
      for (const place of others) expect(bodyOf(await find(cache, place)), place.resource).to.equal('the models');
    });

    it('G23 ends the write leases that began before it, and none that begins after it', async () => {
      const before = await begin(cache);
      await cache.invalidate(MODELS.projectId, MODELS.resource);
      expect(await before.store([{ key: MODELS, entry: kept('old') }])).to.equal(false);
      expect(await find(cache)).to.equal(null);
      expect(await keep(cache, MODELS, kept('new'))).to.equal(true);
      expect(bodyOf(await find(cache))).to.equal('new');
    });

    it('that is not cached has no effect', async () => {
      await keep(cache);
      for (let i = 0; i < 100; i++) await cache.invalidate('one', `GET /v1/chat/completions/${i}`);
      expect(bodyOf(await find(cache))).to.equal('the models');
    });
  });

  describe('a purge', () => {
    const places = ['one', 'two', 'three'].flatMap((projectId) =>
      ['GET /v1/models', 'GET /v1/files'].flatMap((resource) =>
        ['', 'accept: text/html'].map((variant) => ({ projectId, resource, variant })),
      ),
    );

    beforeEach(async () => {
      for (const place of places) await keep(cache, place);
    });

    for (const [selection, hits] of [
      [{ kind: 'resource', resource: 'GET /v1/models' }, ({ resource }: CacheKey) => resource === 'GET /v1/models'],
      [{ kind: 'project', projectId: 'two' }, ({ projectId }: CacheKey) => projectId === 'two'],
      [{ kind: 'all' }, () => true],
      [{ kind: 'resource', resource: 'GET /v1/nothing' }, () => false],
      [{ kind: 'project', projectId: 'unknown' }, () => false],
    ] as const) {
      const what = 'resource' in selection ? selection.resource : 'projectId' in selection ? selection.projectId : '';

      it(`of ${selection.kind} ${what} ends the write leases of those, and no others`, async () => {
        const fills = await Promise.all(
          places.map(async (place) => ({ place, writeLease: await begin(cache, place) })),
        );
        await cache.purge(selection);
        for (const { place, writeLease } of fills) {
          expect(await writeLease.store([{ key: place, entry: kept('old') }]), JSON.stringify(place)).to.equal(
            !hits(place),
          );
        }
      });
    }

    it('counts responses, without Vary markers and expired entries', async () => {
      await keep(cache, { ...MODELS, variant: 'a marker' }, VARY_MARKER);
      await keep(cache, { ...MODELS, variant: 'a short one' }, kept('short', { freshMs: 1_000, keepMs: 1_000 }));
      await stage.pass(2_000);
      const all = { kind: 'all' } as const;
      expect(await cache.count(all)).to.equal(places.length);
      expect(await cache.purge(all)).to.equal(places.length);
      expect((await cache.size()).entries, 'the Vary marker is removed as well').to.equal(0);
    });
  });

  describe('the size', () => {
    it('changes when a response replaces another', async () => {
      await keep(cache, MODELS, kept(Buffer.alloc(10_000)));
      await keep(cache, MODELS, kept('small'));
      expect((await cache.size()).bytes).to.be.below(5_000);
    });
  });
}
