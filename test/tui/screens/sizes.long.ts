import { SCENES } from './scenes.js';
import { expectFits, LOOKS } from './sizes.js';

describe('every screen on large terminals, with every display setting', function () {
  this.timeout(120_000);

  for (const scene of SCENES) {
    it(`shows ${scene.name} within the screen, without control characters`, () => {
      for (const size of [
        [200, 60],
        [300, 100],
      ] as const) {
        for (const how of Object.keys(LOOKS)) expectFits(scene, size, how);
      }
    });
  }
});
