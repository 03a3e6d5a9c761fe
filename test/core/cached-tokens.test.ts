import { expect } from 'chai';
import { mintSecret } from '../../daemon/core/token.js';
import { databaseAtRest } from '../support/at-rest.js';
import { TestClock } from '../support/clock.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { makeDatabaseUnreachable } from '../support/database-outage.js';
import { type Provider, startProvider } from '../support/provider.js';

const TICK_MS = 250;

describe('a cached token', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let clock: TestClock;

  beforeEach(async () => {
    provider = await startProvider();
    clock = new TestClock({ standsStill: true });
    daemon = await startDaemon({ upstream: provider.url, clock });
  });
  afterEach(async () => {
    await daemon.stop();
    await provider.stop();
  });

  async function statusOfCall(secret: string): Promise<number> {
    const response = await daemon.call(secret);
    await response.arrayBuffer();
    return response.status;
  }

  const statements = () => daemon.daemon.stores.database.statements;

  /** Advances the clock by one tick and waits until it is committed. */
  async function tick(): Promise<void> {
    const before = statements();
    clock.advance(TICK_MS);
    await eventually('the tick is written', () => statements() > before);
    await daemon.daemon.stores.database.transact(() => Promise.resolve());
  }

  describe('is admitted without a database query:', () => {
    it('an unlimited one causes no statement until the next tick', async () => {
      const token = await daemon.createToken((await daemon.createProject()).id);
      expect(await statusOfCall(token.token)).to.equal(200);
      const before = await databaseAtRest(daemon.daemon);
      for (let n = 0; n < 50; n++) expect(await statusOfCall(token.token)).to.equal(200);
      expect(statements() - before).to.equal(0);
    });

    it('a tick takes the same number of statements however many requests it settles', async () => {
      const token = await daemon.createToken((await daemon.createProject()).id);
      const costs: number[] = [];
      for (const requests of [1, 40]) {
        for (let n = 0; n < requests; n++) await statusOfCall(token.token);
        const before = await databaseAtRest(daemon.daemon);
        await tick();
        costs.push(statements() - before);
      }
      expect(costs[0]).to.equal(costs[1]);
      expect(await daemon.token(token.id)).to.include({ request_count: 41 });
    });

    it('a capped one draws from its lease', async () => {
      const token = await daemon.createToken((await daemon.createProject()).id, { max_requests: 100_000 });
      await statusOfCall(token.token); // Leases 256 units.
      const before = await databaseAtRest(daemon.daemon);
      for (let n = 0; n < 100; n++) expect(await statusOfCall(token.token)).to.equal(200);
      expect(statements() - before).to.equal(0);
    });

    it('an exhausted one is refused from memory for a second', async () => {
      const token = await daemon.createToken((await daemon.createProject()).id, { max_requests: 1 });
      expect(await statusOfCall(token.token)).to.equal(200);
      expect(await statusOfCall(token.token)).to.equal(429);
      const before = await databaseAtRest(daemon.daemon);
      for (let n = 0; n < 20; n++) expect(await statusOfCall(token.token)).to.equal(429);
      expect(statements() - before).to.equal(0);
    });

    it('concurrent first requests share one read', async () => {
      const token = await daemon.createToken((await daemon.createProject()).id);
      const dir = daemon.dir;
      await daemon.stop();
      daemon = await startDaemon({ upstream: provider.url, clock, dir });
      const before = await databaseAtRest(daemon.daemon);
      await Promise.all(Array.from({ length: 50 }, () => statusOfCall(token.token)));
      expect(statements() - before).to.equal(1);
    });
  });

  it('is read again after 30 s', async () => {
    const token = await daemon.createToken((await daemon.createProject()).id);
    expect(await statusOfCall(token.token)).to.equal(200);
    await tick();
    clock.advance(30_000);
    const before = await databaseAtRest(daemon.daemon);
    expect(await statusOfCall(token.token)).to.equal(200);
    expect(statements() - before).to.equal(1);
  });

  describe('in flight, whose changes were missed', () => {
    /** The status of a request that the provider answers after the change was made by another program, and everything is read again. */
    async function statusAfter(change: 'deactivate' | 'revoke' | null, secondsLater: number): Promise<number> {
      const project = await daemon.createProject();
      const token = await daemon.createToken(project.id, { duration_hours: 24 });
      clock.advance(24 * 3_600_000 - 1000);
      let respond: (() => void) | undefined;
      provider.answer = (_req, res) => {
        respond = () => res.end('{}');
      };
      const response = daemon.call(token.token);
      await eventually('the provider receives the request', () => respond !== undefined);
      clock.advance(secondsLater * 1000);
      const [table, id] = change === 'deactivate' ? ['projects', project.id] : ['tokens', token.id];
      if (change) {
        await daemon.daemon.stores.database.transact((tx) =>
          tx.execute(`UPDATE ${table} SET is_active = 0 WHERE id = $id`, { id }),
        );
      }
      await daemon.daemon.admission.resynchronize();
      respond?.();
      return (await response).status;
    }

    for (const [what, change, secondsLater, expected] of [
      ['ends if its project is inactive', 'deactivate', 0, 403],
      ['ends if it is revoked', 'revoke', 0, 401],
      ['ends if its project is inactive and it has expired meanwhile', 'deactivate', 2, 403],
      ['goes on if it has only expired', null, 2, 200],
    ] as const) {
      it(what, async () => {
        expect(await statusAfter(change, secondsLater)).to.equal(expected);
      });
    }
  });

  describe('while the database is unavailable', () => {
    it('is served for TOKEN_STALE_LIMIT, then gets 503, never 401', async () => {
      const token = await daemon.createToken((await daemon.createProject()).id);
      expect(await statusOfCall(token.token)).to.equal(200);
      await tick();
      const outage = makeDatabaseUnreachable(daemon);
      clock.advance(59_000);
      expect(await statusOfCall(token.token)).to.equal(200);
      clock.advance(2_000);
      const late = await daemon.call(token.token);
      expect(late.status).to.equal(503);
      expect(late.headers.get('retry-after')).to.equal('1');
      outage.end();
      expect(await statusOfCall(token.token)).to.equal(200);
    });

    it('works from its creation on, even if it was never used', async () => {
      const token = await daemon.createToken((await daemon.createProject()).id);
      const outage = makeDatabaseUnreachable(daemon);
      expect(await statusOfCall(token.token)).to.equal(200);
      outage.end();
    });

    it('one that is not cached gets 503 with Retry-After', async () => {
      const outage = makeDatabaseUnreachable(daemon);
      const response = await daemon.call(mintSecret());
      expect(response.status).to.equal(503);
      expect(response.headers.get('retry-after')).to.equal('1');
      outage.end();
    });

    it('a capped one is served from its lease, and gets 503, not 429, when the lease is used up', async () => {
      const token = await daemon.createToken((await daemon.createProject()).id, { max_requests: 100 });
      expect(await statusOfCall(token.token)).to.equal(200); // A lease of 6, one of them drawn.
      const outage = makeDatabaseUnreachable(daemon);
      for (let n = 0; n < 5; n++) expect(await statusOfCall(token.token)).to.equal(200);
      const sixth = statusOfCall(token.token);
      const giveUp = setInterval(() => {
        clock.advance(TICK_MS);
      }, 5);
      expect(await sixth).to.equal(503);
      clearInterval(giveUp);
      outage.end();
    });

    it('its uses are counted in memory, and settled when the database is available again', async () => {
      const token = await daemon.createToken((await daemon.createProject()).id);
      const outage = makeDatabaseUnreachable(daemon);
      for (let n = 0; n < 7; n++) await statusOfCall(token.token);
      clock.advance(TICK_MS);
      await eventually('the failure is noticed', () => daemon.logged.some((line) => line.includes('keeping them')));
      for (let n = 0; n < 3; n++) await statusOfCall(token.token);
      outage.end();
      clock.advance(2_000);
      await eventually('the counts are written', () =>
        daemon.logged.some((line) => line.includes('written to the database again')),
      );
      await daemon.stop();
      daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir });
      expect(await daemon.token(token.id)).to.include({ request_count: 10 });
    });
  });
});
