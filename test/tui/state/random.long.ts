import { expect } from 'chai';
import { walked } from './walk.js';

describe('many random keys and a random daemon', () => {
  for (const isReadonly of [false, true]) {
    for (let seed = 1; seed <= 20; seed++) {
      it(`break no invariant${isReadonly ? ', and change nothing in a read-only context' : ''}: seed ${seed}`, () => {
        const { daemon } = walked(seed, isReadonly, 3_000);
        if (isReadonly) expect(daemon.made).to.be.empty;
        else expect(daemon.made).not.to.be.empty;
      }).timeout(120_000);
    }
  }
});
