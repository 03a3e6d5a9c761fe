/** Lists: every order and filter over all pages, and their totals. */
import { expect } from 'chai';
import type { WireProject, WireToken } from '../../../daemon/api/contract.js';
import type { ContractContext } from './context.js';
import { inOrder, type Sort, SORTS, stateOf, type Stored, storedTokens } from './stored.js';

const LIMIT = 150;
const STATES = ['active', 'expired', 'revoked', 'rate_limited', 'project_inactive'];
const HOUR_MS = 3_600_000;

export function behavesInLists(given: ContractContext): void {
  describe('lists', () => {
    let stored: Stored[];
    before(async () => {
      stored = await storedTokens(given.system);
    });

    async function walked(query: string): Promise<string[]> {
      const { items, total, pages } = await given.system.walk<WireToken>(`/manage/tokens?limit=${LIMIT}&${query}`);
      expect(total, query).to.equal(items.length);
      expect(pages, query).to.equal(Math.max(1, Math.ceil(items.length / LIMIT)));
      return items.map(({ id }) => id);
    }

    for (const sort of Object.keys(SORTS) as Sort[]) {
      for (const sign of ['', '-']) {
        it(`of tokens by ${sign}${sort} have each token once, in order, over all pages`, async () => {
          expect(stored.length).to.be.greaterThan(3 * LIMIT);
          expect(await walked(`sort=${sign}${sort}`)).to.deep.equal(inOrder(stored, sort, sign === '-'));
        });
      }
    }

    it('of tokens by live have the active ones first, those that expire next on top, and by -live the reverse', async () => {
      const nowMs = Date.now();
      const isActive = (token: Stored) => stateOf(token, nowMs) === 'active';
      const wanted = [
        ...inOrder(stored.filter(isActive), 'expires_at', false),
        ...inOrder(
          stored.filter((token) => !isActive(token)),
          'expires_at',
          true,
        ),
      ];
      expect(await walked('sort=live')).to.deep.equal(wanted);
      expect(await walked('sort=-live')).to.deep.equal(wanted.reverse());
    });

    const nowMs = Date.now();
    const isIn = (state: string) => (token: Stored) => stateOf(token, Date.now()) === state;
    const filters: [query: string, lets: (token: Stored) => boolean][] = [
      ...STATES.flatMap((state): typeof filters => [
        [`state=${state}`, isIn(state)],
        [`state=!${state}`, (token) => !isIn(state)(token)],
      ]),
      ['state=revoked,expired', (token) => isIn('revoked')(token) || isIn('expired')(token)],
      ['active_only=true', isIn('active')],
      ['q=JOB', ({ name }) => name.toLowerCase().includes('job')],
      ['q=b%25C', ({ name }) => name.toLowerCase().includes('b%c')],
      ['words=ci !" 1"', ({ name }) => name.toLowerCase().includes('ci') && !name.includes(' 1')],
      ['used_over=40', ({ requestCount, maxRequests }) => maxRequests > 0 && requestCount / maxRequests > 0.4],
      ['used_under=60', ({ requestCount, maxRequests }) => maxRequests > 0 && requestCount / maxRequests < 0.6],
      [
        `created_after=${new Date(nowMs - 9 * HOUR_MS).toISOString()}&created_before=1h`,
        ({ createdAt }) => createdAt > nowMs - 9 * HOUR_MS && createdAt < Date.now() - HOUR_MS,
      ],
      ['idle_over=1d', ({ lastUsedAt, createdAt }) => (lastUsedAt || createdAt) < Date.now() - 24 * HOUR_MS],
      [
        `expires_after=${new Date(nowMs).toISOString()}&expires_before=${new Date(nowMs + 9 * HOUR_MS).toISOString()}`,
        ({ expiresAt }) => expiresAt > nowMs && expiresAt < nowMs + 9 * HOUR_MS,
      ],
    ];
    for (const [query, lets] of filters) {
      it(`of tokens with ${query.replace(/\d{4}-\S+?Z/g, '…')} have the matching ones, over all pages, and their total`, async () => {
        const fitting = stored.filter(lets);
        for (const [sort, isDescending] of [
          ['expires_at', false],
          ['name', true],
        ] as const) {
          const order = `sort=${isDescending ? '-' : ''}${sort}`;
          expect(await walked(`${query}&${order}`)).to.deep.equal(inOrder(fitting, sort, isDescending));
        }
      });
    }

    it('of tokens with q= the beginning of an ID have the tokens with it', async () => {
      const beginning = stored[0]?.id.slice(0, 8) ?? '';
      const fitting = stored.filter(({ id, name }) => id.startsWith(beginning) || name.includes(beginning));
      for (const q of [beginning, beginning.toUpperCase()]) {
        expect(await walked(`q=${q}&sort=name`)).to.deep.equal(inOrder(fitting, 'name', false));
      }
    });

    it('of the tokens of one project, of several and of all others have the matching ones', async () => {
      const [one, other] = given.testData.projects.map(({ id }) => id);
      const of = (lets: (projectId: string) => boolean) =>
        inOrder(
          stored.filter(({ projectId }) => lets(projectId)),
          'created_at',
          true,
        );
      expect(await walked(`project_id=${one}`)).to.deep.equal(of((id) => id === one));
      expect(await walked(`project_id=${one},${other}`)).to.deep.equal(of((id) => id === one || id === other));
      expect(await walked(`project_id=!${one}`)).to.deep.equal(of((id) => id !== one));
      const revoked = `project_id=${one}&state=revoked&q=job`;
      const wanted = stored.filter(
        (token) =>
          token.projectId === one &&
          stateOf(token, Date.now()) === 'revoked' &&
          token.name.toLowerCase().includes('job'),
      );
      expect(await walked(revoked)).to.deep.equal(inOrder(wanted, 'created_at', true));
    });

    it('of projects have each once, newest first, over all pages', async () => {
      const { items, total, pages } = await given.system.walk<WireProject>('/manage/projects');
      expect(pages).to.be.greaterThan(1);
      expect(total).to.equal(items.length);
      const rows = await given.system.select<{ id: string; created_at: number | string }>(
        'SELECT id, created_at FROM projects',
      );
      const newest = rows.sort((a, b) => Number(b.created_at) - Number(a.created_at) || (a.id < b.id ? 1 : -1));
      expect(items.map(({ id }) => id)).to.deep.equal(newest.map(({ id }) => id));
      const inactive = await given.system.walk<WireProject>('/manage/projects?is_active=false&limit=1');
      expect(inactive.items.map(({ id }) => id)).to.deep.equal([given.testData.idle.id]);
    });

    it('show each token as it is, with numbers as numbers', async () => {
      const { items } = await given.system.walk<WireToken>('/manage/tokens?limit=1000');
      for (const item of items.filter((_, n) => n % 40 === 0)) {
        expect(await given.system.ask('GET', `/manage/tokens/${item.id}`)).to.deep.equal(item);
      }
      const byId = new Map(stored.map((token) => [token.id, token]));
      for (const { id, request_count, max_requests, expires_at, state } of items) {
        const token = byId.get(id);
        expect({ request_count, max_requests, expires_at, state }).to.deep.equal({
          request_count: token?.requestCount,
          max_requests: token?.maxRequests,
          expires_at: new Date(token?.expiresAt ?? NaN).toISOString(),
          state: token && stateOf(token, Date.now()),
        });
      }
    });
  });
}
