import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { WireProject } from '../../daemon/api/contract.js';
import { realClock } from '../../daemon/process/clock.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import type { Connection } from '../../daemon/store/sql/database.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { Fleet } from '../support/fleet.js';
import { Relay, TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { Several } from '../support/several.js';
import { exactlyTheCap, tally, withKills } from './support/at-once.js';
import { oneAfterAnother } from './support/one-after-another.js';

const SEEDS = 16;
const STALE_MS = 5_000;
// Twice a second they ask; the rest is for a machine that is busy.
const ASKED_WITHIN_MS = 1_000;
const POKED_WITHIN_MS = 500;

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`F: several processes on ${name}${WITHOUT[kind]}`, function () {
    this.timeout(120_000);
    let server: DatabaseServer;
    let fleet: Fleet;
    let project: WireProject;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
    });

    describe('of which there are four, connected by the database alone', () => {
      before(async () => {
        fleet = await Fleet.start(server);
        project = await fleet.createProject();
      });
      after(() => fleet.stop());

      it('F02 admit exactly 100 of 500 requests at once for a token with a cap of 100', async () => {
        for (let run = 0; run < 2; run++) await exactlyTheCap(fleet, project);
      });

      it('F02 never admit more than the cap, nor count less than was used, when they are killed meanwhile', async () => {
        let kills = 0;
        for (let seed = 1; seed <= 3; seed++) kills += (await withKills(fleet, project, seed)).kills;
        expect(kills).to.be.at.least(3);
      });

      for (const [when, delayMs] of [
        ['before it has written what it counted', 0],
        ['while it writes what it counted', 252],
        ['when it has written what it counted', 600],
      ] as const) {
        it(`one that stands still ${when}, is taken for dead and comes back, exceeds no cap and loses no count`, async () => {
          fleet.thinkMs = () => 0;
          const [frozen, other] = [fleet.at(0), fleet.at(1)];
          const capped = await fleet.createToken(project.id, 200);
          const unlimited = await fleet.createToken(project.id, 0);
          for (let n = 0; n < 20; n++) expect(await frozen.call(unlimited)).to.equal(200);
          expect(await frozen.call(capped)).to.equal(200);
          await sleep(delayMs);
          frozen.freeze();
          await fleet.bury(other);
          const { requestCount: lost, leased } = await fleet.counted(capped.id);
          expect(leased).to.equal(0);
          expect(lost).to.be.within(2, 13);

          // What it finds when it comes back: more than it holds.
          const waiting = Array.from({ length: 20 }, () => frozen.call(capped));
          const used = await Promise.all(Array.from({ length: 220 }, (_, n) => fleet.at(1 + (n % 3)).call(capped)));
          expect(tally(used)).to.deep.equal({ 200: 200 - lost, 429: 20 + lost });
          frozen.resume();
          const beganAtMs = performance.now();
          await eventually('it serves', async () => (await frozen.call(unlimited)) === 200);
          expect(performance.now() - beganAtMs).to.be.below(2_000);
          const late = tally(await Promise.all(waiting));
          expect(Object.keys(late)).to.include('429');
          expect(late[200] ?? 0).to.be.below(lost);
          expect(fleet.reached(capped.id)).to.be.at.most(200);
          const reached = () => fleet.reached(unlimited.id);
          await eventually('it is counted', async () => (await fleet.counted(unlimited.id)).requestCount >= reached());
          await sleep(600); // Whatever it would write twice.
          expect((await fleet.counted(unlimited.id)).requestCount).to.equal(reached());
          expect(await fleet.counted(capped.id)).to.deep.equal({ requestCount: 200, reserved: 200, leased: 0 });
        });
      }
    });

    describe(`connected by Redis as well${WITHOUT_REDIS}`, () => {
      let redis: TestRedis;
      let toRedis: Relay;
      let toDatabase: Relay;

      before(async function () {
        if (WITHOUT_REDIS) this.skip();
        redis = await TestRedis.start();
        toRedis = await Relay.to(redis.port);
        toDatabase = await Relay.to(server.port);
      });
      after(async () => {
        await Promise.all([toRedis.stop(), toDatabase.stop(), redis.stop()]);
      });
      afterEach(() => fleet.stop());

      it('F03 admit exactly 100 of 500 requests at once when Redis is killed among them', async () => {
        fleet = await Fleet.start(server, { env: { REDIS_ADDR: redis.address } });
        project = await fleet.createProject();
        fleet.thinkMs = () => 20;
        await exactlyTheCap(fleet, project, async () => {
          await eventually('some are admitted', () => fleet.provider.received.length > 10);
          await redis.kill();
        });
        expect(fleet.provider.received.length).to.equal(100);
        await redis.begin();
      });

      describe('of which one can be cut off', () => {
        beforeEach(async () => {
          fleet = await Fleet.start(server, {
            count: 2,
            env: { REDIS_ADDR: redis.address, TOKEN_STALE_LIMIT: `${STALE_MS}ms` },
            envOf: (index, env) =>
              index === 0 ? {} : { REDIS_ADDR: `127.0.0.1:${toRedis.port}`, DATABASE_URL: over(env) },
          });
          project = await fleet.createProject();
        });
        afterEach(() => {
          reconnect(toRedis);
          reconnect(toDatabase);
        });

        const over = ({ DATABASE_URL: url = '' }) => {
          const through = new URL(url);
          through.port = String(toDatabase.port);
          return through.href;
        };
        const reconnect = (relay: Relay) => {
          relay.isSilent = false;
          relay.reset(); // Pieces are missing of what its connections carried.
        };

        /** Revokes with one what the other is asked for all the while. @returns when the other served it last, in ms after `sinceMs`. */
        const servedLast = async (cut: () => void, refusal: number) => {
          const token = await fleet.createToken(project.id, 0);
          const [one, other] = [fleet.at(0), fleet.at(1)];
          await eventually('both listen to each other', async () => {
            const clients = ((await redis.client.client('LIST')) as string).split('\n');
            return clients.filter((line) => /\bname=llmp-pokes .*\bsub=1\b/.test(line)).length === 2;
          });
          expect(await other.call(token)).to.equal(200);
          cut();
          const cutAtMs = performance.now();
          expect((await one.manage('DELETE', `/manage/tokens/${token.id}`)).status).to.equal(200);
          const revokedAtMs = performance.now();
          let lastMs = cutAtMs;
          for (;;) {
            const askedAtMs = performance.now();
            const status = await other.call(token);
            if (status !== 200) {
              // What was in flight just then is told that its token is revoked.
              expect(status).to.be.oneOf([401, refusal]);
              break;
            }
            lastMs = askedAtMs;
            await sleep(5);
          }
          const isRefused = async () => (await other.call(token)) === refusal;
          for (let n = 0; n < 10; n++) expect(await isRefused(), 'it stays refused').to.equal(true);
          return { token, afterRevocationMs: lastMs - revokedAtMs, afterCutMs: lastMs - cutAtMs };
        };

        it('F16 one that is cut off from Redis hears of a revocation by asking', async () => {
          const { afterRevocationMs } = await servedLast(() => (toRedis.isSilent = true), 401);
          expect(afterRevocationMs).to.be.below(ASKED_WITHIN_MS);
        });

        it('F16 one that is cut off from the database hears of a revocation by Redis, and says that it cannot serve', async () => {
          const { token, afterRevocationMs } = await servedLast(() => (toDatabase.isSilent = true), 503);
          expect(afterRevocationMs).to.be.below(POKED_WITHIN_MS);
          reconnect(toDatabase);
          await eventually('it knows why', async () => (await fleet.at(1).call(token)) === 401, 5_000);
        });

        it('F16 one that is cut off from both serves what it knew for TOKEN_STALE_LIMIT, and no longer', async () => {
          const { token, afterCutMs } = await servedLast(() => (toDatabase.isSilent = toRedis.isSilent = true), 503);
          expect(afterCutMs).to.be.within(STALE_MS - ASKED_WITHIN_MS, STALE_MS);
          reconnect(toDatabase);
          reconnect(toRedis);
          await eventually('it knows why', async () => (await fleet.at(1).call(token)) === 401, 5_000);
        });
      });
    });

    it(`admit each of as many requests as a cap allows, one after another, wherever it comes (${SEEDS} seeds)`, async () => {
      const several = await Several.start(server, { count: 4 });
      await oneAfterAnother(several, 1, SEEDS);
      await several.stop();
    });

    it('hold nobody up for long when one of them stands still in the middle of a transaction', async () => {
      const url = await server.newDatabase();
      const [one, other] = [1, 2].map(
        () => new ServerDatabase({ dialect: kind, url, poolSize: 2, clock: realClock }),
      ) as [ServerDatabase, ServerDatabase];
      const change = (tx: Connection) => tx.execute('UPDATE held SET n = n + 1');
      await one.sequelize.query('CREATE TABLE held (n INTEGER NOT NULL)');
      await one.transact((tx) => tx.execute('INSERT INTO held (n) VALUES (0)'));
      let hasChanged: () => void = () => undefined;
      const changed = new Promise<void>((resolve) => (hasChanged = resolve));
      const standing = one
        .transact(async (tx) => {
          await change(tx);
          hasChanged();
          await sleep(5_000);
          await change(tx);
        })
        .catch((error: unknown) => error);
      await changed;
      expect(await other.transact(change)).to.equal(1);
      expect(await standing).to.be.instanceOf(StoreUnavailable);
      expect(await other.select('SELECT n FROM held')).to.deep.equal([{ n: 1 }]);
      await Promise.all([one.close(), other.close()]);
    });

    describe('whose clocks differ by half a minute, and one by an hour', () => {
      const SKEWS_MS = [0, 30_000, -30_000, 3_600_000];
      const MINUTE_MS = 60_000;
      let several: Several;

      before(async () => {
        several = await Several.start(server, {
          count: SKEWS_MS.length,
          clockOf(index) {
            const clock = new TestClock();
            clock.setWall(SKEWS_MS[index] ?? 0);
            return clock;
          },
        });
        project = await several.at(0).createProject();
      });
      after(() => several.stop());

      const statusesOf = (secret: string) =>
        Promise.all(several.daemons.map(async (daemon) => (await daemon.call(secret)).status));
      const moveAll = (byMs: number) => {
        for (const { clock } of several.daemons) clock.setWall(byMs);
      };

      it('J16 let no token live longer than its lifetime and the skew', async () => {
        const token = await several.at(0).createToken(project.id, { duration_minutes: 2 });
        // One that is ahead ends it early, by as much.
        expect(await statusesOf(token.token)).to.deep.equal([200, 200, 200, 401]);
        moveAll(2 * MINUTE_MS - 25_000);
        expect(await statusesOf(token.token)).to.deep.equal([200, 401, 200, 401]);
        moveAll(25_000);
        expect(await statusesOf(token.token)).to.deep.equal([401, 401, 200, 401]);
        moveAll(30_000);
        expect(await statusesOf(token.token)).to.deep.equal([401, 401, 401, 401]);
      });

      it('J16 tell each other of changes, and measure no time below nothing until they were told', async () => {
        const token = await several.at(2).createToken(project.id);
        for (const isActive of [false, true, false]) {
          const changed = await several.at(2).manage('PATCH', `/manage/tokens/${token.id}`, { is_active: isActive });
          expect(changed.status).to.equal(200);
          const status = isActive ? 200 : 401;
          await eventually('all know', async () => (await statusesOf(token.token)).every((it) => it === status), 2_000);
        }
        for (const { daemon } of several.daemons) expect(daemon.admission.propagation.sum).to.be.at.least(0);
      });

      it('J16 take nobody for dead who lives, and keep caps', async () => {
        const capped = await several.at(0).createToken(project.id, { max_requests: 50 });
        for (let round = 0; round < 4; round++) {
          for (const { clock, daemon } of several.daemons) {
            clock.advance(11_000); // Longer than from one heartbeat to the next.
            await daemon.neighbours?.ask();
          }
        }
        const asked = Array.from({ length: 120 }, (_, n) => several.at(n % SKEWS_MS.length).call(capped.token));
        const statuses = (await Promise.all(asked)).map(({ status }) => status);
        expect(tally(statuses)).to.deep.equal({ 200: 50, 429: 70 });
        const { database } = several.at(0).daemon.stores;
        const instances = await database.select<Record<'buried_at', unknown>>('SELECT buried_at FROM instances');
        expect(instances.map(({ buried_at: at }) => Number(at))).to.deep.equal(SKEWS_MS.map(() => 0));
        for (const { logged } of several.daemons) expect(logged.join('')).not.to.include('taken for dead');
      });
    });
  });
}
