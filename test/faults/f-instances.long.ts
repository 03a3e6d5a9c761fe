import { expect } from 'chai';
import type { WireProject } from '../../daemon/api/contract.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { Fleet } from '../support/fleet.js';
import { DaemonGroup } from '../support/daemon-group.js';
import { expectExactCap, runWithKills } from './support/concurrent-requests.js';
import { runSequentialRequests } from './support/sequential-requests.js';

const RUNS = 25;
const RUNS_WITH_KILLS = 100;
// A thousand on both databases together.
const SEEDS = 500;
const SEED = Number(process.env.KILL_SEED ?? 1_000);

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`F: four processes on ${name}, repeated${WITHOUT[kind]}`, function () {
    this.timeout(3_600_000);
    let server: DatabaseServer;
    let fleet: Fleet;
    let project: WireProject;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
      fleet = await Fleet.start(server);
      project = await fleet.createProject();
    });
    after(async () => {
      if (WITHOUT[kind]) return;
      await fleet.stop();
    });

    it(`F02 500 requests at once with a cap of 100: exactly 100 are admitted, ${RUNS} times`, async () => {
      for (let run = 0; run < RUNS; run++) await expectExactCap(fleet, project);
    });

    it(`F02 the cap is never exceeded, and no use is uncounted, in ${RUNS_WITH_KILLS} runs with kills (seed ${SEED})`, async () => {
      const sums = { kills: 0, reached: 0, lost: 0 };
      for (let seed = SEED; seed < SEED + RUNS_WITH_KILLS; seed++) {
        const { kills, reached, lost } = await runWithKills(fleet, project, seed);
        sums.kills += kills;
        sums.reached += reached;
        sums.lost += lost;
      }
      console.log(`      ${JSON.stringify(sums)}`);
      expect(sums.kills).to.be.at.least(RUNS_WITH_KILLS);
    });

    it(`sequential requests at random instances are admitted up to exactly the cap (${SEEDS} seeds)`, async () => {
      const several = await DaemonGroup.start(server, { count: 4 });
      await runSequentialRequests(several, SEED, SEEDS);
      await several.stop();
    });
  });
}
