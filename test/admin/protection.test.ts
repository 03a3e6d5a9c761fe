/** What keeps the pages from being used against who is logged in; the rows of the fault matrix that need no browser. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { storedIn } from '../support/management.js';
import { RawClient } from '../support/raw.js';
import { type Fields, Visitor } from './visitor.js';

const POLICY =
  "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self';form-action 'self';base-uri 'none';frame-ancestors 'none'";

describe('the Admin UI, attacked', () => {
  let daemon: TestDaemon;
  let visitor: Visitor;

  before(async () => {
    daemon = await startDaemon();
    visitor = new Visitor(daemon.managementUrl);
    await visitor.logIn(MANAGEMENT_TOKEN);
  });
  after(() => daemon.stop());

  const assets = async () =>
    [...(await visitor.get()).html.matchAll(/(?:href|src)="([^"]*\/assets\/[^"]+)"/g)].map(([, at]) => at!);

  it('P02 P03 P07 P15 gives every answer the fields that protect a browser, pages that there are not and refusals too', async () => {
    const answers = [
      await visitor.get(),
      await new Visitor(daemon.managementUrl).get('login'),
      await visitor.get('nothing'),
      await new Visitor(daemon.managementUrl).get('tokens'),
      await visitor.post('logout', {}, { origin: 'https://evil.example' }),
      await visitor.send('PUT', 'tokens', { origin: `http://${visitor.host}` }),
      await visitor.get('tokens?used_over=x'),
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

  it('P02 has no script, style or handler within a page', async () => {
    const project = await daemon.createProject();
    const token = await daemon.createToken(project.id);
    for (const page of ['', 'tokens', `tokens/${token.id}`, `projects/${project.id}`, 'audit', 'cache', 'nothing']) {
      const { html } = await visitor.get(page);
      expect(html, page).not.to.match(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|javascript:/i);
      expect(html).to.match(/^<!doctype html><html lang="en">/);
    }
  });

  it('P15 says what its files are, and lets browsers keep them: their names change with what is in them', async () => {
    const files = await assets();
    expect(files).to.have.length(3);
    const types = [];
    for (const file of files) {
      const { status, headers } = await new Visitor(daemon.managementUrl).get(file);
      expect(status, file).to.equal(200);
      expect(headers.get('cache-control')).to.equal('public, max-age=31536000, immutable');
      expect(headers.get('x-content-type-options')).to.equal('nosniff');
      types.push(headers.get('content-type'));
    }
    expect(types).to.have.members([
      'text/css; charset=utf-8',
      'text/javascript; charset=utf-8',
      'image/svg+xml; charset=utf-8',
    ]);
  });

  it('P14 serves these files by their names alone, and no other of the file system', async () => {
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
      client.send(`GET ${path} HTTP/1.1\r\nHost: ${visitor.host}\r\nConnection: close\r\n\r\n`);
      const answer = await client.answer();
      expect(answer.status, path).to.equal(404);
      client.destroy();
    }
    const folder = join(import.meta.dirname, '../../../daemon/admin/assets');
    expect(readdirSync(folder)).to.have.members(['admin.css', 'admin.js', 'icon.svg']);
  });

  describe('P04 by a page of another site', () => {
    const OWN = () => ({ origin: `http://${visitor.host}` });
    const FOREIGN: Record<string, () => Fields> = {
      'whose origin is another': () => ({ origin: 'https://evil.example' }),
      'whose origin is none': () => ({ origin: 'null' }),
      'that has no origin and says nothing of its site': () => ({ origin: '' }),
      'on another port of the same host': () => ({ origin: 'http://127.0.0.1:1' }),
      'whose name begins with ours': () => ({ origin: `http://${visitor.host}.evil.example` }),
      'whose name ends with ours': () => ({ origin: `http://evil.example@${visitor.host}` }),
      'as its browser says': () => ({ ...OWN(), 'sec-fetch-site': 'cross-site' }),
      'of the same domain, as its browser says': () => ({ ...OWN(), 'sec-fetch-site': 'same-site' }),
      'or of none, as its browser says': () => ({ ...OWN(), 'sec-fetch-site': 'none' }),
      'which its browser took for ours': () => ({ origin: 'http://evil.example', 'sec-fetch-site': 'same-origin' }),
    };
    for (const [what, fields] of Object.entries(FOREIGN)) {
      it(`${what}: nothing is changed, though cookie and form are right`, async () => {
        await visitor.get();
        const before = await storedIn(daemon);
        const form = { name: 'forged', api_key: 'k' };
        for (const to of ['projects/new', 'login', 'logout']) {
          const seen = await visitor.post(to, { ...form, token: MANAGEMENT_TOKEN }, fields());
          expect(seen.status, to).to.equal(403);
          expect(seen.cookies).to.be.empty;
        }
        expect(await storedIn(daemon)).to.deep.equal(before);
      });
    }

    it('is refused with 403 by any method, and with any type of body', async () => {
      const headers = { origin: 'https://evil.example' };
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        expect((await visitor.send(method, 'projects/new', headers)).status, method).to.equal(403);
      }
      for (const type of ['text/plain', 'application/json', 'multipart/form-data; boundary=x', '']) {
        const seen = await visitor.send('POST', 'projects/new', { ...headers, 'content-type': type }, '{}');
        expect(seen.status, type).to.equal(403);
      }
    });

    it('is let through where its browser says that it is ours, though a proxy left the port out', async () => {
      const fields = { origin: `http://${visitor.host}`, 'sec-fetch-site': 'same-origin' };
      const portless = new Visitor(daemon.managementUrl, { host: '127.0.0.1' });
      expect((await portless.post('login', { token: MANAGEMENT_TOKEN }, fields)).status).to.equal(303);
    });
  });

  it('P04 takes a form from a page of ours only with the hidden token of the session', async () => {
    await visitor.get();
    const other = new Visitor(daemon.managementUrl);
    await other.logIn(MANAGEMENT_TOKEN);
    expect(other.formToken).not.to.equal(visitor.formToken);
    const before = await storedIn(daemon);
    for (const token of ['', 'x', other.formToken, `${visitor.formToken}x`]) {
      const seen = await visitor.post('projects/new', { name: 'n', api_key: 'k', form_token: token });
      expect(seen.status, token).to.equal(403);
      expect(seen.html).to.include('Nothing was changed');
    }
    expect(await storedIn(daemon)).to.deep.equal(before);
  });

  it('P04 takes forms only, with 415 for anything else', async () => {
    for (const type of ['text/plain', 'application/json', 'multipart/form-data; boundary=x', '']) {
      const headers = { origin: `http://${visitor.host}`, 'content-type': type };
      expect((await visitor.send('POST', 'projects/new', headers, '{}')).status, type).to.equal(415);
    }
  });

  it('takes no form larger than 64 KiB', async () => {
    const seen = await visitor.post('projects/new', { name: 'x'.repeat(70_000) });
    expect(seen.status).to.equal(413);
  });

  it('sends who has no session any more back to the page that the form was on', async () => {
    const stranger = new Visitor(daemon.managementUrl);
    const referer = (path: string) => ({ referer: `http://${stranger.host}${path}` });
    const seen = await stranger.post('projects/new', { name: 'n' }, referer('/admin/projects/new'));
    expect(seen).to.include({ status: 303, to: '/admin/login?next=%2Fadmin%2Fprojects%2Fnew' });
    expect((await stranger.post('projects/new', { name: 'n' })).to).to.equal('/admin/login');
  });
});

describe('ADMIN_UI_ENABLED=false', () => {
  it('P13 answers 404 for the pages, their files and the path itself, and needs nothing of them', async () => {
    const shown = await startDaemon();
    const { html } = await new Visitor(shown.managementUrl).get('login');
    const files = [...html.matchAll(/(?:href|src)="([^"]*\/assets\/[^"]+)"/g)].map(([, at]) => at!);
    await shown.stop();
    expect(files).to.have.length(3);

    const daemon = await startDaemon({ env: { ADMIN_UI_ENABLED: 'false' } });
    const visitor = new Visitor(daemon.managementUrl);
    for (const path of ['/admin', '/admin/', '/admin/login', '/admin/tokens', '/admin/assets/', ...files]) {
      const seen = await visitor.get(path);
      expect(seen.status, path).to.equal(404);
      expect(seen.headers.get('content-type')).to.include('application/json');
      expect((await visitor.post(path)).status).to.equal(404);
    }
    await daemon.stop();
  });
});

describe('ADMIN_UI_PATH', () => {
  it('P12 is where everything is, links and cookies too, and nowhere else', async () => {
    const daemon = await startDaemon({ env: { ADMIN_UI_PATH: '/ops/llmp-1.0' } });
    const base = '/ops/llmp-1.0/';
    const visitor = new Visitor(daemon.managementUrl, { base });
    expect(await visitor.get('/ops/llmp-1.0')).to.include({ status: 308, to: base });
    const { cookies, to } = await visitor.logIn(MANAGEMENT_TOKEN);
    expect(cookies[0]).to.include(`; Path=${base};`);
    expect(to).to.equal(base);
    const { html } = await visitor.get();
    const local = [...html.matchAll(/(?:href|src|action)="([^"#]+)"/g)].map(([, at]) => at!);
    expect(local).not.to.be.empty;
    for (const at of local) expect(at.startsWith(base), at).to.equal(true);
    for (const path of ['/admin/', '/ops/', '/OPS/llmp-1.0/', '/ops/llmp-1x0/', '/ops/llmp-1.0x/']) {
      expect((await visitor.get(path)).status, path).to.equal(404);
    }
    await daemon.stop();
  });

  it('is served where management is, and there only', async () => {
    const daemon = await startDaemon({ env: { MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' } });
    const visitor = new Visitor(daemon.managementUrl);
    await visitor.logIn(MANAGEMENT_TOKEN);
    expect((await visitor.get()).status).to.equal(200);
    const outside = new Visitor(daemon.url);
    for (const path of ['/admin', '/admin/', '/admin/login']) expect((await outside.get(path)).status).to.equal(404);
    await daemon.stop();
  });
});
