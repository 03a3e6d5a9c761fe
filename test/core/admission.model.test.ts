import { expect } from 'chai';
import type { Sabotage } from '../support/model.js';
import { historiesToNotice, runHistories } from './admission-histories.js';

/** admission.model.long.ts runs many more. */
describe('admission, in random histories of requests, changes, delays and kills', function () {
  this.timeout(120_000);

  it('counts every forwarded request exactly, no read, and refuses none below a cap if nothing fails', async () => {
    const { forwarded, reads } = await runHistories(12, { kills: false, faults: false }, 1_000);
    expect(forwarded).to.be.greaterThan(50);
    expect(reads).to.be.greaterThan(50);
  });

  it('never exceeds a cap, forwards after a revocation, or loses a change, if killed at any time', async () => {
    const { forwarded, kills } = await runHistories(15, { kills: true, faults: false }, 2_000);
    expect(forwarded).to.be.greaterThan(50);
    expect(kills).to.be.greaterThan(10);
  });

  it('settles and leases at most once when database calls or their replies fail', async () => {
    const { forwarded } = await runHistories(15, { kills: true, faults: true }, 3_000);
    expect(forwarded).to.be.greaterThan(50);
  });

  describe('detects a deliberately broken store:', () => {
    const sabotages: Record<string, Sabotage> = {
      'a lease that ignores the cap': (sql) =>
        sql.replace('OR reserved - $giveBack + $take <= max_requests', 'OR TRUE'),
      'a lease with one unit too many': (sql) => sql.replace('<= max_requests', '<= max_requests + 1'),
      'a start that loses the leases of killed instances': (sql) =>
        sql.replace('request_count = request_count +\n', 'request_count = request_count + 0 *\n'),
      'a settlement that does not write uses': (sql) =>
        sql.replace('request_count = request_count + $uses', 'request_count = request_count + 0 * $uses'),
      'a revocation that is not written': (sql) =>
        sql.replace(/SET is_active = (\$\w+)/, 'SET is_active = (is_active OR $1)'),
    };
    for (const [name, sabotage] of Object.entries(sabotages)) {
      it(name, async () => {
        expect(await historiesToNotice(sabotage, { kills: true, faults: false }, 1_000)).to.be.a('number');
      });
    }
  });

  describe('of three instances that share a database', () => {
    const instances = 3;

    it('counts every forwarded request exactly, no read, and refuses none below a cap if nothing fails', async () => {
      const { forwarded, reads } = await runHistories(6, { kills: false, faults: false, instances }, 4_000);
      expect(forwarded).to.be.greaterThan(50);
      expect(reads).to.be.greaterThan(50);
    });

    it('never exceeds a cap, or forwards after a received revocation, if any instance is killed or paused', async () => {
      const { forwarded, kills } = await runHistories(6, { kills: true, faults: false, instances }, 5_000);
      expect(forwarded).to.be.greaterThan(50);
      expect(kills).to.be.greaterThan(10);
    });

    it('settles, leases and gives back at most once when database calls or their replies fail', async () => {
      const { forwarded } = await runHistories(6, { kills: true, faults: true, instances }, 6_000);
      expect(forwarded).to.be.greaterThan(50);
    });

    describe('detects a deliberately broken store:', () => {
      const sabotages: Record<string, [Sabotage, { kills: boolean }]> = {
        'units held by other instances are not seen': [
          (sql) => (sql.includes('SET wanted_at') ? sql.replace('units > 0', 'units < 0') : sql),
          { kills: false },
        ],
        'changes are not reported': [
          (sql) => sql.replace('FROM changes WHERE seq > $seq', 'FROM changes WHERE seq < 0 * $seq'),
          { kills: false },
        ],
        'expiry of an instance loses its leases': [
          (sql) => sql.replace('request_count = request_count +\n', 'request_count = request_count + 0 *\n'),
          { kills: true },
        ],
      };
      for (const [name, [sabotage, { kills }]] of Object.entries(sabotages)) {
        it(name, async () => {
          expect(await historiesToNotice(sabotage, { kills, faults: false, instances }, 500)).to.be.a('number');
        });
      }
    });
  });
});
