/** What an instance has in memory of budgets: what it keeps, forgets, and writes when. */
import { expect } from 'chai';
import { MAX_NANO } from '../../daemon/api/money.js';
import type { Pass } from '../../daemon/core/account.js';
import { Budgets } from '../../daemon/core/budget/budgets.js';
import type { PurseCounts } from '../../daemon/core/budget/counts.js';
import type { OwnedBudget } from '../../daemon/core/budget/owned-budget.js';
import type { PurseBudget } from '../../daemon/core/budget/purse.js';
import type { BudgetEvent, ModelUsage } from '../../daemon/core/events.js';
import {
  InstanceExpired,
  type Ledger,
  type PurseReport,
  StoreUnavailable,
  type Tick,
  type TickReport,
} from '../../daemon/core/ports.js';
import { Settlement } from '../../daemon/core/settlement.js';
import { grantOf } from '../../daemon/core/budget/counts.js';
import { TestClock } from '../support/clock.js';
import { recordingLog } from '../support/daemon.js';

const DAY = Date.UTC(2030, 0, 10);
const BUDGET: PurseBudget = { limitNano: 1_000, limitTokens: null, period: 'none', mode: 'hard' };
const AMOUNT = { nano: 100, tokens: 10 };

describe('the purses of an instance', () => {
  let clock: TestClock;
  let settlement: Settlement;
  let ticks: Tick[];
  /** The next calls of `commit` that fail. */
  let failures: number;
  /** Whether others have taken the instance for dead. */
  let isExpired: boolean;
  /** What the database waits for before it commits. */
  let blocked: Promise<void>;
  let counts: PurseCounts;

  beforeEach(() => {
    clock = new TestClock({ standsStill: true, startMs: DAY });
    ticks = [];
    failures = 0;
    isExpired = false;
    blocked = Promise.resolve();
    const none = { nano: 0, tokens: 0 };
    counts = {
      ...{ period: 'none', limitNano: 1_000, limitTokens: null },
      ...{ lifeNano: 0, lifeTokens: 0, lifeUnpriced: 0 },
      ...{ monthFromMs: 0, monthNano: 0, monthTokens: 0, monthUnpriced: 0 },
      ...{ dayFromMs: 0, dayNano: 0, dayTokens: 0, dayUnpriced: 0 },
      ...{ leasedFromMs: 0, leasedNano: 0, leasedTokens: 0 },
    };
    const ledger: Ledger = {
      enrol: () => Promise.resolve(false),
      commit: async (tick) => {
        await blocked;
        if (failures-- > 0) throw new StoreUnavailable('gone');
        if (isExpired) throw new InstanceExpired();
        return settled(tick);
      },
      lastSeq: () => Promise.resolve(ticks.length),
      held: () => Promise.resolve(new Map()),
      heldOfPurses: () => Promise.resolve(new Map([['one', none]])),
      rejoin: () => {
        isExpired = false;
        counts.lifeNano += counts.leasedNano;
        counts.leasedNano = 0;
        return Promise.resolve(0);
      },
      retire: () => Promise.resolve(),
    };
    const nothing = () => undefined;
    settlement = new Settlement({
      ...{ ledger, clock, log: recordingLog().log, instanceId: 'me' },
      ...{ onContact: nothing, onContention: nothing, onRejoin: nothing, onSpent: nothing },
    });
  });

  /** A database with one purse. */
  function settled(tick: Tick): TickReport {
    ticks.push(tick);
    const purses = new Map<string, PurseReport>();
    for (const { purseId, charges, returns, take, isReported } of tick.purses) {
      if (purseId !== 'one') continue;
      for (const { nano, tokens } of charges) {
        counts.lifeNano += nano;
        counts.lifeTokens += tokens;
      }
      for (const { nano } of returns) counts.leasedNano -= nano;
      const grant = take && grantOf(counts, take, tick.nowMs);
      counts.leasedNano += grant?.nano ?? 0;
      if (isReported) purses.set(purseId, { counts: { ...counts }, grant, isHeldElsewhere: false });
    }
    return { units: new Map(), purses };
  }

  const purses = () => settlement.purses;
  const more = () => purses().more('one', AMOUNT, BUDGET, clock.now());
  const reserve = () => purses().of('one').tryReserve(AMOUNT, BUDGET, clock.now());
  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 250) {
      clock.advance(250);
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    }
  }

  it('are written once with all charges of a tick, without one of their own for those that follow', async () => {
    for (let n = 0; n < 1_000; n++) purses().charge('one', clock.now(), { nano: 3, tokens: 2 }, null);
    purses().charge('one', clock.now() - 86_400_000, { nano: null, tokens: 1 }, null);
    await pass(1_000);
    expect(ticks).to.have.length(1);
    expect(ticks[0]?.purses).to.deep.equal([
      {
        purseId: 'one',
        charges: [
          { dayMs: DAY, nano: 3_000, tokens: 2_000, unpriced: 0 },
          { dayMs: DAY - 86_400_000, nano: 0, tokens: 1, unpriced: 1 },
        ],
        returns: [],
        take: null,
        isReported: false,
      },
    ]);
  });

  it('keep no timer without a budget, and are forgotten when they are idle, but not with something that is not written', async () => {
    for (let n = 0; n < 10_000; n++) purses().charge(`${n}`, clock.now(), { nano: 1, tokens: 1 }, null);
    await settlement.settle();
    expect(ticks.flatMap(({ purses: rows }) => rows)).to.have.length(10_000);
    expect(clock.pending).to.equal(0);
    const early = purses().of('0');
    await pass(6_000);
    failures = 1_000;
    purses().charge('late', clock.now(), { nano: 5, tokens: 0 }, null);
    await pass(30_000);
    failures = 0;
    for (let n = 0; n < 80; n++) {
      purses().charge('busy', clock.now(), { nano: 1, tokens: 0 }, null);
      await pass(2_000);
    }
    expect(purses().size).to.deep.equal({ purses: 1, pending: 0 });
    const written = ticks.flatMap(({ purses: rows }) => rows).filter(({ purseId }) => purseId === 'late');
    expect(written.flatMap(({ charges }) => charges).map(({ nano }) => nano)).to.deep.equal([5]);
    // A request that began before it was forgotten is charged all the same.
    purses().charge(early.id, clock.now(), { nano: 7, tokens: 0 }, null);
    await pass(500);
    expect(ticks.at(-1)?.purses.map(({ purseId, charges }) => [purseId, charges[0]?.nano])).to.deep.equal([['0', 7]]);
  });

  it('count sums up to the largest exact number', async () => {
    for (let n = 0; n < 3; n++) {
      purses().charge('one', clock.now(), { nano: MAX_NANO, tokens: Number.MAX_SAFE_INTEGER }, null);
    }
    await pass(250);
    expect(ticks[0]?.purses[0]?.charges).to.deep.equal([
      { dayMs: DAY, nano: MAX_NANO, tokens: Number.MAX_SAFE_INTEGER, unpriced: 0 },
    ]);
  });

  it('reserve without the database once there is a lease, which is given back when it is no longer used', async () => {
    const budget = { ...BUDGET, limitNano: 100_000 };
    counts.limitNano = budget.limitNano;
    const one = purses().of('one');
    const reserved = () => one.tryReserve(AMOUNT, budget, clock.now());
    expect(reserved()).to.equal(null);
    expect(await purses().more('one', AMOUNT, budget, clock.now())).to.equal('granted');
    const reservation = reserved()!;
    expect(reservation).to.deep.include({ nano: 100, tokens: 0 });
    purses().charge('one', clock.now(), { nano: 30, tokens: 4 }, reservation);
    await pass(500);
    expect(counts).to.deep.include({ lifeNano: 30 });
    const next = [reserved()!, reserved()!, reserved()!];
    expect(next, 'at once').not.to.include(null);
    for (const each of next.slice(1)) purses().release(each);
    await pass(21_000);
    expect(counts.leasedNano, 'for what is under way').to.equal(100);
    purses().release(next[0]!);
    await settlement.retire([]);
    expect(counts.leasedNano).to.equal(0);
  });

  it('answer what does not fit at once, or after others have settled', async () => {
    await more();
    const all = Array.from({ length: 10 }, async () => {
      for (let tries = 0; tries < 20; tries++) {
        const reservation = reserve();
        if (reservation) return reservation;
        const result = await more();
        if (result !== 'granted') return null;
      }
      return null;
    });
    const reservations = (await Promise.all(all)).filter((each) => each !== null);
    expect(reservations).to.have.length(10);
    expect(await more()).to.equal('reserved');
    for (const each of reservations) purses().charge('one', clock.now(), { nano: 95, tokens: 1 }, each);
    await pass(1_000);
    const before = ticks.length;
    for (let n = 0; n < 50; n++) expect(await more()).to.equal('exhausted');
    expect(ticks.length - before, 'ticks for a client that retries').to.be.at.most(1);
  });

  it('do not let requests wait for a database that is unavailable, and charge what was spent later, once', async () => {
    await more();
    const reservation = reserve()!;
    failures = 2;
    purses().charge('one', clock.now(), { nano: 150, tokens: 1 }, reservation);
    const waiting = purses().more('one', { nano: 900, tokens: 1 }, BUDGET, clock.now());
    const failure = await waiting.then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure).to.have.property('kind', 'unavailable');
    await pass(10_000);
    expect(counts.lifeNano, 'with what exceeds the reservation').to.equal(150);
    await settlement.retire([]);
    expect(counts.leasedNano).to.equal(0);
  });

  it('that lost their lease are charged for what exceeds it, in one row, although they were forgotten meanwhile', async () => {
    await more();
    const reservation = reserve()!;
    isExpired = true;
    purses().charge('other', clock.now(), { nano: 1, tokens: 0 }, null);
    await pass(1_000);
    for (let n = 0; n < 10; n++) {
      purses().charge('other', clock.now(), { nano: 1, tokens: 0 }, null);
      await pass(2_000);
    }
    expect(purses().known('one')).to.equal(undefined);
    purses().charge('one', clock.now(), { nano: 5, tokens: 0 }, null);
    purses().charge('one', clock.now(), { nano: 150, tokens: 0 }, reservation);
    const before = ticks.length;
    await pass(1_000);
    const rows = ticks.slice(before).flatMap((tick) => tick.purses.filter(({ purseId }) => purseId === 'one'));
    expect(rows.flatMap(({ charges }) => charges).map(({ nano }) => nano)).to.deep.equal([55]);
  });

  it('give back at shutdown also what a tick in progress takes', async () => {
    const first = more();
    await settlement.retire([]);
    expect(await first).to.equal('granted');
    expect(ticks.flatMap(({ purses: rows }) => rows.flatMap(({ take }) => take?.want.nano ?? []))).to.deep.equal([100]);
    expect(counts.leasedNano).to.equal(0);
  });

  it('do not let requests wait for the charges of many others', async () => {
    for (let n = 0; n < 2_000; n++) purses().charge(`${n}`, clock.now(), { nano: 1, tokens: 1 }, null);
    expect(await more()).to.equal('granted');
    expect(ticks).to.have.length(1);
  });

  it('wait for a changed budget together with requests that do not know of it yet', async () => {
    let answer: () => void = () => undefined;
    blocked = new Promise((resolve) => (answer = resolve));
    purses().charge('one', clock.now(), { nano: 1, tokens: 1 }, null);
    clock.advance(250);
    const before = { ...BUDGET, limitNano: 500 };
    const asked = [more(), purses().more('one', AMOUNT, before, clock.now())];
    answer();
    await pass(500);
    expect(await Promise.all(asked)).to.deep.equal(['granted', 'granted']);
    expect(ticks.flatMap(({ purses: rows }) => rows.flatMap(({ take }) => take?.terms.limitNano ?? []))).to.deep.equal([
      500, 1_000,
    ]);
  });

  describe('of requests', () => {
    let events: BudgetEvent[];
    let budgets: Budgets;
    beforeEach(() => {
      events = [];
      budgets = new Budgets({
        ...{ purses: purses(), clock, log: recordingLog().log, costs: { priceOf: () => null } },
        publish: (event) => events.push(event),
      });
    });
    const spending = { model: () => 'm', bytes: 400, bound: () => ({ why: 'it has none' }) };
    const passOf = (mode: 'soft' | 'shadow') => {
      const budget: OwnedBudget = { ...BUDGET, limitNano: null, limitTokens: 1_000, mode, owner: 'token', id: 'one' };
      return { account: { known: { budgets: [budget] } }, tokenId: 'one', projectId: 'project' } as unknown as Pass;
    };

    it('with a shadow budget never wait for the database', async () => {
      counts.limitNano = null;
      counts.limitTokens = 1_000;
      failures = 1;
      const reserved = () => budgets.reserve(passOf('shadow'), spending);
      for (let n = 0; n < 5; n++) expect(reserved()).not.to.be.instanceOf(Promise);
      await pass(1_000);
      expect(events, 'nothing is known').to.deep.equal([]);
      counts.lifeTokens = 1_000;
      for (let n = 0; n < 5; n++) expect(reserved()).not.to.be.instanceOf(Promise);
      await pass(1_000);
      // One had what was leased for the first.
      expect(events.map(({ kind, count }) => [kind, count])).to.deep.equal([['budget.would_refuse', 4]]);
    });

    it('that are charged without a reservation end when nothing is left, also after a purse was forgotten', async () => {
      counts.limitNano = null;
      counts.limitTokens = 1_000;
      counts.lifeTokens = 990;
      const usage = { promptTokens: 5, completionTokens: 5, totalTokens: 10 } as ModelUsage;
      const charged = () =>
        budgets.chargeMore(passOf('soft'), { kind: 'complete', usage, costNano: null, admittedAtMs: clock.now() });
      expect(charged()).to.equal(null);
      await pass(500);
      expect(charged()).to.have.property('kind', 'budget_exhausted');
    });

    it('wait for the database for ten seconds, and keep nothing that it grants later', async () => {
      counts.limitNano = null;
      counts.limitTokens = 1_000;
      let answer: () => void = () => undefined;
      blocked = new Promise((resolve) => (answer = resolve));
      const reserving = Promise.resolve(budgets.reserve(passOf('soft'), spending)).then(
        () => null,
        (error: unknown) => error,
      );
      await pass(10_000);
      expect(await reserving).to.have.property('kind', 'unavailable');
      answer();
      await pass(500);
      await settlement.retire([]);
      const [taken, ...later] = ticks.flatMap(({ purses: rows }) => rows);
      expect(taken?.take?.want.tokens).to.equal(1_000);
      expect(later.flatMap(({ returns }) => returns)).to.deep.equal([{ fromMs: 0, nano: 0, tokens: 1_000 }]);
    });
  });
});
