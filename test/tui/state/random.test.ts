import { expect } from 'chai';
import { walked } from './walk.js';

/** Longer walks are in random.long.ts. */
describe('whoever presses anything, whatever the daemon does', () => {
  for (const isReadonly of [false, true]) {
    for (let seed = 1; seed <= 3; seed++) {
      it(`finds it whole${isReadonly ? ', and nothing changed where it is read-only' : ''}: seed ${seed}`, () => {
        const { daemon } = walked(seed, isReadonly, 1_000);
        if (isReadonly) expect(daemon.made).to.be.empty;
        else expect(daemon.made).not.to.be.empty;
      }).timeout(120_000);
    }
  }
});
