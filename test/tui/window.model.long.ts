import { checkWindows, SIZES } from './window-histories.js';

describe('list window: many random histories', function () {
  this.timeout(120_000);

  for (const size of SIZES) {
    it(`shows the list of about ${size} rows once it is settled, and no row twice`, () => {
      checkWindows(size, 240);
    });
  }
});
