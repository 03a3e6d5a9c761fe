import { expect } from 'chai';
import { Violation } from '../support/model.js';
import {
  PURSE_HISTORIES,
  type PurseHistory,
  QUIET,
  runPurseHistories,
  runPurseHistory,
} from '../support/purse-model.js';

describe('budgets, in random histories of requests, charges, changes, delays and kills', function () {
  this.timeout(120_000);

  for (const [at, [what, history]] of Object.entries(PURSE_HISTORIES).entries()) {
    it(`lease nothing beyond a limit and lose no charge ${what}`, async () => {
      expect(await runPurseHistories(history, 100 * at + 1, 2)).to.be.greaterThan(20);
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
