import { expect } from 'chai';
import { screenText } from './rendering.js';
import { SCENES } from './scenes.js';
import { expectFits, LOOKS } from './sizes.js';

/** sizes.long.ts has larger screens, which take most of the time. */
const SIZES: readonly (readonly [number, number])[] = [
  [1, 1],
  [2, 30],
  [50, 10],
  [80, 24],
  [120, 24],
];

describe('every screen at every size', () => {
  for (const scene of SCENES) {
    it(`shows ${scene.name} within the screen, without control characters`, () => {
      for (const size of SIZES) for (const how of Object.keys(LOOKS)) expectFits(scene, size, how);
    });
  }

  it('shows the minimum size if the terminal is too small', () => {
    const [first] = SCENES;
    const { state } = first!.make({ columns: 44, rows: 9 });
    expect(screenText(state).trim()).to.equal('llmp needs 50x10, this is 44x9');
  });
});
