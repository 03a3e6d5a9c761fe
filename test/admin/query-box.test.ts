/** The query box of tokens, events and the audit log, sorted lists, and periods. */
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { perTest } from '../support/per-test.js';
import { startProvider } from '../support/provider.js';
import { adminForEachTest } from './test-browser.js';

describe('findings-3 C6: lists of the Admin UI', () => {
  const provider = perTest(startProvider);
  const { daemon, browser } = adminForEachTest(() => ({ upstream: provider.url }));
  let project: WireProject;

  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });
  const create = (name: string, fields: Record<string, unknown> = {}) =>
    daemon.createToken(project.id, { name, ...fields });
  const namesIn = (html: string) => [...html.matchAll(/<th scope="row">.*?<bdi>(.*?)<\/bdi>/g)].map(([, name]) => name);
  const query = (line: string) => `q=${encodeURIComponent(line)}`;
  const tokens = async (line: string) => namesIn((await browser.get(`tokens?sort=name&${query(line)}`)).html);
  async function use({ token }: WireTokenCreated, path = '/v1/models'): Promise<void> {
    await (await daemon.call(token, path)).text();
    daemon.daemon.scheduler.publishAll();
  }

  describe('by a query', () => {
    it('select tokens as the command line does, also for exports, changes of many and with fields', async () => {
      const other = await daemon.createProject({ name: 'other' });
      await daemon.createToken(other.id, { name: 'ci-other' });
      const [one] = [await create('ci-1'), await create('ci-2', { max_requests: 7 }), await create('old ci')];
      await daemon.manage('DELETE', `/manage/tokens/${one.id}`);
      expect(await tokens('ci project:web')).to.deep.equal(['ci-1', 'ci-2', 'old ci']);
      expect(await tokens('ci !old !project:web')).to.deep.equal(['ci-other']);
      expect(await tokens('state:!revoked'), 'a wrong value').to.deep.equal([]);
      expect(await tokens('!state:revoked "old ci"')).to.deep.equal(['old ci']);
      expect(await tokens('state:revoked,expired')).to.deep.equal(['ci-1']);
      expect(await tokens(one.id.slice(0, 9))).to.deep.equal(['ci-1']);

      const list = `tokens?${query('ci state:active')}&project_id=${project.id}`;
      expect(namesIn((await browser.get(list)).html)).to.have.members(['ci-2', 'old ci']);
      const file = await browser.get(list.replace('?', '/export?format=json&'));
      expect(JSON.parse(file.html)).to.have.length(2);
      const asked = await browser.post('tokens/marked', {
        what: 'revoke',
        all: 'yes',
        query: query('ci !old project:web,other'),
      });
      expect(asked.html)
        .to.include('Revoke 3 tokens?')
        .and.to.include('words <strong>ci !old</strong>')
        .and.to.match(/project <strong>(?:web,other|other,web)<\/strong>/);
      const wrong = await browser.post('tokens/marked', { what: 'revoke', all: 'yes', query: query('state:gone') });
      expect(wrong.status).to.equal(400);
      expect(wrong.html).not.to.include('name="confirmed"');
    });

    it('show the place of what is wrong in it, and list nothing', async () => {
      await create('ci');
      for (const [page, line, at, marked, words] of [
        ['tokens', 'ci stat:active', 4, 'stat:active', 'No such key: stat; use state, project'],
        ['tokens', 'ci state:active,gone', 17, 'gone', 'State must be one of active'],
        ['tokens', 'project:nowhere', 9, 'nowhere', 'No such project.'],
        ['tokens', 'a "b', 3, '&quot;b', 'A quote is not closed.'],
        ['events', 'status:many', 8, 'many', 'Status must be like 429 or 4xx.'],
        ['events', 'token:nobody', 7, 'nobody', 'No such token.'],
        ['audit', 'token.use action:nothing', 18, 'nothing', 'Action must be one of'],
      ] as const) {
        const { status, html } = await browser.get(`${page}?${query(line)}`);
        expect(status, line).to.equal(400);
        expect(html, line)
          .to.include(`<mark>${marked}</mark>`)
          .and.to.include(`Character ${at}: ${words}`)
          .and.to.include('aria-invalid="true" aria-describedby="query-problem"')
          .and.not.to.include('No tokens match')
          .and.not.to.include('scope="row"')
          .and.not.to.include('data-stream');
        expect(html.match(/role="alert"/g), line).to.have.length(1);
      }
      const long = await browser.get(`tokens?${query('x'.repeat(501))}`);
      expect(long.status).to.equal(400);
      expect(long.html).to.include('A query has up to 500 characters.');
      const twice = await browser.get(`tokens?${query('state:active')}&state=revoked`);
      expect(twice.status).to.equal(400);
      expect(twice.html).to.include('State in the query and in a field: use one of them.');
    });

    it('are reached by a form whose fields are in the address without the empty ones', async () => {
      for (const page of ['tokens', 'events', 'audit']) {
        const seen = await browser.post(page, { q: ' ci state:active ', project_id: '', show: 'failures' });
        expect(seen.status).to.equal(303);
        expect(seen.to).to.equal(`/admin/${page}?q=+ci+state%3Aactive+&show=failures`);
        expect((await browser.post(page, { q: '', since: ' ' })).to).to.equal(`/admin/${page}`);
      }
      const stranger = browser.copy();
      stranger.cookies.clear();
      expect((await stranger.post('tokens', { q: 'ci' })).to).to.match(/^\/admin\/login/);
    });

    it('select events, also on the stream', async () => {
      const ci = await create('ci', { max_requests: 1 });
      const other = await create('other');
      await use(ci);
      await use(ci);
      await use(other, '/v1/elsewhere');
      const rows = async (line: string, more = '') =>
        (await browser.get(`events?${query(line)}${more}`)).html.match(/<details id="details-/g)?.length ?? 0;
      expect(await rows('why:"cap spent"')).to.equal(1);
      expect(await rows('why:"cap spent"', '&show=failures')).to.equal(1);
      expect(await rows('why:"cap spent"', '&show=requests&status=2xx')).to.equal(0);
      expect(await rows('elsewhere')).to.equal(1);
      expect(await rows('token:ci kind:request.completed')).to.equal(2);
      expect(await rows('!token:ci kind:request.completed')).to.equal(1);
      const { html } = await browser.get(`events?${query('elsewhere')}`);
      expect(html).to.match(/Looked at \d+ events, back to \d{4}-/);
      const to = /data-stream="\/admin\/([^"]+)"/.exec(html)?.[1]?.replaceAll('&amp;', '&') ?? '';
      const stream = await browser.openStream(to);
      expect(stream.status).to.equal(200);
      await use(ci, '/v1/not-this');
      await use(other, '/v1/elsewhere');
      let came = '';
      for await (const piece of stream.body!) {
        came += Buffer.from(piece).toString();
        daemon.clock.advance(500);
        if (came.includes('/v1/elsewhere')) break;
      }
      expect(came).not.to.include('/v1/not-this');
    });

    it('look for further events until there are some', async () => {
      const ci = await create('ci');
      await use(ci, '/v1/first');
      for (let i = 0; i < 150; i++) await (await daemon.call(ci.token, '/v1/models')).text();
      daemon.daemon.scheduler.publishAll();
      expect((await browser.get(`events?${query('/v1/first')}`)).html).to.include('/v1/first');
    });
  });

  describe('by a secret', () => {
    it('find its token, and keep the secret out of addresses and the log', async () => {
      const { id, token } = await create('ci');
      for (const [page, to] of [
        ['tokens', `/admin/tokens/${id}`],
        ['events', `/admin/events?token_id=${id}`],
        ['audit', `/admin/audit?token_id=${id}`],
      ] as const) {
        for (const line of [token, ` ${token}\t`, `state:active ${token}`]) {
          const seen = await browser.post(page, { q: line });
          expect({ status: seen.status, to: seen.to }).to.deep.equal({ status: 303, to });
          expect([seen.html, ...seen.cookies].join()).not.to.include(token);
        }
        const unknown = await browser.follow(browser.post(page, { q: `sk-wt-${'z'.repeat(49)}` }));
        expect(unknown.html).to.include('No token has this secret.');
        expect((await browser.get(to)).status).to.equal(200);
      }
      expect(daemon.logged.join('\n')).not.to.include(token);
    });

    it('refuse keys and the management token, and show nothing of them', async () => {
      for (const secret of [`sk-proj-${'a'.repeat(40)}`, MANAGEMENT_TOKEN]) {
        for (const fields of [{ q: secret }, { q: 'ci', model: secret }]) {
          const seen = await browser.post('tokens', fields);
          expect({ status: seen.status, to: seen.to }).to.deep.equal({ status: 400, to: null });
          expect(seen.html).to.include('This was a secret').and.not.to.include(secret);
        }
        expect(daemon.logged.join('\n')).not.to.include(secret);
      }
    });

    it('find the token by what is shown of its secret', async () => {
      const { id, obfuscated } = await create('ci');
      await create('other');
      for (const shown of [obfuscated, obfuscated.replace('…', '...'), obfuscated.toLowerCase()]) {
        expect((await browser.post('tokens', { q: shown })).to, shown).to.equal(`/admin/tokens/${id}`);
        expect((await browser.get(`tokens?${query(shown)}`)).to, shown).to.equal(`/admin/tokens/${id}`);
      }
      expect((await browser.post('tokens', { q: 'sk-wt-0000…0000' })).to).to.equal('/admin/tokens?unknown=secret');
      const none = await browser.get(`tokens?${query('sk-wt-0000…0000')}`);
      expect(none.status).to.equal(200);
      expect(none.html).to.include('No tokens match this filter').and.to.include('value="sk-wt-0000…0000"');
      expect((await browser.post('events', { q: obfuscated })).to).to.equal(`/admin/events?token_id=${id}`);
    });
  });

  it('are sorted by the headers of their columns', async () => {
    await create('b', { duration_hours: 2 });
    await create('a', { duration_hours: 1 });
    const headers = (html: string) =>
      [...html.matchAll(/<th scope="col"([^>]*)><a href="\/admin\/([^"]*)" class="sort">([^<]*)</g)].map(
        ([, look = '', to = '', title]) => ({
          title,
          sort: /aria-sort="(\w+)"/.exec(look)?.[1],
          to: to.replaceAll('&amp;', '&'),
        }),
      );
    const seen = await browser.get('tokens?state=active&cursor=');
    expect(headers(seen.html)).to.deep.equal([
      { title: 'Name', sort: undefined, to: 'tokens?state=active&sort=name' },
      { title: 'Expires', sort: undefined, to: 'tokens?state=active&sort=expires_at' },
      { title: 'Requests', sort: undefined, to: 'tokens?state=active&sort=-request_count' },
      { title: 'Spent', sort: undefined, to: 'tokens?state=active&sort=-spent' },
      { title: 'Last used', sort: undefined, to: 'tokens?state=active&sort=-last_used_at' },
    ]);
    const byName = await browser.get('tokens?sort=name');
    expect(namesIn(byName.html)).to.deep.equal(['a', 'b']);
    expect(headers(byName.html)[0]).to.deep.equal({ title: 'Name', sort: 'ascending', to: 'tokens?sort=-name' });
    const back = await browser.get('tokens?sort=-name');
    expect(namesIn(back.html)).to.deep.equal(['b', 'a']);
    expect(headers(back.html)[0]).to.include({ sort: 'descending', to: 'tokens?sort=name' });

    await use(await create('c'));
    const top = headers((await browser.get('top?sort=requests')).html);
    expect(top.find(({ title }) => title === 'Requests')).to.include({ sort: 'descending', to: 'top?sort=requests' });
    const usage = headers((await browser.get('usage?by=day')).html);
    expect(usage.find(({ title }) => title === 'Day (UTC)')?.to).to.equal('usage?by=day&sort=time');
    for (const { title, to } of [...top, ...usage]) expect((await browser.get(to)).status, title).to.equal(200);
  });

  it('of any period, in the grammar of the command line', async () => {
    const ci = await create('ci');
    await use(ci);
    const at = new Date(daemon.clock.now());
    const later = new Date(at.getTime() + 60_000).toISOString();
    const has = async (to: string) => /<details id="details-|scope="row"/.test((await browser.get(to)).html);
    for (const page of ['events', 'audit']) {
      expect(await has(`${page}?since=1h`), page).to.equal(true);
      expect(await has(`${page}?since=2020-01-01&until=${later}`), page).to.equal(true);
      expect(await has(`${page}?until=2020-01-01`), page).to.equal(false);
      const wrong = await browser.get(`${page}?since=yesterday`);
      expect(wrong.status).to.equal(400);
      expect(wrong.html).to.include('Since must be a time ago such as 24h or 7d, a day such as 2030-01-31');
    }
    const past = await browser.get(`events?until=${later}`);
    expect(past.html, 'it has an end').not.to.include('data-stream');
  });

  describe('of failures', () => {
    it('findings-3 C12: begin with what is wrong now, on the overview', async () => {
      expect((await browser.get()).html).to.include('Nothing is wrong.');
      const [spent, fine] = [await create('spent', { max_requests: 1 }), await create('fine')];
      for (const one of [spent, spent, spent, spent, spent, fine]) await use(one);
      const { html } = await browser.get();
      expect(html)
        .to.include(`<a href="/admin/tokens/${spent.id}">Token spent in web</a>`)
        .and.to.include('Issue another token, because a cap cannot be changed.')
        .and.not.to.include('Nothing is wrong.');
      const [, to = ''] = /<a href="\/admin\/(events\?[^"]*)">4 of 5 requests</.exec(html) ?? [];
      const failed = (await browser.get(to.replaceAll('&amp;', '&'))).html;
      expect(failed.match(/<details id="details-/g)).to.have.length(4);
    });

    it('say why, and what to do', async () => {
      const spent = await create('spent', { max_requests: 1 });
      const revoked = await create('revoked');
      await daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
      for (const one of [spent, spent, revoked]) await use(one);
      const { html } = await browser.get('events?show=failures');
      const whys = [...html.matchAll(/<span class="what"><span class="mark[^>]*><span[^>]*>[^<]*<\/span> ([^<]*)</g)];
      expect(whys.map(([, why]) => why)).to.include.members(['revoked', 'cap spent']);
      expect(html)
        .to.include('<strong>What to do:</strong> Reactivate the token, or issue another one.')
        .and.to.include('<strong>What to do:</strong> Issue another token, because a cap cannot be changed.');

      const page = (await browser.get(`tokens/${spent.id}`)).html;
      expect(page).to.include('Its requests are refused: cap spent.').and.to.include('Last failures');
      expect(page).to.match(/<table id="failed"[^]*?cap spent[^]*?Issue another token, because a cap[^]*?429/);
      const fine = (await browser.get(`tokens/${(await create('fine')).id}`)).html;
      expect(fine).not.to.include('Its requests are refused');
    });
  });
});
