/** Units that stay leased by a single daemon, and what happens to them when it stops or crashes. */
import { expect } from 'chai';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import { Fleet } from '../support/fleet.js';

const CAP = 1_000;
// 1/16 of the units left.
const MOST_LEASED = CAP / 16;

describe('leased units that are not drawn, on SQLite', function () {
  this.timeout(60_000);
  let fleet: Fleet;
  let token: WireTokenCreated;

  beforeEach(async () => {
    fleet = await Fleet.start(null, { count: 1 });
    token = await fleet.createToken((await fleet.createProject()).id, CAP);
    for (let n = 0; n < 5; n++) expect(await fleet.at(0).call(token)).to.equal(200);
  });
  afterEach(() => fleet.stop());

  it('are given back when the daemon stops, so none counts as used', async () => {
    await fleet.at(0).stop();
    expect(await fleet.counted(token.id)).to.deep.equal({ requestCount: 5, reserved: 5, leased: 0 });
    await fleet.at(0).begin();
    expect(await fleet.counted(token.id)).to.deep.equal({ requestCount: 5, reserved: 5, leased: 0 });
  });

  it('count as used after a crash, and are at most 1/16 of the units left', async () => {
    await fleet.at(0).kill();
    await fleet.at(0).begin();
    const { requestCount, reserved, leased } = await fleet.counted(token.id);
    expect(leased).to.equal(0);
    expect(reserved).to.equal(requestCount);
    expect(requestCount).to.be.within(5, 5 + MOST_LEASED);
  });
});
