/** Protection against attacks on logged-in users: the rows of the fault matrix that need no browser. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { MANAGEMENT_TOKEN, startDaemon } from '../support/daemon.js';
import { storedIn } from '../support/management.js';
import { perSuite } from '../support/per-test.js';
import { RawClient } from '../support/raw.js';
import { type Fields, loggedIn, TestBrowser } from './test-browser.js';

const POLICY =
  "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self';form-action 'self';base-uri 'none';frame-ancestors 'none'";

describe('the Admin UI under attack', () => {
  const daemon = perSuite(startDaemon);
  const browser = perSuite(() => loggedIn(daemon.managementUrl));

  const assets = async () =>
    [...(await browser.get()).html.matchAll(/(?:href|src)="([^"]*\/assets\/[^"]+)"/g)].map(([, at]) => at!);

  it('P02 P03 P07 P15 sends security headers with every response, including errors', async () => {
    const answers = [
      await browser.get(),
      await new TestBrowser(daemon.managementUrl).get('login'),
      await browser.get('nothing'),
      await new TestBrowser(daemon.managementUrl).get('tokens'),
      await browser.post('logout', {}, { origin: 'https://evil.example' }),
      await browser.send('PUT', 'tokens', { origin: `http://${browser.host}` }),
      await browser.get('tokens?used_over=x'),
    ];
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 404, 303, 403, 405, 400]);
    for (const { headers } of answers) {
      expect(headers.get('content-security-policy')).to.equal(POLICY);
      expect(headers.get('x-frame-options')).to.equal('DENY');
      expect(headers.get('x-content-type-options')).to.equal('nosniff');
      expect(headers.get('referrer-policy')).to.equal('same-origin');
      expect(headers.get('cache-control')).to.equal('no-store');
      expect(headers.get('cross-origin-resource-policy')).to.equal('same-origin');
      expect(headers.has('strict-transport-security')).to.equal(false);
      expect(headers.has('access-control-allow-origin')).to.equal(false);
    }
  });

  it('P02 has no inline scripts, styles or event handlers', async () => {
    const project = await daemon.createProject();
    const token = await daemon.createToken(project.id);
    for (const page of ['', 'tokens', `tokens/${token.id}`, `projects/${project.id}`, 'audit', 'cache', 'nothing']) {
      const { html } = await browser.get(page);
      expect(html, page).not.to.match(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|javascript:/i);
      expect(html).to.match(/^<!doctype html><html lang="en">/);
    }
  });

  it('P15 sends assets with their type and caches them permanently, because their names contain a hash', async () => {
    const files = await assets();
    expect(files).to.have.length(4);
    const types = [];
    for (const file of files) {
      const { status, headers } = await new TestBrowser(daemon.managementUrl).get(file);
      expect(status, file).to.equal(200);
      expect(headers.get('cache-control')).to.equal('public, max-age=31536000, immutable');
      expect(headers.get('x-content-type-options')).to.equal('nosniff');
      types.push(headers.get('content-type'));
    }
    expect(types).to.have.members([
      'text/css; charset=utf-8',
      'text/javascript; charset=utf-8',
      'text/javascript; charset=utf-8',
      'image/svg+xml; charset=utf-8',
    ]);
  });

  it('P14 serves only these assets, and no other files', async () => {
    const [file = ''] = await assets();
    const name = file.split('/').at(-1)!;
    const paths = [
      '/admin/assets/',
      '/admin/assets',
      `/admin/assets/${name}/`,
      `/admin/assets/./${name}`,
      `/admin/assets/x/../${name}`,
      `/admin/assets//${name}`,
      `/admin/assets/${name}%00`,
      `/admin/assets/${name}%00.css`,
      '/admin/assets/..%2f..%2fpackage.json',
      '/admin/assets/%2e%2e/%2e%2e/%2e%2e/package.json',
      '/admin/assets/..%5c..%5cpackage.json',
      '/admin/assets/%2e%2e%2f%2e%2e%2fetc%2fpasswd',
      '/admin/assets/.git/config',
      '/admin/assets/admin.css',
      '/admin/.env',
    ];
    for (const path of paths) {
      const client = await RawClient.to(daemon.managementUrl);
      client.send(`GET ${path} HTTP/1.1\r\nHost: ${browser.host}\r\nConnection: close\r\n\r\n`);
      const answer = await client.response();
      expect(answer.status, path).to.equal(404);
      client.destroy();
    }
    const folder = join(import.meta.dirname, '../../../daemon/admin/assets');
    expect(readdirSync(folder)).to.have.members(['admin.css', 'admin.js', 'icon.svg', 'live.js']);
  });

  describe('P04 a request from another site', () => {
    const OWN = () => ({ origin: `http://${browser.host}` });
    const FOREIGN: Record<string, () => Fields> = {
      'with another origin': () => ({ origin: 'https://evil.example' }),
      'with the origin null': () => ({ origin: 'null' }),
      'with neither Origin nor Sec-Fetch-Site': () => ({ origin: '' }),
      'from another port of the same host': () => ({ origin: 'http://127.0.0.1:1' }),
      'from a host name with our host as a prefix': () => ({ origin: `http://${browser.host}.evil.example` }),
      'from a host name with our host as a suffix': () => ({ origin: `http://evil.example@${browser.host}` }),
      'with Sec-Fetch-Site: cross-site': () => ({ ...OWN(), 'sec-fetch-site': 'cross-site' }),
      'with Sec-Fetch-Site: same-site': () => ({ ...OWN(), 'sec-fetch-site': 'same-site' }),
      'with Sec-Fetch-Site: none': () => ({ ...OWN(), 'sec-fetch-site': 'none' }),
      'with another origin, despite Sec-Fetch-Site: same-origin': () => ({
        origin: 'http://evil.example',
        'sec-fetch-site': 'same-origin',
      }),
    };
    for (const [what, fields] of Object.entries(FOREIGN)) {
      it(`${what}: changes nothing, although its cookie and form are valid`, async () => {
        await browser.get();
        const before = await storedIn(daemon);
        const form = { name: 'forged', api_key: 'k' };
        for (const to of ['projects/new', 'login', 'logout']) {
          const seen = await browser.post(to, { ...form, token: MANAGEMENT_TOKEN }, fields());
          expect(seen.status, to).to.equal(403);
          expect(seen.cookies).to.be.empty;
        }
        expect(await storedIn(daemon)).to.deep.equal(before);
      });
    }

    it('gets 403 with any method and content type', async () => {
      const headers = { origin: 'https://evil.example' };
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        expect((await browser.send(method, 'projects/new', headers)).status, method).to.equal(403);
      }
      for (const type of ['text/plain', 'application/json', 'multipart/form-data; boundary=x', '']) {
        const seen = await browser.send('POST', 'projects/new', { ...headers, 'content-type': type }, '{}');
        expect(seen.status, type).to.equal(403);
      }
    });

    it('passes with Sec-Fetch-Site: same-origin, even if a proxy removed the port from Host', async () => {
      const fields = { origin: `http://${browser.host}`, 'sec-fetch-site': 'same-origin' };
      const portless = new TestBrowser(daemon.managementUrl, { host: '127.0.0.1' });
      expect((await portless.post('login', { token: MANAGEMENT_TOKEN }, fields)).status).to.equal(303);
    });
  });

  it('P04 accepts forms only with the CSRF token of the session', async () => {
    await browser.get();
    const other = await loggedIn(daemon.managementUrl);
    expect(other.formToken).not.to.equal(browser.formToken);
    const before = await storedIn(daemon);
    for (const token of ['', 'x', other.formToken, `${browser.formToken}x`]) {
      const seen = await browser.post('projects/new', { name: 'n', api_key: 'k', form_token: token });
      expect(seen.status, token).to.equal(403);
      expect(seen.html).to.include('Nothing was changed');
    }
    expect(await storedIn(daemon)).to.deep.equal(before);
  });

  it('P04 accepts only forms, with 415 for other content types', async () => {
    for (const type of ['text/plain', 'application/json', 'multipart/form-data; boundary=x', '']) {
      const headers = { origin: `http://${browser.host}`, 'content-type': type };
      expect((await browser.send('POST', 'projects/new', headers, '{}')).status, type).to.equal(415);
    }
  });

  it('rejects forms larger than 64 KiB', async () => {
    const seen = await browser.post('projects/new', { name: 'x'.repeat(70_000) });
    expect(seen.status).to.equal(413);
  });

  it('returns to the page with the form after a login, if the session had ended', async () => {
    const stranger = new TestBrowser(daemon.managementUrl);
    const referer = (path: string) => ({ referer: `http://${stranger.host}${path}` });
    const seen = await stranger.post('projects/new', { name: 'n' }, referer('/admin/projects/new'));
    expect(seen).to.include({ status: 303, to: '/admin/login?next=%2Fadmin%2Fprojects%2Fnew' });
    expect((await stranger.post('projects/new', { name: 'n' })).to).to.equal('/admin/login');
  });
});

describe('ADMIN_UI_ENABLED=false', () => {
  it('P13 returns 404 for the pages, the assets and the path itself', async () => {
    const shown = await startDaemon();
    const { html } = await new TestBrowser(shown.managementUrl).get('login');
    const files = [...html.matchAll(/(?:href|src)="([^"]*\/assets\/[^"]+)"/g)].map(([, at]) => at!);
    await shown.stop();
    expect(files).to.have.length(4);

    const daemon = await startDaemon({ env: { ADMIN_UI_ENABLED: 'false' } });
    const browser = new TestBrowser(daemon.managementUrl);
    for (const path of ['/admin', '/admin/', '/admin/login', '/admin/tokens', '/admin/assets/', ...files]) {
      const seen = await browser.get(path);
      expect(seen.status, path).to.equal(404);
      expect(seen.headers.get('content-type')).to.include('application/json');
      expect((await browser.post(path)).status).to.equal(404);
    }
    await daemon.stop();
  });
});

describe('ADMIN_UI_PATH', () => {
  it('P12 is the path of all pages, links and cookies', async () => {
    const daemon = await startDaemon({ env: { ADMIN_UI_PATH: '/ops/llmp-1.0' } });
    const base = '/ops/llmp-1.0/';
    const browser = new TestBrowser(daemon.managementUrl, { base });
    expect(await browser.get('/ops/llmp-1.0')).to.include({ status: 308, to: base });
    const { cookies, to } = await browser.logIn(MANAGEMENT_TOKEN);
    expect(cookies[0]).to.include(`; Path=${base};`);
    expect(to).to.equal(base);
    const { html } = await browser.get();
    const local = [...html.matchAll(/(?:href|src|action)="([^"#]+)"/g)].map(([, at]) => at!);
    expect(local).not.to.be.empty;
    for (const at of local) expect(at.startsWith(base), at).to.equal(true);
    for (const path of ['/admin/', '/ops/', '/OPS/llmp-1.0/', '/ops/llmp-1x0/', '/ops/llmp-1.0x/']) {
      expect((await browser.get(path)).status, path).to.equal(404);
    }
    await daemon.stop();
  });

  it('is served only on the management address', async () => {
    const daemon = await startDaemon({ env: { MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' } });
    const browser = await loggedIn(daemon.managementUrl);
    expect((await browser.get()).status).to.equal(200);
    const outside = new TestBrowser(daemon.url);
    for (const path of ['/admin', '/admin/', '/admin/login']) expect((await outside.get(path)).status).to.equal(404);
    await daemon.stop();
  });
});
