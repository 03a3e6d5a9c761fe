/** `spent` of tokens and projects: what was counted in the database and is not yet written, in the period of the budget. */
import { expect } from 'chai';
import type { WireProject, WireToken } from '../../../daemon/api/contract.js';
import type { TokenSelf } from '../../../daemon/api/token-self.js';
import { dayOf, monthOf } from '../../../daemon/core/budget/period.js';
import { TestClock } from '../../support/clock.js';
import { daemonForEachTest } from '../../support/daemon.js';
import { bodyOf } from '../../support/management.js';

const NOW = Date.UTC(2030, 4, 17, 10);
const [DAY, MONTH] = [dayOf(NOW), monthOf(NOW)];
const DAY_MS = 86_400_000;

describe('what was spent', () => {
  const daemon = daemonForEachTest(() => ({ clock: new TestClock({ standsStill: true, startMs: NOW }) }));
  let project: WireProject;
  let token: WireToken & { token: string };
  beforeEach(async () => {
    project = await daemon.createProject();
    token = await daemon.createToken(project.id);
  });

  const count = (id: string, counts: Record<string, number>) =>
    daemon.daemon.stores.database.transact((tx) => {
      const set = Object.entries(counts).map(([column, value]) => `${column} = ${value}`);
      return tx.execute(`UPDATE purses SET ${set.join(', ')} WHERE id = $id`, { id });
    });
  const patch = async (of: 'tokens' | 'projects', id: string, body: object) =>
    (await bodyOf<WireToken | WireProject>(daemon.manage('PATCH', `/manage/${of}/${id}`, body))).spent;
  const read = async (of: 'tokens' | 'projects', id: string) =>
    (await bodyOf<WireToken | WireProject>(daemon.manage('GET', `/manage/${of}/${id}`))).spent;
  /** As the end of a request does, before the next tick. */
  const charge = (id: string, nano: number | null, tokens: number, admittedAtMs = daemon.clock.now()) => {
    const { purses } = daemon.daemon.admission;
    purses.charge(id, admittedAtMs, { nano, tokens }, null);
  };

  it('is nothing since the creation at first', () => {
    const nothing = { usd: '0.00', tokens: 0, reserved_usd: '0.00', unpriced_requests: 0 };
    expect(token.spent).to.deep.equal({ ...nothing, since: token.created_at });
    expect(project.spent).to.deep.equal({ ...nothing, since: project.created_at });
  });

  for (const of of ['tokens', 'projects'] as const) {
    it(`is that of the period of the budget of ${of}; a change of it resets nothing`, async () => {
      const { id, created_at: created } = of === 'tokens' ? token : project;
      await count(id, {
        life_nano: 12_345_678_901,
        life_tokens: 3_000,
        life_unpriced: 3,
        month_from: MONTH,
        month_nano: 2_000_000_000,
        month_tokens: 200,
        month_unpriced: 2,
        day_from: DAY,
        day_nano: 1,
        day_tokens: 1,
      });
      const life = { usd: '12.345678901', tokens: 3_000, reserved_usd: '0.00', unpriced_requests: 3, since: created };
      const month = { usd: '2.00', tokens: 200, reserved_usd: '0.00', unpriced_requests: 2, since: MONTH };
      const day = { usd: '0.000000001', tokens: 1, reserved_usd: '0.00', unpriced_requests: 0, since: DAY };
      for (const [budget, spent] of [
        [null, life],
        [{ usd: '25', period: 'none' }, life],
        [{ usd: '25', period: 'month' }, month],
        [{ tokens: 5, period: 'day', mode: 'hard' }, day],
        [null, life],
      ] as const) {
        const expected = { ...spent, since: new Date(spent.since).toISOString() };
        expect(await patch(of, id, { budget })).to.deep.equal(expected);
        expect(await read(of, id)).to.deep.equal(expected);
        const list = await bodyOf<{ id: string; spent: unknown }[]>(daemon.manage('GET', `/manage/${of}`));
        expect(list.find((one) => one.id === id)?.spent).to.deep.equal(expected);
      }
      await patch(of, id, { budget: { usd: '25', period: 'day' } });
      daemon.clock.advance(DAY_MS);
      expect(await read(of, id)).to.include({ usd: '0.00', tokens: 0, since: new Date(DAY + DAY_MS).toISOString() });
    });

    it(`has what is not yet written, of the period, in answers with ${of}`, async () => {
      const { id } = of === 'tokens' ? token : project;
      await patch(of, id, { budget: { usd: '25', period: 'day' } });
      charge(id, 1_500_000_000, 7);
      charge(id, null, 3);
      charge(id, 9_000_000_000, 90, NOW - DAY_MS);
      const ticks = daemon.daemon.admission.settling.durations.total;
      const today = { usd: '1.50', tokens: 10, unpriced_requests: 1 };
      expect(await patch(of, id, { allow: null })).to.include(today);
      expect(daemon.daemon.admission.settling.durations.total, 'a change makes no tick').to.equal(ticks);
      expect(await read(of, id)).to.include(today);
      expect(await patch(of, id, { budget: null })).to.include({ usd: '10.50', tokens: 100, unpriced_requests: 1 });
    });
  }

  it('is told to the holder of a token, with what is left of its budget and of that of its project', async () => {
    const self = async () => (await (await daemon.call(token.token, '/token/self')).json()) as TokenSelf;
    charge(token.id, 1_500_000_000, 7);
    charge(project.id, 30_000_000_000, 40);
    expect(await self()).to.deep.include({
      budget: [],
      spent: { usd: '1.50', tokens: 7, reserved_usd: '0.00', unpriced_requests: 0, since: token.created_at },
    });
    await patch('tokens', token.id, { budget: { usd: '2', tokens: 5, period: 'month' } });
    await patch('projects', project.id, { budget: { usd: '100', mode: 'hard' } });
    const { budget, spent } = await self();
    const since = new Date(MONTH).toISOString();
    expect(spent).to.deep.equal({ usd: '1.50', tokens: 7, reserved_usd: '0.00', unpriced_requests: 0, since });
    expect(budget).to.deep.equal([
      {
        owner: 'token',
        usd: '2.00',
        tokens: 5,
        period: 'month',
        mode: 'soft',
        spent,
        left: { usd: '0.50', tokens: 0 },
      },
      {
        owner: 'project',
        usd: '100.00',
        period: 'none',
        mode: 'hard',
        spent: {
          usd: '30.00',
          tokens: 40,
          reserved_usd: '0.00',
          unpriced_requests: 0,
          since: project.created_at,
        },
        left: { usd: '70.00' },
      },
    ]);
  });
});
