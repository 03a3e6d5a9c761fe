import { expect } from 'chai';
import type { WireAuditRecord, WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { TestClock } from '../../support/clock.js';
import { startDaemon, type TestDaemon, UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { bodyOf, pagesOf, problemOf } from '../../support/management.js';
import { type Provider, startProvider } from '../../support/provider.js';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const SECOND_MS = 1_000;
const HALF_PAST = Date.UTC(2030, 0, 1, 12, 30);
const ONE = Date.UTC(2030, 0, 1, 13);
const at = (ms: number) => new Date(ms).toISOString();

describe('the list of audit records', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let alpha: WireProject;
  let beta: WireProject;
  let nightly: WireTokenCreated;
  let leaked: WireTokenCreated;
  let all: WireAuditRecord[];

  const list = (query = '') => bodyOf<WireAuditRecord[]>(daemon.manage('GET', `/manage/audit?${query}`));
  const refused = async (query: string) =>
    problemOf(await daemon.manage('GET', `/manage/audit?${query}`), 400, 'invalid_request');

  // Records that differ in each property: changes a second apart, and uses in two hours, with a change in the very millisecond in which
  // the second hour begins.
  before(async () => {
    provider = await startProvider();
    daemon = await startDaemon({
      upstream: provider.url,
      clock: new TestClock({ standsStill: true, startMs: HALF_PAST }),
    });
    let uses = 0;
    const use = async ({ token }: WireTokenCreated, path?: string) => {
      await (await daemon.call(token, path)).arrayBuffer();
      uses += 1;
      await eventually('it has ended', () => daemon.ended.length === uses);
    };
    const change = async (method: string, path: string, body: object | undefined, headers: Record<string, string>) => {
      daemon.clock.advance(SECOND_MS);
      return (await daemon.manage(method, path, body, headers)).body as unknown;
    };
    const key = { api_key: UPSTREAM_KEY };
    alpha = await daemon.createProject({ name: 'Alpha' });
    nightly = (await change('POST', '/manage/tokens', { project_id: alpha.id, name: 'nightly job' }, {})) as never;
    beta = (await change('POST', '/manage/projects', { name: 'Beta', ...key }, { 'x-llmp-actor': 'cli' })) as never;
    leaked = (await change('POST', '/manage/tokens', { project_id: beta.id }, { 'x-llmp-actor': 'tui' })) as never;
    await change('DELETE', `/manage/tokens/${leaked.id}`, undefined, {
      'x-llmp-actor': 'tui',
      'x-llmp-client-ip': '203.0.113.7',
      'x-llmp-user': 'ana@laptop',
      'x-request-id': 'the-revocation',
      'x-audit-reason': encodeURIComponent('Schlüssel veröffentlicht'),
    });
    await change('POST', '/manage/projects', { name: 'Alpha', ...key }, { 'x-llmp-actor': 'admin' });
    await use(nightly);
    await use(nightly);
    await use(leaked);
    provider.answer = (_req, res) => void res.writeHead(503).end();
    await use(nightly);
    daemon.clock.advance(ONE - daemon.clock.now() - SECOND_MS);
    await change('PATCH', `/manage/tokens/${nightly.id}`, { is_active: false }, {});
    await use(nightly);
    await change('PATCH', `/manage/tokens/${nightly.id}`, { is_active: true }, {});
    await daemon.daemon.usage.flush();
    all = await list('limit=1000');
  });
  after(async () => {
    await daemon.stop();
    await provider.stop();
  });

  it('shows changes and uses of tokens, the newest first', () => {
    expect(all.map(({ time, action, outcome }) => `${time.slice(11, 19)} ${action} ${outcome}`)).to.deep.equal([
      '13:00:01 token.reactivate success',
      '13:00:00 token.use denied',
      '13:00:00 token.revoke success',
      '12:30:05 project.create denied',
      '12:30:04 token.revoke success',
      '12:30:03 token.create success',
      '12:30:02 project.create success',
      '12:30:01 token.create success',
      '12:30:00 project.create success',
      ...all.slice(9).map(({ outcome }) => `12:00:00 token.use ${outcome}`),
    ]);
    expect(all.slice(9).map(({ outcome }) => outcome)).to.have.members(['success', 'denied', 'error']);
  });

  it('shows the caller, address, request and reason of a change', () => {
    const { id, ...record } = all.find(({ action, token_id }) => action === 'token.revoke' && token_id === leaked.id)!;
    expect(id).to.match(/^[0-9a-f-]{36}$/);
    expect(record).to.deep.equal({
      time: at(HALF_PAST + 4 * SECOND_MS),
      action: 'token.revoke',
      actor: 'tui',
      user: 'ana@laptop',
      outcome: 'success',
      project_id: beta.id,
      token_id: leaked.id,
      project_name: 'Beta',
      token_name: null,
      obfuscated: leaked.obfuscated,
      request_id: 'the-revocation',
      client_ip: '203.0.113.7',
      reason: 'Schlüssel veröffentlicht',
      count: null,
      details: { is_active: [true, false] },
      batch: null,
      undo_of: null,
    });
  });

  it('shows the uses of an hour with one result and one model as one record with their count', () => {
    const { id, ...record } = all.find(({ action, outcome }) => action === 'token.use' && outcome === 'success')!;
    expect(id).to.match(/^[0-9a-f-]{36}$/);
    expect(record).to.deep.equal({
      time: '2030-01-01T12:00:00.000Z',
      action: 'token.use',
      actor: 'token',
      user: null,
      outcome: 'success',
      project_id: alpha.id,
      token_id: nightly.id,
      project_name: 'Alpha',
      token_name: 'nightly job',
      obfuscated: nightly.obfuscated,
      request_id: null,
      client_ip: null,
      reason: null,
      count: 2,
      details: {
        ...{ outcome: 'ok', code: null, model: null, hits: 0, prompt_tokens: null, completion_tokens: null },
        ...{ cache_read_tokens: null, cache_write_tokens: null, cost_usd: '0.00', unpriced_requests: 0 },
      },
      batch: null,
      undo_of: null,
    });
  });

  describe('is complete and in order in pages', () => {
    for (const query of ['', 'action=token.use', 'actor=management', 'outcome=denied', 'project_id=<alpha>', 'q=127']) {
      for (const limit of [1, 2, 5]) {
        it(`of ${limit} with ?${query}, and is not counted`, async () => {
          const filter = query.replace('<alpha>', alpha.id);
          const pages = await pagesOf<WireAuditRecord>(
            daemon,
            `/manage/audit?${filter}&limit=${limit}`.replace('?&', '?'),
          );
          const whole = await list(filter);
          expect(pages.flat()).to.deep.equal(whole);
          expect(pages).to.have.length(Math.max(1, Math.ceil(whole.length / limit)));
          const { headers } = await daemon.manage('GET', `/manage/audit?limit=${limit}`);
          expect(headers.get('x-total-count')).to.equal(null);
        });
      }
    }

    it('of 100 by default', async () => {
      const own = await startDaemon();
      const { id } = await own.createProject();
      for (let n = 0; n < 100; n++) await own.manage('DELETE', `/manage/projects/${id}`);
      expect(await bodyOf(own.manage('GET', '/manage/audit'))).to.have.length(100);
      expect(await bodyOf(own.manage('GET', '/manage/audit?limit=1000'))).to.have.length(101);
      await own.stop();
    });
  });

  describe('filtered', () => {
    const cases: Record<string, (record: WireAuditRecord) => boolean> = {
      'action=token.create': ({ action }) => action === 'token.create',
      'action=token.use': ({ action }) => action === 'token.use',
      'actor=management': ({ actor }) => actor === 'management',
      'actor=admin': ({ actor }) => actor === 'admin',
      'actor=token': ({ actor }) => actor === 'token',
      'outcome=success': ({ outcome }) => outcome === 'success',
      'outcome=denied': ({ outcome }) => outcome === 'denied',
      'outcome=error': ({ outcome }) => outcome === 'error',
      'project_id=<beta>': ({ project_id }) => project_id === beta.id,
      'token_id=<nightly>': ({ token_id }) => token_id === nightly.id,
      'project_id=<alpha>&token_id=<nightly>&outcome=denied': ({ token_id, outcome }) =>
        token_id === nightly.id && outcome === 'denied',
      'action=token.revoke&actor=tui': ({ action, actor }) => action === 'token.revoke' && actor === 'tui',
      'actor=tui&project_id=<beta>': ({ actor }) => actor === 'tui',
    };
    const filled = (query: string) =>
      query.replace('<alpha>', alpha.id).replace('<beta>', beta.id).replace('<nightly>', nightly.id);
    for (const [query, fits] of Object.entries(cases)) {
      it(`by ${query} shows matching records`, async () => {
        const expected = all.filter(fits);
        expect(expected.length).to.be.within(1, all.length - 1);
        expect(await list(filled(query))).to.deep.equal(expected);
      });
    }

    for (const query of [
      'project_id=<unknown>',
      'token_id=<unknown>',
      'project_id=<beta>&token_id=<nightly>',
      'action=token.use&actor=cli',
      'action=token.create&actor=token',
      'action=admin.login',
    ]) {
      it(`by ${query} shows no record`, async () => {
        expect(await list(filled(query).replace('<unknown>', UNKNOWN_ID))).to.deep.equal([]);
      });
    }

    const times: Record<string, string> = {
      'the first second': at(HALF_PAST),
      'the fourth second': at(HALF_PAST + 4 * SECOND_MS),
      'a millisecond after it': at(HALF_PAST + 4 * SECOND_MS + 1),
      'the hour of uses': at(ONE),
      'the hour before': at(ONE - 3_600_000),
    };
    for (const [what, time] of Object.entries(times)) {
      for (const more of ['', '&action=token.revoke', '&action=token.use', '&token_id=<nightly>']) {
        it(`by since and until shows records of ${what} or later, and earlier ones${more && `, with ${more.slice(1)}`}`, async () => {
          const whole = await list(filled(more.slice(1)));
          expect(await list(`since=${time}${filled(more)}`)).to.deep.equal(whole.filter((it) => it.time >= time));
          expect(await list(`until=${time}${filled(more)}`)).to.deep.equal(whole.filter((it) => it.time < time));
        });
      }
    }

    it('by since and until relative to now shows later and earlier records', async () => {
      // There are no records ten minutes before the half hour.
      const minutes = Math.round((daemon.clock.now() - HALF_PAST) / 60_000) + 10;
      const whole = await list('');
      expect(await list(`since=${minutes}m`)).to.deep.equal(whole.filter(({ time }) => time >= at(HALF_PAST)));
      expect(await list(`until=${minutes}m`)).to.deep.equal(whole.filter(({ time }) => time < at(HALF_PAST)));
      expect(await list('since=52w'), 'all of the last year').to.deep.equal(whole);
      expect(await list('until=52w')).to.deep.equal([]);
    });

    it('by both since and until shows the records between', async () => {
      const between = `since=${at(HALF_PAST + 2 * SECOND_MS)}&until=${at(HALF_PAST + 4 * SECOND_MS)}`;
      expect((await list(between)).map(({ action }) => action)).to.deep.equal(['token.create', 'project.create']);
      expect(await list(`since=${at(ONE)}&until=${at(ONE)}`)).to.deep.equal([]);
    });
  });

  describe('searched', () => {
    const REVOKED = '12:30:04 token.revoke';
    const found = async (q: string) =>
      (await list(`q=${encodeURIComponent(q)}`)).map(({ time, action }) => `${time.slice(11, 19)} ${action}`);

    for (const [where, q] of [
      ['the reason', 'veröffentlicht'],
      ['the reason, by a prefix', 'veröff'],
      ['the reason, in capitals', 'SCHLÜSSEL'],
      ['the reason, by two words in any order', 'veröff schlüs'],
      ['the request ID', 'the-revocation'],
      ['the address', '203.0.113.7'],
      ['the user', 'ana@lap'],
      ['the reason and the address', '203.0.113.7 schl'],
    ] as const) {
      it(`finds "${q}" in ${where}`, async () => {
        expect(await found(q)).to.deep.equal([REVOKED]);
      });
    }

    it('finds IDs and their prefixes, in records of changes only', async () => {
      const expected = ['12:30:04 token.revoke', '12:30:03 token.create'];
      expect(await found(leaked.id)).to.deep.equal(expected);
      expect(await found(leaked.id.slice(0, 13))).to.deep.equal(expected);
    });

    it('finds uses by their action and outcome', async () => {
      const uses = all.filter(({ action }) => action === 'token.use');
      expect(await list('q=token.use')).to.deep.equal(uses);
      const denied = uses.filter(({ outcome }) => outcome === 'denied');
      expect(denied).not.to.have.length(0);
      expect(await list('q=use denied')).to.deep.equal(denied);
      expect(await list('q=use success&outcome=denied')).to.deep.equal([]);
    });

    it('finds every change of a token by its name', async () => {
      const changes = ['13:00:01 token.reactivate', '13:00:00 token.revoke', '12:30:01 token.create'];
      expect(await found('nightly')).to.deep.equal(changes);
    });

    it('finds text in the details, and the changes in a project by its name', async () => {
      expect(await found('alpha')).to.deep.equal([
        '13:00:01 token.reactivate',
        '13:00:00 token.revoke',
        '12:30:05 project.create',
        '12:30:01 token.create',
        '12:30:00 project.create',
      ]);
    });

    it('applies to the filtered records only', async () => {
      expect(await list('q=alpha&outcome=denied')).to.deep.equal(all.filter(({ actor }) => actor === 'admin'));
      expect(await list(`q=alpha&until=${at(HALF_PAST + 1)}`)).to.have.length(1);
      expect(await list(`q=schl&project_id=${alpha.id}`)).to.deep.equal([]);
      expect(await list('q=127&action=token.use')).to.deep.equal([]);
    });

    for (const [what, q] of [
      ['the middle of a word', 'öffentlicht'],
      ['two words, one of which is missing', 'schlüssel verkauft'],
      ['a value that is not part of the text', 'nobody'],
      ['a prefix of an internal marker', 'xaction'],
      ['the internal marker of an action', 'actiontokenrevoke'],
      ['the internal marker of an action with its sign', '→actiontokenrevoke'],
      ['an operator of the index', 'alpha OR schlüssel'],
    ] as const) {
      it(`finds nothing for ${what}`, async () => {
        expect(await found(q)).to.deep.equal([]);
      });
    }
  });

  describe('refuses with 400', () => {
    for (const query of [
      'action=token',
      'action=',
      'actor=root',
      'outcome=ok',
      'project_id=',
      'token_id=',
      `project_id=${'x'.repeat(65)}`,
      'since=yesterday',
      'since=-1h',
      'until=2y',
      'since=2030-02-30T00:00:00Z',
      'until=2030-01-01',
      'until=2030-01-01T00:00:00%2B0200',
      'q=',
      'q=%20-%20',
      'q=a%00',
      `q=${'x'.repeat(101)}`,
      'limit=0',
      'limit=1001',
      'cursor=x',
      'cursor=',
    ]) {
      it(`?${query.slice(0, 50)}, and names what is wrong`, async () => {
        expect(await refused(query)).to.match(new RegExp(`^${/^\w+/.exec(query)![0]} must be `));
      });
    }

    it('a repeated filter, which would widen the result', async () => {
      expect(await refused('action=token.use&action=token.create')).to.equal('action is given more than once');
    });

    for (const [of, used] of [
      ['', 'action=token.create'],
      ['actor=management', ''],
      ['outcome=success', 'outcome=denied'],
      ['q=t', 'q=to'],
      ['since=2030-01-01T00:00:00Z', 'since=2029-01-01T00:00:00Z'],
    ] as const) {
      it(`the cursor of ?${of} with ?${used}`, async () => {
        const { headers } = await daemon.manage('GET', `/manage/audit?limit=1&${of}`.replace(/&$/, ''));
        const cursor = /cursor=([^&>]+)/.exec(headers.get('link') ?? '')?.[1] ?? 'none';
        expect(await refused(`cursor=${cursor}&${used}`.replace(/&$/, ''))).to.match(/^cursor must be /);
      });
    }
  });

  describe('the detail', () => {
    it('is the same as in the list, for a change and for uses', async () => {
      for (const shown of all)
        expect(await bodyOf(daemon.manage('GET', `/manage/audit/${shown.id}`))).to.deep.equal(shown);
    });

    for (const id of [UNKNOWN_ID, 'nonsense', '*', '1', '%20']) {
      it(`is 404 for the ID ${id}`, async () => {
        expect(problemOf(await daemon.manage('GET', `/manage/audit/${id}`), 404, 'not_found')).to.equal(
          'record not found',
        );
      });
    }
  });
});
