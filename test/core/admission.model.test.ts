import { expect } from 'chai';
import type { Sabotage } from '../support/model.js';
import { historiesToNotice, runHistories } from './admission-histories.js';

/** Many more of them are in admission.model.long.ts. */
describe('admission, in random histories of requests, changes, time and kills', function () {
  this.timeout(120_000);

  it('counts every forwarded request exactly and refuses nobody below a cap, as long as nothing breaks', async () => {
    const { forwarded } = await runHistories(12, { kills: false, faults: false }, 1_000);
    expect(forwarded).to.be.greaterThan(50);
  });

  it('never exceeds a cap, forwards after a revocation or loses a change, whenever it is killed', async () => {
    const { forwarded, kills } = await runHistories(15, { kills: true, faults: false }, 2_000);
    expect(forwarded).to.be.greaterThan(50);
    expect(kills).to.be.greaterThan(10);
  });

  it('settles and takes once or not at all when database calls fail, their replies included', async () => {
    const { forwarded } = await runHistories(15, { kills: true, faults: true }, 3_000);
    expect(forwarded).to.be.greaterThan(50);
  });

  describe('notices a store that is broken on purpose:', () => {
    const sabotages: Record<string, Sabotage> = {
      'a take that does not look at the cap': (sql) =>
        sql.replace('OR reserved - $giveBack + $take <= max_requests', 'OR TRUE'),
      'a take that is one too generous': (sql) => sql.replace('<= max_requests', '<= max_requests + 1'),
      'a start that forgets what the dead had leased': (sql) =>
        sql.replace('request_count = request_count +\n', 'request_count = request_count + 0 *\n'),
      'a tick that does not settle uses': (sql) =>
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

    it('counts every forwarded request exactly, and refuses nobody below a cap, as long as nothing breaks', async () => {
      const { forwarded } = await runHistories(6, { kills: false, faults: false, instances }, 4_000);
      expect(forwarded).to.be.greaterThan(50);
    });

    it('never exceeds a cap, nor forwards what an instance has heard was revoked, whoever is killed or stands still', async () => {
      const { forwarded, kills } = await runHistories(6, { kills: true, faults: false, instances }, 5_000);
      expect(forwarded).to.be.greaterThan(50);
      expect(kills).to.be.greaterThan(10);
    });

    it('settles, takes and gives back once or not at all when database calls fail, their replies included', async () => {
      const { forwarded } = await runHistories(6, { kills: true, faults: true, instances }, 6_000);
      expect(forwarded).to.be.greaterThan(50);
    });

    describe('notices a store that is broken on purpose:', () => {
      const sabotages: Record<string, [Sabotage, { kills: boolean }]> = {
        'one that does not see what others hold': [
          (sql) => (sql.includes('SET wanted_at') ? sql.replace('units > 0', 'units < 0') : sql),
          { kills: false },
        ],
        'one that tells of no changes': [
          (sql) => sql.replace('FROM changes WHERE seq > $seq', 'FROM changes WHERE seq < 0 * $seq'),
          { kills: false },
        ],
        'a burial that forgets what was held': [
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
