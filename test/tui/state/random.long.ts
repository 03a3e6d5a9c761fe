import { expect } from 'chai';
import { walked } from './walk.js';

describe('whoever presses anything for long, whatever the daemon does', () => {
  for (const isReadonly of [false, true]) {
    for (let seed = 1; seed <= 20; seed++) {
      it(`finds it whole${isReadonly ? ', and nothing changed where it is read-only' : ''}: seed ${seed}`, () => {
        const { daemon } = walked(seed, isReadonly, 3_000);
        if (isReadonly) expect(daemon.made).to.be.empty;
        else expect(daemon.made).not.to.be.empty;
      }).timeout(120_000);
    }
  }
});
