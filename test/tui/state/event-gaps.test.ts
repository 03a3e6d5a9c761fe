import { showsNoGap } from './event-gaps.js';

describe('events in a random order of things', () => {
  it('are shown without a gap, whatever happened before', () => {
    for (let seed = 1; seed <= 20; seed++) showsNoGap(seed);
  }).timeout(60_000);
});
