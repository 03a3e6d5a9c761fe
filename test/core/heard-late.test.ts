/** Changes that an instance hears of late: those of others, and those of its own of which the database's answer was lost. */
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { realClock } from '../../daemon/process/clock.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import type { TestDaemon } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { json } from '../support/provider.js';
import { Several } from '../support/several.js';

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`what is heard of late, on ${name}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let several: Several;
    let one: TestDaemon;
    let other: TestDaemon;
    let project: WireProject;
    let token: WireTokenCreated;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
      several = await Several.start(server);
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

    /** From now on the first daemon does not hear of what was changed, until the returned function is called. */
    const keepInTheDark = async () => {
      const { neighbours, stores } = one.daemon;
      await neighbours?.ask();
      const neighbourhood = stores.neighbourhood!;
      const shipped = neighbourhood.standing.bind(neighbourhood);
      let enlighten: () => void = () => undefined;
      const dark = new Promise<void>((resolve) => {
        enlighten = resolve;
      });
      neighbourhood.standing = async (...asked) => {
        await dark;
        return shipped(...asked);
      };
      return async () => {
        neighbourhood.standing = shipped;
        enlighten();
        await neighbours?.ask();
      };
    };

    /** A request at the first daemon that the provider has, and answers when it is told to. */
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
      await eventually('the provider has it', () => answer !== undefined);
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
            if (!seen?.active) throw new StoreUnavailable('the answer to COMMIT was lost');
            return result;
          };
          expect(await setActive(one, false)).to.equal(503);
          database.transact = shipped;
        },
      ],
    ];
    for (const [what, deactivate] of deactivations) {
      it(`a deactivation that ${what} ends nothing that was let in by the reactivation behind it (finding G3)`, async () => {
        const before = await beginRequest();
        const enlighten = await keepInTheDark();
        await deactivate();
        expect(await setActive(one, true)).to.equal(200);
        const behind = await beginRequest();
        await enlighten();
        expect(await behind(), 'sent when the reactivation was answered').to.equal(200);
        expect(await before(), 'in flight when it was deactivated').to.equal(403);
      });
    }

    it('after a deadlock no transaction but that one is taken back (finding G3)', async () => {
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
          // Once: whoever is taken back begins again, alone.
          if (!isMet) await eventually('each has one', () => holding === 2);
          isMet = true;
          await tx.execute(add(second));
        }),
      );
      await eventually('each has one', () => isMet);
      // They wait for a connection, and get that of the one that is taken back.
      const failing = Array.from({ length: 4 }, (_, index) =>
        database.transact(async (tx) => {
          await tx.execute(`INSERT INTO rows_of_it VALUES (${10 + index}, 0)`);
          await tx.select('SELECT 1');
          throw new Error('taken back');
        }),
      );
      const failures = await Promise.allSettled(failing);
      for (const failure of failures) expect(String((failure as { reason?: unknown }).reason)).to.include('taken back');
      await Promise.all(locking);
      expect(await database.select('SELECT id, n FROM rows_of_it ORDER BY id')).to.deep.equal([
        { id: 1, n: 2 },
        { id: 2, n: 2 },
      ]);
      await database.close();
    });
  });
}
