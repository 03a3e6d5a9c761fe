import { showsNoGap } from './event-gaps.js';

describe('a feed in a random order of things', () => {
  for (const of of ['audit', 'events'] as const) {
    it(`is shown without a gap, whatever happened before: ${of}`, () => {
      for (let seed = 1; seed <= 20; seed++) showsNoGap(of, seed);
    }).timeout(60_000);
  }
});
