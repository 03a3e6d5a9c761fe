import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { WireProject } from '../../daemon/api/contract.js';
import { realClock } from '../../daemon/process/clock.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import type { SqlTransaction } from '../../daemon/store/sql/database.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import { DATABASE_TIMEOUTS, type DatabaseTimeouts } from '../../daemon/store/sql/database.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { DaemonGroup } from '../support/daemon-group.js';
import { tally } from './support/concurrent-requests.js';
import { runSequentialRequests } from './support/sequential-requests.js';

// The long runs have many more.
const SEEDS = 2;
/** The server ends a transaction after it was idle for this time. */
const TIMEOUTS = { ...DATABASE_TIMEOUTS, idleTransactionMs: 1_000 } satisfies DatabaseTimeouts;

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`F: several instances on ${name}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
    });

    it(`sequential requests at random instances are admitted up to exactly the cap (${SEEDS} seeds)`, async () => {
      const several = await DaemonGroup.start(server, { count: 4 });
      await runSequentialRequests(several, 1, SEEDS);
      await several.stop();
    });

    it('an instance that is paused within a transaction does not block the others for long', async () => {
      const url = await server.newDatabase();
      const [one, other] = [1, 2].map(
        () => new ServerDatabase({ dialect: kind, url, poolSize: 2, clock: realClock, timeouts: TIMEOUTS }),
      ) as [ServerDatabase, ServerDatabase];
      const change = (tx: SqlTransaction) => tx.execute('UPDATE held SET n = n + 1');
      await (await one.loadSequelize()).query('CREATE TABLE held (n INTEGER NOT NULL)');
      await one.transact((tx) => tx.execute('INSERT INTO held (n) VALUES (0)'));
      let hasChanged: () => void = () => undefined;
      const changed = new Promise<void>((resolve) => (hasChanged = resolve));
      const standing = one
        .transact(async (tx) => {
          await change(tx);
          hasChanged();
          await sleep(TIMEOUTS.idleTransactionMs + 1_000);
          await change(tx);
        })
        .catch((error: unknown) => error);
      await changed;
      expect(await other.transact(change)).to.equal(1);
      expect(await standing).to.be.instanceOf(StoreUnavailable);
      expect(await other.select('SELECT n FROM held')).to.deep.equal([{ n: 1 }]);
      await Promise.all([one.close(), other.close()]);
    });

    describe('with clocks that differ by half a minute, and one by an hour', () => {
      const SKEWS_MS = [0, 30_000, -30_000, 3_600_000];
      const MINUTE_MS = 60_000;
      let several: DaemonGroup;
      let project: WireProject;

      before(async () => {
        several = await DaemonGroup.start(server, {
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

      it('J16 no token lives longer than its lifetime and the clock difference', async () => {
        const token = await several.at(0).createToken(project.id, { duration_minutes: 2 });
        // An instance whose clock is ahead ends it earlier by the difference.
        expect(await statusesOf(token.token)).to.deep.equal([200, 200, 200, 401]);
        moveAll(2 * MINUTE_MS - 25_000);
        expect(await statusesOf(token.token)).to.deep.equal([200, 401, 200, 401]);
        moveAll(25_000);
        expect(await statusesOf(token.token)).to.deep.equal([401, 401, 200, 401]);
        moveAll(30_000);
        expect(await statusesOf(token.token)).to.deep.equal([401, 401, 401, 401]);
      });

      it('J16 instances learn of changes, and no measured time is negative', async () => {
        const token = await several.at(2).createToken(project.id);
        for (const isActive of [false, true, false]) {
          const changed = await several.at(2).manage('PATCH', `/manage/tokens/${token.id}`, { is_active: isActive });
          expect(changed.status).to.equal(200);
          const status = isActive ? 200 : 401;
          await eventually('all know', async () => (await statusesOf(token.token)).every((it) => it === status), 2_000);
        }
        for (const { daemon } of several.daemons) expect(daemon.admission.propagation.sum).to.be.at.least(0);
      });

      it('J16 no live instance is declared expired, and caps hold', async () => {
        const capped = await several.at(0).createToken(project.id, { max_requests: 50 });
        for (let round = 0; round < 4; round++) {
          for (const { clock, daemon } of several.daemons) {
            clock.advance(11_000); // Longer than the time between two heartbeats.
            await daemon.clusterSync?.poll();
          }
        }
        const asked = Array.from({ length: 120 }, (_, n) => several.at(n % SKEWS_MS.length).call(capped.token));
        const statuses = (await Promise.all(asked)).map(({ status }) => status);
        expect(tally(statuses)).to.deep.equal({ 200: 50, 429: 70 });
        const { database } = several.at(0).daemon.stores;
        const instances = await database.select<Record<'expired_at', unknown>>('SELECT expired_at FROM instances');
        expect(instances.map(({ expired_at: at }) => Number(at))).to.deep.equal(SKEWS_MS.map(() => 0));
        for (const { logged } of several.daemons) expect(logged.join('')).not.to.include('declared expired');
      });
    });
  });
}
