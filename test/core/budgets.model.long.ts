import { expect } from 'chai';
import { PURSE_HISTORIES, runPurseHistories } from '../support/purse-model.js';

const HISTORIES = 100;

describe('budgets, in many random histories of requests, charges, changes, delays and kills', function () {
  this.timeout(3_600_000);

  for (const [at, [what, history]] of Object.entries(PURSE_HISTORIES).entries()) {
    it(`lease nothing beyond a limit and lose no charge ${what}`, async () => {
      expect(await runPurseHistories(history, 10_000 * (at + 1), HISTORIES)).to.be.greaterThan(10 * HISTORIES);
    });
  }
});
