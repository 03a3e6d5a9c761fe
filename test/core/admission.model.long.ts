import { expect } from 'chai';
import { runHistories } from './admission-histories.js';

const HISTORIES = 400;
const FIRST_SEED = 10_000;

describe('admission, in many random histories of requests, changes, delays and kills', function () {
  this.timeout(3_600_000);

  for (const [whose, instances] of [
    ['of one instance', 1],
    ['of three instances that share a database', 3],
  ] as const) {
    describe(whose, () => {
      it('counts every forwarded request exactly and refuses none below a cap if nothing fails', async () => {
        const options = { kills: false, faults: false, instances };
        const { forwarded } = await runHistories(HISTORIES, options, FIRST_SEED);
        expect(forwarded).to.be.greaterThan(HISTORIES);
      });

      it('never exceeds a cap, forwards after a received revocation, or loses a change, if killed at any time', async () => {
        const options = { kills: true, faults: false, instances };
        const { forwarded, kills } = await runHistories(HISTORIES, options, 2 * FIRST_SEED);
        expect(forwarded).to.be.greaterThan(HISTORIES);
        expect(kills).to.be.greaterThan(HISTORIES / 2);
      });

      it('settles and leases at most once when database calls or their replies fail', async () => {
        const options = { kills: true, faults: true, instances };
        const { forwarded } = await runHistories(HISTORIES, options, 3 * FIRST_SEED);
        expect(forwarded).to.be.greaterThan(HISTORIES);
      });
    });
  }
});
