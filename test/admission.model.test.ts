import { expect } from 'chai';
import { type HistoryOptions, runHistory, type Sabotage, Violation } from './support/model.js';

const STEPS = 120;

async function runHistories(count: number, options: Omit<HistoryOptions, 'seed' | 'steps'>, firstSeed: number) {
  const totals = { forwarded: 0, kills: 0 };
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    const { forwarded, kills } = await runHistory({ ...options, seed, steps: STEPS });
    totals.forwarded += forwarded;
    totals.kills += kills;
  }
  return totals;
}

/** How many histories it takes to notice a store that was broken on purpose; null: not within `most`. */
async function historiesToNotice(sabotage: Sabotage, most: number): Promise<number | null> {
  for (let n = 1; n <= most; n++) {
    try {
      await runHistory({ seed: n, steps: STEPS, kills: true, faults: false, sabotage });
    } catch (error) {
      if (error instanceof Violation) return n;
      throw error;
    }
  }
  return null;
}

describe('admission, in random histories of requests, changes, time and kills', function () {
  this.timeout(120_000);

  it('counts every forwarded request exactly and refuses nobody below a cap, as long as nothing breaks', async () => {
    const { forwarded } = await runHistories(100, { kills: false, faults: false }, 1_000);
    expect(forwarded).to.be.greaterThan(1_000);
  });

  it('never exceeds a cap, forwards after a revocation or loses a change, whenever it is killed', async () => {
    const { forwarded, kills } = await runHistories(150, { kills: true, faults: false }, 2_000);
    expect(forwarded).to.be.greaterThan(1_000);
    expect(kills).to.be.greaterThan(100);
  });

  it('settles and takes once or not at all when database calls fail, their replies included', async () => {
    const { forwarded } = await runHistories(150, { kills: true, faults: true }, 3_000);
    expect(forwarded).to.be.greaterThan(1_000);
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
        sql.replace('SET is_active = $isActive', 'SET is_active = (is_active OR $isActive)'),
    };
    for (const [name, sabotage] of Object.entries(sabotages)) {
      it(name, async () => {
        expect(await historiesToNotice(sabotage, 1_000)).to.be.a('number');
      });
    }
  });
});
