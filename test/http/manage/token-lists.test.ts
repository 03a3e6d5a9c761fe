import { expect } from 'chai';
import type { WireProject, WireToken } from '../../../daemon/api/contract.js';
import { addTokens } from '../../faults/support/add-tokens.js';
import { daemonForSuite, startDaemon } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { bodyOf, pagesOf, problemOf, write } from '../../support/management.js';

const STATES = ['active', 'expired', 'revoked', 'rate_limited', 'project_inactive'];

describe('the list of tokens', () => {
  let busy: WireProject;
  let idle: WireProject;
  let all: WireToken[];

  const list = (query = '') => bodyOf<WireToken[]>(daemon.manage('GET', `/manage/tokens?${query}`));
  const names = async (query: string) => (await list(query)).map(({ name }) => name).sort();
  const totalOf = async (query: string) =>
    Number((await daemon.manage('GET', `/manage/tokens?${query}`)).headers.get('x-total-count'));

  // One token for each distinction, and several equal ones for each sort field.
  const daemon = daemonForSuite();
  before(async () => {
    busy = await daemon.createProject();
    idle = await daemon.createProject();
    const issue = (name: string | undefined, fields: object = {}, project = busy) =>
      daemon.createToken(project.id, { ...fields, ...(name !== undefined && { name }) });
    const used = async (id: string, count: number, lastUsedAt: number) => {
      await write(
        daemon,
        'UPDATE tokens SET request_count = $count, reserved = $count, last_used_at = $lastUsedAt WHERE id = $id',
        { id, count, lastUsedAt },
      );
    };

    await issue('expired', { duration_minutes: 1 });
    daemon.clock.advance(60_000);
    await used((await issue('half', { max_requests: 10 })).id, 5, 1_800_000_000_000);
    await used((await issue('full', { max_requests: 10 })).id, 10, 1_800_000_000_000);
    await used((await issue('unlimited')).id, 5, 1_700_000_000_000);
    await daemon.manage('DELETE', `/manage/tokens/${(await issue('revoked')).id}`);
    await issue('of the idle', { duration_hours: 48 }, idle);
    await issue('100%_sure', { duration_hours: 48 });
    await issue('ÄPFEL');
    for (let i = 0; i < 5; i++) await issue(undefined);
    await write(daemon, "UPDATE tokens SET created_at = 1800000000000 WHERE name = ''");
    await daemon.manage('PATCH', `/manage/projects/${idle.id}`, { is_active: false });
    all = await list('limit=1000');
  });

  it('shows each token as in its detail, without secrets', async () => {
    expect(all).to.have.length(13);
    for (const shown of all) expect(shown).to.deep.equal(await daemon.token(shown.id));
  });

  it('shows the newest first, and the total', async () => {
    expect(all).to.deep.equal(await list('sort=-created_at'));
    expect(await totalOf('limit=2')).to.equal(13);
  });

  describe('sorted', () => {
    const valueOf: Record<string, (token: WireToken) => string | number> = {
      created_at: ({ created_at }) => created_at,
      expires_at: ({ expires_at }) => expires_at,
      last_used_at: ({ last_used_at }) => last_used_at ?? '',
      request_count: ({ request_count }) => request_count,
      name: ({ name }) => name ?? '',
    };
    for (const [field, value] of Object.entries(valueOf)) {
      for (const direction of ['', '-']) {
        for (const limit of [1, 4, 13]) {
          it(`by ${direction}${field} is complete and in order in pages of ${limit}`, async () => {
            const pages = await pagesOf<WireToken>(daemon, `/manage/tokens?sort=${direction}${field}&limit=${limit}`);
            expect(pages).to.have.length(Math.ceil(13 / limit));
            const shown = pages.flat();
            expect(new Set(shown.map(({ id }) => id)).size).to.equal(13);
            const values = shown.map(value);
            const inOrder = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
            expect(values).to.deep.equal(direction === '-' ? inOrder.reverse() : inOrder);
          });
        }
      }
    }

    it('continues at its position although tokens were created and changed meanwhile', async () => {
      const own = await startDaemon();
      const { id: projectId } = await own.createProject();
      for (let i = 0; i < 4; i++) {
        await own.createToken(projectId, { name: `old ${i}` });
        own.clock.advance(1);
      }
      const first = await own.manage('GET', '/manage/tokens?limit=2');
      const shown = first.body as WireToken[];
      await own.createToken(projectId, { name: 'new' });
      await own.manage('DELETE', `/manage/tokens/${shown[1]!.id}`);
      const next = /<([^>]+)>/.exec(first.headers.get('link')!)![1]!;
      const rest = await bodyOf<WireToken[]>(own.manage('GET', next));
      expect([...shown, ...rest].map(({ name }) => name)).to.deep.equal(['old 3', 'old 2', 'old 1', 'old 0']);
      await own.stop();
    });
  });

  it('continues with another limit, an alias of a filter, and the default order given explicitly or not', async () => {
    const first = await daemon.manage('GET', `/manage/tokens?project_id=${busy.id}&limit=2`);
    const cursor = /cursor=([^&>]+)/.exec(first.headers.get('link')!)![1]!;
    const rest = await list(`limit=100&sort=-created_at&projectId=${busy.id}&cursor=${cursor}`);
    expect([...(first.body as WireToken[]), ...rest]).to.deep.equal(await list(`project_id=${busy.id}`));
  });

  describe('filtered', () => {
    for (const state of STATES) {
      it(`by state=${state} shows and counts tokens with that state`, async () => {
        const expected = all.filter((token) => token.state === state);
        expect(expected).not.to.have.length(0);
        expect(await list(`state=${state}`)).to.deep.equal(expected);
        expect(await totalOf(`state=${state}&limit=1`)).to.equal(expected.length);
      });
    }

    it('by active_only=true shows usable tokens', async () => {
      expect(await list('active_only=true')).to.deep.equal(await list('state=active'));
      expect(await list('active_only=true&state=active')).to.deep.equal(await list('state=active'));
    });

    it('by active_only=false shows all', async () => {
      expect(await list('active_only=false')).to.deep.equal(all);
    });

    it('by project_id shows the tokens of the project, none for an unknown project', async () => {
      expect(await names(`project_id=${idle.id}`)).to.deep.equal(['of the idle']);
      expect(await list('project_id=00000000-0000-4000-8000-000000000000')).to.deep.equal([]);
    });

    it('by expires_after and expires_before, excluding the bounds', async () => {
      const { expires_at } = all.find(({ name }) => name === 'of the idle')!;
      expect(await names(`expires_after=${expires_at}`)).to.deep.equal(['100%_sure']);
      const tomorrow = new Date(daemon.clock.now() + 25 * 3_600_000).toISOString();
      expect(await names(`expires_after=${tomorrow}&expires_before=${expires_at}`)).to.deep.equal([]);
      expect(await names(`expires_after=${tomorrow}`)).to.deep.equal(['100%_sure', 'of the idle']);
      expect(await names(`expires_before=${new Date(daemon.clock.now()).toISOString()}`)).to.deep.equal(['expired']);
    });

    it('by used_over shows capped tokens with a higher share of uses', async () => {
      expect(await names('used_over=49')).to.deep.equal(['full', 'half']);
      expect(await names('used_over=50')).to.deep.equal(['full']);
      expect(await names('used_over=100')).to.deep.equal([]);
    });

    for (const [q, found] of [
      ['EXPIR', ['expired']],
      ['äpf', ['ÄPFEL']],
      ['%', ['100%_sure']],
      ['0%_', ['100%_sure']],
      ['_', ['100%_sure']],
      ['!', []],
      ["' OR 1=1 --", []],
    ] as const) {
      it(`by q=${q} shows tokens whose name contains it, in any letter case`, async () => {
        expect(await names(`q=${encodeURIComponent(q)}`)).to.deep.equal(found);
      });
    }

    it('by q shows tokens whose ID has that prefix', async () => {
      const { id } = all[0]!;
      expect((await list(`q=${id.slice(0, 13)}`)).map((token) => token.id)).to.deep.equal([id]);
      expect(await list(`q=${id.slice(1)}`)).to.deep.equal([]);
    });

    const encoded = (query: Record<string, string>) => new URLSearchParams(query).toString();

    for (const state of [
      'active,rate_limited',
      '!active',
      '!revoked,expired',
      'expired,expired',
      `!${STATES.join(',')}`,
    ]) {
      it(`by state=${state} shows and counts the selected tokens`, async () => {
        const isExcluded = state.startsWith('!');
        const expected = all.filter((token) => state.replace('!', '').split(',').includes(token.state) !== isExcluded);
        expect(await list(`state=${state}&limit=1000`)).to.deep.equal(expected);
        expect(await totalOf(`state=${state}&limit=1`)).to.equal(expected.length);
      });
    }

    it('by several project_id, or by all others', async () => {
      expect(await list(`project_id=${busy.id},${idle.id}`)).to.deep.equal(all);
      expect(await names(`project_id=!${busy.id}`)).to.deep.equal(['of the idle']);
      expect(await list(`project_id=!${busy.id},${idle.id}`)).to.deep.equal([]);
    });

    for (const [words, found] of [
      ['u', ['100%_sure', 'full', 'unlimited']],
      ['u !fu', ['100%_sure', 'unlimited']],
      ['u l !fu', ['unlimited']],
      ['"of the" idle', ['of the idle']],
      ['idle !"of the"', []],
      ['äpf', ['ÄPFEL']],
      ['%_ !"!"', ['100%_sure']],
      ['"!"', []],
    ] as const) {
      it(`by words=${words} shows tokens with all wanted and no excluded words`, async () => {
        expect(await names(encoded({ words }))).to.deep.equal(found);
        expect(await totalOf(encoded({ words, limit: '1' }))).to.equal(found.length);
      });
    }

    it('by words matches prefixes of IDs too', async () => {
      const { id } = all[0]!;
      const beginning = id.slice(0, 13);
      expect((await list(`words=${beginning}`)).map((token) => token.id)).to.deep.equal([id]);
      expect(await list(`words=!${beginning}`)).to.deep.equal(all.slice(1));
    });

    it('by q and words shows tokens that match both', async () => {
      expect(await names(encoded({ q: 'u', words: '!full !_sure' }))).to.deep.equal(['unlimited']);
    });

    it('by used_under shows capped tokens with a lower share of uses', async () => {
      expect(await names('used_under=51')).to.deep.equal(['half']);
      expect(await names('used_under=50')).to.deep.equal([]);
      expect(await names('used_over=40&used_under=100')).to.deep.equal(['half']);
    });

    it('by times of expiry relative to now', async () => {
      expect(await names('expires_before=0s')).to.deep.equal(['expired']);
      expect(await names('expires_after=25h')).to.deep.equal(['100%_sure', 'of the idle']);
      expect(await names('expires_after=25h&expires_before=47h')).to.deep.equal([]);
      expect(await names('expires_after=-1d&expires_before=0s')).to.deep.equal(['expired']);
    });

    it('by created_after and created_before, as times and as how long ago', async () => {
      const own = await startDaemon();
      const { id } = await own.createProject();
      for (const name of ['old', 'middle', 'new']) {
        await own.createToken(id, { name, duration_hours: 48 });
        own.clock.advance(3_600_000);
      }
      const shown = async (query: string) =>
        ((await own.manage('GET', `/manage/tokens?${query}`)).body as WireToken[]).map(({ name }) => name);
      expect(await shown('created_after=150m')).to.deep.equal(['new', 'middle']);
      expect(await shown('created_before=150m')).to.deep.equal(['old']);
      expect(await shown('created_after=150m&created_before=90m')).to.deep.equal(['middle']);
      const time = new Date(own.clock.now() - 1.5 * 3_600_000).toISOString();
      expect(await shown(`created_after=${time}`)).to.deep.equal(['new']);
      expect(await shown(`created_before=${time}`)).to.deep.equal(['middle', 'old']);
      await own.stop();
    });

    it('by idle_over shows tokens that nobody has used for this time, since they were created', async () => {
      const own = await startDaemon();
      const { id } = await own.createProject();
      const used = await own.createToken(id, { name: 'used', duration_hours: 48 });
      await own.createToken(id, { name: 'never used', duration_hours: 48 });
      own.clock.advance(7_200_000);
      await own.createToken(id, { name: 'new' });
      const shown = async (query: string) =>
        ((await own.manage('GET', `/manage/tokens?${query}`)).body as WireToken[]).map(({ name }) => name);
      expect(await shown('idle_over=1h')).to.deep.equal(['never used', 'used']);
      expect(await shown('idle_over=3h')).to.deep.equal([]);
      await own.call(used.token);
      await eventually('its use is written', async () => !(await shown('idle_over=1h')).includes('used'));
      expect(await shown('idle_over=1h')).to.deep.equal(['never used']);
      expect(await shown('idle_over=1h&sort=live')).to.deep.equal(['never used']);
      await own.stop();
    });

    it('by errors_over and model goes by the usage since yesterday (UTC)', async () => {
      const own = await startDaemon({ upstream: 'http://127.0.0.1:9' });
      const { id } = await own.createProject();
      const failing = await own.createToken(id, { name: 'failing', duration_hours: 480 });
      await own.createToken(id, { name: 'unused', duration_hours: 480 });
      const body = JSON.stringify({ model: 'GPT-4o-mini', messages: [] });
      const sent = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
      for (let n = 0; n < 3; n++)
        expect((await own.call(failing.token, '/v1/chat/completions', sent)).status).to.equal(502);
      const shown = async (query: string) =>
        ((await own.manage('GET', `/manage/tokens?${query}`)).body as WireToken[]).map(({ name }) => name);
      await eventually('its usage is written', async () => {
        own.clock.advance(6_000);
        return (await shown('errors_over=2')).length > 0;
      });
      expect(await shown('errors_over=2')).to.deep.equal(['failing']);
      expect(await shown('errors_over=3')).to.deep.equal([]);
      expect(await shown('model=gpt-4o')).to.deep.equal(['failing']);
      expect(await shown('model=!gpt-4o')).to.deep.equal(['unused']);
      expect(await shown('model=o3')).to.deep.equal([]);
      expect(await shown('model=o3,4o&errors_over=0&sort=live')).to.deep.equal(['failing']);
      own.clock.advance(2 * 24 * 3_600_000);
      expect(await shown('errors_over=0')).to.deep.equal([]);
      await own.stop();
    });

    it('by times relative to now accepts its cursor later', async () => {
      const own = await startDaemon();
      const { id } = await own.createProject();
      for (const hours of [1, 2, 3, 4]) await own.createToken(id, { name: `${hours} h`, duration_hours: hours });
      const first = await own.manage('GET', '/manage/tokens?expires_after=90m&sort=expires_at&limit=1');
      expect(first.headers.get('x-total-count')).to.equal('3');
      own.clock.advance(3_600_000);
      const next = /<([^>]+)>/.exec(first.headers.get('link')!)![1]!;
      const rest = await own.manage('GET', next.replace('limit=1', 'limit=9'));
      expect((rest.body as WireToken[]).map(({ name }) => name)).to.deep.equal(['3 h', '4 h']);
      expect(rest.headers.get('x-total-count')).to.equal('2');
      await own.stop();
    });

    it('by several filters shows tokens that match all, in the given order and pages', async () => {
      const query = `project_id=${busy.id}&active_only=true&q=u&sort=name&limit=1`;
      const pages = await pagesOf<WireToken>(daemon, `/manage/tokens?${query}`);
      expect(pages.map((page) => page.map(({ name }) => name))).to.deep.equal([['100%_sure'], ['unlimited']]);
      expect(await totalOf(query)).to.equal(2);
    });
  });

  describe('refuses with 400', () => {
    for (const query of [
      'active_only',
      'state=dead',
      'state=',
      'sort=id',
      'sort=--name',
      'sort=',
      'limit=0',
      'limit=1001',
      'limit=ten',
      'used_over=101',
      'used_over=-1',
      'used_over=5.5',
      'used_under=101',
      'state=active,dead',
      'state=active,',
      'state=!',
      'state=active,!revoked',
      'state=!!active',
      'project_id=a,,b',
      'project_id=a,!b',
      `project_id=${Array.from({ length: 21 }, (_, i) => i).join(',')}`,
      'words=',
      'words=!',
      'words=a%20%20b',
      'words=%22open',
      'words=%22%22',
      'words=a%22b',
      'words=!!a',
      'words=a%09b',
      `words=${Array.from({ length: 11 }, () => 'a').join('+')}`,
      `words=${'x'.repeat(101)}`,
      'created_after=-1d',
      'created_before=yesterday',
      'errors_over=-1',
      'errors_over=1.5',
      'errors_over=1000001',
      'model=',
      'model=a%20b',
      'model=a,!b',
      'allows=',
      'allows=a%20b',
      'allows=a,!b',
      'limited=yes',
      'idle_over=-1d',
      'idle_over=30',
      'idle_over=2030-01-01T00:00:00Z',
      'idle_over=',
      'expires_before=2y',
      'expires_before=h',
      'expires_before=1.5h',
      'expires_after=1234567s',
      'expires_after=tomorrow',
      'expires_after=2030-02-30T00:00:00Z',
      'expires_before=1700000000000',
      'expires_before=2030-01-01T00:00:00%2B0200',
      'project_id=',
      'q=',
      `q=${'x'.repeat(101)}`,
      'cursor=x',
      'cursor=',
    ]) {
      it(`?${query.slice(0, 50)}, and names what is wrong`, async () => {
        const error = problemOf(await daemon.manage('GET', `/manage/tokens?${query}`), 400, 'invalid_request');
        expect(error).to.match(new RegExp(`^${/^\w+/.exec(query)![0]} must be `));
      });
    }

    for (const name of ['project_id', 'projectId', 'active_only', 'state', 'limit', 'q']) {
      it(`S03 a repeated ${name}, which would widen the filter`, async () => {
        const value = { active_only: 'true', state: 'active', limit: '5' }[name] ?? busy.id;
        const answer = await daemon.manage('GET', `/manage/tokens?${name}=${value}&${name}=${value}`);
        expect(problemOf(answer, 400, 'invalid_request')).to.match(/ is given more than once$/);
      });
    }

    it('S03 project_id and projectId together', async () => {
      const answer = await daemon.manage('GET', `/manage/tokens?project_id=${busy.id}&projectId=${busy.id}`);
      expect(problemOf(answer, 400, 'invalid_request')).to.equal('project_id is given more than once');
    });

    it('an active_only that contradicts state', async () => {
      const answer = await daemon.manage('GET', '/manage/tokens?active_only=true&state=revoked');
      expect(problemOf(answer, 400, 'invalid_request')).to.equal(
        'active_only and state contradict each other: give only one of them',
      );
    });

    it('models among more lists than are compared, unless the projects have fewer', async function () {
      this.timeout(60_000);
      const own = await startDaemon();
      const [many, few] = [await own.createProject(), await own.createProject()];
      const { id } = await own.createToken(few.id, { allow: { models: ['gpt-*'] } });
      await addTokens(own, many.id, 100_000, { modelsKey: 'i' });
      const error = problemOf(await own.manage('GET', '/manage/tokens?allows=gpt-5'), 400, 'invalid_request');
      expect(error).to.equal(
        'allows: these tokens have more than 100000 different lists of models; name some projects in project_id',
      );
      const found = await bodyOf<WireToken[]>(own.manage('GET', `/manage/tokens?allows=gpt-5&project_id=${few.id}`));
      expect(found.map((token) => token.id)).to.deep.equal([id]);
      await own.stop();
    });

    describe('a cursor', () => {
      const cursorFor = async (query: string) => {
        const { headers } = await daemon.manage('GET', `/manage/tokens?limit=1&${query}`);
        return /cursor=([^&>]+)/.exec(headers.get('link')!)![1]!;
      };
      const PROBLEM = 'cursor must be the cursor of a Link header of the same list, with the same filters and order';

      // It would silently skip entries of the other list before its position.
      for (const [of, used] of [
        ['sort=name', 'sort=-name'],
        ['sort=created_at', 'sort=expires_at'],
        ['', 'sort=created_at'],
        ['active_only=true', ''],
        ['', 'active_only=true'],
        ['project_id=<busy>', 'project_id=<idle>'],
        ['project_id=<busy>', 'project_id=<busy>&q=u'],
        ['q=e', 'q=f'],
        ['used_over=10', 'used_over=20'],
      ] as const) {
        it(`of ?${of} with ?${used}`, async () => {
          const filled = (query: string) => query.replace('<busy>', busy.id).replace('<idle>', idle.id);
          const answer = await daemon.manage(
            'GET',
            `/manage/tokens?${filled(used)}&cursor=${await cursorFor(filled(of))}`.replace('?&', '?'),
          );
          expect(problemOf(answer, 400, 'invalid_request')).to.equal(PROBLEM);
        });
      }

      for (const [sort, value] of [
        ['created_at', 'text'],
        ['request_count', null],
        ['expires_at', 1.5],
        ['name', 5],
      ] as const) {
        it(`that was forged to compare ${sort} with ${JSON.stringify(value)}`, async () => {
          const [list, , id] = JSON.parse(
            Buffer.from(await cursorFor(`sort=${sort}`), 'base64url').toString(),
          ) as unknown[];
          const forged = Buffer.from(JSON.stringify([list, value, id])).toString('base64url');
          const answer = await daemon.manage('GET', `/manage/tokens?sort=${sort}&cursor=${forged}`);
          expect(problemOf(answer, 400, 'invalid_request')).to.equal(PROBLEM);
        });
      }
    });

    for (const query of ['active=true', 'page=2', 'PROJECT_ID=x', '__proto__=x', 'project_id[]=x', 'constructor=x']) {
      it(`the unknown query parameter of ?${query}`, async () => {
        const answer = await daemon.manage('GET', `/manage/tokens?${query}`);
        expect(problemOf(answer, 400, 'invalid_request')).to.equal(`unknown query parameter: ${query.split('=')[0]}`);
      });
    }
  });
});
