/** Several processes on one database server, which are killed, paused and disconnected. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { WireProject } from '../../daemon/api/contract.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Fleet } from '../support/fleet.js';
import { Relay, TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { expectExactCap, tally, runWithKills } from './support/concurrent-requests.js';

// With this seed two of them are killed. The long runs have many more.
const KILL_SEED = 2;
const STALE_MS = 2_500;
// They ask twice a second; the rest is for a busy machine.
const ASKED_WITHIN_MS = 1_000;
const NOTIFIED_WITHIN_MS = 500;

export function testProcesses(kind: ServerKind, name: string): void {
  describe(`F: several processes on ${name}${WITHOUT[kind]}`, function () {
    this.timeout(120_000);
    let server: DatabaseServer;
    let fleet: Fleet;
    let project: WireProject;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
    });

    describe('four processes, connected only by the database', () => {
      before(async () => {
        fleet = await Fleet.start(server);
        project = await fleet.createProject();
      });
      after(() => fleet.stop());

      it('F02 500 requests at once with a cap of 100: exactly 100 are admitted', async () => {
        await expectExactCap(fleet, project);
      });

      it('F02 with kills meanwhile, the cap is never exceeded and no use is uncounted', async () => {
        expect((await runWithKills(fleet, project, KILL_SEED)).kills).to.equal(2);
      });

      for (const [when, delayMs] of [
        ['before it has written its counts', 0],
        ['while it writes its counts', 252],
        ['after it has written its counts', 600],
      ] as const) {
        it(`a process that is paused ${when}, expires and continues exceeds no cap and loses no count`, async () => {
          fleet.thinkMs = () => 0;
          const [frozen, other] = [fleet.at(0), fleet.at(1)];
          const capped = await fleet.createToken(project.id, 200);
          const unlimited = await fleet.createToken(project.id, 0);
          for (let n = 0; n < 20; n++) expect(await frozen.call(unlimited)).to.equal(200);
          expect(await frozen.call(capped)).to.equal(200);
          await sleep(delayMs);
          frozen.freeze();
          await fleet.expireSilent(other);
          const { requestCount: lost, leased } = await fleet.counted(capped.id);
          expect(leased).to.equal(0);
          expect(lost).to.be.within(2, 13);

          // What it finds when it continues: more requests than it holds units for.
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
          await sleep(600); // A count that would be written twice would show here.
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
        fleet = await Fleet.start(server, {
          env: { REDIS_ADDR: redis.address, TOKEN_STALE_LIMIT: `${STALE_MS}ms` },
          envOf: (index, env) =>
            index === 1 ? { REDIS_ADDR: `127.0.0.1:${toRedis.port}`, DATABASE_URL: over(env) } : {},
        });
        project = await fleet.createProject();
      });
      after(async () => {
        if (WITHOUT_REDIS) return;
        await fleet.stop();
        await Promise.all([toRedis.stop(), toDatabase.stop(), redis.stop()]);
      });

      const over = ({ DATABASE_URL: url = '' }) => {
        const through = new URL(url);
        through.port = String(toDatabase.port);
        return through.href;
      };

      describe('one of them loses its connections', () => {
        afterEach(() => {
          reconnect(toRedis);
          reconnect(toDatabase);
        });

        const reconnect = (relay: Relay) => {
          relay.isSilent = false;
          relay.reset(); // Parts of what its connections carried are missing.
        };

        /**
         * Revokes a token at one instance while the other is asked for it continuously. @returns when the other served it last, in ms after
         * `sinceMs`.
         */
        const servedLast = async (cut: () => void, refusal: number) => {
          const token = await fleet.createToken(project.id, 0);
          const [one, other] = [fleet.at(0), fleet.at(1)];
          await eventually('both listen to each other', async () => {
            const clients = ((await redis.client.client('LIST')) as string).split('\n');
            return (
              clients.filter((line) => /\bname=llmp-notifications .*\bsub=1\b/.test(line)).length ===
              fleet.members.length
            );
          });
          await eventually('it is ready', async () => {
            const answer = await fetch(`${other.url}/ready`);
            return ((await answer.json()) as { degraded?: unknown[] }).degraded?.length === 0;
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
              // A request in flight at that moment gets the response that its token is revoked.
              expect(status).to.be.oneOf([401, refusal]);
              break;
            }
            lastMs = askedAtMs;
            await sleep(5);
          }
          const isRefused = async () => (await other.call(token)) === refusal;
          const later = Array.from({ length: 10 }, (_, n) => sleep(20 * n).then(isRefused));
          expect(await Promise.all(later), 'it stays refused').not.to.include(false);
          return { token, afterRevocationMs: lastMs - revokedAtMs, afterCutMs: lastMs - cutAtMs };
        };

        it('F16 without Redis, an instance learns of a revocation by polling the database', async () => {
          const { afterRevocationMs } = await servedLast(() => (toRedis.isSilent = true), 401);
          expect(afterRevocationMs).to.be.below(ASKED_WITHIN_MS);
        });

        it('F16 without the database, an instance learns of a revocation through Redis, and is not ready', async () => {
          const { token, afterRevocationMs } = await servedLast(() => (toDatabase.isSilent = true), 503);
          expect(afterRevocationMs).to.be.below(NOTIFIED_WITHIN_MS);
          reconnect(toDatabase);
          await eventually('it knows the reason', async () => (await fleet.at(1).call(token)) === 401, 5_000);
        });

        it('F16 without both, an instance serves known tokens for TOKEN_STALE_LIMIT and no longer', async () => {
          const { token, afterCutMs } = await servedLast(() => (toDatabase.isSilent = toRedis.isSilent = true), 503);
          expect(afterCutMs).to.be.within(STALE_MS - ASKED_WITHIN_MS, STALE_MS);
          reconnect(toDatabase);
          reconnect(toRedis);
          await eventually('it knows the reason', async () => (await fleet.at(1).call(token)) === 401, 5_000);
        });
      });

      // The last test, because it kills Redis.
      describe('Redis is killed', () => {
        it('F03 500 requests at once with a cap of 100, and Redis is killed meanwhile: exactly 100 are admitted', async () => {
          const before = fleet.provider.received.length;
          fleet.thinkMs = () => 20;
          await expectExactCap(fleet, project, async () => {
            await eventually('some are admitted', () => fleet.provider.received.length > before + 10);
            await redis.kill();
          });
          expect(fleet.provider.received.length - before).to.equal(100);
        });
      });
    });
  });
}
