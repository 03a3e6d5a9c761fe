/** The contents and actions of the pages, tested on the HTML. */
import { expect } from 'chai';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon } from '../support/daemon.js';
import { auditOf, lastAuditOf, write } from '../support/management.js';
import { eventually } from '../support/eventually.js';
import { adminForEachTest, loggedIn, TestBrowser } from './test-browser.js';

const MISSING = '00000000-0000-4000-8000-000000000000';

describe('the pages of the Admin UI', () => {
  const { daemon, browser } = adminForEachTest(() => ({ env: { HTTP_CACHE_ENABLED: 'true' } }));

  const idIn = (to: string | null) => /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(to ?? '')?.[0] ?? '';
  const cookieWithSecret = () => browser.cookies.get('llmp-admin-secret');

  describe('of an empty database', () => {
    it('explain what to do first', async () => {
      expect((await browser.get()).html)
        .to.include('Nothing here yet')
        .and.to.include('href="/admin/projects/new"');
      expect((await browser.get('projects')).html).to.include('No projects yet');
      expect((await browser.get('tokens')).html).to.include('A token needs a project');
      expect((await browser.get('tokens/new')).html).to.include('No active project');
      await daemon.createProject();
      expect((await browser.get('tokens')).html)
        .to.include('No tokens yet')
        .and.to.include('href="/admin/tokens/new"');
      // On a busy machine the cached counts can be shown.
      daemon.clock.advance(60_000);
      await eventually('the overview counts again', async () =>
        (await browser.get()).html.includes('No active tokens.'),
      );
    });

    it('explain how to turn on the cache', async () => {
      const own = await startDaemon();
      const there = await loggedIn(own.managementUrl);
      const { html } = await there.get('cache');
      expect(html).to.include('The cache is off').and.to.include('HTTP_CACHE_ENABLED=true').and.not.to.include('Purge');
      await own.stop();
    });
  });

  describe('of projects', () => {
    it('create a project without showing its key', async () => {
      const key = canary('upstream');
      const seen = await browser.post('projects/new', { name: 'web', api_key: key });
      const page = await browser.get(seen.to!);
      expect(page.html)
        .to.include('Project created.')
        .and.to.include(`…${key.slice(-4)}`)
        .and.not.to.include(key);
      expect((await browser.get('projects')).html)
        .to.include('>web</bdi>')
        .and.to.include('1 project');
      expect(await lastAuditOf(daemon)).to.include({
        action: 'project.create',
        actor: 'admin',
        client_ip: '127.0.0.1',
      });
    });

    it('show the error of a creation again with the name, but not the key', async () => {
      await daemon.createProject({ name: 'taken' });
      const key = canary('upstream');
      const seen = await browser.post('projects/new', { name: 'taken', api_key: key });
      expect(seen.status).to.equal(400);
      expect(seen.html).to.include('role="alert"').and.to.include('A project of this name exists already.');
      expect(seen.html).to.include('value="taken"').and.not.to.include(key);
    });

    it('rename a project, replace its key, deactivate and activate it, with the reason in the audit log', async () => {
      const { id } = await daemon.createProject({ name: 'before' });
      const at = `projects/${id}`;
      const state = async () => (await daemon.manage('GET', `/manage/projects/${id}`)).body as WireProject;

      expect((await browser.follow(browser.post(`${at}/rename`, { name: 'after' }))).html).to.include(
        'Project renamed.',
      );
      const key = canary('upstream');
      await browser.follow(browser.post(`${at}/key`, { api_key: key }));
      expect(await state()).to.include({ name: 'after', api_key_hint: key.slice(-4) });

      const asked = await browser.get(`${at}/deactivate`);
      expect(asked.html).to.include('Deactivate after?').and.to.include('requests in flight are ended');
      const off = await browser.follow(browser.post(`${at}/deactivate`, { reason: 'über budget' }));
      expect(off.html).to.include('Project deactivated.').and.to.include('Activate…').and.not.to.include('New token');
      expect(await state()).to.include({ is_active: false });
      expect(await lastAuditOf(daemon)).to.include({ actor: 'admin', reason: 'über budget' });
      await browser.follow(browser.post(`${at}/activate`));
      expect(await state()).to.include({ is_active: true });
      expect((await lastAuditOf(daemon)).reason).to.equal(null);
    });

    it('revoke all tokens of a project after showing their number', async () => {
      const { id } = await daemon.createProject();
      for (let i = 0; i < 3; i++) await daemon.createToken(id);
      expect((await browser.get(`projects/${id}/revoke-all`)).html).to.include('3 tokens can be used now');
      const seen = await browser.follow(browser.post(`projects/${id}/revoke-all`, { reason: 'leaked' }));
      expect(seen.html).to.include('3 tokens revoked.').and.to.include('0 active tokens');
      expect(await lastAuditOf(daemon)).to.include({ action: 'token.revoke_all', count: 3, reason: 'leaked' });
    });

    it('show the error of an invalid reason together with the reason', async () => {
      const { id } = await daemon.createProject();
      const seen = await browser.post(`projects/${id}/deactivate`, { reason: 'x'.repeat(201) });
      expect(seen.status).to.equal(400);
      expect(seen.html).to.include('The reason must be at most 200 characters').and.to.include('x'.repeat(201));
    });
  });

  describe('of tokens', () => {
    let project: WireProject;

    beforeEach(async () => {
      project = await daemon.createProject({ name: 'web' });
    });

    it('P18 issue a token and show its secret only once: not on reload, on going back, or on another page', async () => {
      const form = { project_id: project.id, name: 'ci', duration: '2', unit: 'days', max_requests: '50' };
      const seen = await browser.post('tokens/new', form);
      expect(seen.status).to.equal(303);
      expect(seen.to).to.match(/^\/admin\/tokens\/[\w-]+\/secret$/);
      expect([seen.html, ...seen.cookies].join()).not.to.match(/sk-wt-/);
      expect(cookieWithSecret()?.path).to.equal(seen.to);

      const token = await daemon.token(idIn(seen.to));
      expect(token).to.include({ name: 'ci', max_requests: 50, project_id: project.id });
      expect(Date.parse(token.expires_at) - Date.parse(token.created_at)).to.equal(48 * 3_600_000);

      const shown = await browser.get(seen.to!);
      const [secret = ''] = /sk-wt-[0-9A-Za-z]{49}/.exec(shown.html) ?? [];
      expect(secret.slice(-4)).to.equal(token.obfuscated.slice(-4));
      expect(shown.headers.get('cache-control')).to.equal('no-store');
      expect(cookieWithSecret()).to.equal(undefined);

      const again = await browser.get(seen.to!);
      expect(again.html).to.include('A secret is shown only once').and.not.to.include(secret);
      expect((await browser.get(`tokens/${token.id}`)).html).not.to.include(secret);
      expect(await lastAuditOf(daemon)).to.include({ action: 'token.create', actor: 'admin' });
    });

    it('P18 show a secret only on the page of its token', async () => {
      const first = await browser.post('tokens/new', { project_id: project.id, duration: '1', unit: 'hours' });
      const { value } = cookieWithSecret()!;
      const other = await daemon.createToken(project.id);
      browser.cookies.set('llmp-admin-secret', { value, path: '/admin/' });
      const seen = await browser.get(`tokens/${other.id}/secret`);
      expect(seen.html)
        .to.include('A secret is shown only once')
        .and.not.to.match(/sk-wt-[0-9A-Za-z]{49}/);
      expect(first.status).to.equal(303);
    });

    it('show why a token is not issued, with the entered values', async () => {
      const form = { project_id: project.id, name: 'ci', duration: '2', unit: 'hours', max_requests: '' };
      for (const [change, why] of [
        [{ duration: '0' }, 'The lifetime must be from 1 to 8760 hours.'],
        [{ duration: 'soon' }, 'The lifetime must be a whole number.'],
        [{ duration: '-1' }, 'The lifetime must be a whole number.'],
        [{ unit: 'years' }, 'The unit must be minutes, hours or days.'],
        [{ max_requests: '1e3' }, 'The request cap must be a whole number.'],
        [{ max_requests: '4294967296' }, 'The request cap must be a whole number from 0 to'],
        [{ project_id: MISSING }, 'Project not found.'],
        [{ name: 'x'.repeat(101) }, 'Name must be'],
      ] as const) {
        const given = { ...form, ...change };
        const seen = await browser.post('tokens/new', given);
        expect(seen.status, why).to.equal(400);
        expect(seen.html).to.include(why).and.to.include(`value="${given.name}"`);
      }
      const { html } = await browser.get(`tokens/new?project_id=${project.id}`);
      expect(html).to.include(`<option value="${project.id}" selected="">web</option>`);
    });

    it('issue a token again with the settings of another one, which can be changed', async () => {
      const old = await daemon.createToken(project.id, { name: 'ci', duration_hours: 48, max_requests: 7 });
      expect((await browser.get(`tokens/${old.id}`)).html).to.include(`href="/admin/tokens/new?like=${old.id}"`);
      const { html } = await browser.get(`tokens/new?like=${old.id}`);
      expect(html).to.include('>Issue again</h1>').and.to.include('Revoke it when its clients use the new one.');
      for (const value of [
        'value="ci"',
        'value="2"',
        'value="days" selected=""',
        'value="7"',
        `name="like" value="${old.id}"`,
      ])
        expect(html).to.include(value);

      const form = { project_id: project.id, name: '', duration: '2', unit: 'days', max_requests: '7', like: old.id };
      await browser.post('tokens/new', form);
      await browser.post('tokens/new', { ...form, name: 'other', max_requests: '' });
      const tokens = (await daemon.manage('GET', '/manage/tokens?sort=created_at')).body as WireToken[];
      const [, same, changed] = tokens;
      expect(same).to.include({ name: 'ci', max_requests: 7, project_id: project.id });
      expect(Date.parse(same!.expires_at) - Date.parse(same!.created_at)).to.equal(48 * 3_600_000);
      expect(changed).to.include({ name: 'other', max_requests: 0 });
      const wrong = await browser.post('tokens/new', { ...form, duration: '0' });
      expect(wrong.html).to.include('The lifetime must be').and.to.include(`name="like" value="${old.id}"`);

      // Never silently in another project.
      await daemon.createProject({ name: 'other' });
      await daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: false });
      expect((await browser.get(`tokens/new?like=${old.id}`)).html).to.include(
        '<option value="" selected="">Choose a project<',
      );
      expect((await browser.get(`tokens/new?like=${MISSING}`)).status).to.equal(404);
    });

    it('do not issue a token if its project was deactivated in the meantime', async () => {
      await daemon.createProject({ name: 'other' });
      await daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: false });
      const seen = await browser.post('tokens/new', { project_id: project.id, duration: '1', unit: 'hours' });
      expect(seen.html).to.include('Cannot generate tokens for inactive project.');
    });

    it('revoke and reactivate a token, with a reason', async () => {
      const { id, token } = await daemon.createToken(project.id, { name: 'ci' });
      expect((await browser.get(`tokens/${id}`)).html).to.include('Revoke…');
      const asked = await browser.get(`tokens/${id}/revoke`);
      expect(asked.html).to.include('Revoke ci?').and.to.include('autofocus');
      expect((await daemon.token(id)).state, 'only asked').to.equal('active');

      const done = await browser.follow(browser.post(`tokens/${id}/revoke`, { reason: 'leaked' }));
      expect(done.html).to.include('Token revoked.').and.to.include('✗').and.to.include('Reactivate…');
      expect((await daemon.call(token)).status).to.equal(401);
      expect(await lastAuditOf(daemon)).to.include({ action: 'token.revoke', actor: 'admin', reason: 'leaked' });
      expect(done.html).to.include('token.revoke').and.to.include('leaked');

      await browser.follow(browser.post(`tokens/${id}/reactivate`));
      expect((await daemon.token(id)).state).to.equal('active');
    });

    it('filter, sort and paginate by the query', async () => {
      const other = await daemon.createProject({ name: 'other' });
      for (let i = 0; i < 3; i++) await daemon.createToken(project.id, { name: `web-${i}` });
      const short = await daemon.createToken(other.id, { name: 'short', duration_minutes: 30 });
      await daemon.manage('DELETE', `/manage/tokens/${short.id}`);
      const names = async (query: string) =>
        [...(await browser.get(`tokens${query}`)).html.matchAll(/<th scope="row"><a [^>]*><bdi>([^<]*)</g)].map(
          ([, name]) => name,
        );
      expect(await names('?sort=name')).to.deep.equal(['short', 'web-0', 'web-1', 'web-2']);
      expect(await names(`?project_id=${project.id}&sort=-created_at&q=&state=`)).to.deep.equal([
        'web-2',
        'web-1',
        'web-0',
      ]);
      expect(await names('?q=WEB-1')).to.deep.equal(['web-1']);
      expect(await names('?state=revoked')).to.deep.equal(['short']);
      expect(await names('?expires_within=1')).to.deep.equal(['short']);
      expect(await names('?used_over=50')).to.deep.equal([]);

      const wrong = await browser.get('tokens?used_over=101');
      expect(wrong.status).to.equal(400);
      expect(wrong.html)
        .to.include('The percentage used must be a percentage from 0 to 100')
        .and.to.include('value="101"');
      expect((await browser.get('tokens?q=nobody')).html).to.include('No tokens match this filter');
    });

    it('link to the next page and to the first', async () => {
      for (let i = 0; i < 101; i++) await daemon.createToken(project.id, { name: `n${String(i).padStart(3, '0')}` });
      const first = await browser.get('tokens?sort=name&state=active');
      expect(first.html).to.include('101 tokens').and.to.include('>n000<').and.not.to.include('>n100<');
      const next = /<a href="([^"]+)" rel="next"/.exec(first.html)?.[1]?.replaceAll('&amp;', '&') ?? '';
      const second = await browser.get(next);
      expect(second.html).to.include('>n100<').and.not.to.include('>n000<').and.not.to.include('rel="next"');
      expect(second.html).to.include('<a href="/admin/tokens?sort=name&amp;state=active">First page</a>');
    });
  });

  describe('of the audit log', () => {
    it('list all records, and show a single record with its details', async () => {
      const project = await daemon.createProject({ name: 'web' });
      const { html } = await browser.get('audit');
      expect(html).to.include('project.create').and.to.include('admin.login').and.to.include('>web</bdi>');
      await daemon.createToken(project.id, { name: 'ci' });
      expect((await browser.get('audit')).html).to.match(/token\.create<[^]*?>ci<\/bdi><\/a> of <a[^>]*><bdi>web</);
      const filtered = await browser.get('audit?action=project.create&actor=&outcome=success&since_hours=1&q=');
      expect(filtered.html).to.include('/admin/audit/').and.not.to.include('>admin.login</a>');
      const record = await browser.get(`audit/${idIn(/audit\/[\w-]{36}/.exec(filtered.html)![0])}`);
      expect(record.html).to.include(project.id).and.to.include('&quot;name&quot;: &quot;web&quot;');
      expect((await browser.get('audit?q=%20-')).status).to.equal(400);
      expect((await browser.get('audit?q=nobody')).html).to.include('No records match this filter');
    });
  });

  describe('of the cache', () => {
    it('count the responses to purge, and purge them after a confirmation', async () => {
      const project = await daemon.createProject({ name: 'web' });
      const purges: [query: string, says: string][] = [
        ['what=resource&method=GET&url=/v1/models', 'All variants of GET /v1/models, in every project.'],
        [`what=project&project_id=${project.id}`, 'All responses of web.'],
        ['what=all', 'All responses of all projects.'],
      ];
      for (const [query, says] of purges) {
        const before = (await auditOf(daemon)).length;
        const asked = await browser.get(`cache/purge?${query}`);
        expect(asked.html).to.include('Purge 0 responses?').and.to.include(says);
        expect(await auditOf(daemon), 'only counted').to.have.length(before);
        const fields = Object.fromEntries(new URLSearchParams(query));
        const done = await browser.follow(browser.post('cache/purge', { ...fields, reason: 'stale' }));
        expect(done.html).to.include('0 responses purged.');
        expect(await lastAuditOf(daemon)).to.include({ action: 'cache.purge', actor: 'admin', reason: 'stale' });
      }
      const wrong = await browser.get('cache/purge?what=resource&method=GET&url=/elsewhere');
      expect(wrong.status).to.equal(400);
      expect(wrong.html).to.include('The path must be a path that is forwarded').and.to.include('value="/elsewhere"');
      expect((await browser.get('cache/purge')).html).to.include('Choose what to purge.');
    });
  });

  describe('of the overview', () => {
    it('draw charts of requests and failures, with their numbers as a text and a table', async () => {
      const { id } = await daemon.createProject();
      const { token } = await daemon.createToken(id);
      const before = daemon.ended.length;
      for (let i = 0; i < 3; i++) await daemon.call(token); // There is no upstream.
      // A client may have its response before the request has ended here.
      await eventually('the requests have ended', () => {
        daemon.daemon.scheduler.publishAll();
        return daemon.ended.length === before + 3;
      });
      // On a busy machine the page may first show usage that was read before.
      let html = '';
      await eventually('the overview shows the requests', async () => {
        daemon.clock.advance(1_000);
        ({ html } = await browser.get());
        return html.includes('aria-label="Requests: 3, up to 3 per hour.');
      });
      expect(html).to.include('aria-label="Failures: 3, up to 3 per hour. Failed 3,');
      expect(html)
        .to.include('Show the numbers as a table')
        .and.to.match(/>Failures<[^]*data-label="Failures"[^>]*><span>3</);
      expect((await browser.get('?span=7d')).html).to.include('Requests: 3, up to 3 per hour');
      expect((await browser.get('?span=30d')).html).to.include('Requests: 3, up to 3 per day');
      expect((await browser.get('?span=constructor')).html).to.include('aria-current="true">24 hours<');
    });
  });

  it('P01 escape names with markup everywhere', async () => {
    const evil = `<img src=x onerror=alert(1)>"'&javascript:`;
    const shown = '&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;&amp;javascript:';
    const project = await daemon.createProject({ name: evil });
    const token = await daemon.createToken(project.id, { name: evil });
    await browser.post(`tokens/${token.id}/revoke`, { reason: evil });
    const record = (await daemon.manage('GET', '/manage/audit?action=token.revoke')).body as { id: string }[];
    const pages = [
      '',
      'projects',
      `projects/${project.id}`,
      `projects/${project.id}/deactivate`,
      'tokens',
      `tokens/${token.id}`,
      `tokens/${token.id}/reactivate`,
      'tokens/new',
      'audit',
      'events',
      `audit/${record[0]!.id}`,
      'cache',
      `cache/purge?what=project&project_id=${project.id}`,
      `tokens?q=${encodeURIComponent(evil)}`,
    ];
    for (const page of pages) {
      const { html } = await browser.get(page);
      expect(html, page).not.to.include('<img');
      if (page !== '') expect(html, page).to.include(shown);
    }
  });

  it('P01 escape bidirectional control characters', async () => {
    const project = await daemon.createProject({ name: 'web' });
    // The API refuses such a name: this one is written to the database.
    const name = 'web\u202egpj';
    await write(daemon, 'UPDATE projects SET name = $name WHERE id = $id', { id: project.id, name });
    for (const page of ['projects', `projects/${project.id}/deactivate`, 'tokens/new']) {
      expect((await browser.get(page)).html, page)
        .to.include('web\\u202egpj')
        .and.not.to.include('\u202e');
    }
    const { token } = await daemon.createToken(project.id);
    await (await daemon.call(token)).text();
    for (const page of ['tokens/export?format=csv', 'audit/export?format=csv']) {
      const { status, html } = await browser.get(page);
      expect(status).to.equal(200);
      expect(html, `findings-3 A14: ${page}`).to.include('web\\u202egpj').and.not.to.include('\u202e');
    }
  });

  for (const [what, secret] of [
    ['the secret of a token', `sk-wt-${'a'.repeat(49)}`],
    ['a key of a provider', `sk-proj-${'a'.repeat(40)}`],
    ['the management token', MANAGEMENT_TOKEN],
  ] as const) {
    it(`findings-3 A14: keep ${what} that was entered in a search field out of the URL and the log`, async () => {
      for (const at of ['tokens?q=', 'audit?action=token.use&q=x+', 'events?model=', 'tokens/']) {
        for (const client of [browser, new TestBrowser(daemon.managementUrl)]) {
          const seen = await client.get(at + encodeURIComponent(secret));
          expect({ status: seen.status, to: seen.to }, at).to.deep.equal({ status: 303, to: '/admin/secret' });
          const page = await client.get('secret');
          expect(page.status).to.equal(400);
          expect(page.html).to.include('This was a secret');
        }
      }
      expect(daemon.logged.join('\n')).not.to.include(secret);
    });
  }

  it('are 404 if they do not exist, with and without a session', async () => {
    for (const page of [
      'nothing',
      'tokens/',
      `tokens/${MISSING}`,
      'tokens/x',
      `projects/${MISSING}`,
      `audit/${MISSING}`,
      `tokens/${MISSING}/revoke`,
      `cache/purge?what=project&project_id=${MISSING}`,
    ]) {
      const seen = await browser.get(page);
      expect(seen.status, page).to.equal(404);
      expect(seen.html).to.include('Go to the overview');
    }
    const stranger = await new TestBrowser(daemon.managementUrl).get('nothing');
    expect(stranger.status).to.equal(404);
    expect(stranger.html).to.include('Go to the login page').and.not.to.include('Log out');
  });

  it('are 405 with Allow for unsupported methods', async () => {
    for (const [method, page, allow] of [
      ['PUT', 'tokens', 'GET, POST'],
      ['DELETE', `tokens/${MISSING}/revoke`, 'GET, POST'],
      ['POST', 'usage', 'GET'],
      ['GET', 'logout', 'POST'],
    ] as const) {
      const headers = { origin: `http://${browser.host}`, 'content-type': 'application/x-www-form-urlencoded' };
      const seen = await browser.send(method, page, headers);
      expect(seen.status, page).to.equal(405);
      expect(seen.headers.get('allow')).to.equal(allow);
    }
  });

  it('show an error while the database is unavailable, without claims about the change', async () => {
    const { id } = await daemon.createProject();
    daemon.daemon.stores.records.refuseChangesWhile(() => 'the disk is full');
    const seen = await browser.post(`projects/${id}/deactivate`);
    expect(seen.status).to.equal(503);
    expect(seen.html).to.include('It is unknown whether the change was made').and.not.to.include('Nothing was changed');
  });

  it('handle HEAD like GET, without a body', async () => {
    const seen = await browser.send('HEAD', 'tokens');
    expect(seen.status).to.equal(200);
    expect(seen.html).to.equal('');
  });
});
