/** What tokens and projects may use, and how fast, in the Admin UI. */
import { expect } from 'chai';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { UPSTREAM_KEY } from '../support/daemon.js';
import { perTest } from '../support/per-test.js';
import { startProvider } from '../support/provider.js';
import { adminForEachTest } from './test-browser.js';

const ALLOW = { models: ['gpt-5-mini', 'claude-*'], routes: ['inference'] };
const LIMITS = { requests_per_minute: 60, concurrent: 4 };
const BUDGET = { usd: '25.00', tokens: 2_000_000, period: 'month', mode: 'hard' };
const EMPTY = {
  models: '',
  routes: '',
  requests_per_minute: '',
  tokens_per_minute: '',
  concurrent: '',
  budget_usd: '',
  budget_tokens: '',
  budget_period: 'none',
  budget_mode: 'soft',
};
/** As on the page. */
const FIELDS = {
  ...EMPTY,
  models: 'gpt-5-mini, claude-*',
  routes: 'inference',
  requests_per_minute: '60',
  concurrent: '4',
  budget_usd: '25',
  budget_tokens: '2000000',
  budget_period: 'month',
  budget_mode: 'hard',
};

describe('limits in the Admin UI', () => {
  const provider = perTest(startProvider);
  const { daemon, browser } = adminForEachTest(() => ({ upstream: provider.url }));
  let project: WireProject;
  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });

  const newToken = { name: 'ci', duration: '24', unit: 'hours', max_requests: '' };
  const issued = async (fields: object | string[][]) => {
    const own = { ...newToken, project_id: project.id };
    const { status, to, html } = await browser.post(
      'tokens/new',
      Array.isArray(fields) ? [...Object.entries(own), ...fields] : { ...own, ...fields },
    );
    expect(status, html).to.equal(303);
    return daemon.token(/tokens\/([0-9a-f-]{36})/.exec(to!)![1]!);
  };
  const versionIn = (html: string) => `"${/name="version" value="&quot;([^"]+)&quot;"/.exec(html)![1]!}"`;

  it('are fields of a new token, all of them optional', async () => {
    expect(await issued(EMPTY)).to.deep.include({ allow: null, limits: null, budget: null });
    expect(await issued(FIELDS)).to.deep.include({ allow: ALLOW, limits: LIMITS, budget: BUDGET });
    const refused = await browser.post('tokens/new', { ...newToken, ...FIELDS, project_id: project.id, routes: '/v1' });
    expect(refused.status).to.equal(400);
    expect(refused.html).to.contain('Routes: routes such as').and.to.contain('value="gpt-5-mini, claude-*"');
  });

  it('are fields of a new project, all of them optional', async () => {
    const created = (name: string, fields: object) =>
      browser.post('projects/new', { name, api_key: UPSTREAM_KEY, provider: 'default', auth: 'bearer', ...fields });
    const stored = async (name: string) => {
      const all = (await daemon.manage('GET', '/manage/projects')).body as WireProject[];
      return all.find((it) => it.name === name);
    };
    expect((await browser.get('projects/new')).html).to.match(/<details><summary>Models, routes, limits and budget/);
    await created('open', EMPTY);
    expect(await stored('open')).to.deep.include({ allow: null, limits: null, budget: null });
    await created('narrow', FIELDS);
    expect(await stored('narrow')).to.deep.include({ allow: ALLOW, limits: LIMITS, budget: BUDGET });
    const refused = await created('wrong', { ...FIELDS, concurrent: '0' });
    expect(refused.status).to.equal(400);
    expect(refused.html)
      .to.contain('At a time: a whole number from 1')
      .and.to.contain('<details open')
      .and.to.contain('value="gpt-5-mini, claude-*"');
    expect(await stored('wrong')).to.equal(undefined);
  });

  it('are those of the other token when it is issued again, unless they are changed', async () => {
    const { id } = await daemon.createToken(project.id, { allow: ALLOW, limits: LIMITS, budget: BUDGET });
    const { html } = await browser.get(`tokens/new?like=${id}`);
    expect(html).to.contain('<details open').and.to.contain('value="gpt-5-mini, claude-*"');
    expect(await issued({ ...FIELDS, like: id })).to.deep.include({ allow: ALLOW, limits: LIMITS, budget: BUDGET });
    expect(await issued({ ...EMPTY, like: id })).to.deep.include({ allow: null, limits: null, budget: null });
  });

  it('offer the models that the project has used', async () => {
    const { token } = await daemon.createToken(project.id);
    const body = JSON.stringify({ model: 'gpt-5-mini', messages: [] });
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
    await (await daemon.call(token, '/v1/chat/completions', init)).text();
    daemon.daemon.scheduler.publishAll();
    await daemon.daemon.usage.flush();
    const { html } = await browser.get(`tokens/new?project_id=${project.id}`);
    expect(html)
      .to.match(/name="used_model" value="gpt-5-mini"/)
      .and.to.contain('Other models');
    const chosen = await issued([...Object.entries({ ...EMPTY, models: 'o3' }), ['used_model', 'gpt-5-mini']]);
    expect(chosen.allow).to.deep.equal({ models: ['gpt-5-mini', 'o3'] });
    const form = await browser.get(`tokens/${chosen.id}/restrict`);
    expect(form.html).to.match(/<input type="checkbox" name="used_model" checked="" value="gpt-5-mini"/);
    expect(form.html).to.match(/name="models"[^>]* value="o3"|value="o3"[^>]* name="models"/);
  });

  for (const what of ['tokens', 'projects'] as const) {
    describe(`of ${what}`, () => {
      let path: string;
      beforeEach(async () => {
        const { id } = what === 'tokens' ? await daemon.createToken(project.id) : project;
        path = `${what}/${id}`;
        await daemon.manage('PATCH', `/manage/${path}`, { allow: ALLOW, limits: LIMITS, budget: BUDGET });
      });
      const read = async () => (await daemon.manage('GET', `/manage/${path}`)).body as WireToken | WireProject;

      it('are shown', async () => {
        const { html } = await browser.get(path);
        expect(html)
          .to.contain('routes inference; models gpt-5-mini, claude-*')
          .and.to.contain('60 requests/min, 4 at a time');
      });

      it('are changed, with a reason', async () => {
        const { html } = await browser.get(`${path}/restrict`);
        const fields = { ...FIELDS, version: versionIn(html), concurrent: '9', models: '', reason: 'load test' };
        const done = await browser.follow(browser.post(`${path}/restrict`, fields));
        expect(done.html).to.contain('Limits changed.');
        expect(await read()).to.deep.include({
          allow: { routes: ['inference'] },
          limits: { ...LIMITS, concurrent: 9 },
        });
        const [record] = (await daemon.manage('GET', '/manage/audit')).body as { reason: string; details: object }[];
        expect(record).to.include({ reason: 'load test' });
      });

      it('are removed with empty fields', async () => {
        const { html } = await browser.get(`${path}/restrict`);
        expect((await browser.post(`${path}/restrict`, { ...EMPTY, version: versionIn(html) })).status).to.equal(303);
        expect(await read()).to.deep.include({ allow: null, limits: null, budget: null });
      });

      it('have a page for the budget alone, which changes nothing else', async () => {
        const { html } = await browser.get(`${path}/budget`);
        expect(html)
          .to.contain('value="25.00"')
          .and.to.match(/<option value="month" selected=""/);
        expect(html).not.to.contain('name="models"');
        const fields = { version: versionIn(html), budget_usd: '$20', budget_tokens: '', budget_period: 'none' };
        const refused = await browser.post(`${path}/budget`, { ...fields, budget_usd: '0' });
        expect(refused.status).to.equal(400);
        expect(refused.html).to.contain('Budget, USD: US dollars above 0').and.to.contain('value="0"');
        const done = await browser.follow(browser.post(`${path}/budget`, { ...fields, budget_mode: 'shadow' }));
        expect(done.html).to.contain('Budget changed.').and.to.contain('$20, shadow');
        const budget = { usd: '20.00', period: 'none', mode: 'shadow' };
        expect(await read()).to.deep.include({ allow: ALLOW, limits: LIMITS, budget });
        const now = versionIn((await browser.get(`${path}/budget`)).html);
        const removal = { ...fields, version: now, budget_usd: '', budget_mode: 'shadow' };
        expect((await browser.post(`${path}/budget`, removal)).status).to.equal(303);
        expect(await read()).to.deep.include({ allow: ALLOW, limits: LIMITS, budget: null });
      });

      it('do not replace what somebody else has set since', async () => {
        const { html } = await browser.get(`${path}/restrict`);
        await daemon.manage('PATCH', `/manage/${path}`, { limits: { concurrent: 1 } });
        const fields = { ...FIELDS, concurrent: '9' };
        const refused = await browser.post(`${path}/restrict`, { ...fields, version: versionIn(html) });
        expect(refused.status).to.equal(400);
        expect(refused.html).to.contain('Somebody has changed it');
        expect((await read()).limits).to.deep.equal({ concurrent: 1 });
        expect(
          (await browser.post(`${path}/restrict`, { ...fields, version: versionIn(refused.html) })).status,
        ).to.equal(303);
        expect((await read()).limits).to.deep.equal({ ...LIMITS, concurrent: 9 });
      });

      it('show the form again with what was entered if it is wrong', async () => {
        const { html } = await browser.get(`${path}/restrict`);
        const fields = { ...FIELDS, concurrent: '0', version: versionIn(html) };
        const refused = await browser.post(`${path}/restrict`, fields);
        expect(refused.status).to.equal(400);
        expect(refused.html).to.contain('At a time: a whole number from 1').and.to.contain('value="0"');
      });
    });
  }
});
