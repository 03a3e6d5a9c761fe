/** What every implementation of the port `CacheStore` does. */
import { expect } from 'chai';
import type { CachePlace, CacheStore, Fill, Found, Kept, LookUp } from '../../daemon/core/ports.js';

export interface CacheStage {
  cache: CacheStore;
  /** Lets time pass, at least so much. */
  pass(ms: number): void | Promise<void>;
  close?(): Promise<void>;
}

export const MODELS: CachePlace = { projectId: 'one', resource: 'GET /v1/models', variant: '' };
export const FRESH_MS = 60_000;
export const KEEP_MS = 100_000;

/** An answer with this body. */
export function kept(body: string | Buffer = 'the models', more: Partial<Kept> = {}): Kept {
  const content = {
    kind: 'answer',
    status: 200,
    headers: ['Content-Type', 'text/plain'],
    ageMs: 0,
    isForOptedIn: false,
  } as const;
  return { content: { ...content, body: Buffer.from(body) }, freshMs: FRESH_MS, keepMs: KEEP_MS, ...more };
}

const SIGN: Kept = { content: { kind: 'vary', names: ['accept', 'x-mode'] }, freshMs: FRESH_MS, keepMs: KEEP_MS };

export async function begin(cache: CacheStore, place = MODELS): Promise<Fill> {
  const { fill } = await cache.lookUp(place, { reads: false, fills: true });
  if (fill === null) throw new Error('no fill was begun');
  return fill;
}

export async function keep(cache: CacheStore, place = MODELS, what = kept()): Promise<boolean> {
  return (await begin(cache, place)).keep([{ place, kept: what }]);
}

export async function find(cache: CacheStore, place = MODELS): Promise<Found | null> {
  return (await cache.lookUp(place, { reads: true, fills: false })).found;
}

export const bodyOf = (found: Found | null): string | null =>
  found?.content.kind === 'answer' ? found.content.body.toString() : null;

export function behavesAsCacheStore(open: () => CacheStage | Promise<CacheStage>): void {
  let stage: CacheStage;
  let cache: CacheStore;

  beforeEach(async () => {
    stage = await open();
    cache = stage.cache;
  });
  afterEach(() => stage.close?.());

  const look = async (reads: boolean, fills: boolean): Promise<LookUp> => cache.lookUp(MODELS, { reads, fills });

  describe('a look-up', () => {
    it('finds nothing where nothing was kept, and begins a fill if that is wanted', async () => {
      expect(await look(true, false)).to.deep.equal({ found: null, fill: null });
      const { found, fill } = await look(true, true);
      expect(found).to.equal(null);
      expect(fill).not.to.equal(null);
    });

    it('finds what was kept, byte for byte, and begins no fill then', async () => {
      const body = Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * 7) % 256));
      const headers = ['Set', 'one', 'set', 'zwei é \xff', 'X', ''];
      const content = { kind: 'answer', status: 404, headers, body, ageMs: 1234, isForOptedIn: true } as const;
      expect(await keep(cache, MODELS, { content, freshMs: FRESH_MS, keepMs: KEEP_MS })).to.equal(true);
      const { found, fill } = await look(true, true);
      expect(found?.content).to.deep.equal(content);
      expect(found?.freshMs).to.equal(FRESH_MS);
      expect(fill).to.equal(null);
    });

    it('finds an answer without a body', async () => {
      await keep(cache, MODELS, kept(''));
      expect(bodyOf(await find(cache))).to.equal('');
    });

    it('finds the sign to where answers stand', async () => {
      await keep(cache, MODELS, SIGN);
      expect((await find(cache))?.content).to.deep.equal(SIGN.content);
    });

    it('tells for how long an answer was kept', async () => {
      await keep(cache);
      expect((await find(cache))?.heldMs).to.be.within(0, 5_000);
      await stage.pass(30_000);
      expect((await find(cache))?.heldMs).to.be.within(30_000, 35_000);
    });

    it('finds one that is not fresh any more, and begins a fill', async () => {
      await keep(cache);
      await stage.pass(FRESH_MS);
      const { found, fill } = await look(true, true);
      expect(found?.heldMs).to.be.at.least(FRESH_MS);
      expect(bodyOf(found)).to.equal('the models');
      expect(await fill?.keep([{ place: MODELS, kept: kept('new') }])).to.equal(true);
      expect(bodyOf(await find(cache))).to.equal('new');
    });

    it('finds none beyond the time it is kept', async () => {
      await keep(cache);
      await stage.pass(KEEP_MS);
      expect(await find(cache)).to.equal(null);
      expect(await cache.count({ kind: 'all' })).to.equal(0);
    });

    it('that does not read finds nothing, and leaves what there is', async () => {
      await keep(cache);
      const { found, fill } = await look(false, true);
      expect(found).to.equal(null);
      expect(fill).not.to.equal(null);
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

    it('is not led astray by parts of a place that look like others put together', async () => {
      await keep(cache, { projectId: 'a', resource: 'b:c', variant: 'd' });
      expect(await find(cache, { projectId: 'a:b', resource: 'c', variant: 'd' })).to.equal(null);
      expect(await find(cache, { projectId: 'a', resource: 'b', variant: 'c:d' })).to.equal(null);
    });
  });

  describe('a fill', () => {
    it('puts a new answer in the place of an old one', async () => {
      await keep(cache, MODELS, kept('a long one'));
      await keep(cache, MODELS, kept('short'));
      expect(bodyOf(await find(cache))).to.equal('short');
      expect((await cache.size()).entries).to.equal(1);
    });

    it('keeps several together', async () => {
      const fill = await begin(cache);
      const html = { ...MODELS, variant: 'accept: text/html' };
      const both = [
        { place: MODELS, kept: SIGN },
        { place: html, kept: kept('<html>') },
      ];
      expect(await fill.keep(both)).to.equal(true);
      expect((await find(cache))?.content).to.deep.equal(SIGN.content);
      expect(bodyOf(await find(cache, html))).to.equal('<html>');
    });

    it('keeps once, and nothing after it was dropped', async () => {
      const fill = await begin(cache);
      const entry = { place: MODELS, kept: kept() };
      expect(await fill.keep([entry])).to.equal(true);
      expect(await fill.keep([entry])).to.equal(false);
      const dropped = await begin(cache);
      dropped.drop();
      dropped.drop();
      expect(await dropped.keep([{ place: MODELS, kept: kept('dropped') }])).to.equal(false);
      expect(bodyOf(await find(cache))).to.equal('the models');
    });

    it('goes its own way beside others', async () => {
      const [one, other] = [await begin(cache), await begin(cache)];
      one.drop();
      expect(await other.keep([{ place: MODELS, kept: kept('other') }])).to.equal(true);
      expect(bodyOf(await find(cache))).to.equal('other');
    });
  });

  describe('a change of a resource', () => {
    const html = { ...MODELS, variant: 'accept: text/html' };

    it('removes all its answers from the next look-up on, and nothing else', async () => {
      const others = [
        { ...MODELS, projectId: 'another' },
        { ...MODELS, resource: 'GET /v1/models/a' },
        { ...MODELS, resource: 'GET /v1/model' },
      ];
      for (const place of [MODELS, html, ...others]) await keep(cache, place);
      cache.invalidate(MODELS.projectId, MODELS.resource);
      expect(await find(cache)).to.equal(null);
      expect(await find(cache, html)).to.equal(null);
      for (const place of others) expect(bodyOf(await find(cache, place)), place.resource).to.equal('the models');
    });

    it('G23 ends the fills that began before it, and none that begins behind it', async () => {
      const before = await begin(cache);
      cache.invalidate(MODELS.projectId, MODELS.resource);
      expect(await before.keep([{ place: MODELS, kept: kept('old') }])).to.equal(false);
      expect(await find(cache)).to.equal(null);
      expect(await keep(cache, MODELS, kept('new'))).to.equal(true);
      expect(bodyOf(await find(cache))).to.equal('new');
    });

    it('of which nothing is kept changes nothing', async () => {
      await keep(cache);
      for (let i = 0; i < 100; i++) cache.invalidate('one', `GET /v1/chat/completions/${i}`);
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
      [{ kind: 'resource', resource: 'GET /v1/models' }, ({ resource }: CachePlace) => resource === 'GET /v1/models'],
      [{ kind: 'project', projectId: 'two' }, ({ projectId }: CachePlace) => projectId === 'two'],
      [{ kind: 'all' }, () => true],
      [{ kind: 'resource', resource: 'GET /v1/nothing' }, () => false],
      [{ kind: 'project', projectId: 'nobody' }, () => false],
    ] as const) {
      const what = 'resource' in selection ? selection.resource : 'projectId' in selection ? selection.projectId : '';

      it(`of ${selection.kind} ${what} removes exactly that, and says how much it was`, async () => {
        const chosen = places.filter(hits).length;
        expect(await cache.count(selection)).to.equal(chosen);
        expect(await cache.purge(selection)).to.equal(chosen);
        expect(await cache.count(selection)).to.equal(0);
        for (const place of places) {
          expect(bodyOf(await find(cache, place)), JSON.stringify(place)).to.equal(hits(place) ? null : 'the models');
        }
        expect((await cache.size()).entries).to.equal(places.length - chosen);
      });

      it(`of ${selection.kind} ${what} ends the fills of that, and no others`, async () => {
        const fills = await Promise.all(places.map(async (place) => ({ place, fill: await begin(cache, place) })));
        await cache.purge(selection);
        for (const { place, fill } of fills) {
          expect(await fill.keep([{ place, kept: kept('old') }]), JSON.stringify(place)).to.equal(!hits(place));
        }
      });
    }

    it('counts answers: no signs to them, and none that have ended', async () => {
      await keep(cache, { ...MODELS, variant: 'a sign' }, SIGN);
      await keep(cache, { ...MODELS, variant: 'a short one' }, kept('short', { freshMs: 1_000, keepMs: 1_000 }));
      await stage.pass(2_000);
      const all = { kind: 'all' } as const;
      expect(await cache.count(all)).to.equal(places.length);
      expect(await cache.purge(all)).to.equal(places.length);
      expect((await cache.size()).entries, 'the sign is gone as well').to.equal(0);
    });
  });

  describe('the size', () => {
    it('is that of the answers, and nothing when there are none', async () => {
      expect(await cache.size()).to.deep.equal({ entries: 0, bytes: 0 });
      await keep(cache, MODELS, kept(Buffer.alloc(10_000)));
      await keep(cache, { ...MODELS, variant: 'small' }, kept('small'));
      const { entries, bytes } = await cache.size();
      expect(entries).to.equal(2);
      expect(bytes).to.be.within(10_000, 20_000);
      cache.invalidate(MODELS.projectId, MODELS.resource);
      expect(await cache.size()).to.deep.equal({ entries: 0, bytes: 0 });
    });

    it('follows an answer that takes the place of another', async () => {
      await keep(cache, MODELS, kept(Buffer.alloc(10_000)));
      await keep(cache, MODELS, kept('small'));
      expect((await cache.size()).bytes).to.be.below(5_000);
    });
  });
}
