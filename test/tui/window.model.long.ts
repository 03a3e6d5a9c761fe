import { checkWindows, SIZES } from './window-histories.js';

describe('a window on a list, in many random histories', function () {
  this.timeout(120_000);

  for (const size of SIZES) {
    it(`of about ${size} rows shows what is there once it comes to rest, and never a row twice`, () => {
      checkWindows(size, 240);
    });
  }
});
