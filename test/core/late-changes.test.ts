/** Changes that reach an instance late: those made by others, and its own if the database's reply was lost. */
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { realClock } from '../../daemon/process/clock.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import type { TestDaemon } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { json } from '../support/provider.js';
import { DaemonGroup } from '../support/daemon-group.js';

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`changes that arrive late, on ${name}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let several: DaemonGroup;
    let one: TestDaemon;
    let other: TestDaemon;
    let project: WireProject;
    let token: WireTokenCreated;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
      several = await DaemonGroup.start(server);
      [one, other] = [several.at(0), several.at(1)];
    });
    beforeEach(async () => {
      project = await one.createProject();
      token = await one.createToken(project.id);
      expect((await one.call(token.token)).status).to.equal(200);
    });
    after(async () => {
      if (WITHOUT[kind]) return;
      await several.stop();
    });

    const setActive = async (daemon: TestDaemon, isActive: boolean) =>
      (await daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: isActive })).status;

    /** Hides changes from the first daemon until the returned function is called. */
    const keepInTheDark = async () => {
      const { clusterSync, stores } = one.daemon;
      await clusterSync?.poll();
      const neighbourhood = stores.clusterStore!;
      const shipped = neighbourhood.poll.bind(neighbourhood);
      let enlighten: () => void = () => undefined;
      const dark = new Promise<void>((resolve) => {
        enlighten = resolve;
      });
      neighbourhood.poll = async (...asked) => {
        await dark;
        return shipped(...asked);
      };
      return async () => {
        neighbourhood.poll = shipped;
        enlighten();
        await clusterSync?.poll();
      };
    };

    /** A request at the first daemon that has reached the provider, which responds when the test says so. */
    const beginRequest = async () => {
      let answer: (() => void) | undefined;
      several.provider.answer = (_req, res) => {
        answer = () => {
          json(res, 200, {});
        };
      };
      const response = one.call(token.token).then(
        ({ status }) => status,
        () => null,
      );
      await eventually('the provider receives the request', () => answer !== undefined);
      several.provider.answer = undefined;
      return async () => {
        answer?.();
        return response;
      };
    };

    const deactivations: [string, () => Promise<unknown>][] = [
      ['another instance made', async () => expect(await setActive(other, false)).to.equal(200)],
      [
        'it made itself, but for the answer to COMMIT, which was lost',
        async () => {
          const { database } = one.daemon.stores;
          const shipped = database.transact.bind(database);
          database.transact = async (work) => {
            const result = await shipped(work);
            const [seen] = await database.select<{ active: unknown }>(
              'SELECT is_active AS active FROM projects WHERE id = $id',
              { id: project.id },
            );
            if (!seen?.active) throw new StoreUnavailable('the reply to COMMIT was lost');
            return result;
          };
          expect(await setActive(one, false)).to.equal(503);
          database.transact = shipped;
        },
      ],
    ];
    for (const [what, deactivate] of deactivations) {
      it(`a deactivation that ${what} ends no request that was admitted after the following reactivation`, async () => {
        const before = await beginRequest();
        const enlighten = await keepInTheDark();
        await deactivate();
        expect(await setActive(one, true)).to.equal(200);
        const later = await beginRequest();
        await enlighten();
        expect(await later(), 'sent after the reactivation was acknowledged').to.equal(200);
        expect(await before(), 'in flight when it was deactivated').to.equal(403);
      });
    }

    it('after a deadlock only the one transaction is rolled back', async () => {
      const url = await server.newDatabase();
      const database = new ServerDatabase({ dialect: kind, url, poolSize: 2, clock: realClock });
      await database.transact((tx) => tx.execute('CREATE TABLE rows_of_it (id INT PRIMARY KEY, n INT)'));
      for (const id of [1, 2]) await database.transact((tx) => tx.execute(`INSERT INTO rows_of_it VALUES (${id}, 0)`));
      const add = (id: number) => `UPDATE rows_of_it SET n = n + 1 WHERE id = ${id}`;
      const both = [[1, 2] as const, [2, 1] as const];
      let holding = 0;
      let isMet = false;
      const locking = both.map(([first, second]) =>
        database.transact(async (tx) => {
          await tx.execute(add(first));
          holding += 1;
          // Only once: the transaction that is rolled back is retried alone.
          if (!isMet) await eventually('each has one', () => holding === 2);
          isMet = true;
          await tx.execute(add(second));
        }),
      );
      await eventually('each has one', () => isMet);
      // They wait for a connection, and get that of the transaction that is rolled back.
      const failing = Array.from({ length: 4 }, (_, index) =>
        database.transact(async (tx) => {
          await tx.execute(`INSERT INTO rows_of_it VALUES (${10 + index}, 0)`);
          await tx.select('SELECT 1');
          throw new Error('rolled back');
        }),
      );
      const failures = await Promise.allSettled(failing);
      for (const failure of failures)
        expect(String((failure as { reason?: unknown }).reason)).to.include('rolled back');
      await Promise.all(locking);
      expect(await database.select('SELECT id, n FROM rows_of_it ORDER BY id')).to.deep.equal([
        { id: 1, n: 2 },
        { id: 2, n: 2 },
      ]);
      await database.close();
    });
  });
}
