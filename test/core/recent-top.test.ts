import { expect } from 'chai';
import type { RequestEnded } from '../../daemon/core/events.js';
import { NO_CONTENT_FACTS } from '../../daemon/core/events.js';
import { ModelNames } from '../../daemon/core/model-names.js';
import type { TopPart, TopQuery } from '../../daemon/core/ports.js';
import { TOP_DIMENSIONS, TOP_SORTS } from '../../daemon/api/vocabulary.js';
import { failuresIn } from '../../daemon/core/top/counts.js';
import { RecentTop } from '../../daemon/core/top/recent-top.js';
import { CELLS_PER_SLICE, Step } from '../../daemon/core/top/step.js';
import { merged, quantileOf } from '../../daemon/core/top/top-report.js';

const HOUR_MS = 3_600_000;
const BEGAN_MS = Date.UTC(2030, 0, 31, 12);

function ended(timeMs: number, token: number, more: Partial<RequestEnded> = {}): RequestEnded {
  return {
    ...NO_CONTENT_FACTS,
    requestId: 'r',
    timeMs,
    tokenId: `token-${token}`,
    projectId: `project-${token % 7}`,
    tokenName: null,
    projectName: null,
    obfuscated: null,
    clientIp: null,
    method: 'GET',
    path: '/v1',
    status: 200,
    code: null,
    problem: null,
    outcome: 'ok',
    isForwarded: true,
    cache: 'miss',
    durationMs: 1,
    upstreamMs: 100,
    firstByteMs: 100,
    bytesIn: 0,
    bytesOut: 0,
    streamed: false,
    upstreamRequestId: null,
    model: 'm',
    ...more,
  };
}

function finished(slices: Generator<void, TopPart>): TopPart {
  for (;;) {
    const slice = slices.next();
    if (slice.done) return slice.value;
  }
}

describe('the figures of the last hour in memory', () => {
  let nowMs: number;
  const opened = (maxBytes?: number) =>
    new RecentTop({
      clock: { now: () => nowMs, monotonic: () => performance.now() },
      models: new ModelNames(),
      ...(maxBytes && { maxBytes }),
    });
  const query = (more: Partial<TopQuery> = {}) => ({
    by: 'token' as const,
    sort: 'errors' as const,
    limit: 10,
    ...more,
    window: '1h' as const,
  });
  /** A request of each. The same object for all of them: creating an object like it takes much longer. */
  const recordTokens = (top: RecentTop, count: number) => {
    const request = { ...ended(nowMs, 0) };
    for (let token = 0; token < count; token++) {
      top.record(Object.assign(request, { tokenId: `token-${token}`, projectId: `project-${token % 7}` }));
    }
  };
  beforeEach(() => {
    nowMs = BEGAN_MS;
  });

  it('are those of all requests, for random requests at random times', async () => {
    const top = opened();
    const model = new Map<string, { requests: number; errors: number; last: number }>();
    let seed = 1;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    for (let n = 0; n < 20_000; n++) {
      nowMs += random(300);
      const isFailed = random(4) === 0;
      const request = ended(nowMs, random(300), isFailed ? { status: 502, outcome: 'upstream_error' } : {});
      top.record(request);
      if (request.timeMs < BEGAN_MS) continue;
      const known = model.get(request.tokenId!) ?? { requests: 0, errors: 0, last: 0 };
      known.requests += 1;
      known.errors += isFailed ? 1 : 0;
      known.last = nowMs;
      model.set(request.tokenId!, known);
    }
    expect(nowMs - BEGAN_MS).to.be.below(57 * 60_000);
    const part = await top.part(query({ limit: 300 }), nowMs);
    const found = part.groups.map((group) => [
      group.tokenId,
      { requests: group.counts[0], errors: failuresIn(group.counts), last: group.lastMs },
    ]);
    expect(Object.fromEntries(found)).to.deep.equal(Object.fromEntries(model));
    const errors = part.groups.map((group) => failuresIn(group.counts));
    expect(errors).to.deep.equal([...errors].sort((a, b) => b - a));
    expect(part.groups.every(({ history, counts }) => history.reduce((a, b) => a + b, 0) === counts[0])).to.equal(true);
    expect((await top.part(query({ limit: 3 }), nowMs)).groups).to.deep.equal(part.groups.slice(0, 3));
    expect(part.total.counts[0]).to.equal(20_000);
  });

  it('do not contain what comes while a report is built, least of all in the row of another project', () => {
    for (const by of TOP_DIMENSIONS) {
      const top = opened();
      const recordBoth = () => {
        for (const token of [0, 1]) top.record(ended(nowMs, token));
      };
      recordBoth();
      nowMs += 3 * 60_000;
      recordBoth();
      const rowsOf = (part: TopPart) => ({
        count: part.groupCount,
        rows: part.groups.map(({ tokenId, projectId, model, counts }) => [tokenId, projectId, model, counts[0]]),
      });
      const slices = top.partInSlices(query({ by }), nowMs);
      const before = rowsOf(finished(top.partInSlices(query({ by }), nowMs)));
      slices.next();
      for (let n = 0; n < 5; n++) top.record(ended(nowMs, 0, { model: `new ${n}` }));
      for (let token = 2; token < 9; token++) top.record(ended(nowMs, token));
      expect(rowsOf(finished(slices)), by).to.deep.equal(before);
      expect(before.rows).to.have.length(2);
    }
  });

  it('are read in slices, in every order, so that requests do not wait for a report', () => {
    const top = opened();
    recordTokens(top, 3 * CELLS_PER_SLICE);
    for (const by of TOP_DIMENSIONS) {
      for (const sort of TOP_SORTS) {
        const { part, sliceSizes } = withCellsCounted(() => top.partInSlices(query({ by, sort }), nowMs));
        expect(part.groups).to.have.length(by === 'token' ? 10 : 7);
        expect(Math.max(...sliceSizes), `${by} by ${sort}`).to.be.within(1, CELLS_PER_SLICE);
        // Keys and rows are read from the cells, and the numbers of models. All tokens are looked at to count them, and to select the first.
        const passes = { project: 2, model: 3, token: 4 }[by];
        expect(sliceSizes.length).to.be.above(3 * passes);
      }
    }
  });

  it('do not mix when two of them are built at the same time', () => {
    const top = opened();
    recordTokens(top, CELLS_PER_SLICE + 10);
    for (let token = 5; token < 15; token++) top.record(ended(nowMs, token));
    const queries = TOP_DIMENSIONS.flatMap((by) => TOP_SORTS.map((sort) => query({ by, sort })));
    const alone = queries.map((one) => finished(top.partInSlices(one, nowMs)));
    const working = new Map<number, Generator<void, TopPart>>();
    for (let begun = 0; begun === 0 || working.size > 0;) {
      // One more after each slice of the others.
      const next = queries[begun];
      if (next) working.set(begun++, top.partInSlices(next, nowMs));
      for (const [index, slices] of working) {
        const slice = slices.next();
        if (!slice.done) continue;
        expect(slice.value, JSON.stringify(queries[index])).to.deep.equal(alone[index]);
        working.delete(index);
      }
    }
  });

  it('keep the names of a report that is being built when its steps leave', async () => {
    // More than are read in one stretch.
    const monotonic = () => (ticks += 10);
    let ticks = 0;
    const top = new RecentTop({ clock: { now: () => nowMs, monotonic }, models: new ModelNames() });
    recordTokens(top, CELLS_PER_SLICE + 10);
    const part = top.part(query({ sort: 'requests', limit: 2 }), nowMs);
    await new Promise((resolve) => setImmediate(resolve));
    nowMs += 2 * HOUR_MS;
    for (let token = 0; token < 1_000; token++) top.record(ended(nowMs, 1_000_000 + token));
    expect((await part).groups.map(({ tokenId }) => tokenId)).to.deep.equal(['token-0', 'token-1']);
    const later = await top.part(query({ sort: 'requests', limit: 1 }), nowMs);
    expect([later.groupCount, later.groups[0]?.tokenId]).to.deep.equal([1_000, 'token-1000000']);
  });

  it('of several instances have the quantiles of all responses, not their average', async () => {
    const [one, other] = [opened(), opened()];
    for (let n = 0; n < 99; n++) one.record(ended(nowMs, 1, { upstreamMs: 10 }));
    for (let n = 0; n < 11; n++) other.record(ended(nowMs, 1, { upstreamMs: 10_000 }));
    other.record(ended(nowMs, 2));
    const part = merged([await one.part(query(), nowMs), await other.part(query(), nowMs)], query());
    const [row] = part.groups;
    expect([part.groupCount, row?.counts[0], part.total.counts[0]]).to.deep.equal([2, 110, 111]);
    expect(quantileOf(row!, 'p50')).to.be.within(6, 16);
    expect(quantileOf(row!, 'p95')).to.be.within(6_000, 16_000);
  });

  it('take a bounded amount of memory: the oldest steps leave early', async () => {
    const most = 2_500_000;
    const top = opened(most);
    for (let step = 0; step < 10; step++) {
      for (let token = 0; token < 1_500; token++) top.record(ended(nowMs, step * 1_500 + token));
      expect(top.bytes).to.be.at.most(most);
      nowMs += 180_000;
    }
    nowMs -= 180_000;
    const part = await top.part(query(), nowMs);
    expect(part.fromMs).to.be.within(BEGAN_MS + 180_000, nowMs);
    expect(part.groupCount).to.be.within(1_500, 10_000);
    expect(part.total.counts[0]).to.equal(part.groupCount);
  });

  it('are in the total only when there is no room for a single step', async () => {
    const top = opened(2_000_000);
    for (let token = 0; token < 20_000; token++) top.record(ended(nowMs, token));
    const part = await top.part(query(), nowMs);
    expect(top.bytes).to.be.at.most(2_000_000);
    expect(part.untracked).to.be.above(0);
    expect(part.groupCount + part.untracked).to.equal(20_000);
    expect(part.total.counts[0]).to.equal(20_000);
  });

  it('free their memory when the hour has passed, and begin again after the clock was set back', async () => {
    const top = opened();
    const before = top.bytes;
    for (let token = 0; token < 5_000; token++) top.record(ended(nowMs, token));
    nowMs += 2 * HOUR_MS;
    expect((await top.part(query(), nowMs)).groups).to.deep.equal([]);
    await top.part({ ...query(), window: '5m' }, nowMs);
    expect(top.bytes).to.be.below(before + 150_000);
    top.record(ended(nowMs, 1));
    nowMs -= HOUR_MS;
    top.record(ended(nowMs, 2));
    expect((await top.part(query(), nowMs)).groups.map(({ tokenId }) => tokenId)).to.deep.equal(['token-2']);
  });
});

/** Runs the slices, and counts the cells that each of them reads. */
function withCellsCounted<T>(begin: () => Generator<void, T>): { part: T; sliceSizes: number[] } {
  const ofCell = ['tokenOf', 'modelOf', 'countOf', 'lastMsOf', 'failuresOf', 'addTimes'] as const;
  const ofCells = ['readTokens', 'readLastMs', 'readRequests', 'readFailures', 'readModelTokens'] as const;
  const readers = [...ofCell, ...ofCells];
  const cells = new Set<number>();
  const original = new Map(readers.map((name) => [name, Object.getOwnPropertyDescriptor(Step.prototype, name)!]));
  for (const [name, { value }] of original) {
    const read = value as (this: Step, cell: number, ...more: unknown[]) => unknown;
    Object.defineProperty(Step.prototype, name, {
      configurable: true,
      value(this: Step, cell: number, ...more: unknown[]) {
        const count = (ofCells as readonly string[]).includes(name) ? (more[0] as Float64Array).length : 1;
        for (let n = 0; n < count; n++) cells.add(cell + n);
        return read.call(this, cell, ...more);
      },
    });
  }
  const sliceSizes: number[] = [];
  try {
    const work = begin();
    for (;;) {
      cells.clear();
      const step = work.next();
      sliceSizes.push(cells.size);
      if (step.done) return { part: step.value, sliceSizes };
    }
  } finally {
    for (const [name, descriptor] of original) Object.defineProperty(Step.prototype, name, descriptor);
  }
}
