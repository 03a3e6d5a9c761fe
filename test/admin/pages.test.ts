/** What the pages show and do, for who reads the HTML. */
import { expect } from 'chai';
import type { WireProject } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { auditOf, lastAuditOf } from '../support/management.js';
import { eventually } from '../support/eventually.js';
import { Visitor } from './visitor.js';

const MISSING = '00000000-0000-4000-8000-000000000000';

describe('the pages of the Admin UI', () => {
  let daemon: TestDaemon;
  let visitor: Visitor;

  beforeEach(async () => {
    daemon = await startDaemon({ env: { HTTP_CACHE_ENABLED: 'true' } });
    visitor = new Visitor(daemon.managementUrl);
    await visitor.logIn(MANAGEMENT_TOKEN);
  });
  afterEach(() => daemon.stop());

  const idIn = (to: string | null) => /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(to ?? '')?.[0] ?? '';
  const cookieWithSecret = () => visitor.cookies.get('llmp-admin-secret');

  describe('where there is nothing yet', () => {
    it('say what to do first', async () => {
      expect((await visitor.get()).html)
        .to.include('Nothing here yet')
        .and.to.include('href="/admin/projects/new"');
      expect((await visitor.get('projects')).html).to.include('No projects yet');
      expect((await visitor.get('tokens')).html).to.include('It needs a project first');
      expect((await visitor.get('tokens/new')).html).to.include('There is no active project');
      await daemon.createProject();
      expect((await visitor.get('tokens')).html)
        .to.include('No tokens yet')
        .and.to.include('href="/admin/tokens/new"');
      // On a busy machine the counts of a moment ago are shown again.
      daemon.clock.advance(60_000);
      await eventually('the overview counts anew', async () =>
        (await visitor.get()).html.includes('No active tokens.'),
      );
    });

    it('say how the cache is turned on while it is off', async () => {
      const own = await startDaemon();
      const there = new Visitor(own.managementUrl);
      await there.logIn(MANAGEMENT_TOKEN);
      const { html } = await there.get('cache');
      expect(html).to.include('The cache is off').and.to.include('HTTP_CACHE_ENABLED=true').and.not.to.include('Purge');
      await own.stop();
    });
  });

  describe('of projects', () => {
    it('create one, whose key is nowhere to be seen', async () => {
      const key = canary('upstream');
      const seen = await visitor.post('projects/new', { name: 'web', api_key: key });
      const page = await visitor.get(seen.to!);
      expect(page.html)
        .to.include('Created.')
        .and.to.include(`…${key.slice(-4)}`)
        .and.not.to.include(key);
      expect((await visitor.get('projects')).html)
        .to.include('>web</bdi>')
        .and.to.include('1 project');
      expect(await lastAuditOf(daemon)).to.include({
        action: 'project.create',
        actor: 'admin',
        client_ip: '127.0.0.1',
      });
    });

    it('say why one is not created, and keep its name but not its key', async () => {
      await daemon.createProject({ name: 'taken' });
      const key = canary('upstream');
      const seen = await visitor.post('projects/new', { name: 'taken', api_key: key });
      expect(seen.status).to.equal(400);
      expect(seen.html).to.include('role="alert"').and.to.include('A project of this name exists already.');
      expect(seen.html).to.include('value="taken"').and.not.to.include(key);
    });

    it('rename, give another key, deactivate and activate, with the reason in the audit log', async () => {
      const { id } = await daemon.createProject({ name: 'before' });
      const at = `projects/${id}`;
      const state = async () => (await daemon.manage('GET', `/manage/projects/${id}`)).body as WireProject;

      expect((await visitor.follow(visitor.post(`${at}/rename`, { name: 'after' }))).html).to.include('Renamed.');
      const key = canary('upstream');
      await visitor.follow(visitor.post(`${at}/key`, { api_key: key }));
      expect(await state()).to.include({ name: 'after', api_key_hint: key.slice(-4) });

      const asked = await visitor.get(`${at}/deactivate`);
      expect(asked.html).to.include('Deactivate after?').and.to.include('requests in flight are ended');
      const off = await visitor.follow(visitor.post(`${at}/deactivate`, { reason: 'über budget' }));
      expect(off.html).to.include('Deactivated.').and.to.include('Activate…').and.not.to.include('New token');
      expect(await state()).to.include({ is_active: false });
      expect(await lastAuditOf(daemon)).to.include({ actor: 'admin', reason: 'über budget' });
      await visitor.follow(visitor.post(`${at}/activate`));
      expect(await state()).to.include({ is_active: true });
      expect((await lastAuditOf(daemon)).reason).to.equal(null);
    });

    it('revoke all tokens of one, after saying how many that are', async () => {
      const { id } = await daemon.createProject();
      for (let i = 0; i < 3; i++) await daemon.createToken(id);
      expect((await visitor.get(`projects/${id}/revoke-all`)).html).to.include('3 tokens can be used now');
      const seen = await visitor.follow(visitor.post(`projects/${id}/revoke-all`, { reason: 'leaked' }));
      expect(seen.html).to.include('3 tokens revoked.').and.to.include('0 active tokens');
      expect(await lastAuditOf(daemon)).to.include({ action: 'token.revoke_all', count: 3, reason: 'leaked' });
    });

    it('say why a reason is not taken, and keep it', async () => {
      const { id } = await daemon.createProject();
      const seen = await visitor.post(`projects/${id}/deactivate`, { reason: 'x'.repeat(201) });
      expect(seen.status).to.equal(400);
      expect(seen.html).to.include('The reason must be at most 200 characters').and.to.include('x'.repeat(201));
    });
  });

  describe('of tokens', () => {
    let project: WireProject;

    beforeEach(async () => {
      project = await daemon.createProject({ name: 'web' });
    });

    it('P18 issue one and show its secret once: not on reload, not on going back, not to another page', async () => {
      const form = { project_id: project.id, name: 'ci', duration: '2', unit: 'days', max_requests: '50' };
      const seen = await visitor.post('tokens/new', form);
      expect(seen.status).to.equal(303);
      expect(seen.to).to.match(/^\/admin\/tokens\/[\w-]+\/secret$/);
      expect([seen.html, ...seen.cookies].join()).not.to.match(/sk-wt-/);
      expect(cookieWithSecret()?.path).to.equal(seen.to);

      const token = await daemon.token(idIn(seen.to));
      expect(token).to.include({ name: 'ci', max_requests: 50, project_id: project.id });
      expect(Date.parse(token.expires_at) - Date.parse(token.created_at)).to.equal(48 * 3_600_000);

      const shown = await visitor.get(seen.to!);
      const [secret = ''] = /sk-wt-[0-9A-Za-z]{49}/.exec(shown.html) ?? [];
      expect(secret.slice(-4)).to.equal(token.obfuscated.slice(-4));
      expect(shown.headers.get('cache-control')).to.equal('no-store');
      expect(cookieWithSecret()).to.equal(undefined);

      const again = await visitor.get(seen.to!);
      expect(again.html).to.include('A secret is shown once').and.not.to.include(secret);
      expect((await visitor.get(`tokens/${token.id}`)).html).not.to.include(secret);
      expect(await lastAuditOf(daemon)).to.include({ action: 'token.create', actor: 'admin' });
    });

    it('P18 show a secret to the page it was meant for and to no other', async () => {
      const first = await visitor.post('tokens/new', { project_id: project.id, duration: '1', unit: 'hours' });
      const { value } = cookieWithSecret()!;
      const other = await daemon.createToken(project.id);
      visitor.cookies.set('llmp-admin-secret', { value, path: '/admin/' });
      const seen = await visitor.get(`tokens/${other.id}/secret`);
      expect(seen.html)
        .to.include('A secret is shown once')
        .and.not.to.match(/sk-wt-[0-9A-Za-z]{49}/);
      expect(first.status).to.equal(303);
    });

    it('say why one is not issued, and keep what was filled in', async () => {
      const form = { project_id: project.id, name: 'ci', duration: '2', unit: 'hours', max_requests: '' };
      for (const [change, why] of [
        [{ duration: '0' }, 'How long it is valid must be from 1 to 8760 hours.'],
        [{ duration: 'soon' }, 'How long it is valid must be a whole number.'],
        [{ duration: '-1' }, 'How long it is valid must be a whole number.'],
        [{ unit: 'years' }, 'The unit must be minutes, hours or days.'],
        [{ max_requests: '1e3' }, 'The most requests must be a whole number.'],
        [{ max_requests: '4294967296' }, 'The most requests must be a whole number from 0 to'],
        [{ project_id: MISSING }, 'Project not found.'],
        [{ name: 'x'.repeat(101) }, 'Name must be'],
      ] as const) {
        const given = { ...form, ...change };
        const seen = await visitor.post('tokens/new', given);
        expect(seen.status, why).to.equal(400);
        expect(seen.html).to.include(why).and.to.include(`value="${given.name}"`);
      }
      const { html } = await visitor.get(`tokens/new?project_id=${project.id}`);
      expect(html).to.include(`<option value="${project.id}" selected="">web</option>`);
    });

    it('do not issue one for a project that has become inactive meanwhile', async () => {
      await daemon.createProject({ name: 'other' });
      await daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: false });
      const seen = await visitor.post('tokens/new', { project_id: project.id, duration: '1', unit: 'hours' });
      expect(seen.html).to.include('Cannot generate tokens for inactive project.');
    });

    it('revoke and reactivate one, with a reason', async () => {
      const { id, token } = await daemon.createToken(project.id, { name: 'ci' });
      expect((await visitor.get(`tokens/${id}`)).html).to.include('Revoke…');
      const asked = await visitor.get(`tokens/${id}/revoke`);
      expect(asked.html).to.include('Revoke ci?').and.to.include('autofocus');
      expect((await daemon.token(id)).state, 'only asked').to.equal('active');

      const done = await visitor.follow(visitor.post(`tokens/${id}/revoke`, { reason: 'leaked' }));
      expect(done.html).to.include('Revoked.').and.to.include('✗').and.to.include('Reactivate…');
      expect((await daemon.call(token)).status).to.equal(401);
      expect(await lastAuditOf(daemon)).to.include({ action: 'token.revoke', actor: 'admin', reason: 'leaked' });
      expect(done.html).to.include('token.revoke').and.to.include('leaked');

      await visitor.follow(visitor.post(`tokens/${id}/reactivate`));
      expect((await daemon.token(id)).state).to.equal('active');
    });

    it('filter, sort and page by the query', async () => {
      const other = await daemon.createProject({ name: 'other' });
      for (let i = 0; i < 3; i++) await daemon.createToken(project.id, { name: `web-${i}` });
      const short = await daemon.createToken(other.id, { name: 'short', duration_minutes: 30 });
      await daemon.manage('DELETE', `/manage/tokens/${short.id}`);
      const names = async (query: string) =>
        [...(await visitor.get(`tokens${query}`)).html.matchAll(/<th scope="row"><a [^>]*><bdi>([^<]*)</g)].map(
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

      const wrong = await visitor.get('tokens?used_over=101');
      expect(wrong.status).to.equal(400);
      expect(wrong.html).to.include('The share used must be a percentage from 0 to 100').and.to.include('value="101"');
      expect((await visitor.get('tokens?q=nobody')).html).to.include('No token passes this filter');
    });

    it('lead to the next page and back to the first', async () => {
      for (let i = 0; i < 101; i++) await daemon.createToken(project.id, { name: `n${String(i).padStart(3, '0')}` });
      const first = await visitor.get('tokens?sort=name&state=active');
      expect(first.html).to.include('101 tokens').and.to.include('>n000<').and.not.to.include('>n100<');
      const next = /<a href="([^"]+)" rel="next"/.exec(first.html)?.[1]?.replaceAll('&amp;', '&') ?? '';
      const second = await visitor.get(next);
      expect(second.html).to.include('>n100<').and.not.to.include('>n000<').and.not.to.include('rel="next"');
      expect(second.html).to.include('<a href="/admin/tokens?sort=name&amp;state=active">First page</a>');
    });
  });

  describe('of the audit log', () => {
    it('show every record, and one with all of it', async () => {
      const project = await daemon.createProject({ name: 'web' });
      const { html } = await visitor.get('audit');
      expect(html).to.include('project.create').and.to.include('admin.login').and.to.include('>web</bdi>');
      const filtered = await visitor.get('audit?action=project.create&actor=&outcome=success&since_hours=1&q=');
      expect(filtered.html).to.include('/admin/audit/').and.not.to.include('>admin.login</a>');
      const record = await visitor.get(`audit/${idIn(/audit\/[\w-]{36}/.exec(filtered.html)![0])}`);
      expect(record.html).to.include(project.id).and.to.include('&quot;name&quot;: &quot;web&quot;');
      expect((await visitor.get('audit?q=%20-')).status).to.equal(400);
      expect((await visitor.get('audit?q=nobody')).html).to.include('No record passes this filter');
    });
  });

  describe('of the cache', () => {
    it('count what would be purged, and purge it after that was confirmed', async () => {
      const project = await daemon.createProject({ name: 'web' });
      const purges: [query: string, says: string][] = [
        ['what=resource&method=GET&url=/v1/models', 'All variants of GET /v1/models, in every project.'],
        [`what=project&project_id=${project.id}`, 'All answers of web.'],
        ['what=all', 'All answers of all projects.'],
      ];
      for (const [query, says] of purges) {
        const before = (await auditOf(daemon)).length;
        const asked = await visitor.get(`cache/purge?${query}`);
        expect(asked.html).to.include('Purge 0 answers?').and.to.include(says);
        expect(await auditOf(daemon), 'only counted').to.have.length(before);
        const fields = Object.fromEntries(new URLSearchParams(query));
        const done = await visitor.follow(visitor.post('cache/purge', { ...fields, reason: 'stale' }));
        expect(done.html).to.include('0 answers purged.');
        expect(await lastAuditOf(daemon)).to.include({ action: 'cache.purge', actor: 'admin', reason: 'stale' });
      }
      const wrong = await visitor.get('cache/purge?what=resource&method=GET&url=/elsewhere');
      expect(wrong.status).to.equal(400);
      expect(wrong.html).to.include('The path must be a path under /v1').and.to.include('value="/elsewhere"');
      expect((await visitor.get('cache/purge')).html).to.include('Say what is to be purged.');
    });
  });

  describe('of the overview', () => {
    it('draw requests and errors out of what was used, in words too', async () => {
      const { id } = await daemon.createProject();
      const { token } = await daemon.createToken(id);
      for (let i = 0; i < 3; i++) await daemon.call(token); // Nobody is upstream.
      daemon.daemon.afterwards.settle();
      const { html } = await visitor.get();
      expect(html).to.include('aria-label="Requests: 3 in the last 24 hours, at most 3 in one hour"');
      expect(html).to.include('aria-label="Errors: 3 in the last 24 hours');
      for (const span of ['7d', '30d']) expect((await visitor.get(`?span=${span}`)).html).to.include('Requests: 3 in');
      expect((await visitor.get('?span=constructor')).html).to.include('in the last 24 hours');
    });
  });

  it('P01 show a name that is markup as text, everywhere', async () => {
    const evil = `<img src=x onerror=alert(1)>"'&javascript:`;
    const shown = '&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;&amp;javascript:';
    const project = await daemon.createProject({ name: evil });
    const token = await daemon.createToken(project.id, { name: evil });
    await visitor.post(`tokens/${token.id}/revoke`, { reason: evil });
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
      `audit/${record[0]!.id}`,
      'cache',
      `cache/purge?what=project&project_id=${project.id}`,
      `tokens?q=${encodeURIComponent(evil)}`,
    ];
    for (const page of pages) {
      const { html } = await visitor.get(page);
      expect(html, page).not.to.include('<img');
      if (page !== '') expect(html, page).to.include(shown);
    }
  });

  it('P01 spell out what would turn the direction of writing', async () => {
    const project = await daemon.createProject({ name: 'web\u202egpj' });
    for (const page of ['projects', `projects/${project.id}/deactivate`, 'tokens/new']) {
      expect((await visitor.get(page)).html, page)
        .to.include('web\\u202egpj')
        .and.not.to.include('\u202e');
    }
  });

  it('are 404 for what does not exist, to who is logged in and to who is not', async () => {
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
      const seen = await visitor.get(page);
      expect(seen.status, page).to.equal(404);
      expect(seen.html).to.include('To the overview');
    }
    const stranger = await new Visitor(daemon.managementUrl).get('nothing');
    expect(stranger.status).to.equal(404);
    expect(stranger.html).to.include('To the log-in').and.not.to.include('Log out');
  });

  it('are 405 with Allow by another method', async () => {
    for (const [method, page, allow] of [
      ['PUT', 'tokens', 'GET'],
      ['DELETE', `tokens/${MISSING}/revoke`, 'GET, POST'],
      ['POST', 'audit', 'GET'],
      ['GET', 'logout', 'POST'],
    ] as const) {
      const headers = { origin: `http://${visitor.host}`, 'content-type': 'application/x-www-form-urlencoded' };
      const seen = await visitor.send(method, page, headers);
      expect(seen.status, page).to.equal(405);
      expect(seen.headers.get('allow')).to.equal(allow);
    }
  });

  it('say what is the matter while the database is away, and claim nothing of the change (finding A4)', async () => {
    const { id } = await daemon.createProject();
    daemon.daemon.stores.records.refuseChangesWhile(() => 'the disk is full');
    const seen = await visitor.post(`projects/${id}/deactivate`);
    expect(seen.status).to.equal(503);
    expect(seen.html)
      .to.include('It is not known whether the change was made')
      .and.not.to.include('Nothing was changed');
  });

  it('answer HEAD like GET, without a body', async () => {
    const seen = await visitor.send('HEAD', 'tokens');
    expect(seen.status).to.equal(200);
    expect(seen.html).to.equal('');
  });
});
