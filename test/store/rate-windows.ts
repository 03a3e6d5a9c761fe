/** Contract of the port `RateWindows`. */
import { expect } from 'chai';
import type { RateDecision, RateWindows } from '../../daemon/core/ports.js';

export interface RateWindowsStage {
  windows: RateWindows;
  /** Long enough for a test, if time passes on its own. */
  windowMs: number;
  /** Lets time pass. */
  pass(ms: number): void | Promise<void>;
  close?(): Promise<void>;
}

export function behavesAsRateWindows(open: () => RateWindowsStage | Promise<RateWindowsStage>): void {
  const LIMIT = 5;
  let stage: RateWindowsStage;
  let keys = 0;
  let key: string;

  beforeEach(async () => {
    stage = await open();
    key = `address:of test ${process.pid}.${++keys}`;
  });
  afterEach(() => stage.close?.());

  const take = async (limit = LIMIT, windowMs = stage.windowMs, of = key): Promise<RateDecision> =>
    stage.windows.take(of, { limit, windowMs });
  const takeTimes = async (count: number, limit = LIMIT) => {
    const taken: boolean[] = [];
    for (let i = 0; i < count; i++) taken.push((await take(limit)).isAllowed);
    return taken;
  };
  const times = (count: number, isAllowed: boolean) => Array<boolean>(count).fill(isAllowed);

  it('allow exactly as many requests as the limit, however often they are called', async () => {
    expect(await takeTimes(LIMIT + 4)).to.deep.equal([...times(LIMIT, true), ...times(4, false)]);
  });

  it('allow exactly as many concurrent requests', async () => {
    const taken = await Promise.all(Array.from({ length: 200 }, () => take(50)));
    expect(taken.filter(({ isAllowed }) => isAllowed)).to.have.length(50);
  });

  it('report the time until the window ends, within the limit and beyond', async () => {
    const first = await take(1);
    expect(first.resetMs).to.be.above(0).and.at.most(stage.windowMs);
    await stage.pass(stage.windowMs / 4);
    const beyond = await take(1);
    expect(beyond.isAllowed).to.equal(false);
    expect(beyond.resetMs)
      .to.be.above(0)
      .and.at.most(stage.windowMs * 0.75);
  });

  it('begin with the first request of a key and end one window length later, whatever happens in between', async () => {
    await takeTimes(LIMIT);
    await stage.pass(stage.windowMs / 2);
    expect(await takeTimes(3)).to.deep.equal(times(3, false));
    await stage.pass(stage.windowMs / 2 + 1);
    expect(await takeTimes(LIMIT + 1)).to.deep.equal([...times(LIMIT, true), false]);
  });

  it('are separate for each key', async () => {
    await takeTimes(LIMIT + 1);
    expect((await take(LIMIT, stage.windowMs, `${key} and more`)).isAllowed).to.equal(true);
  });

  it('apply the given limit, also after it has changed', async () => {
    await takeTimes(LIMIT);
    expect(await takeTimes(3, LIMIT + 2)).to.deep.equal([true, true, false]);
    expect((await take(LIMIT - 1)).isAllowed).to.equal(false);
  });

  it('apply a changed length from the next window on, or earlier', async () => {
    await take();
    await stage.pass(stage.windowMs + 1);
    const { isAllowed, resetMs } = await take(LIMIT, stage.windowMs * 10);
    expect(isAllowed).to.equal(true);
    expect(resetMs)
      .to.be.above(stage.windowMs)
      .and.at.most(stage.windowMs * 10);
  });
}
