import { expect } from 'chai';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { Fleet } from '../support/fleet.js';
import { SABOTAGES } from '../support/sabotaged.js';
import { historiesToNotice, runHistories } from './support/process-history.js';

const SEED = 1;
/** The defect that a few histories detect. The others are in f-model.long.ts. */
const QUICKLY_NOTICED = 'a take that does not check the cap' satisfies keyof typeof SABOTAGES;

describe('F: random histories of processes', () => {
  for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
    describe(`three at the same time, on ${name}${WITHOUT[kind]}`, function () {
      this.timeout(180_000);
      let server: DatabaseServer;

      before(async function () {
        if (WITHOUT[kind]) this.skip();
        server = await DatabaseServer.shared(kind);
      });

      it('caps, revocations, changes and counts are correct, whichever process is killed or paused', async () => {
        const fleet = await Fleet.start(server, { count: 3 });
        const { reached, kills } = await runHistories(fleet, SEED, 2);
        await fleet.stop();
        expect(reached).to.be.above(30);
        expect(kills).to.be.above(0);
      });

      if (kind === 'mysql') return;
      it(`a store that is broken on purpose is detected: ${QUICKLY_NOTICED}`, async () => {
        expect(await historiesToNotice(server, QUICKLY_NOTICED, 6)).to.be.a('number');
      });
    });
  }

  it('processes one after another on SQLite: caps, revocations, changes and counts are correct', async function () {
    this.timeout(120_000);
    const fleet = await Fleet.start(null, { count: 1 });
    const { reached, kills } = await runHistories(fleet, SEED, 3);
    await fleet.stop();
    expect(reached).to.be.above(20);
    expect(kills).to.be.above(0);
  });
});
