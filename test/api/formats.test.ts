import { expect } from 'chai';
import { csvCell } from '../../daemon/api/escape.js';
import {
  actorShown,
  bytes,
  counted,
  duration,
  exact,
  relativeTime,
  revocationShown,
} from '../../daemon/api/formats.js';

const NOW = Date.parse('2030-01-31T12:00:00.000Z');
const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];

describe('formats for people', () => {
  for (const [offsetMs, shown] of [
    [0, 'now'],
    [999, 'now'],
    [-999, 'now'],
    [-2 * SECOND, '2s ago'],
    [90 * SECOND, 'in 90s'],
    [90 * MINUTE, 'in 90m'],
    [-3 * HOUR, '3h ago'],
    [48 * HOUR, 'in 48h'],
    [-9 * DAY, '9d ago'],
  ] as const) {
    it(`of a time ${offsetMs} ms from now: ${shown}`, () => {
      expect(relativeTime(new Date(NOW + offsetMs).toISOString(), NOW)).to.equal(shown);
    });
  }

  it('of a time that is null, or no timestamp', () => {
    expect(relativeTime(null, NOW)).to.equal('never');
    expect(relativeTime('—', NOW)).to.equal('—');
  });

  it('of durations change to the next unit from two or three of it on', () => {
    const given = [-5, 0, 38 * SECOND, 119 * SECOND, 2 * MINUTE, 119 * MINUTE, 5 * HOUR, 71 * HOUR, 9 * DAY];
    const shown = ['0s', '0s', '38s', '119s', '2m', '119m', '5h', '71h', '9d'];
    expect(given.map(duration)).to.deep.equal(shown);
  });

  it('of sizes have three digits, in powers of 1000', () => {
    const given = [0, 999, 1_000, 999_499, 999_500, 18_874_368, 5e12, 9e15];
    const shown = ['0 B', '999 B', '1.00 kB', '999 kB', '1.00 MB', '18.9 MB', '5.00 TB', '9000 TB'];
    expect(given.map(bytes)).to.deep.equal(shown);
  });

  it('of numbers are grouped, with their noun', () => {
    expect([
      exact(1_234_567),
      counted(1, 'token'),
      counted(1_000, 'token'),
      counted(2, 'entry', 'entries'),
    ]).to.deep.equal(['1,234,567', '1 token', '1,000 tokens', '2 entries']);
  });

  it('of who did something, and of a revocation', () => {
    expect(actorShown({ actor: 'cli', user: 'ana@laptop' })).to.equal('ana@laptop (cli)');
    expect(actorShown({ actor: 'cli', user: null })).to.equal('cli');
    // What a front end says must not stand in the place of what is verified.
    for (const actor of ['operator:ana', 'person:4f2a', 'trust:0b5e'])
      expect(actorShown({ actor, user: 'root@laptop' })).to.equal(`${actor} (root@laptop)`);
    const nowMs = Date.UTC(2030, 0, 1, 12);
    const shown = (revoked_by: string | null, revoke_reason: string | null) =>
      revocationShown({ revoked_at: '2030-01-01T10:00:00.000Z', revoked_by, revoke_reason }, nowMs);
    expect(shown('ana@laptop', 'leaked')).to.equal('2h ago by ana@laptop: leaked');
    expect(shown('tui', null)).to.equal('2h ago by tui');
    expect(shown(null, null)).to.equal('2h ago');
    expect(revocationShown({ revoked_at: null, revoked_by: null, revoke_reason: null }, nowMs)).to.equal(undefined);
  });

  it('Q02 of a cell of CSV are text in any spreadsheet, with any separator of cells', () => {
    for (const start of ['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t=', '\r=', '\n=', ' =', '\t1', '\r1']) {
      expect(csvCell(`${start}1`).replace(/^"/, ''), JSON.stringify(start)).to.match(/^'/);
    }
    expect(['a-b', 'a\rb', 'a;=1+1'].map(csvCell)).to.deep.equal(['a-b', '"a\rb"', '"a;=1+1"']);
  });
});
