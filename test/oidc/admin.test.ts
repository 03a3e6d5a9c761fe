/** People log in to the Admin UI with an identity provider: cookies, the callback, and what it says when it refuses. */
import { expect } from 'chai';
import { TestBrowser } from '../admin/test-browser.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { CLIENT_ID, PersonBrowser, startIssuer, type TestIssuer } from '../support/issuer.js';
import { file } from '../support/settings.js';

const HOST = 'llmp.example.com';
const PUBLIC_URL = `https://${HOST}`;

describe('the log-in of people to the Admin UI', () => {
  let issuer: TestIssuer;
  let daemon: TestDaemon;
  let browser: TestBrowser;

  before(async () => {
    issuer = await startIssuer({ redirectUri: `${PUBLIC_URL}/admin/oidc/callback` });
    daemon = await startDaemon({
      env: {
        OIDC_ISSUER: issuer.url,
        OIDC_CLIENT_ID: CLIENT_ID,
        OIDC_CLIENT_SECRET: issuer.clientSecret,
        OIDC_ROLES: file('roles.json', JSON.stringify([{ match: { sub: 'ana' }, role: 'admin' }])),
        PUBLIC_URL,
        TRUSTED_PROXIES: '127.0.0.1',
      },
    });
  });
  after(async () => {
    await daemon.stop();
    await issuer.stop();
  });
  beforeEach(() => {
    issuer.person = { sub: 'ana', name: 'Ana Lima' };
    issuer.consents = true;
    browser = new TestBrowser(daemon.managementUrl, { host: HOST, headers: { 'x-forwarded-proto': 'https' } });
  });

  const leave = (next?: string) =>
    browser.get(`login/provider${next === undefined ? '' : `?${new URLSearchParams({ next }).toString()}`}`);
  /** @returns the path and query with which the browser comes back. */
  const atProvider = async (to: string | null) => {
    const { origin, pathname, search } = new URL((await new PersonBrowser(issuer).go(to ?? '')).to);
    expect(origin).to.equal(PUBLIC_URL);
    return pathname + search;
  };

  it('is a link on the login page', async () => {
    const { html } = await browser.get('login?next=%2Fadmin%2Ftokens');
    expect(html).to.include(`href="/admin/login/provider?next=%2Fadmin%2Ftokens"`);
    expect(html).to.include(`Log in with ${new URL(issuer.url).host}`);
  });

  it('holds the state in a Lax cookie of the callback, and ends on a page that goes on by itself', async () => {
    const left = await leave('/admin/tokens?state=active');
    expect(left.status).to.equal(303);
    expect(left.cookies).to.have.length(1);
    expect(left.cookies[0]).to.match(
      /^__Secure-llmp-admin-oidc=[\w-]{200,2000}; Path=\/admin\/oidc\/; Max-Age=600; Secure; HttpOnly; SameSite=Lax$/,
    );
    const seen = await browser.get(await atProvider(left.to));
    expect(seen.status).to.equal(200);
    expect(seen.headers.get('refresh')).to.equal('0; url=/admin/tokens?state=active');
    expect(seen.headers.get('referrer-policy')).to.equal('no-referrer');
    expect(seen.headers.get('cache-control')).to.equal('no-store');
    expect(seen.html).to.include('href="/admin/tokens?state=active"').and.not.to.include('code=');
    const [gone, session] = [...seen.cookies].sort((one, other) => other.length - one.length).reverse();
    expect(gone).to.match(
      /^__Secure-llmp-admin-oidc=; Path=\/admin\/oidc\/; Max-Age=0; Secure; HttpOnly; SameSite=Lax$/,
    );
    expect(session).to.match(/^__Secure-llmp-admin=[\w-]{100,}; Path=\/admin\/; Secure; HttpOnly; SameSite=Strict$/);
    const page = await browser.get('tokens');
    expect(page.status).to.equal(200);
    expect(page.html).to.include('Ana Lima');
  });

  it('leads only to pages of the Admin UI', async () => {
    for (const next of [
      'https://evil.example.com/',
      '//evil.example.com',
      '/elsewhere',
      `/admin/tokens?name=${'x'.repeat(2_000)}`,
    ]) {
      const seen = await browser.get(await atProvider((await leave(next)).to));
      expect(seen.headers.get('refresh'), next).to.equal('0; url=/admin/');
    }
  });

  it('is refused without the cookie, in another browser, and twice', async () => {
    const callback = await atProvider((await leave()).to);
    const victim = new TestBrowser(daemon.managementUrl, { host: HOST, headers: { 'x-forwarded-proto': 'https' } });
    const forged = await victim.get(callback);
    expect(forged.status).to.equal(403);
    expect(forged.html).to.include('was not begun at this address in this browser');
    expect(victim.cookies.size).to.equal(0);
    await victim.get('login/provider');
    const swapped = await victim.get(callback);
    expect(swapped.status).to.equal(403);
    expect(swapped.html).to.include('does not belong to this log-in');

    expect((await browser.get(callback)).status).to.equal(200);
    expect((await browser.get(callback)).status, 'the cookie is gone').to.equal(403);
  });

  it('says why it is refused', async () => {
    issuer.consents = false;
    const denied = await browser.get(await atProvider((await leave()).to));
    expect(denied.status).to.equal(403);
    expect(denied.html).to.include('Log-in refused: access was denied.');
    issuer.consents = true;
    issuer.person = { sub: 'eve', name: '<b>Eve</b>' };
    const unknown = await browser.get(await atProvider((await leave()).to));
    expect(unknown.status).to.equal(403);
    expect(unknown.html).to.include('&lt;b&gt;Eve&lt;/b&gt; has no role here: ask the operators of llmp for one.');
    expect(unknown.html).to.include('href="/admin/login"');
    issuer.intercept = (_req, res) => {
      res.writeHead(500).end();
      return true;
    };
    const left = await browser.get('login/provider');
    const back = await browser.get('oidc/callback?code=1&state=1');
    issuer.intercept = () => false;
    expect(left.status, 'the configuration is known already').to.equal(303);
    expect(back.status).to.equal(403);
    expect((await browser.get('oidc/callback?code=1&state=1')).status).to.equal(403);
    expect((await browser.post('oidc/callback')).status).to.equal(405);
  });

  it('is not offered over plain HTTP, where browsers would not keep the cookie', async () => {
    const plain = new TestBrowser(daemon.managementUrl, { host: HOST });
    expect(await plain.get('login/provider')).to.include({ status: 303, to: '/admin/login' });
    expect(plain.cookies.size).to.equal(0);
  });
});
