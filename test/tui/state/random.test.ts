import { expect } from 'chai';
import { walked } from './walk.js';

/** random.long.ts runs longer walks. */
describe('random keys and a random daemon', () => {
  for (const isReadonly of [false, true]) {
    for (let seed = 1; seed <= 3; seed++) {
      it(`break no invariant${isReadonly ? ', and change nothing in a read-only context' : ''}: seed ${seed}`, () => {
        const { daemon } = walked(seed, isReadonly, 1_000);
        if (isReadonly) expect(daemon.made).to.be.empty;
        else expect(daemon.made).not.to.be.empty;
      }).timeout(120_000);
    }
  }
});
