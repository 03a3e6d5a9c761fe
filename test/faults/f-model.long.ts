import { expect } from 'chai';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { Fleet } from '../support/fleet.js';
import { SABOTAGES } from '../support/sabotaged.js';
import { historiesToNotice, runHistories } from './support/process-history.js';

const HISTORIES = 100;
const MOST_TO_NOTICE = 40;
const SEED = Number(process.env.KILL_SEED ?? 1_000);

describe('F: many random histories of processes', () => {
  for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
    describe(`three at the same time, on ${name}${WITHOUT[kind]}`, function () {
      this.timeout(3_600_000);
      let server: DatabaseServer;

      before(async function () {
        if (WITHOUT[kind]) this.skip();
        server = await DatabaseServer.shared(kind);
      });

      it(`caps, revocations, changes and counts are correct, whichever process is killed or paused (seed ${SEED})`, async () => {
        const fleet = await Fleet.start(server, { count: 3 });
        const report = await runHistories(fleet, SEED, HISTORIES);
        await fleet.stop();
        console.log(`      ${JSON.stringify(report)}`);
      });

      for (const which of Object.keys(SABOTAGES) as (keyof typeof SABOTAGES)[]) {
        it(`a store that is broken on purpose is detected: ${which}`, async () => {
          const histories = await historiesToNotice(server, which, MOST_TO_NOTICE);
          expect(histories).to.be.a('number');
          console.log(`      detected in history ${histories}`);
        });
      }
    });
  }

  it(`processes one after another on SQLite: caps, revocations, changes and counts are correct (seed ${SEED})`, async function () {
    this.timeout(3_600_000);
    const fleet = await Fleet.start(null, { count: 1 });
    const report = await runHistories(fleet, SEED, HISTORIES);
    await fleet.stop();
    console.log(`      ${JSON.stringify(report)}`);
  });
});
