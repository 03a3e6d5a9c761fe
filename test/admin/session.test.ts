import { expect } from 'chai';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { auditOf } from '../support/management.js';
import { TestBrowser } from './test-browser.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

describe('a session of the Admin UI', () => {
  let daemon: TestDaemon;
  let browser: TestBrowser;

  beforeEach(async () => {
    daemon = await startDaemon();
    browser = new TestBrowser(daemon.managementUrl);
  });
  afterEach(() => daemon.stop());

  const isLoggedIn = async (who = browser) => (await who.get()).status === 200;

  it('is required for every page except the login, which redirects to the requested page', async () => {
    for (const page of ['', 'tokens?state=active', 'projects', 'audit', 'cache', 'tokens/new', 'projects/new']) {
      const seen = await browser.get(page);
      expect(seen.status, page).to.equal(303);
      const next = page === '' ? '' : `?${new URLSearchParams({ next: `/admin/${page}` }).toString()}`;
      expect(seen.to).to.equal(`/admin/login${next}`);
    }
    expect((await browser.get('login')).status).to.equal(200);
  });

  it('starts with the management token', async () => {
    const seen = await browser.logIn(MANAGEMENT_TOKEN, '/admin/tokens?state=active');
    expect(seen).to.include({ status: 303, to: '/admin/tokens?state=active' });
    expect(await isLoggedIn()).to.equal(true);
    expect((await browser.get('login')).to).to.equal('/admin/');
  });

  it('P06 is a cookie that is inaccessible to scripts, other sites, unencrypted connections and other paths', async () => {
    const { cookies } = await browser.logIn(MANAGEMENT_TOKEN);
    expect(cookies).to.have.length(1);
    expect(cookies[0]).to.match(/^llmp-admin=[\w-]{100,}; Path=\/admin\/; Secure; HttpOnly; SameSite=Strict$/);
  });

  it('P06 has a cookie name over TLS that only pages over TLS can set', async () => {
    const own = await startDaemon({ env: { TRUSTED_PROXIES: '127.0.0.1' } });
    const headers = { 'x-forwarded-proto': 'https' };
    const behindProxy = new TestBrowser(own.managementUrl, { host: 'llmp.example', headers });
    const { cookies } = await behindProxy.logIn(MANAGEMENT_TOKEN);
    expect(cookies[0]).to.match(/^__Secure-llmp-admin=/);
    expect(await isLoggedIn(behindProxy)).to.equal(true);
    await own.stop();
  });

  it('P06 ends after half an hour without use, and every use restarts that time', async () => {
    await browser.logIn(MANAGEMENT_TOKEN);
    for (let i = 0; i < 3; i++) {
      daemon.clock.advance(29 * MINUTE_MS);
      expect(await isLoggedIn()).to.equal(true);
    }
    daemon.clock.advance(30 * MINUTE_MS);
    expect((await browser.get('tokens')).to).to.equal('/admin/login?why=ended&next=%2Fadmin%2Ftokens');
    expect((await browser.get('login?why=ended')).html).to.include('Your session has ended');
  });

  it('P06 is not prolonged by automatic refreshes, which get 401 after its end', async () => {
    await browser.logIn(MANAGEMENT_TOKEN);
    const refresh = { 'x-llmp-refresh': '1' };
    daemon.clock.advance(20 * MINUTE_MS);
    const seen = await browser.get('', refresh);
    expect(seen.status).to.equal(200);
    expect(seen.cookies).to.be.empty;
    daemon.clock.advance(10 * MINUTE_MS);
    expect((await browser.get('', refresh)).status).to.equal(401);
  });

  it('P06 ends after eight hours even if it is in use', async () => {
    await browser.logIn(MANAGEMENT_TOKEN);
    for (let quarters = 1; quarters < 32; quarters++) {
      daemon.clock.advance(HOUR_MS / 4);
      expect(await isLoggedIn(), `after ${quarters / 4} hours`).to.equal(true);
    }
    daemon.clock.advance(HOUR_MS / 4);
    expect(await isLoggedIn()).to.equal(false);
  });

  it('P05 is a new one at every login, even if the request has a session cookie', async () => {
    browser.cookies.set('llmp-admin', { value: 'chosen-by-an-attacker', path: '/admin/' });
    const first = (await browser.logIn(MANAGEMENT_TOKEN)).cookies[0]!;
    const second = (await browser.logIn(MANAGEMENT_TOKEN)).cookies[0]!;
    expect(first).not.to.include('chosen-by-an-attacker');
    const ids = (await auditOf(daemon)).filter(({ action }) => action === 'admin.login').map(({ details }) => details);
    expect(new Set(ids).size).to.equal(2);
    expect(second).not.to.equal(first);
  });

  it('P05 is invalid after the logout, including copies of its cookie, and after a restart', async () => {
    await browser.logIn(MANAGEMENT_TOKEN);
    const thief = browser.copy();
    expect(await isLoggedIn(thief)).to.equal(true);

    const seen = await browser.post('logout');
    expect(seen).to.include({ status: 303, to: '/admin/login?why=out' });
    expect(seen.cookies[0]).to.match(/^llmp-admin=; Path=\/admin\/; Max-Age=0; /);
    expect(browser.cookies.size).to.equal(0);
    expect(await isLoggedIn(thief)).to.equal(false);
    const actions = (await auditOf(daemon)).map(({ action, actor, outcome }) => `${action} ${actor} ${outcome}`);
    expect(actions).to.deep.equal(['admin.login admin success', 'admin.logout admin success']);

    await daemon.stop();
    daemon = await startDaemon({ dir: daemon.dir });
    expect(await isLoggedIn(thief.copy({ url: daemon.managementUrl }))).to.equal(false);
  });

  it('P05 does not end other sessions when it ends', async () => {
    const other = new TestBrowser(daemon.managementUrl);
    await browser.logIn(MANAGEMENT_TOKEN);
    await other.logIn(MANAGEMENT_TOKEN);
    await browser.post('logout');
    expect(await isLoggedIn(other)).to.equal(true);
  });

  it('ends when the management token changes, but survives a restart with the same token', async () => {
    await browser.logIn(MANAGEMENT_TOKEN);
    const { dir } = daemon;
    for (const [token, isValid] of [
      [MANAGEMENT_TOKEN, true],
      [canary('management'), false],
    ] as const) {
      await daemon.stop();
      daemon = await startDaemon({ dir, env: { MANAGEMENT_TOKEN: token } });
      expect(await isLoggedIn(browser.copy({ url: daemon.managementUrl }))).to.equal(isValid);
    }
  });

  it('is rejected if any bit of the cookie was changed', async () => {
    await browser.logIn(MANAGEMENT_TOKEN);
    const { value, path } = browser.cookies.get('llmp-admin')!;
    const bytes = Buffer.from(value, 'base64url');
    for (const at of [0, 12, 40, bytes.length - 1]) {
      const forged = Buffer.from(bytes);
      forged[at] = forged[at]! ^ 1;
      browser.cookies.set('llmp-admin', { value: forged.toString('base64url'), path });
      expect(await isLoggedIn(), `byte ${at}`).to.equal(false);
    }
    for (const junk of ['', 'x', 'a'.repeat(4000)]) {
      browser.cookies.set('llmp-admin', { value: junk, path });
      expect(await isLoggedIn(), junk.slice(0, 3)).to.equal(false);
    }
  });

  it('P17 is rejected under another host name of the same address', async () => {
    await browser.logIn(MANAGEMENT_TOKEN);
    const rebound = browser.copy({ host: browser.host.replace('127.0.0.1', 'localhost') });
    expect(await isLoggedIn(rebound)).to.equal(false);
  });

  it('P17 cannot start under a foreign host name after DNS rebinding: no browser would accept the cookie', async () => {
    const rebound = new TestBrowser(daemon.managementUrl, { host: 'evil.example' });
    const page = await rebound.get('login');
    expect(page.status).to.equal(200);
    expect(page.html).to.include('You cannot log in here').and.to.include('evil.example');
    expect(page.html).not.to.include('type="password"');
    const seen = await rebound.logIn(MANAGEMENT_TOKEN);
    expect(seen.status).to.equal(403);
    expect(seen.cookies).to.be.empty;
    expect(await auditOf(daemon)).to.be.empty;
  });

  it('ignores X-Forwarded-Proto of an untrusted client', async () => {
    const headers = { 'x-forwarded-proto': 'https' };
    const client = new TestBrowser(daemon.managementUrl, { host: 'llmp.example', headers });
    expect((await client.get('login')).html).to.include('You cannot log in here');
  });

  describe('with a wrong token', () => {
    it('does not start, and the page does not repeat the token', async () => {
      const wrong = canary('management');
      const seen = await browser.logIn(wrong);
      expect(seen.status).to.equal(403);
      expect(seen.html).to.include('Wrong token or secret.').and.not.to.include(wrong);
      expect(seen.cookies).to.be.empty;
      for (const token of ['', 'x'.repeat(1001)]) expect((await browser.logIn(token)).status).to.equal(403);
    });

    it('P08 is rate-limited by address after ten in a minute, and recorded; a correct token is never delayed', async () => {
      for (let i = 0; i < 10; i++) expect((await browser.logIn('wrong')).status).to.equal(403);
      const slowed = await browser.logIn('wrong');
      expect(slowed.status).to.equal(429);
      expect(Number(slowed.headers.get('retry-after'))).to.be.within(1, 60);
      expect(slowed.html).to.include('Too many failed attempts');
      await eventually('ten records', async () => (await auditOf(daemon)).length >= 10);
      for (const row of await auditOf(daemon)) {
        expect(row).to.include({ action: 'admin.login', actor: 'admin', outcome: 'denied', client_ip: '127.0.0.1' });
      }
      expect((await browser.logIn(MANAGEMENT_TOKEN)).status).to.equal(303);
    });

    it('P08 behind a trusted proxy, the rate limit affects only the browser that guesses', async () => {
      const own = await startDaemon({ env: { TRUSTED_PROXIES: '127.0.0.1' } });
      const from = (ip: string) => new TestBrowser(own.managementUrl, { headers: { 'x-forwarded-for': ip } });
      for (let i = 0; i < 11; i++) await from('203.0.113.7').logIn('wrong');
      expect((await from('203.0.113.7').logIn('wrong')).status).to.equal(429);
      expect((await from('203.0.113.8').logIn('wrong')).status).to.equal(403);
      own.clock.advance(61_000);
      expect((await from('203.0.113.7').logIn('wrong')).status).to.equal(403);
      await from('203.0.113.9').logIn(MANAGEMENT_TOKEN);
      const begun = (await auditOf(own)).filter(({ outcome }) => outcome === 'success');
      expect(begun.map((row) => row.client_ip)).to.deep.equal(['203.0.113.9']);
      await own.stop();
    });
  });

  for (const [next, to] of [
    ['/admin/', '/admin/'],
    ['/admin/tokens?q=a%20b&state=active', '/admin/tokens?q=a%20b&state=active'],
    ['/admin', '/admin/'],
    ['/administration/', '/admin/'],
    ['/v1/models', '/admin/'],
    ['/admin/../manage/projects', '/admin/'],
    ['/admin/../..//evil.example', '/admin/'],
    ['/admin/%2e%2e/%2e%2e//evil.example', '/admin/'],
    ['//evil.example/admin/', '/admin/'],
    ['/\\evil.example/admin/', '/admin/'],
    ['\\\\evil.example', '/admin/'],
    ['https://evil.example/admin/', '/admin/'],
    ['javascript:alert(1)//admin/', '/admin/'],
    ['/admin/\n//evil.example', '/admin///evil.example'],
    ['', '/admin/'],
  ] as const) {
    it(`P09 redirects after the login to ${to} if asked for ${JSON.stringify(next)}`, async () => {
      expect((await browser.logIn(MANAGEMENT_TOKEN, next)).to).to.equal(to);
      expect((await browser.get(`login?${new URLSearchParams({ next }).toString()}`)).to).to.equal(to);
    });
  }

  it('P07 keeps the management token out of every page, address and cookie', async () => {
    await browser.logIn(MANAGEMENT_TOKEN);
    for (const page of ['', 'tokens', 'projects', 'audit', 'cache', 'login']) {
      const { html, headers, to, cookies } = await browser.get(page);
      expect([html, to, ...cookies].join()).not.to.include(MANAGEMENT_TOKEN);
      expect(headers.get('referrer-policy')).to.equal('same-origin');
    }
    expect(daemon.logged.join()).not.to.include(MANAGEMENT_TOKEN);
  });

  it('does not start if that cannot be recorded', async () => {
    daemon.daemon.stores.records.refuseChangesWhile(() => 'the disk is full');
    const seen = await browser.logIn(MANAGEMENT_TOKEN);
    expect(seen.status).to.equal(503);
    expect(seen.html).to.include('logins cannot be recorded');
    expect(seen.cookies).to.be.empty;
  });

  it('is deleted in the browser, with a notice, if the logout cannot be recorded', async () => {
    await browser.logIn(MANAGEMENT_TOKEN);
    daemon.daemon.stores.records.refuseChangesWhile(() => 'the disk is full');
    expect((await browser.post('logout')).to).to.equal('/admin/login?why=not-recorded');
    expect(browser.cookies.size).to.equal(0);
    expect((await browser.get('login?why=not-recorded')).html).to.include('could not be recorded');
  });
});
