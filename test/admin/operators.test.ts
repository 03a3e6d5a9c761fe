/** Operators in the Admin UI: their pages, their sessions, and the first page of an issuer. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { WireOperator, WireProject, WireToken } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN, UPSTREAM_KEY } from '../support/daemon.js';
import { aNewProject } from '../support/factories.js';
import { auditOf, bodyOf, lastAuditOf } from '../support/management.js';
import { adminForEachTest, TestBrowser, wrongField } from './test-browser.js';

const SECRET = /sk-op-[0-9A-Za-z]{49}/;
const idIn = (to: string | null) => /[0-9a-f-]{36}/.exec(to ?? '')![0];
const plain = (html: string) => html.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');

describe('operators in the Admin UI', () => {
  const { daemon, browser } = adminForEachTest();
  let project: WireProject;

  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });

  /** By the API. */
  async function operatorWith(fields: Record<string, unknown>): Promise<WireOperator & { secret: string }> {
    return bodyOf(await daemon.manage('POST', '/manage/operators', fields), 201);
  }
  async function loggedInAs(secret: string): Promise<TestBrowser> {
    const own = new TestBrowser(daemon.managementUrl);
    expect((await own.logIn(secret)).to).to.equal('/admin/');
    return own;
  }
  const operatorOf = async (id: string) =>
    bodyOf<WireOperator>(await daemon.manage('GET', `/manage/operators/${id}`), 200);

  it('are created with their secret shown once, changed, deactivated and reactivated', async () => {
    const fields = {
      name: 'ana',
      role: 'issuer',
      extent: 'some',
      project: project.id,
      hours: '8',
      models: 'gpt-5-mini',
    };
    const { to } = await browser.post('operators/new', { ...fields, expires: '2100-01-31', reason: 'new colleague' });
    const id = idIn(to);
    expect(to).to.equal(`/admin/operators/${id}/secret`);
    const secret = SECRET.exec((await browser.get(to!)).html)![0];
    expect((await browser.get(to!)).html).not.to.match(SECRET);
    expect(await operatorOf(id)).to.deep.include({
      role: 'issuer',
      projects: [project.id],
      expires_at: '2100-01-31T00:00:00.000Z',
      ceilings: { hours: 8, models: ['gpt-5-mini'] },
    });
    expect(await lastAuditOf(daemon)).to.include({ action: 'operator.create', reason: 'new colleague' });

    const page = plain((await browser.get(`operators/${id}`)).html);
    expect(page).to.include('issuer: issues tokens').and.to.include('8 h, models gpt-5-mini').and.to.include('web');
    expect(plain((await browser.get('operators')).html))
      .to.include('1 operator')
      .and.to.include('ana');

    const form = (await browser.get(`operators/${id}/change`)).html;
    const version = /name="version" value="([^"]+)"/.exec(form)![1]!.replaceAll('&quot;', '"');
    const changes = { ...fields, extent: 'all', role: 'viewer', expires: '2100-01-31', version };
    const done = await browser.follow(browser.post(`operators/${id}/change`, changes));
    expect(done.html).to.include('Operator changed.');
    expect(await operatorOf(id)).to.deep.include({
      role: 'viewer',
      projects: null,
      ceilings: { hours: 8, models: ['gpt-5-mini'] },
    });
    const stale = await browser.post(`operators/${id}/change`, { ...changes, role: 'admin' });
    expect(stale.status).to.equal(400);
    expect(stale.html).to.include('Somebody has changed it since');

    const asked = await browser.get(`operators/${id}/deactivate`);
    expect(asked.html).to.include('name="keep_tokens"');
    expect((await browser.follow(browser.post(`operators/${id}/deactivate`))).html).to.include('0 tokens revoked');
    expect((await new TestBrowser(daemon.managementUrl).logIn(secret)).html).to.include('Wrong token or secret.');
    await browser.post(`operators/${id}/reactivate`);
    expect((await operatorOf(id)).is_active).to.equal(true);
    await loggedInAs(secret);
  });

  it('keep their projects when a form changes something else, also those beyond the first 1,000', async () => {
    const { id } = await operatorWith({ name: 'ana', role: 'viewer', projects: [project.id] });
    await daemon.daemon.stores.records.change(async (tx) => {
      for (let n = 0; n < 1_000; n++) {
        const createdAtMs = daemon.clock.now() + 1 + n;
        await tx.insertProject(
          aNewProject({ id: randomUUID(), name: `p${n}`, createdAtMs, upstreamKey: UPSTREAM_KEY }),
        );
      }
    });
    const { html } = await browser.get(`operators/${id}/change`);
    const version = /name="version" value="([^"]+)"/.exec(html)![1]!.replaceAll('&quot;', '"');
    const checked = [...html.matchAll(/<input type="checkbox" name="project"[^>]*value="([^"]+)"[^>]*>/g)]
      .filter(([input]) => / checked=/.test(input))
      .map(([, value]) => value);
    expect(checked).to.deep.equal([project.id]);
    const changes = { role: 'auditor', extent: 'some', project: checked[0]!, version };
    expect((await browser.post(`operators/${id}/change`, changes)).status).to.equal(303);
    expect(await operatorOf(id)).to.deep.include({ role: 'auditor', projects: [project.id] });
  });

  it('are not created from a form in which something is missing', async () => {
    for (const [fields, says, field] of [
      [{ role: 'viewer', extent: 'some' }, 'Select at least one project.', 'extent'],
      [{ role: 'viewer', extent: '' }, 'Choose the projects.', 'extent'],
      [{ role: 'owner', extent: 'all' }, 'Choose a role.', 'role'],
      [
        { role: 'issuer', extent: 'all', hours: '0' },
        'Lifetime, hours must be a whole number from 1 to 8760.',
        'hours',
      ],
      [{ role: 'issuer', extent: 'all', expires: 'soon' }, 'The expiry must be a date.', 'expires'],
      [{ role: 'issuer', extent: 'all', budget_usd: 'much' }, 'Budget, USD: US dollars', 'budget_usd'],
      [{ role: 'viewer', extent: 'all', name: ' ' }, 'Name must be 1 to 100 characters', 'name'],
      [{ role: 'viewer', extent: 'all', reason: 'x'.repeat(2000) }, 'The reason must be', 'reason'],
    ] as const) {
      const seen = await browser.post('operators/new', { name: 'ana', ...fields });
      expect(seen.status).to.equal(400);
      expect(plain(seen.html)).to.include(says);
      const [wrong, message] = wrongField(seen.html);
      expect(wrong).to.equal(field);
      expect(message).to.include(says);
    }
    expect((await daemon.manage('GET', '/manage/operators')).body).to.deep.equal([]);
  });

  it('lose their tokens when they are deactivated, unless these are kept', async () => {
    for (const [isKept, says, state] of [
      [false, 'Operator deactivated. 1 token revoked.', 'revoked'],
      [true, 'Operator deactivated. Its secret and its sessions have ended', 'active'],
    ] as const) {
      const { id, secret } = await operatorWith({ name: `kept ${isKept}`, role: 'issuer' });
      const own = await loggedInAs(secret);
      const { to } = await own.post('', { project_id: project.id, hours: '1' });
      const seen = await browser.follow(
        browser.post(`operators/${id}/deactivate`, isKept ? { keep_tokens: 'true' } : {}),
      );
      expect(plain(seen.html)).to.include(says);
      expect((await daemon.token(idIn(to))).state).to.equal(state);
    }
  });

  it('are named on each page with their role, as actors in the audit log, and as issuers of tokens', async () => {
    const own = await loggedInAs((await operatorWith({ name: 'ana', role: 'operator' })).secret);
    for (const page of ['', 'tokens', 'nothing']) {
      expect(plain((await own.get(page)).html), page).to.match(/Logged in: ana operator Log out/);
    }
    expect(plain((await browser.get()).html)).to.include('Logged in: Management token Log out');
    const { to } = await own.post('tokens/new', { project_id: project.id, name: 'ci', duration: '1', unit: 'hours' });
    const [record] = (await auditOf(daemon)).filter(({ action }) => action === 'token.create');
    expect(record).to.include({ actor: 'operator:ana' });
    expect(plain((await browser.get(`tokens/${idIn(to)}`)).html)).to.include('Issued by operator ana');
    await daemon.createToken(project.id, { name: 'of the root' });
    const list = (await browser.get('tokens?q=by%3Aoperator%3Aana')).html;
    expect(list).to.include('>ci<').and.not.to.include('of the root');
    const all = { what: 'revoke', all: 'yes', query: 'q=by:operator:ana' };
    expect((await browser.post('tokens/marked', all)).html)
      .to.include('Revoke 1 token?')
      .and.to.include('issued_by=operator');
  });

  it('get the log-in page with the reason when their session has ended', async () => {
    for (const [change, why] of [
      [{ is_active: false }, 'the operator ana was deactivated'],
      [{ role: 'viewer' }, 'the operator bob was changed'],
    ] as const) {
      const name = /operator (\w+)/.exec(why)![1];
      const { id, secret } = await operatorWith({ name, role: 'operator' });
      const own = await loggedInAs(secret);
      expect((await own.get('tokens')).status).to.equal(200);
      await daemon.manage('PATCH', `/manage/operators/${id}`, change);
      const seen = await own.get('tokens?state=active');
      expect(seen.to).to.equal('/admin/login?why=ended&next=%2Fadmin%2Ftokens%3Fstate%3Dactive');
      expect((await own.get(seen.to!)).html).to.include(`The session has ended, because ${why}`);
      expect((await own.get('', { 'x-llmp-refresh': '1' })).status).to.equal(401);
      expect((await own.post('tokens/new', { project_id: project.id })).to).to.match(/^\/admin\/login\?why=ended/);
    }
  });

  it('get it too if the session ends while a page is made or a form is sent', async () => {
    const { id, secret } = await operatorWith({ name: 'ana', role: 'operator' });
    const own = await loggedInAs(secret);
    const pages = ['', 'tokens', 'usage', `projects/${project.id}`, 'top', 'tokens'];
    const racing = pages.map((page) => own.get(page));
    const deactivated = daemon.manage('DELETE', `/manage/operators/${id}`);
    const sending = pages.map((_, at) =>
      own.post('tokens/new', { project_id: project.id, name: `t${at}`, duration: '1', unit: 'hours' }),
    );
    for (const { status, to, html } of await Promise.all([...racing, ...sending])) {
      if (status !== 200)
        expect(to, `${status} ${plain(html)}`).to.match(
          /^\/admin\/(?:login\?why=ended|tokens\/[0-9a-f-]{36}\/secret$)/,
        );
    }
    expect((await deactivated).status).to.equal(200);
    // What was issued before is revoked with the operator; nothing is issued after.
    const tokens = await bodyOf<WireToken[]>(await daemon.manage('GET', '/manage/tokens'), 200);
    expect(tokens.filter(({ is_active }) => is_active)).to.deep.equal([]);
  });

  describe('of the role issuer', () => {
    const CEILINGS = {
      hours: 72,
      requests: 500,
      active_tokens: 2,
      models: ['gpt-5-mini', 'claude-*'],
      limits: { requests_per_minute: 60 },
      budget: { usd: '20.00', period: 'month', mode: 'hard' },
    };
    let own: TestBrowser;

    beforeEach(async () => {
      const operator = await operatorWith({ name: 'ana', role: 'issuer', projects: [project.id], ceilings: CEILINGS });
      own = await loggedInAs(operator.secret);
    });

    it('begin with a page that issues a token in three fields, with all that the ceilings allow', async () => {
      const first = await own.get();
      expect(first.html.match(/<form [^>]*action="\/admin\/" .*?<\/form>/s)![0].match(/ name="\w+"/g)).to.deep.equal(
        ['form_token', 'name', 'hours', 'project_id'].map((name) => ` name="${name}"`),
      );
      const says = plain(first.html);
      for (const words of [
        'Lifetime up to 3 days',
        'Requests up to 500',
        'models gpt-5-mini, claude-*',
        '60 requests/min',
        '$20 a month, hard',
        'Active tokens 0 of 2',
      ]) {
        expect(says).to.include(words);
      }
      expect([...first.html.matchAll(/<option value="(\d+)"/g)].map(([, hours]) => hours)).to.deep.equal([
        '1',
        '8',
        '24',
        '72',
      ]);
      expect(first.html).to.include('<option value="24" selected="">');

      const { to } = await own.post('', { name: 'my laptop', hours: '24', project_id: project.id });
      const shown = await own.get(to!);
      const secret = /sk-wt-[0-9A-Za-z]{49}/.exec(shown.html)![0];
      expect(shown.html).to.include('&quot;model&quot;: &quot;gpt-5-mini&quot;').and.to.include(`${daemon.url}/v1`);
      expect(await daemon.token(idIn(to))).to.deep.include({
        name: 'my laptop',
        max_requests: 500,
        allow: { models: CEILINGS.models },
        limits: CEILINGS.limits,
        budget: CEILINGS.budget,
        issued_by: 'operator:ana',
      });
      expect((await daemon.call(secret)).status).not.to.equal(401);
    });

    it('see what is left of their tokens and what they cost, and revoke them, but no others', async () => {
      const others = await daemon.createToken(project.id, { name: 'of others' });
      const { to } = await own.post('', { name: 'mine', hours: '1', project_id: project.id });
      const id = idIn(to);
      const says = plain((await own.get()).html);
      expect(says).to.include('Issued by me $0 in the last 30 days').and.to.include('0 / 500').and.to.include('100 %');
      expect(says).to.include('Active tokens 1 of 2').and.not.to.include('of others');
      expect((await own.get(`tokens/${others.id}`)).status).to.equal(404);
      expect((await own.follow(own.post(`tokens/${id}/revoke`, { reason: 'done' }))).html).to.include('Token revoked.');
      expect((await daemon.token(id)).state).to.equal('revoked');
      expect((await own.post(`tokens/${others.id}/revoke`)).status).to.equal(404);
      expect((await own.post(`tokens/${id}/reactivate`)).status).to.equal(403);
    });

    it('are told the ceiling that a token is beyond', async () => {
      const issue = () => own.post('', { hours: '1', project_id: project.id });
      expect((await own.post('', { hours: '73', project_id: project.id })).html).to.include('72');
      for (let i = 0; i < 2; i++) expect((await issue()).status).to.equal(303);
      const refused = await issue();
      expect(refused.status).to.equal(400);
      expect(/role="alert">([^<]*)</.exec(refused.html)![1]).to.match(/active.tokens/i);
      // The form with all fields begins within the ceilings.
      const form = (await own.get('tokens/new')).html;
      expect(form).to.include('name="max_requests" value="500"').and.to.include('gpt-5-mini, claude-*');
    });
  });
});

describe('a secret of an operator in the Admin UI', () => {
  const { daemon, browser } = adminForEachTest();

  it('is in no address, and finds no token', async () => {
    const { secret } = await bodyOf<{ secret: string }>(
      await daemon.manage('POST', '/manage/operators', { name: 'ana', role: 'viewer' }),
      201,
    );
    const seen = await browser.post('tokens', { q: secret });
    expect(seen.status).to.equal(400);
    expect(seen.html).not.to.include(secret);
    expect((await browser.get(`tokens?q=${secret}`)).to).to.equal('/admin/secret');
    for (const wrong of [MANAGEMENT_TOKEN.slice(1), UPSTREAM_KEY, `${secret}x`]) {
      expect((await new TestBrowser(daemon.managementUrl).logIn(wrong)).status).to.equal(403);
    }
  });
});
