import { showsNoGap } from './event-gaps.js';

describe('events in a random order of things', () => {
  it('are shown without a gap, whatever happened before', () => {
    for (let seed = 21; seed <= 1_000; seed++) showsNoGap(seed);
  }).timeout(1_200_000);
});
