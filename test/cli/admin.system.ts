/** `llmp admin`: run the Admin UI as a separate process. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { TestBrowser } from '../admin/test-browser.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { lastAuditOf } from '../support/management.js';
import { ended, type Process, start } from './processes.js';

interface Listening {
  message: string;
  address: string;
  path: string;
}

describe('llmp admin', function () {
  this.timeout(60_000);
  let daemon: TestDaemon;
  let child: Process | null = null;

  beforeEach(async () => {
    daemon = await startDaemon({ env: { ADMIN_UI_ENABLED: 'false' } });
  });
  afterEach(async () => {
    if (child?.exitCode === null) {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    child = null;
    await daemon.stop();
  });

  /** @returns its address. */
  async function serve(args: readonly string[] = [], env: NodeJS.ProcessEnv = { MANAGEMENT_TOKEN }): Promise<string> {
    child = start(['admin', '--server', daemon.managementUrl, '--listen', '127.0.0.1:0', ...args], env);
    for await (const line of createInterface({ input: child.stdout })) {
      const { message, address } = JSON.parse(line) as Listening;
      if (message === 'listening') return `http://${address}`;
    }
    throw new Error('it does not listen');
  }

  it('serves the pages for a daemon elsewhere, and audits changes with the browser’s address', async () => {
    const url = await serve([], { MANAGEMENT_TOKEN, TRUSTED_PROXIES: '127.0.0.1' });
    const visitor = new TestBrowser(url, { headers: { 'x-forwarded-for': '203.0.113.7' } });
    expect(await visitor.get('/')).to.include({ status: 303, to: '/admin/' });
    await visitor.logIn(MANAGEMENT_TOKEN);
    expect(await lastAuditOf(daemon)).to.include({ action: 'admin.login', actor: 'admin', client_ip: '203.0.113.7' });
    await visitor.post('projects/new', { name: 'web', api_key: canary('upstream') });
    expect(await lastAuditOf(daemon)).to.include({
      action: 'project.create',
      actor: 'admin',
      client_ip: '203.0.113.7',
    });
    for (const probe of ['/live', '/ready']) expect((await visitor.get(probe)).status).to.equal(200);
    for (const path of ['/manage/projects', '/v1/models', '/metrics']) {
      expect((await visitor.get(path)).status, path).to.equal(404);
    }
  });

  it('reads its settings and its token from files', async () => {
    const dir = temporaryFolder();
    writeFileSync(join(dir, 'management-token'), `${MANAGEMENT_TOKEN}\n`, { mode: 0o600 });
    const envFile = join(dir, 'llmp.env');
    writeFileSync(envFile, `MANAGEMENT_TOKEN_FILE=${join(dir, 'management-token')}\nADMIN_UI_PATH=/ops/\n`);
    const visitor = new TestBrowser(await serve(['--env-file', envFile], {}), { base: '/ops/' });
    expect((await visitor.logIn(MANAGEMENT_TOKEN)).to).to.equal('/ops/');
    expect((await visitor.get('tokens')).status).to.equal(200);
  });

  it('reports that its management token is not the daemon’s, and does not accept it for a login', async () => {
    const own = canary('management');
    const visitor = new TestBrowser(await serve([], { MANAGEMENT_TOKEN: own }));
    for (const token of [own, MANAGEMENT_TOKEN]) {
      const seen = await visitor.logIn(token);
      expect(seen.status).to.equal(502);
      expect(seen.html).to.include('The daemon refused this Admin UI');
      expect(seen.cookies).to.be.empty;
    }
    expect((await visitor.get('/ready')).status).to.equal(503);
  });

  it('reports that the daemon does not respond, and keeps running', async () => {
    const visitor = new TestBrowser(await serve());
    await visitor.logIn(MANAGEMENT_TOKEN);
    daemon.daemon.server.close().closeAllConnections();
    const seen = await visitor.get();
    expect(seen.status).to.equal(503);
    expect(seen.html).to.include('The daemon is not responding');
    expect((await visitor.get('/ready')).status).to.equal(503);
    expect((await visitor.get('/live')).status).to.equal(200);
  });

  it('ends with 0 at SIGTERM, also with an open page of events', async () => {
    const visitor = new TestBrowser(await serve([], { MANAGEMENT_TOKEN, SHUTDOWN_DELAY: '0' }));
    await visitor.logIn(MANAGEMENT_TOKEN);
    const stream = await visitor.openStream('events/stream');
    expect(stream.headers.get('content-type')).to.equal('text/event-stream');
    child?.kill('SIGTERM');
    expect(await stream.text(), 'ends regularly').to.include('event: beat');
    const [code] = (await once(child!, 'exit')) as [number];
    expect(code).to.equal(0);
  });

  it('does not start without a management token, or with wrong settings', async () => {
    const none = await ended(start(['admin', '--server', daemon.managementUrl]));
    expect(none).to.include({ exitCode: 78, out: '' });
    expect(none.err).to.match(/^llmp: MANAGEMENT_TOKEN is required\nllmp: set MANAGEMENT_TOKEN/);
    const wrong = await ended(start(['admin', '--check'], { MANAGEMENT_TOKEN, ADMIN_UI_PATH: '/' }));
    expect(wrong.exitCode).to.equal(78);
    const good = await ended(start(['admin', '--check'], { MANAGEMENT_TOKEN }));
    expect(good).to.include({ exitCode: 0, err: 'the configuration is valid\n' });
    expect((await ended(start(['admin', '--listen', 'nowhere'], { MANAGEMENT_TOKEN }))).exitCode).to.equal(2);
  });
});
