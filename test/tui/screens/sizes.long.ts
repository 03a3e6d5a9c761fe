import { SCENES } from './scenes.js';
import { expectFits, LOOKS } from './sizes.js';

describe('every screen on large terminals, in every look', function () {
  this.timeout(120_000);

  for (const scene of SCENES) {
    it(`shows ${scene.name}: never wider or taller than the screen, and nothing that drives it`, () => {
      for (const size of [
        [200, 60],
        [300, 100],
      ] as const) {
        for (const how of Object.keys(LOOKS)) expectFits(scene, size, how);
      }
    });
  }
});
