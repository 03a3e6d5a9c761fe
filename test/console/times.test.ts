import { expect } from 'chai';
import { relativeTime } from '../../console/views.js';

const NOW = Date.parse('2030-01-31T12:00:00.000Z');

describe('Times in lists', () => {
  for (const [offsetMs, shown] of [
    [90_000, 'in 90s'],
    [48 * 3_600_000, 'in 48h'],
    [-5 * 86_400_000, '5d ago'],
    [-1_000, '1s ago'],
    [999, 'now'],
    [-999, 'now'],
  ] as const) {
    it(`${offsetMs} ms from now is "${shown}"`, () => {
      expect(relativeTime(new Date(NOW + offsetMs).toISOString(), { now: NOW })).to.equal(shown);
    });
  }
});
