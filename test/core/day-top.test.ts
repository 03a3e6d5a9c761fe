import { expect } from 'chai';
import type { LastUse, TopDayStore, TopHourRow, TopQuery } from '../../daemon/core/ports.js';
import { type DayPart, DayTop } from '../../daemon/core/top/day-top.js';
import { firstIdOf } from '../../daemon/core/usage.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';

const HOUR_MS = 3_600_000;
const STARTED_MS = Date.UTC(2030, 0, 31, 12, 30);
const HOUR_STARTED_MS = STARTED_MS - (STARTED_MS % HOUR_MS);
const QUERY: TopQuery = { by: 'token', window: '24h', sort: 'requests', limit: 3 };
/** More than those that are read for each report. */
const MANY = 3_000;
const LONG_MS = 5;

describe('the sums of the last 24 hours', () => {
  let clock: TestClock;
  let rows: TopHourRow[];
  let uses: LastUse[];
  /** First IDs of the parts of the table that were read. */
  let reads: string[];
  let readMs: number;
  let top: DayTop;

  const store: Pick<TopDayStore, 'topHourRows' | 'lastUses'> = {
    topHourRows(after, untilMs, limit) {
      reads.push(after);
      clock.advance(readMs);
      const found = rows
        .filter(({ id, hourMs }) => id > after && hourMs < untilMs)
        .sort((a, b) => (a.id < b.id ? -1 : 1));
      return Promise.resolve(found.slice(0, limit));
    },
    lastUses(sinceMs, after, limit) {
      const isAfter = ({ tokenId, lastUsedAtMs }: LastUse) =>
        lastUsedAtMs > after.lastUsedAtMs || (lastUsedAtMs === after.lastUsedAtMs && tokenId > after.tokenId);
      return Promise.resolve(uses.filter((use) => use.lastUsedAtMs >= sinceMs && isAfter(use)).slice(0, limit));
    },
  };
  const opened = (most: { maxCells?: number; maxProjectCells?: number } = {}) =>
    new DayTop({
      store: { ...store, topGroupHours: () => Promise.resolve([]) },
      flush: () => Promise.resolve(),
      clock,
      log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
      ...most,
    });
  const addRow = (token: number, hoursAgo: number, requests: number, model = 'm') => {
    const hourMs = HOUR_STARTED_MS - hoursAgo * HOUR_MS;
    const id = `${firstIdOf(hourMs)}${String(rows.length).padStart(8, '0')}`;
    const counts = [requests, 0, 0, 0, 1, 0, 10, 5];
    rows.push({
      id,
      hourMs,
      tokenId: token < 0 ? '' : `token-${token}`,
      projectId: token < 0 ? '' : `project-${token % 7}`,
      model,
      counts,
    });
  };
  const figures = async (query: Partial<TopQuery> = {}) => {
    const part = await top.part({ ...QUERY, ...query });
    return part?.groups.map((group) => [group.tokenId ?? group.projectId, group.counts[0]]);
  };
  beforeEach(() => {
    clock = new TestClock({ standsStill: true, startMs: STARTED_MS });
    [rows, uses, reads, readMs] = [[], [], [], 0];
    top = opened();
  });
  afterEach(() => top.close());

  it('add up all hours of the window, of every instance', async () => {
    addRow(1, 0, 1);
    addRow(1, 1, 10);
    addRow(1, 23, 100);
    addRow(1, 24, 1_000);
    addRow(2, 5, 50, 'other');
    addRow(-1, 3, 7);
    expect(await figures()).to.deep.equal([
      ['token-1', 111],
      ['token-2', 50],
    ]);
    expect(await figures({ by: 'project', sort: 'errors' })).to.deep.equal([
      ['project-1', 111],
      ['project-2', 50],
    ]);
    const part = await top.part({ ...QUERY, by: 'model', projectId: 'project-2' });
    expect(part?.groups.map(({ model, counts }) => [model, counts])).to.deep.equal([
      ['other', [50, 0, 0, 0, 1, 0, 10, 5]],
    ]);
    // The requests without a known token are in the total.
    expect((await top.part(QUERY))?.total.counts[0]).to.equal(168);
    expect([part?.fromMs, part?.readAtMs]).to.deep.equal([HOUR_STARTED_MS - 23 * HOUR_MS, STARTED_MS]);
  });

  it('are read for each report while there are few', async () => {
    addRow(1, 0, 1);
    expect(await figures()).to.deep.equal([['token-1', 1]]);
    addRow(2, 12, 2);
    expect(await figures()).to.deep.equal([
      ['token-2', 2],
      ['token-1', 1],
    ]);
  });

  it('of many tokens are read once; the current hour again, when time has passed', async () => {
    for (let token = 0; token < MANY; token++) addRow(token, token % 23, 1);
    readMs = LONG_MS;
    expect((await figures())?.length).to.equal(3);
    const first = reads.length;
    addRow(5, 0, 100);
    // This hour was read, and is not read again.
    addRow(7, 1, 1_000);
    await figures();
    expect(reads).to.have.length(first);
    clock.advance(25 * first * LONG_MS);
    await figures();
    await eventually('they are read', () => reads.length > first);
    await eventually('they are new', async () => (await figures())?.[0]?.[1] === 101);
    expect(reads.slice(first).every((id) => id >= firstIdOf(HOUR_STARTED_MS))).to.equal(true);
  });

  it('are read without a report: soon after the start, and when an hour has begun', async () => {
    for (let token = 0; token < MANY; token++) addRow(token, token % 23, 1);
    top.begin();
    clock.advance(5_000);
    await eventually('they are read', () => reads.length > MANY / 500);
    await eventually('the clock is set', () => clock.pending > 0);
    addRow(7, 2, 1_000);
    clock.advance(HOUR_MS);
    await eventually('they are read again', async () => {
      clock.advance(60_000);
      return (await figures())?.[0]?.[1] === 1_001;
    });
    const part = await top.part(QUERY);
    expect(part?.fromMs).to.equal(HOUR_STARTED_MS - 22 * HOUR_MS);
    // Those of the hour that has left the window.
    expect(part?.groupCount).to.equal(rows.filter(({ hourMs }) => hourMs >= part!.fromMs).length - 1);
  });

  it('say when a token was last used, and sort by it', async () => {
    for (const token of [1, 2, 3]) addRow(token, 1, 1);
    addRow(1, 3, 1);
    uses = [1, 2].map((token) => ({ tokenId: `token-${token}`, lastUsedAtMs: HOUR_STARTED_MS - token * 60_000 }));
    uses.reverse();
    const lastOf = async (by: TopQuery['by']) =>
      (await top.part({ ...QUERY, by, sort: 'last_used' }))?.groups.map(({ projectId, lastMs }) => [projectId, lastMs]);
    const expected = [
      ['project-1', HOUR_STARTED_MS - 60_000],
      ['project-2', HOUR_STARTED_MS - 120_000],
      // Its requests were refused, so only their hour is known.
      ['project-3', HOUR_STARTED_MS - HOUR_MS],
    ];
    expect(await lastOf('token')).to.deep.equal(expected);
    expect(await lastOf('project')).to.deep.equal(expected);
    expect((await lastOf('model'))?.map(([, lastMs]) => lastMs)).to.deep.equal(
      Array(3).fill(HOUR_STARTED_MS - HOUR_MS),
    );
  });

  it('have the hours of projects and models', async () => {
    addRow(1, 0, 1);
    addRow(1, 23, 100);
    addRow(1, 23, 7, 'other');
    addRow(8, 23, 20);
    addRow(2, 5, 50);
    const hours = Array.from({ length: 24 }, () => 0);
    const historyOf = async (query: Partial<TopQuery>) => {
      const part = await top.part({ ...QUERY, ...query });
      return part && { hasHours: part.hasHours, groups: part.groups.map((group) => [group.model, group.history]) };
    };
    expect(await historyOf({ by: 'project' })).to.deep.equal({
      hasHours: true,
      groups: [
        [null, [127, ...hours.slice(2), 1]],
        [null, [...hours.slice(6), 50, 0, 0, 0, 0, 0]],
      ],
    });
    expect(await historyOf({ by: 'model', projectId: 'project-1' })).to.deep.equal({
      hasHours: true,
      groups: [
        ['m', [120, ...hours.slice(2), 1]],
        ['other', [7, ...hours.slice(1)]],
      ],
    });
    const part = await top.part({ ...QUERY, by: 'project' });
    expect(part?.groups[0]?.failureHistory).to.deep.equal([3, ...hours.slice(2), 1]);
    // Those of a token are read from the database.
    expect((await top.part({ ...QUERY, by: 'model', tokenId: 'token-1' }))?.hasHours).to.equal(false);
    expect((await top.part(QUERY))?.hasHours).to.equal(false);
  });

  it('of more projects and models than there is room for come from those of the tokens, without hours', async () => {
    for (let token = 0; token < MANY; token++) addRow(token, token % 23, token, `model-${token % 11}`);
    addRow(-1, 3, 7);
    const limited = opened({ maxProjectCells: 70 });
    for (const by of ['project', 'model'] as const) {
      for (const projectId of [undefined, 'project-3']) {
        const query = { ...QUERY, by, projectId, limit: 100 };
        const [expected, found] = [await top.part(query), await limited.part(query)];
        expect([expected?.hasHours, found?.hasHours]).to.deep.equal([true, false]);
        const withoutHistory = (part: DayPart | null) =>
          part && {
            ...{ ...part, hasHours: null },
            groups: part.groups.map((group) => ({ ...group, history: [], failureHistory: [] })),
          };
        expect(withoutHistory(found), by).to.deep.equal(withoutHistory(expected));
      }
    }
    await limited.close();
  });

  it('do not exist for more tokens than there is room for', async () => {
    top = opened({ maxCells: 1_000 });
    for (let token = 0; token < MANY; token++) addRow(token, 10, 1);
    expect(await top.part(QUERY)).to.equal(null);
  });
});
