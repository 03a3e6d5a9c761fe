/** Usage reports, exports, and code examples for new tokens. */
import { expect } from 'chai';
import type { WireProject } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN, startDaemon } from '../support/daemon.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { json, startProvider } from '../support/provider.js';
import { adminForEachTest, loggedIn, TestBrowser } from './test-browser.js';

describe('the pages of the Admin UI', () => {
  const { daemon, browser } = adminForEachTest();
  let project: WireProject;

  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });

  describe('of usage', () => {
    const use = async (times: number, names: readonly (string | undefined)[]) => {
      for (const name of names) {
        const { token } = await daemon.createToken(project.id, name === undefined ? {} : { name });
        for (let i = 0; i < times; i++) await (await daemon.call(token)).text();
      }
      daemon.daemon.scheduler.publishAll();
    };

    it('group requests by model, token, project and day', async () => {
      await use(2, ['frontend', 'ci']);
      for (const by of ['token', 'model', 'project', 'day', 'hour', 'token,model']) {
        const { status, html } = await browser.get(`usage?by=${by}&since_hours=24`);
        expect(status, by).to.equal(200);
        expect(html, by)
          .to.include('4 requests in total')
          .and.to.include('Provider refused')
          .and.to.include('Prompt tokens');
      }
      const byToken = await browser.get('usage?by=token');
      expect(byToken.html).to.include('>frontend</bdi>').and.to.include('>ci</bdi>');
      expect((await browser.get('usage?by=project')).html).to.include('>web</bdi>');
      const wrong = await browser.get('usage?by=everything');
      expect(wrong.status).to.equal(400);
      expect(wrong.html).to.include('must be one of model token');
    });

    it('have columns for the prompt cache if there is something in them', async () => {
      const provider = await startProvider();
      const cached = await startDaemon({ upstream: provider.url });
      const { token } = await cached.createToken((await cached.createProject()).id, { name: 'cached' });
      const there = await loggedIn(cached.managementUrl);
      const shown = async () => {
        await (await cached.call(token, '/v1/chat/completions', { method: 'POST', body: '{}' })).text();
        cached.daemon.scheduler.publishAll();
        return (await there.get('usage?by=token&sort=cache_read_tokens')).html;
      };
      expect(await shown())
        .to.include('>cached</bdi>')
        .and.not.to.include('Prompt cache');
      provider.answer = (_req, res) => {
        const usage = { prompt_tokens: 2000, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 1920 } };
        json(res, 200, { model: 'm', usage });
      };
      const html = await shown();
      expect(html).to.include('Prompt cache read').and.not.to.include('Prompt cache written');
      expect(/<table id="usage-lines"[^]*<\/table>/.exec(html)?.[0]).to.include('1,920');
      const [titles = '', line = ''] = (await there.get('usage/export?by=token&format=csv')).html.split('\r\n');
      const at = titles.split(',').indexOf('cache_read_tokens');
      expect(line.split(',')[at]).to.equal('1920');
      await cached.stop();
      await provider.stop();
    });

    it('show requests and model tokens over time, for a period or between two days', async () => {
      await use(2, ['frontend']);
      const today = new Date(daemon.clock.now()).toISOString().slice(0, 10);
      for (const [query, step] of [
        ['since_hours=24', 'hour'],
        ['since_hours=720', 'day'],
        [`since=${today}`, 'hour'],
        ['since=7d', 'hour'],
        ['since=90m', 'hour'],
        ['since=8d', 'day'],
        ['since_hours=24&until=0s', 'hour'],
        [`since=2026-01-01&until=${today}T23:59:00Z`, 'day'],
      ] as const) {
        const { html } = await browser.get(`usage?${query}`);
        expect(html, query).to.include(`Requests: 2, up to 2 per ${step}.`).and.to.include('Model tokens: none');
        expect(html, query).to.include(`aria-label="Requests and model tokens per ${step}"`);
      }
      expect((await browser.get('usage?since=2026-01-01&until=2026-01-02')).html).to.include(
        'No requests in this period',
      );
      for (const [query, why] of [
        ['since=2026-02-30', 'Since must be a time ago such as 24h or 7d'],
        ['until=soon', 'Until must be a time ago'],
        ['since=2999-01-01', 'The period must begin before its end, and not in the future.'],
        ['since=2026-01-02&until=2026-01-01', 'The period must begin before its end, and not in the future.'],
        ['since=2020-01-01', 'Choose a period of up to 366 days.'],
      ] as const) {
        const { status, html } = await browser.get(`usage?${query}`);
        expect(status, query).to.equal(400);
        expect(html, query).to.include(why);
      }
    });

    it('have several pages', async () => {
      await use(1, Array.from({ length: 51 }));
      const first = await browser.get('usage?by=token');
      expect(first.html).to.include('51 rows').and.to.include('rel="next"');
      const second = await browser.get('usage?by=token&cursor=2');
      const [lines = ''] = /<table id="usage-lines"[^]*<\/table>/.exec(second.html) ?? [];
      expect(lines.match(/<th scope="row"/g)).to.have.length(1);
    });

    it('export CSV and JSON with the filter of the page', async () => {
      await use(1, ['one', 'two']);
      const { html } = await browser.get('usage?by=day,token');
      expect(html).to.include('/admin/usage/export?by=day%2Ctoken&amp;format=csv');
      const csv = await browser.get('usage/export?by=day,token&format=csv');
      expect(csv.headers.get('content-type')).to.equal('text/csv; charset=utf-8');
      expect(csv.headers.get('content-disposition')).to.equal('attachment; filename="usage.csv"');
      const lines = csv.html.trimEnd().split('\r\n');
      expect(lines[0]).to.match(/^day,token_id,token_name,requests,hits,/);
      expect(lines.slice(1).map((line) => line.split(',')[2])).to.have.members(['one', 'two']);
      expect(lines).to.have.length(3);
      const json = JSON.parse((await browser.get('usage/export?by=model&format=json')).html) as { requests: number }[];
      expect(json.map(({ requests }) => requests)).to.deep.equal([2]);
      expect((await browser.get('usage/export?by=model&format=xml')).status).to.equal(400);
    });
  });

  describe('of the audit log', () => {
    it('export files without formulas in their cells', async () => {
      const reasons = ['=HYPERLINK("http://evil")', '+1', '-1', '@SUM(1)', '＝1+1', 'plain, "quoted"'];
      for (const reason of reasons) {
        const { id } = await daemon.createToken(project.id);
        await browser.post(`tokens/${id}/revoke`, { reason });
      }
      const csv = await browser.get('audit/export?action=token.revoke&format=csv');
      expect(csv.status).to.equal(200);
      const lines = csv.html.trimEnd().split('\r\n');
      expect(lines).to.have.length(1 + reasons.length);
      expect(csv.html).not.to.match(/(?:^|,)"?[=+\-@＝]/m);
      expect(csv.html).to.include(`"'=HYPERLINK(""http://evil"")"`).and.to.include('"plain, ""quoted"""');
      const json = JSON.parse((await browser.get('audit/export?action=token.revoke&format=json')).html) as {
        reason: string;
        project_name: string;
      }[];
      expect(json.map(({ reason }) => reason)).to.have.members(reasons);
      expect(json.every(({ project_name: name }) => name === 'web')).to.equal(true);
      expect((await browser.get('audit')).html).to.include('/admin/audit/export?format=csv');
      const stranger = new TestBrowser(daemon.managementUrl);
      expect((await stranger.get('audit/export?format=csv')).status).to.equal(303);
    });

    it('export all records even if they need several pages of the API', async () => {
      const { id } = await daemon.createToken(project.id);
      for (let i = 0; i < 101; i++) {
        await daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: i % 2 === 1 });
      }
      const { html } = await browser.get(`audit/export?format=json&token_id=${id}`);
      expect(JSON.parse(html)).to.have.length(102);
    });
  });

  it('show the changes of a token despite many records of its use', async () => {
    const { id, token } = await daemon.createToken(project.id, { duration_hours: 500 });
    await daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: false });
    await daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: true });
    for (let hour = 0; hour < 15; hour++) {
      daemon.clock.advance(3_600_000);
      await (await daemon.call(token)).text();
    }
    await eventually('its uses are recorded', async () => {
      daemon.daemon.scheduler.publishAll();
      await daemon.daemon.usage.flush();
      const listed = await daemon.manage('GET', `/manage/audit?token_id=${id}&action=token.use`);
      return (listed.body as unknown[]).length >= 15;
    });
    await browser.logIn(MANAGEMENT_TOKEN);
    const { html } = await browser.get(`tokens/${id}`);
    for (const action of ['token.create', 'token.revoke', 'token.reactivate', 'token.use']) {
      expect(html, action).to.match(new RegExp(`>${action}(?: × 1)?<`));
    }
  });

  it('give the maximum lifetime of a token in the unit of the form', async () => {
    for (const [duration, unit, most] of [
      ['366', 'days', '365 days'],
      ['8761', 'hours', '8760 hours'],
      ['525601', 'minutes', '525600 minutes'],
    ] as const) {
      const seen = await browser.post('tokens/new', { project_id: project.id, duration, unit });
      expect(seen.status).to.equal(400);
      expect(seen.html).to.include(`The lifetime must be from 1 to ${most}.`);
    }
  });

  it('show code examples for a new token without its secret', async () => {
    const seen = await browser.follow(
      browser.post('tokens/new', { project_id: project.id, duration: '1', unit: 'hours' }),
    );
    const base = `${daemon.url}/v1`;
    expect(seen.html)
      .to.include(`export OPENAI_BASE_URL=&#x27;${base}&#x27;`)
      .and.to.include(`curl &#x27;${base}/chat/completions&#x27;`);
    expect(seen.html).to.include(`baseURL: &#x27;${base}&#x27;`).and.to.include(`base_url=&quot;${base}&quot;`);
    expect(seen.html.match(/sk-wt-[0-9A-Za-z]{49}/g)).to.have.length(1);
    for (const id of ['environment', 'curl', 'node', 'python'])
      expect(seen.html).to.include(`data-copy="snippet-${id}"`);
  });

  it('show the port for clients if the Admin UI has a separate port', async () => {
    const own = await startDaemon({ env: { MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0', LISTEN_ADDR: '127.0.0.1:18473' } });
    const { id } = await own.createProject();
    const there = await loggedIn(own.managementUrl);
    const seen = await there.follow(there.post('tokens/new', { project_id: id, duration: '1', unit: 'hours' }));
    expect(seen.html).to.include('export OPENAI_BASE_URL=&#x27;http://127.0.0.1:18473/v1&#x27;');
    await own.stop();
  });

  it('link the numbers of the overview to their details', async () => {
    const { html } = await browser.get();
    const links = [...html.matchAll(/<dd><a href="\/admin\/([^"]*)"/g)].map(([, to = '']) =>
      to.replaceAll('&amp;', '&'),
    );
    expect(links).to.have.length(4);
    for (const to of links) expect((await browser.get(to)).status, to).to.equal(200);
    expect(links[0]).to.equal('tokens?state=active');
  });

  it('draw requests and errors with labelled scales', async () => {
    const provider = await startProvider();
    // In the middle of an hour, so that all requests are in one bar.
    const clock = new TestClock({ standsStill: false, startMs: Date.UTC(2026, 10, 23, 12, 30) });
    const used = await startDaemon({ upstream: provider.url, clock });
    const { id } = await used.createProject();
    const { token } = await used.createToken(id);
    for (let i = 0; i < 6; i++) await (await used.call(token)).text();
    await provider.stop();
    for (let i = 0; i < 3; i++) await (await used.call(token)).text();
    used.daemon.scheduler.publishAll();
    const there = await loggedIn(used.managementUrl);
    const { html } = await there.get();
    const charts = [...html.matchAll(/<figure[^]*?<\/figure>/g)].map(([chart]) => ({
      title: /<strong>([^<]*)</.exec(chart)?.[1],
      scale: [...chart.matchAll(/text-anchor="end">(\d+)<\/text>/g)].map(([, number]) => Number(number)),
      bars: [...chart.matchAll(/<rect class="([\w-]+)" x[^>]* height="([\d.]+)%"/g)].flatMap(([, look = '', height]) =>
        look === 'hover' ? [] : [[look, Number(height)]],
      ),
      marks: [...chart.matchAll(/<text x="[\d.]+%" text-anchor="\w+" y="0.75em"[^>]*>([^<]*)</g)].map(
        ([, mark]) => mark,
      ),
    }));
    const marks = ['18:00', '23 Nov', '06:00', '12:00'];
    // 6 and 3 of 10: a failure is on top of the requests that the provider answered.
    expect(charts).to.deep.equal([
      {
        title: 'Requests per hour',
        scale: [0, 5, 10],
        bars: [
          ['forwarded', 60],
          ['failures', 30],
        ],
        marks,
      },
      { title: 'Failures per hour', scale: [0, 1, 2, 3], bars: [['failures', 100]], marks },
    ]);
    await used.stop();
  });
});
