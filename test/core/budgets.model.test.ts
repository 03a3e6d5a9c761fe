import { expect } from 'chai';
import { Violation } from '../support/model.js';
import { type PurseHistory, runPurseHistory } from '../support/purse-model.js';

const QUIET = { steps: 160, instances: 1, kills: false, faults: false, changes: false, lies: false };

describe('budgets, in random histories of requests, charges, changes, delays and kills', function () {
  this.timeout(120_000);

  const histories: Record<string, Omit<PurseHistory, 'seed'>> = {
    'of one instance': QUIET,
    'with charges beyond what was set aside, or without that': { ...QUIET, lies: true },
    'with changes of limits and periods': { ...QUIET, changes: true },
    'of three instances with different clocks': { ...QUIET, instances: 3, lies: true },
    'of two instances, with changes and lost replies': {
      ...QUIET,
      instances: 2,
      changes: true,
      faults: true,
      lies: true,
    },
    'of three instances that are killed': { ...QUIET, instances: 3, kills: true, changes: true, lies: true },
    'of two instances that are killed, with lost replies': { ...QUIET, instances: 2, kills: true, faults: true },
  };
  for (const [at, [what, history]] of Object.entries(histories).entries()) {
    it(`lease nothing beyond a limit and lose no charge ${what}`, async () => {
      let admitted = 0;
      for (let seed = 1; seed <= 5; seed++) {
        const totals = await runPurseHistory({ ...history, seed: 100 * at + seed });
        admitted += totals.admitted;
      }
      expect(admitted).to.be.greaterThan(50);
    });
  }

  describe('detect a deliberately broken store:', () => {
    const sabotages: Record<string, [(sql: string) => string, Partial<PurseHistory>]> = {
      'a charge that is not written': [(sql) => sql.replace('life_nano + $nano', 'life_nano + 0 * $nano'), {}],
      'a lease that is settled and not returned': [
        (sql) => sql.replace('THEN leased_nano - $returnedNano', 'THEN leased_nano - 0 * $returnedNano'),
        {},
      ],
      'a new period that begins with the leases of the old one': [
        (sql) =>
          sql.replace(
            'leased_nano = CASE WHEN leased_from = $fromMs THEN leased_nano ELSE 0 END',
            'leased_nano = leased_nano',
          ),
        {},
      ],
      'a late charge that counts for the current day': [
        (sql) => sql.replace('ELSE day_nano END', 'ELSE day_nano + $nano END'),
        { lies: true },
      ],
      'a change of the period that forgets what is leased': [
        (sql) =>
          sql.startsWith('SELECT instance_id, from_ms')
            ? sql.replace('purse_id = $id', 'purse_id = $id AND 1 = 0')
            : sql,
        { changes: true },
      ],
      'a removed instance whose leases are not spent': [
        (sql) => sql.replace('(SELECT nano FROM purse_leases', '(SELECT 0 * nano FROM purse_leases'),
        { kills: true, instances: 2 },
      ],
      'what other instances hold is not asked for': [
        (sql) =>
          sql.includes('UPDATE purse_leases SET wanted_at') ? sql.replace('nano > 0 OR tokens > 0', 'nano < 0') : sql,
        { instances: 3 },
      ],
    };
    for (const [name, [sabotage, history]] of Object.entries(sabotages)) {
      it(name, async () => {
        for (let seed = 1; seed <= 60; seed++) {
          try {
            await runPurseHistory({ ...QUIET, ...history, seed, sabotage });
          } catch (error) {
            if (error instanceof Violation) return;
            throw error;
          }
        }
        expect.fail('no history noticed it');
      });
    }
  });
});
