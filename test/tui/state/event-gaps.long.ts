import { showsNoGap } from './event-gaps.js';

describe('a feed in a random order of things', () => {
  for (const of of ['audit', 'events'] as const) {
    it(`is shown without a gap, whatever happened before: ${of}`, () => {
      for (let seed = 21; seed <= 1_000; seed++) showsNoGap(of, seed);
    }).timeout(1_200_000);
  }
});
