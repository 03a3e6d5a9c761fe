/** The filters of the list of tokens: in the form, on further pages, in exports, and for changes of many tokens. */
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { TestClock } from '../support/clock.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { perTest } from '../support/per-test.js';
import { startProvider } from '../support/provider.js';
import { adminForEachTest } from './test-browser.js';

const DAY_MS = 86_400_000;

describe('the filters of tokens in the Admin UI', () => {
  const provider = perTest(startProvider);
  const clock = () => new TestClock({ standsStill: false });
  const { daemon, browser } = adminForEachTest(() => ({ upstream: provider.url, clock: clock() }));
  let project: WireProject;

  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });
  const create = (name: string) => daemon.createToken(project.id, { name, duration_hours: 8000 });
  async function use({ token }: WireTokenCreated, model: string, times: number): Promise<void> {
    const path = model === 'none' ? '/v1/no-such-path' : '/v1/chat/completions';
    const init = { method: 'POST', body: JSON.stringify({ model }), headers: { 'content-type': 'application/json' } };
    for (let i = 0; i < times; i++) await (await daemon.call(token, path, init)).text();
  }
  /** Writes use from memory, and usage by the day with it. */
  async function written(): Promise<void> {
    daemon.daemon.scheduler.publishAll();
    daemon.clock.advance(60_000);
    await daemon.daemon.usage.flush();
  }
  const namesIn = (html: string) => [...html.matchAll(/<th scope="row">.*?<bdi>(.*?)<\/bdi>/g)].map(([, name]) => name);
  const found = async (query: string) => namesIn((await browser.get(`tokens?sort=name&${query}`)).html);

  /** `old` was created 40 days ago and never used, `used` then but used today, `failing` and `fresh` are new. */
  async function someTokens(): Promise<void> {
    await create('old');
    const used = await create('used');
    daemon.clock.advance(40 * DAY_MS);
    const failing = await create('failing');
    await create('fresh');
    await use(used, 'gpt-4o', 1);
    await use(failing, 'none', 3);
    await written();
    await browser.logIn(MANAGEMENT_TOKEN); // Its session has ended meanwhile.
  }

  it('find tokens by use, creation, errors and model', async () => {
    await someTokens();
    expect(await found('idle_over=30d')).to.deep.equal(['old']);
    expect(await found('created=%3E30d')).to.deep.equal(['old', 'used']);
    expect(await found('created=%3C24h')).to.deep.equal(['failing', 'fresh']);
    expect(await found('errors_over=2')).to.deep.equal(['failing']);
    expect(await found('errors_over=3')).to.deep.equal([]);
    expect(await found('model=GPT')).to.deep.equal(['used']);
    expect(await found('model=GPT&errors_over=2')).to.deep.equal([]);
    expect(await found('idle_over=30d&created=%3C24h')).to.deep.equal([]);
  });

  it('are in the form, which shows what the address says', async () => {
    const plain = await browser.get('tokens');
    expect(plain.html).to.match(/<details class="more"[^>]*id="more-filters">/);
    const { html } = await browser.get('tokens?idle_over=45d&created=%3E30d&errors_over=7&model=gpt');
    expect(html).to.match(/<details class="more"[^>]* open="">/);
    expect(html)
      .to.include('<option value="45d" selected="">45d</option>')
      .and.to.include('<option value="&gt;30d" selected="">over 30 days ago</option>')
      .and.to.match(/name="errors_over"[^>]*value="7"|value="7"[^>]*name="errors_over"/)
      .and.to.match(/value="gpt"/);
    expect(html).to.include('No tokens match this filter');
  });

  it('refuse what they do not understand, instead of listing all tokens', async () => {
    await create('one');
    for (const [query, words] of [
      ['created=yesterday', 'Created must be like &lt;7d or &gt;30d.'],
      ['created=30d', 'Created must be like'],
      ['idle_over=long', 'The time without use must be a duration'],
      ['errors_over=many', 'The number of failures must be a whole number'],
      ['expires_within=soon', 'Expires_within must be a number of hours.'],
    ] as const) {
      const { status, html } = await browser.get(`tokens?${query}`);
      expect(status, query).to.equal(400);
      expect(html, query).to.include('role="alert"').and.to.include(words).and.not.to.include('name="id"');
      const asked = await browser.post('tokens/marked', { what: 'revoke', all: 'yes', query });
      expect(asked.status, query).to.equal(400);
      expect(asked.html, query).to.not.include('name="confirmed"');
    }
  });

  it('select the same tokens on the next page, although time passes', async () => {
    for (let i = 0; i < 101; i++) await daemon.createToken(project.id, { name: `t${i}`, duration_hours: 20 });
    for (const query of ['expires_within=24', 'state=active&created=%3C24h']) {
      const first = await browser.get(`tokens?${query}`);
      expect(first.html).to.include('101 tokens');
      const next = /href="\/admin\/(tokens\?[^"]*cursor=[^"]*)" rel="next"/.exec(first.html)?.[1] ?? '';
      daemon.clock.advance(1_000);
      const second = await browser.get(next.replaceAll('&amp;', '&'));
      expect(second.status, query).to.equal(200);
      expect(namesIn(second.html), query).to.have.length(1);
      expect(next).to.include(new URLSearchParams(query).toString().replaceAll('&', '&amp;'));
    }
    const records = await browser.get('audit?since_hours=24');
    const next = /href="\/admin\/(audit\?[^"]*cursor=[^"]*)" rel="next"/.exec(records.html)?.[1] ?? '';
    daemon.clock.advance(1_000);
    expect((await browser.get(next.replaceAll('&amp;', '&'))).status).to.equal(200);
    expect((await browser.get('audit?since_hours=day')).status).to.equal(400);
  });

  it('select the tokens of an export, of all pages and without secrets', async () => {
    for (let i = 0; i < 101; i++) await create(`=t${i}`);
    const other = await daemon.createProject({ name: 'other' });
    const { token: secret } = await daemon.createToken(other.id, { name: 'secret' });
    const { html } = await browser.get(`tokens?project_id=${project.id}`);
    expect(html).to.include(`tokens/export?project_id=${project.id}&amp;format=csv`);
    const csv = await browser.get(`tokens/export?project_id=${project.id}&sort=name&format=csv`);
    expect(csv.headers.get('content-disposition')).to.equal('attachment; filename="tokens.csv"');
    const lines = csv.html.trim().split('\r\n');
    expect(lines).to.have.length(102);
    expect(lines[0]).to.match(/^id,name,project_id,state,is_active,/);
    expect(lines[1], 'not a formula').to.include(`,'=t0,${project.id},active,true,`);
    const all = (await browser.get('tokens/export?format=json')).html;
    expect(JSON.parse(all)).to.have.length(102);
    expect(all).to.not.include(secret);
    expect((await browser.get('tokens/export?format=json&created=soon')).status).to.equal(400);
    expect(JSON.parse((await browser.get('tokens/export?format=json&idle_over=30d')).html)).to.deep.equal([]);
  });

  it('revoke the tokens that nobody has used for 30 days, and no others', async () => {
    await someTokens();
    const query = 'idle_over=30d&created=%3E30d';
    const asked = await browser.post('tokens/marked', { what: 'revoke', all: 'yes', query });
    expect(asked.html)
      .to.include('Revoke 1 token?')
      .and.to.include('no use for <strong>30d</strong>')
      .and.to.match(/creation before <strong>\d{4}-\d\d-\d\dT[\d:.]+Z<\/strong>/);
    const [filter = ''] = [.../name="filter" value="([^"]*)"/.exec(asked.html)!].slice(1);
    const fields = { what: 'revoke', confirmed: 'yes', filter: filter.replaceAll('&amp;', '&'), count: '1' };
    expect((await browser.post('tokens/marked', fields)).html).to.include('1 token revoked.');
    expect(await found('state=revoked')).to.deep.equal(['old']);
    const far = { what: 'revoke', all: 'yes', query: 'created=%3E999999w' };
    expect((await browser.post('tokens/marked', far)).html).to.include('the time is too far away');
  });
});
