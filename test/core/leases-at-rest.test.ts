/** What stays leased where one daemon has the database for itself, and what becomes of it. */
import { expect } from 'chai';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import { Fleet } from '../support/fleet.js';

const CAP = 1_000;
// A sixteenth of what the cap has left.
const MOST_LEASED = CAP / 16;

describe('units of a cap that nobody draws any more, on SQLite', function () {
  this.timeout(60_000);
  let fleet: Fleet;
  let token: WireTokenCreated;

  beforeEach(async () => {
    fleet = await Fleet.start(null, { count: 1 });
    token = await fleet.createToken((await fleet.createProject()).id, CAP);
    for (let n = 0; n < 5; n++) expect(await fleet.at(0).call(token)).to.equal(200);
  });
  afterEach(() => fleet.stop());

  it('are not leased any more when the daemon has stopped, and none counts as used (finding G4)', async () => {
    await fleet.at(0).stop();
    expect(await fleet.counted(token.id)).to.deep.equal({ requestCount: 5, reserved: 5, leased: 0 });
    await fleet.at(0).begin();
    expect(await fleet.counted(token.id)).to.deep.equal({ requestCount: 5, reserved: 5, leased: 0 });
  });

  it('count as used after a crash, and are no more than a sixteenth of what was left (finding G4)', async () => {
    await fleet.at(0).kill();
    await fleet.at(0).begin();
    const { requestCount, reserved, leased } = await fleet.counted(token.id);
    expect(leased).to.equal(0);
    expect(reserved).to.equal(requestCount);
    expect(requestCount).to.be.within(5, 5 + MOST_LEASED);
  });
});
