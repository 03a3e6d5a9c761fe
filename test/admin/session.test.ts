import { expect } from 'chai';
import { nextOf } from '../../daemon/admin/next.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { auditOf } from '../support/management.js';
import { Visitor } from './visitor.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

describe('a session of the Admin UI', () => {
  let daemon: TestDaemon;
  let visitor: Visitor;

  beforeEach(async () => {
    daemon = await startDaemon();
    visitor = new Visitor(daemon.managementUrl);
  });
  afterEach(() => daemon.stop());

  const isLoggedIn = async (who = visitor) => (await who.get()).status === 200;

  it('is needed for every page but the log-in, which leads back to what was asked for', async () => {
    for (const page of ['', 'tokens?state=active', 'projects', 'audit', 'cache', 'tokens/new', 'projects/new']) {
      const seen = await visitor.get(page);
      expect(seen.status, page).to.equal(303);
      const next = page === '' ? '' : `?${new URLSearchParams({ next: `/admin/${page}` }).toString()}`;
      expect(seen.to).to.equal(`/admin/login${next}`);
    }
    expect((await visitor.get('login')).status).to.equal(200);
  });

  it('begins with the management token', async () => {
    const seen = await visitor.logIn(MANAGEMENT_TOKEN, '/admin/tokens?state=active');
    expect(seen).to.include({ status: 303, to: '/admin/tokens?state=active' });
    expect(await isLoggedIn()).to.equal(true);
    expect((await visitor.get('login')).to).to.equal('/admin/');
  });

  it('P06 is a cookie for scripts, other sites and connections in the clear to have nothing of, and of the pages alone', async () => {
    const { cookies } = await visitor.logIn(MANAGEMENT_TOKEN);
    expect(cookies).to.have.length(1);
    expect(cookies[0]).to.match(/^llmp-admin=[\w-]{100,}; Path=\/admin\/; Secure; HttpOnly; SameSite=Strict$/);
  });

  it('P06 over TLS has a name that only a page over TLS can set', async () => {
    const own = await startDaemon({ env: { TRUSTED_PROXIES: '127.0.0.1' } });
    const headers = { 'x-forwarded-proto': 'https' };
    const behindProxy = new Visitor(own.managementUrl, { host: 'llmp.example', headers });
    const { cookies } = await behindProxy.logIn(MANAGEMENT_TOKEN);
    expect(cookies[0]).to.match(/^__Secure-llmp-admin=/);
    expect(await isLoggedIn(behindProxy)).to.equal(true);
    await own.stop();
  });

  it('P06 ends after half an hour without use, and every use begins it anew', async () => {
    await visitor.logIn(MANAGEMENT_TOKEN);
    for (let i = 0; i < 3; i++) {
      daemon.clock.advance(29 * MINUTE_MS);
      expect(await isLoggedIn()).to.equal(true);
    }
    daemon.clock.advance(30 * MINUTE_MS);
    expect((await visitor.get('tokens')).to).to.equal('/admin/login?why=ended&next=%2Fadmin%2Ftokens');
    expect((await visitor.get('login?why=ended')).html).to.include('Your session has ended');
  });

  it('P06 is not prolonged by a page that renews itself, which learns of the end by a status', async () => {
    await visitor.logIn(MANAGEMENT_TOKEN);
    const refresh = { 'x-llmp-refresh': '1' };
    daemon.clock.advance(20 * MINUTE_MS);
    const seen = await visitor.get('', refresh);
    expect(seen.status).to.equal(200);
    expect(seen.cookies).to.be.empty;
    daemon.clock.advance(10 * MINUTE_MS);
    expect((await visitor.get('', refresh)).status).to.equal(401);
  });

  it('P06 ends after twelve hours however much it is used', async () => {
    await visitor.logIn(MANAGEMENT_TOKEN);
    for (let quarters = 1; quarters < 48; quarters++) {
      daemon.clock.advance(HOUR_MS / 4);
      expect(await isLoggedIn(), `after ${quarters / 4} hours`).to.equal(true);
    }
    daemon.clock.advance(HOUR_MS / 4);
    expect(await isLoggedIn()).to.equal(false);
  });

  it('P05 is another at every log-in, whatever cookie came with it', async () => {
    visitor.cookies.set('llmp-admin', { value: 'chosen-by-somebody-else', path: '/admin/' });
    const first = (await visitor.logIn(MANAGEMENT_TOKEN)).cookies[0]!;
    const second = (await visitor.logIn(MANAGEMENT_TOKEN)).cookies[0]!;
    expect(first).not.to.include('chosen-by-somebody-else');
    const ids = (await auditOf(daemon)).filter(({ action }) => action === 'admin.login').map(({ details }) => details);
    expect(new Set(ids).size).to.equal(2);
    expect(second).not.to.equal(first);
  });

  it('P05 is dead after the log-out, every copy of its cookie and after a restart too', async () => {
    await visitor.logIn(MANAGEMENT_TOKEN);
    const thief = new Visitor(daemon.managementUrl);
    for (const [name, kept] of visitor.cookies) thief.cookies.set(name, kept);
    expect(await isLoggedIn(thief)).to.equal(true);

    const seen = await visitor.post('logout');
    expect(seen).to.include({ status: 303, to: '/admin/login?why=out' });
    expect(seen.cookies[0]).to.match(/^llmp-admin=; Path=\/admin\/; Max-Age=0; /);
    expect(visitor.cookies.size).to.equal(0);
    expect(await isLoggedIn(thief)).to.equal(false);
    const actions = (await auditOf(daemon)).map(({ action, actor, outcome }) => `${action} ${actor} ${outcome}`);
    expect(actions).to.deep.equal(['admin.login admin success', 'admin.logout admin success']);

    await daemon.stop();
    daemon = await startDaemon({ dir: daemon.dir });
    const host = thief.host;
    expect(
      await isLoggedIn(Object.assign(new Visitor(daemon.managementUrl, { host }), { cookies: thief.cookies })),
    ).to.equal(false);
  });

  it('P05 does not end the others of the same operator', async () => {
    const other = new Visitor(daemon.managementUrl);
    await visitor.logIn(MANAGEMENT_TOKEN);
    await other.logIn(MANAGEMENT_TOKEN);
    await visitor.post('logout');
    expect(await isLoggedIn(other)).to.equal(true);
  });

  it('ends when the management token is another, and goes on over a restart with the same', async () => {
    await visitor.logIn(MANAGEMENT_TOKEN);
    const { dir } = daemon;
    for (const [token, goesOn] of [
      [MANAGEMENT_TOKEN, true],
      [canary('management'), false],
    ] as const) {
      await daemon.stop();
      daemon = await startDaemon({ dir, env: { MANAGEMENT_TOKEN: token } });
      const again = new Visitor(daemon.managementUrl, { host: visitor.host });
      for (const [name, kept] of visitor.cookies) again.cookies.set(name, kept);
      expect(await isLoggedIn(again)).to.equal(goesOn);
    }
  });

  it('is none where the cookie was changed by a bit', async () => {
    await visitor.logIn(MANAGEMENT_TOKEN);
    const { value, path } = visitor.cookies.get('llmp-admin')!;
    const bytes = Buffer.from(value, 'base64url');
    for (const at of [0, 12, 40, bytes.length - 1]) {
      const forged = Buffer.from(bytes);
      forged[at] = forged[at]! ^ 1;
      visitor.cookies.set('llmp-admin', { value: forged.toString('base64url'), path });
      expect(await isLoggedIn(), `byte ${at}`).to.equal(false);
    }
    for (const junk of ['', 'x', 'a'.repeat(4000)]) {
      visitor.cookies.set('llmp-admin', { value: junk, path });
      expect(await isLoggedIn(), junk.slice(0, 3)).to.equal(false);
    }
  });

  it('P17 is none under another name of the same address', async () => {
    await visitor.logIn(MANAGEMENT_TOKEN);
    const rebound = new Visitor(daemon.managementUrl, { host: visitor.host.replace('127.0.0.1', 'localhost') });
    for (const [name, kept] of visitor.cookies) rebound.cookies.set(name, kept);
    expect(await isLoggedIn(rebound)).to.equal(false);
  });

  it('P17 cannot begin under a foreign name that was bound to our address: no browser would keep it', async () => {
    const rebound = new Visitor(daemon.managementUrl, { host: 'evil.example' });
    const page = await rebound.get('login');
    expect(page.status).to.equal(200);
    expect(page.html).to.include('No log-in works here').and.to.include('evil.example');
    expect(page.html).not.to.include('type="password"');
    const seen = await rebound.logIn(MANAGEMENT_TOKEN);
    expect(seen.status).to.equal(403);
    expect(seen.cookies).to.be.empty;
    expect(await auditOf(daemon)).to.be.empty;
  });

  it('does not believe a client that says it came over TLS', async () => {
    const headers = { 'x-forwarded-proto': 'https' };
    const client = new Visitor(daemon.managementUrl, { host: 'llmp.example', headers });
    expect((await client.get('login')).html).to.include('No log-in works here');
  });

  describe('with a wrong token', () => {
    it('does not begin, and says so without repeating it', async () => {
      const wrong = canary('management');
      const seen = await visitor.logIn(wrong);
      expect(seen.status).to.equal(403);
      expect(seen.html).to.include('This is not the management token.').and.not.to.include(wrong);
      expect(seen.cookies).to.be.empty;
      for (const token of ['', 'x'.repeat(1001)]) expect((await visitor.logIn(token)).status).to.equal(403);
    });

    it('P08 is slowed down by the browser’s address after ten in a minute, and recorded; the right one never', async () => {
      for (let i = 0; i < 10; i++) expect((await visitor.logIn('wrong')).status).to.equal(403);
      const slowed = await visitor.logIn('wrong');
      expect(slowed.status).to.equal(429);
      expect(Number(slowed.headers.get('retry-after'))).to.be.within(1, 60);
      expect(slowed.html).to.include('Too many wrong tokens');
      await eventually('ten records', async () => (await auditOf(daemon)).length >= 10);
      for (const row of await auditOf(daemon)) {
        expect(row).to.include({ action: 'admin.login', actor: 'admin', outcome: 'denied', client_ip: '127.0.0.1' });
      }
      expect((await visitor.logIn(MANAGEMENT_TOKEN)).status).to.equal(303);
    });

    it('P08 behind a trusted proxy slows down the browser that guesses, and no other', async () => {
      const own = await startDaemon({ env: { TRUSTED_PROXIES: '127.0.0.1' } });
      const from = (ip: string) => new Visitor(own.managementUrl, { headers: { 'x-forwarded-for': ip } });
      for (let i = 0; i < 11; i++) await from('203.0.113.7').logIn('wrong');
      expect((await from('203.0.113.7').logIn('wrong')).status).to.equal(429);
      expect((await from('203.0.113.8').logIn('wrong')).status).to.equal(403);
      await from('203.0.113.9').logIn(MANAGEMENT_TOKEN);
      const begun = (await auditOf(own)).filter(({ outcome }) => outcome === 'success');
      expect(begun.map((row) => row.client_ip)).to.deep.equal(['203.0.113.9']);
      await own.stop();
    });
  });

  it('P09 leads to a page of ours after the log-in, whatever was asked for', async () => {
    for (const next of ['//evil.example', '/\\evil.example', '/admin/../..//evil.example', 'javascript:alert(1)']) {
      expect((await visitor.logIn(MANAGEMENT_TOKEN, next)).to, next).to.equal('/admin/');
      expect((await visitor.get(`login?${new URLSearchParams({ next }).toString()}`)).to, next).to.equal('/admin/');
    }
  });

  it('P07 keeps the management token out of every page, address and cookie', async () => {
    await visitor.logIn(MANAGEMENT_TOKEN);
    for (const page of ['', 'tokens', 'projects', 'audit', 'cache', 'login']) {
      const { html, headers, to, cookies } = await visitor.get(page);
      expect([html, to, ...cookies].join()).not.to.include(MANAGEMENT_TOKEN);
      expect(headers.get('referrer-policy')).to.equal('same-origin');
    }
    expect(daemon.logged.join()).not.to.include(MANAGEMENT_TOKEN);
  });

  it('is not begun when that cannot be recorded', async () => {
    daemon.daemon.stores.records.refuseChangesWhile(() => 'the disk is full');
    const seen = await visitor.logIn(MANAGEMENT_TOKEN);
    expect(seen.status).to.equal(503);
    expect(seen.html).to.include('Log-ins cannot be recorded now');
    expect(seen.cookies).to.be.empty;
  });

  it('is forgotten by the browser that logs out while that cannot be recorded, which is said', async () => {
    await visitor.logIn(MANAGEMENT_TOKEN);
    daemon.daemon.stores.records.refuseChangesWhile(() => 'the disk is full');
    expect((await visitor.post('logout')).to).to.equal('/admin/login?why=not-recorded');
    expect(visitor.cookies.size).to.equal(0);
    expect((await visitor.get('login?why=not-recorded')).html).to.include('could not be recorded');
  });
});

describe('where a log-in leads to', () => {
  for (const [asked, leads] of [
    ['/admin/', '/admin/'],
    ['/admin/tokens?q=a%20b&state=active', '/admin/tokens?q=a%20b&state=active'],
    ['/admin', '/admin/'],
    ['/administration/', '/admin/'],
    ['/v1/models', '/admin/'],
    ['/admin/../manage/projects', '/admin/'],
    ['/admin/%2e%2e/%2e%2e//evil.example', '/admin/'],
    ['//evil.example/admin/', '/admin/'],
    ['/\\evil.example/admin/', '/admin/'],
    ['\\\\evil.example', '/admin/'],
    ['https://evil.example/admin/', '/admin/'],
    ['javascript:alert(1)//admin/', '/admin/'],
    ['/admin/\n//evil.example', '/admin///evil.example'],
    ['', '/admin/'],
    [null, '/admin/'],
  ] as const) {
    it(`P09 from ${JSON.stringify(asked)} is ${leads}`, () => {
      expect(nextOf(asked, '/admin/')).to.equal(leads);
    });
  }
});
