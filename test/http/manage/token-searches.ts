/** Searches among thousands of tokens, for the quick suite and for the long one. */
import { join } from 'node:path';
import { expect } from 'chai';
import type {
  ChangeTransaction,
  Moment,
  PageOf,
  Position,
  TokenFilter,
  TokenRow,
  TokenSort,
} from '../../../daemon/core/ports.js';
import { stateOf, type Token } from '../../../daemon/core/token.js';
import { openStores, type Stores } from '../../../daemon/store/open.js';
import { Migrator } from '../../../migrations/migrator.js';
import { canary } from '../../support/canaries.js';
import { TestClock } from '../../support/clock.js';
import { temporaryFolder } from '../../support/daemon.js';
import { aNewProject, aNewToken } from '../../support/factories.js';

const NOW_MS = 1_800_000_000_000;
const TOKENS = 4_001;

/** Texts with the number of matching tokens: around every threshold at which the search changes its strategy. */
const TEXTS = {
  'nobody is called so': 0,
  'token 4000': 1,
  ' thousand': 1_000,
  '% OVER!_': 1_001,
  ' most': 4_000,
  TOKEN: 4_001,
  'deadc0de-': 1, // By its ID only.
  beef: 5, // Three by name, three by id, one of them by both.
  c0de: 1_000, // 500 by name, 600 by id, 100 of them by both.
  f00d: 1_200, // 600 by name, 600 by id.
};

function nameOf(n: number): string {
  const words = [`Token ${n}`];
  if (n < 1_000) words.push('thousand');
  if (n % 4 === 0) words.push('100% Over!_');
  if (n > 0) words.push('most');
  if (n < 3) words.push('Beef');
  if (n >= 500 && n < 1_000) words.push('C0DE');
  if (n >= 2_000 && n < 2_600) words.push('f00d');
  return words.join(' ');
}

function idOf(n: number): string {
  const ending = String(n).padStart(8, '0');
  if (n >= 2 && n < 5) return `beef-${ending}`;
  if (n >= 900 && n < 1_500) return `c0de-${ending}`;
  if (n >= 3_000 && n < 3_600) return `f00d-${ending}`;
  return n === 4_000 ? `deadc0de-${ending}` : `0000-${ending}`;
}

const only = <T>(...among: T[]) => ({ among, isExcluded: false });
const allBut = <T>(...among: T[]) => ({ among, isExcluded: true });
const word = (text: string, isExcluded = false) => ({ text, isExcluded });

const FILTERS: Record<string, TokenFilter> = {
  'no other filter': {},
  'a project': { projects: only('two') },
  'usable ones': { states: only('active') },
  'several states': { states: only('revoked', 'rate_limited') },
  'all states except one': { states: allBut('active') },
  'several projects': { projects: only('one', 'idle') },
  'all projects except some': { projects: allBut('two', 'idle') },
  'wanted and excluded words': { words: [word('most'), word('over!_', true), word('f00d', true)] },
  'an excluded word, in all projects except one': { words: [word('c0de', true)], projects: allBut('two') },
  'tokens of inactive projects': { states: only('project_inactive') },
  'a time of expiry': { expiresAfter: { atMs: NOW_MS + 500 }, expiresBefore: { atMs: NOW_MS + 2_000 } },
  'more than a share of the cap': { usedOverPercent: 90 },
  'less than a share of the cap': { usedUnderPercent: 20 },
  'a time of expiry relative to now': { expiresAfter: { inMs: -100 }, expiresBefore: { inMs: 1_000 } },
  'a time of creation': { createdAfter: { atMs: NOW_MS - 3_000 }, createdBefore: { atMs: NOW_MS - 1_500 } },
  'no use for some time': { idleSince: { inMs: -1_400 } },
  'no use for some time, in some states': { idleSince: { inMs: -1_400 }, states: only('active', 'expired') },
  'all filters together': {
    projects: only('two'),
    states: only('active'),
    expiresAfter: { atMs: NOW_MS + 500 },
    expiresBefore: { atMs: NOW_MS + 2_000 },
    usedOverPercent: 20,
  },
};

type Order = TokenSort & { sortedBy: (token: Token, row: TokenRow) => string | number };

/** Live tokens by their expiry, then the others in the opposite order. */
const LIVE_FIRST = (token: Token, { projectIsActive }: TokenRow) =>
  stateOf(token, projectIsActive, NOW_MS) === 'active'
    ? token.expiresAtMs
    : Number.MAX_SAFE_INTEGER - token.expiresAtMs;

const NEWEST_FIRST: Order = { field: 'created_at', descending: true, sortedBy: (token) => token.createdAtMs };
export const ORDERS: readonly Order[] = [
  NEWEST_FIRST,
  { field: 'last_used_at', descending: false, sortedBy: (token) => token.lastUsedAtMs ?? 0 },
  { field: 'name', descending: false, sortedBy: (token) => token.name! },
  { field: 'live', descending: false, sortedBy: LIVE_FIRST },
  { field: 'live', descending: true, sortedBy: LIVE_FIRST },
];

/**
 * The search has different strategies for few and for many matches, which must give the same results.
 *
 * @param ordersEach in how many orders each text is searched with each filter; the orders rotate.
 */
export function describeSearches(title: string, ordersEach: number): void {
  describe(title, function () {
    this.timeout(60_000);
    let turn = 0;
    let stores: Stores;
    let all: TokenRow[];

    before(async () => {
      stores = await openStores(
        { database: { driver: 'sqlite', path: join(temporaryFolder(), 'llmp.db') }, encryptionKey: undefined },
        { clock: new TestClock() },
      );
      await new Migrator(stores.database, '0.1.0').up();
      await stores.records.change(async (tx) => {
        for (const id of ['one', 'two', 'idle']) await insertProject(tx, id);
        for (let n = 0; n < TOKENS; n++) await insertToken(tx, n);
      });
      await stores.database.transact((tx) =>
        tx.execute(
          'UPDATE tokens SET request_count = created_at % 11, last_used_at = CASE WHEN created_at % 3 = 0 THEN 0 ELSE created_at + created_at * 7919 % 2000 END',
        ),
      );
      all = (await search({}, NEWEST_FIRST)).rows;
      expect(all).to.have.length(TOKENS);
      for (const filter of Object.values(FILTERS).slice(1)) {
        expect(all.filter((row) => fits(row, '', filter)).length).to.be.within(10, TOKENS - 10);
      }
    });
    after(() => stores.close());

    /** All pages together. */
    async function search(filter: TokenFilter, sort: TokenSort): Promise<PageOf<TokenRow>> {
      const rows: TokenRow[] = [];
      let after: Position | null = null;
      for (;;) {
        const page: PageOf<TokenRow> = await stores.records.tokens(filter, sort, { limit: 900, after }, NOW_MS);
        rows.push(...page.rows);
        if (page.next === null) return { ...page, rows };
        after = page.next;
      }
    }

    for (const [text, count] of Object.entries(TEXTS)) {
      it(`for "${text}" finds ${count}`, async () => {
        expect((await search({ text }, NEWEST_FIRST)).total).to.equal(count);
      });

      for (const [what, filter] of Object.entries(FILTERS)) {
        it(`for "${text}" with ${what} shows and counts all matches, in rotating orders`, async () => {
          const found = all.filter((row) => fits(row, text, filter));
          for (let count = 0; count < ordersEach; count++) {
            const order = ORDERS[turn++ % ORDERS.length]!;
            const fitting = found.toSorted(by(order));
            const { rows, total } = await search({ ...filter, text }, order);
            expect(rows.map(({ token }) => token.id)).to.deep.equal(fitting.map(({ token }) => token.id));
            expect(total).to.equal(fitting.length);
          }
        });
      }
    }
  });
}

async function insertProject(tx: ChangeTransaction, id: string): Promise<void> {
  await tx.insertProject(aNewProject({ id, name: id, isActive: id !== 'idle', upstreamKey: canary('upstream') }));
}

async function insertToken(tx: ChangeTransaction, n: number): Promise<void> {
  await tx.insertToken(
    aNewToken({
      id: idOf(n),
      projectId: ['one', 'two', 'two', 'idle'][n % 4]!,
      name: nameOf(n),
      isActive: n % 5 !== 0,
      expiresAtMs: NOW_MS - 500 + ((n * 31) % 4_000),
      maxRequests: n % 3 === 0 ? 0 : 10,
      createdAtMs: NOW_MS - ((n * 13) % TOKENS),
    }),
  );
}

function fits({ token, projectIsActive }: TokenRow, text: string, filter: TokenFilter): boolean {
  const { projects, states, expiresAfter, expiresBefore, usedOverPercent, usedUnderPercent, words = [] } = filter;
  const { createdAfter, createdBefore, idleSince } = filter;
  const hasText = (part: string) => token.name!.toLowerCase().includes(part.toLowerCase()) || token.id.startsWith(part);
  if (!hasText(text) || words.some((one) => hasText(one.text) === one.isExcluded)) return false;
  if (projects && projects.among.includes(token.projectId) === projects.isExcluded) return false;
  if (states && states.among.includes(stateOf(token, projectIsActive, NOW_MS)) === states.isExcluded) return false;
  if (expiresAfter && token.expiresAtMs <= msOf(expiresAfter)) return false;
  if (expiresBefore && token.expiresAtMs >= msOf(expiresBefore)) return false;
  if (createdAfter && token.createdAtMs <= msOf(createdAfter)) return false;
  if (createdBefore && token.createdAtMs >= msOf(createdBefore)) return false;
  if (idleSince && (token.lastUsedAtMs ?? token.createdAtMs) >= msOf(idleSince)) return false;
  const used = token.maxRequests > 0 ? token.requestCount / token.maxRequests : NaN;
  if (usedOverPercent !== undefined && !(used > usedOverPercent / 100)) return false;
  return usedUnderPercent === undefined || used < usedUnderPercent / 100;
}

const msOf = (moment: Moment) => ('atMs' in moment ? moment.atMs : NOW_MS + moment.inMs);

function by({ descending, sortedBy }: Order): (a: TokenRow, b: TokenRow) => number {
  const sign = descending ? -1 : 1;
  return (one, other) => {
    const [a, b] = [one.token, other.token];
    const [first, second] = [sortedBy(a, one), sortedBy(b, other)];
    const isDead = sortedBy === LIVE_FIRST && Number(first) > NOW_MS * 2;
    return sign * (compare(first, second) || compare(a.id, b.id) * (isDead ? -1 : 1));
  };
}

const compare = (a: string | number, b: string | number) => (a < b ? -1 : a > b ? 1 : 0);
