/** The page of the busiest tokens, projects and models. */
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { TestClock } from '../support/clock.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { perTest } from '../support/per-test.js';
import { startProvider } from '../support/provider.js';
import { adminForEachTest } from './test-browser.js';

const HOUR_MS = 3_600_000;

describe('the page Top of the Admin UI', () => {
  const provider = perTest(startProvider);
  const clock = () => new TestClock({ standsStill: false });
  const { daemon, browser } = adminForEachTest(() => ({ upstream: provider.url, clock: clock() }));
  let web: WireProject;
  let batch: WireProject;
  let tokens: Record<string, WireTokenCreated>;

  beforeEach(async () => {
    web = await daemon.createProject({ name: 'web' });
    batch = await daemon.createProject({ name: 'batch <b>' });
    tokens = {};
    for (const [name, project] of [
      ['ci', web],
      ['busy', web],
      ['night <i>', batch],
    ] as const) {
      tokens[name] = await daemon.createToken(project.id, { name });
    }
    // More than an hour, so that the last hour is complete.
    daemon.clock.advance(2 * HOUR_MS);
    await browser.logIn(MANAGEMENT_TOKEN); // Its session has ended meanwhile.
  });

  async function use(name: string, model: string, times: number): Promise<void> {
    const headers = { 'content-type': 'application/json' };
    const path = model === 'none' ? '/v1/no-such-path' : '/v1/chat/completions';
    for (let i = 0; i < times; i++) {
      const body = JSON.stringify({ model, messages: [] });
      await (await daemon.call(tokens[name]!.token, path, { method: 'POST', headers, body })).text();
    }
    daemon.daemon.scheduler.publishAll();
  }

  /** The text of each cell, row by row. */
  const rowsOf = (html: string) =>
    [...html.matchAll(/<tr[^>]*>(<th scope="row">.*?)<\/tr>/gs)].map(([, row = '']) =>
      [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = '']) =>
        cell.replace(/<svg.*?<\/svg>/gs, '').replace(/<[^>]+>/g, ''),
      ),
    );

  it('lists tokens with their failures, and links to the token, its project and its requests', async () => {
    await use('ci', 'none', 3);
    await use('ci', 'gpt-4o', 1);
    await use('busy', 'gpt-4o', 5);
    await use('night <i>', 'none', 1);
    const { html } = await browser.get('top');
    expect(html).to.include('Tokens, last hour').and.to.include('10 requests, 4 failures. Read ');
    expect(
      rowsOf(html).map(([name, project, requests, errors, kinds]) => [name, project, requests, errors, kinds]),
    ).to.deep.equal([
      ['ci', 'web', '4', '3', 'provider refused 3'],
      ['night &lt;i&gt;', 'batch &lt;b&gt;', '1', '1', 'provider refused 1'],
      ['busy', 'web', '5', '0', ''],
    ]);
    const { id } = tokens.ci!;
    for (const to of [`tokens/${id}`, `projects/${web.id}`, `events?token_id=${id}`]) {
      expect(html).to.include(`href="/admin/${to}"`);
      expect((await browser.get(to)).status, to).to.equal(200);
    }
    expect(html).to.match(/aria-label="4 requests, 3 failures; up to 4 per 3 min, now 4"/);
    expect(html).to.include('data-refresh');
  });

  it('sorts, filters by project and token, and shows projects and models', async () => {
    await use('ci', 'gpt-4o', 2);
    await use('busy', 'gpt-4o', 5);
    await use('night <i>', 'none', 1);
    const names = async (query: string) => rowsOf((await browser.get(`top?${query}`)).html).map(([name]) => name);
    expect(await names('sort=requests')).to.deep.equal(['busy', 'ci', 'night &lt;i&gt;']);
    expect(await names(`project_id=${batch.id}`)).to.deep.equal(['night &lt;i&gt;']);
    expect(await names('token_id=busy')).to.deep.equal(['busy']);
    expect(await names('by=project')).to.deep.equal(['batch &lt;b&gt;', 'web']);
    expect(await names('by=model')).to.deep.equal(['gpt-4o', 'none']);
    expect(await names(`by=model&token_id=${tokens.ci!.id}`)).to.deep.equal(['gpt-4o']);

    const { html } = await browser.get(`top?by=model&project_id=${web.id}`);
    expect(html, 'the choices keep the filter').to.include(`top?by=model&amp;project_id=${web.id}&amp;window=5m`);
    expect(html).to.include(`events?project_id=${web.id}&amp;model=gpt-4o`).and.to.include('name="by" value="model"');

    expect(html).to.include(`llmp top model --window 1h --sort tokens --project-id ${web.id}`);

    const wrong = await browser.get('top?window=2h&by=model');
    expect(wrong.status).to.equal(400);
    expect(wrong.html).to.include('Window must be one of 5m 1h 24h.').and.to.include('role="alert"');
    expect((await browser.get('top?token_id=nobody')).html).to.include('No token has this name or ID.');
  });

  it('shows a day without times, and when it was read', async () => {
    await use('ci', 'gpt-4o', 2);
    daemon.clock.advance(60_000);
    const { html } = await browser.get('top?window=24h');
    expect(html).to.match(/2 requests, 0 failures\. Read <time [^>]*>(?:now|\d+s ago)<\/time>\./);
    expect(html).to.not.include('P95');
    expect(rowsOf(html)[0]?.slice(0, 3)).to.deep.equal(['ci', 'web', '2']);
    expect((await browser.get('top?window=1h')).html).to.include('P95');
  });

  it('says that there are none', async () => {
    const { html } = await browser.get('top');
    expect(html).to.include('No requests in the last hour.').and.to.not.include('top/export');
  });

  it('shows the first 50 rows, says how many there are, and shows more on request', async () => {
    for (let i = 0; i < 52; i++) {
      tokens[`many${i}`] = await daemon.createToken(web.id, { name: `many${i}` });
      await use(`many${i}`, 'gpt-4o', 1);
    }
    const { html } = await browser.get('top?window=5m');
    expect(rowsOf(html)).to.have.length(50);
    expect(html).to.include('irst 50 of 52 rows').and.to.include('href="/admin/top?window=5m&amp;rows=all"');
    const all = await browser.get('top?window=5m&rows=all');
    expect(rowsOf(all.html)).to.have.length(52);
    expect(all.html).to.not.include('of 52 rows');
    expect((await browser.get('top/export?window=5m&format=json')).html.match(/token_name/g)).to.have.length(52);
  });

  it('exports what the filter selects', async () => {
    await use('ci', 'none', 1);
    await use('busy', 'gpt-4o', 2);
    const csv = await browser.get('top/export?format=csv&sort=requests&token_id=busy');
    expect(csv.headers.get('content-disposition')).to.equal('attachment; filename="top.csv"');
    const [head = '', row = '', ...rest] = csv.html.trim().split('\r\n');
    expect(head).to.match(
      /^token_id,token_name,project_id,project_name,requests,cache_hits,errors,.*last_used_at,cost_usd,unpriced_requests$/,
    );
    expect(row).to.match(new RegExp(`^${tokens.busy!.id},busy,${web.id},web,2,0,0,`));
    expect(rest).to.deep.equal([]);
    const models = await browser.get('top/export?format=csv&by=model');
    expect(models.html).to.match(/^model,project_id,project_name,requests/);
    const { html } = await browser.get('top/export?format=json&by=project');
    expect(JSON.parse(html)).to.have.length(1);
    expect((await browser.get('top/export?format=csv&sort=name')).status).to.equal(400);
  });
});
