import { seededRandom } from '../support/model.js';
import { WindowModel } from './window-model.js';

const STEPS = 150;
export const SIZES = [0, 1, 5, 99, 100, 101, 200, 1_000, 5_000];

/** Runs this number of random histories on a list of about this size. @throws if the window shows a wrong list. */
export function checkWindows(size: number, histories: number): void {
  for (let seed = 1; seed <= histories; seed++) {
    const random = seededRandom(seed * 100 + size);
    const model = new WindowModel(random, {
      size,
      rows: 1 + Math.floor(random() * 80),
    });
    try {
      for (let step = 0; step < STEPS; step++) {
        model.step();
        if (random() < 0.03) model.settle();
      }
      model.settle();
      model.settleAt('first');
      model.settleAt('last');
    } catch (error) {
      throw new Error(`history ${seed} of ${size} rows`, { cause: error });
    }
  }
}
