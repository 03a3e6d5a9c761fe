import { checkWindows, SIZES } from './window-histories.js';

/** window.model.long.ts runs more histories. */
describe('list window: random histories', function () {
  this.timeout(120_000);

  for (const size of SIZES) {
    it(`shows the list of about ${size} rows once it is settled, and no row twice`, () => {
      checkWindows(size, 12);
    });
  }
});
