/** People log in to the Admin UI in a real browser. The identity provider has another host name, so that it is another site. */
import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { needsBrowser, openWindow, startBrowser } from '../support/browser.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { CLIENT_ID, startIssuer, type TestIssuer } from '../support/issuer.js';
import { freePort } from '../support/ports.js';
import { file } from '../support/settings.js';

describe('people log in with a browser', function () {
  this.timeout(60_000);
  let browser: Browser;
  let issuer: TestIssuer;
  let daemon: TestDaemon;
  let publicUrl: string;

  before(async function () {
    needsBrowser(this);
    browser = await startBrowser();
    const port = await freePort();
    publicUrl = `http://localhost:${port}`;
    issuer = await startIssuer({ redirectUri: `${publicUrl}/admin/oidc/callback`, host: '127.0.0.1' });
    daemon = await startDaemon({
      env: {
        LISTEN_ADDR: `127.0.0.1:${port}`,
        OIDC_ISSUER: issuer.url,
        OIDC_CLIENT_ID: CLIENT_ID,
        OIDC_CLIENT_SECRET: issuer.clientSecret,
        OIDC_ROLES: file('roles.json', JSON.stringify([{ match: { sub: 'ana' }, role: 'admin' }])),
        PUBLIC_URL: publicUrl,
      },
    });
    issuer.person = { sub: 'ana', name: 'Ana Lima' };
    issuer.asks = true; // Otherwise no page of another site is involved, and browsers send all cookies.
  });
  after(async () => {
    if (!(browser as Browser | undefined)) return;
    await browser.close();
    await daemon.stop();
    await issuer.stop();
  });

  for (const javaScriptEnabled of [true, false]) {
    it(`whose session cookie is Strict, ${javaScriptEnabled ? 'with' : 'without'} JavaScript`, async () => {
      const { context, page, complaints } = await openWindow(browser, { javaScriptEnabled });
      await page.goto(`${publicUrl}/admin/tokens?state=active`);
      await page.getByRole('link', { name: `Log in with ${new URL(issuer.url).host}` }).click();
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Tokens', level: 1 }).waitFor();
      expect(page.url()).to.equal(`${publicUrl}/admin/tokens?state=active`);
      await page.getByText('Ana Lima').first().waitFor();
      const cookies = await context.cookies(`${publicUrl}/admin/oidc/callback`);
      expect(cookies.map(({ name, sameSite }) => [name, sameSite])).to.deep.equal([['llmp-admin', 'Strict']]);

      expect(complaints).to.deep.equal([]);

      // The page of the callback is not in the history, where it would be asked again.
      await page.goBack();
      expect(new URL(page.url()).origin).to.equal(issuer.url);
      await context.close();
    });
  }

  it('not if the log-in began at another address of the daemon', async () => {
    const { context, page } = await openWindow(browser);
    await page.goto(`${publicUrl.replace('localhost', '127.0.0.1')}/admin/`);
    await page.getByRole('link', { name: 'Log in with' }).click();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('was not begun at this address in this browser').waitFor();
    await page.getByRole('link', { name: 'Go to the login page' }).click();
    await page.getByRole('link', { name: 'Log in with' }).click();
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    await context.close();
  });
});
