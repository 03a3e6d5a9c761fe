import { expect } from 'chai';
import { type ListTotals, totalsOfLists } from '../../../daemon/store/sql/lists.js';
import { TestClock } from '../../support/clock.js';

describe('the total of a list', () => {
  let clock: TestClock;
  let totals: ListTotals;
  let counted: number;

  beforeEach(() => {
    clock = new TestClock({ standsStill: true });
    totals = totalsOfLists(clock);
    counted = 0;
  });

  /** A count that takes this long. */
  const asked = (total: number, tookMs: number, filter = '{}') =>
    totals.current(filter, () => {
      counted += 1;
      clock.advance(tookMs);
      return Promise.resolve(total);
    });

  it('is the current one if there are few entries', async () => {
    expect(await asked(19_999, 500)).to.equal(19_999);
    expect(await asked(20_001, 500)).to.equal(20_001);
  });

  it('of many entries is cached for twenty times the duration of the count', async () => {
    await asked(1_000_000, 100);
    clock.advance(1_999);
    expect(await asked(1_000_001, 100)).to.equal(1_000_000);
    clock.advance(1);
    expect(await asked(1_000_002, 10)).to.equal(1_000_002);
    expect(counted).to.equal(2);
  });

  it('is specific to its filter', async () => {
    await asked(1_000_000, 100);
    expect(await asked(30_000, 100, '{"state":"active"}')).to.equal(30_000);
  });

  it('is counted once for concurrent requests', async () => {
    await Promise.all([asked(30_000, 1), asked(30_000, 1)]);
    expect(counted).to.equal(1);
  });

  it('may be an older one, so that no request waits long', async () => {
    await asked(30_000, 1);
    clock.advance(1_000);
    let count: (total: number) => void = () => undefined;
    const waiting = totals.current('{}', () => new Promise<number>((resolve) => (count = resolve)));
    clock.advance(50);
    expect(await waiting).to.equal(30_000);
    count(30_005);
    await new Promise((resolve) => setImmediate(resolve));
    expect(await asked(0, 0)).to.equal(30_005);
  });

  it('that cannot be counted is not an older one', async () => {
    await asked(30_000, 1);
    clock.advance(1_000);
    const failing = totals.current('{}', () => Promise.reject(new Error('unavailable')));
    expect(await failing.then(String, (error: unknown) => (error as Error).message)).to.equal('unavailable');
  });
});
