/** What every implementation of the port `RateWindows` does. */
import { expect } from 'chai';
import type { RateTaken, RateWindows } from '../../daemon/core/ports.js';

export interface RateWindowsStage {
  windows: RateWindows;
  /** Long enough for what a test does meanwhile, where time passes by itself. */
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

  const take = async (limit = LIMIT, windowMs = stage.windowMs, of = key): Promise<RateTaken> =>
    stage.windows.take(of, { limit, windowMs });
  const takeTimes = async (count: number, limit = LIMIT) => {
    const taken: boolean[] = [];
    for (let i = 0; i < count; i++) taken.push((await take(limit)).isWithin);
    return taken;
  };
  const times = (count: number, isWithin: boolean) => Array<boolean>(count).fill(isWithin);

  it('let as many requests through as the limit says, and no more, however often they are asked', async () => {
    expect(await takeTimes(LIMIT + 4)).to.deep.equal([...times(LIMIT, true), ...times(4, false)]);
  });

  it('let exactly as many through when all come at once', async () => {
    const taken = await Promise.all(Array.from({ length: 200 }, () => take(50)));
    expect(taken.filter(({ isWithin }) => isWithin)).to.have.length(50);
  });

  it('say how long it is until the window ends, to those within it and beyond', async () => {
    const first = await take(1);
    expect(first.resetMs).to.be.above(0).and.at.most(stage.windowMs);
    await stage.pass(stage.windowMs / 4);
    const beyond = await take(1);
    expect(beyond.isWithin).to.equal(false);
    expect(beyond.resetMs)
      .to.be.above(0)
      .and.at.most(stage.windowMs * 0.75);
  });

  it('begin with the first request of a key, and end a window later, whatever comes between', async () => {
    await takeTimes(LIMIT);
    await stage.pass(stage.windowMs / 2);
    expect(await takeTimes(3)).to.deep.equal(times(3, false));
    await stage.pass(stage.windowMs / 2 + 1);
    expect(await takeTimes(LIMIT + 1)).to.deep.equal([...times(LIMIT, true), false]);
  });

  it('are one for each key', async () => {
    await takeTimes(LIMIT + 1);
    expect((await take(LIMIT, stage.windowMs, `${key} and more`)).isWithin).to.equal(true);
  });

  it('go by the limit they are asked with, also when it has changed', async () => {
    await takeTimes(LIMIT);
    expect(await takeTimes(3, LIMIT + 2)).to.deep.equal([true, true, false]);
    expect((await take(LIMIT - 1)).isWithin).to.equal(false);
  });

  it('go by a changed length from the next window on at the latest', async () => {
    await take();
    await stage.pass(stage.windowMs + 1);
    const { isWithin, resetMs } = await take(LIMIT, stage.windowMs * 10);
    expect(isWithin).to.equal(true);
    expect(resetMs)
      .to.be.above(stage.windowMs)
      .and.at.most(stage.windowMs * 10);
  });
}
