/** The Admin UI in a real browser. */
import { spawn } from 'node:child_process';
import { createServer, request, type Server, type ServerResponse } from 'node:http';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import type axe from 'axe-core';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import type { WireOperator, WireProject, WireTokenCreated, WireTrust } from '../../daemon/api/contract.js';
import { needsBrowser, openWindow, startBrowser, type Window } from '../support/browser.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { startProvider } from '../support/provider.js';
import { eventually } from '../support/eventually.js';
import { auditOf, bodyOf, lastAuditOf, storedIn } from '../support/management.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const CEILINGS = {
  hours: 72,
  requests: 500,
  active_tokens: 5,
  models: ['gpt-4o', 'gpt-4o-mini', 'claude-*'],
  limits: { requests_per_minute: 60 },
  budget: { usd: '20', period: 'month', mode: 'soft' },
};
const EVIL = `<img src=x onerror="document.title='hit'"><script>document.title='hit'</script>javascript:`;

describe('the Admin UI in a browser', function () {
  this.timeout(120_000);
  let browser: Browser;
  let daemon: TestDaemon;
  let window: Window;
  let page: Page;

  before(async function () {
    needsBrowser(this);
    browser = await startBrowser();
  });
  after(() => (browser as Browser | undefined)?.close());

  beforeEach(async () => {
    daemon = await startDaemon({ env: { HTTP_CACHE_ENABLED: 'true' } });
  });
  afterEach(async () => {
    await window.context.close();
    await daemon.stop();
  });

  const base = () => `${daemon.managementUrl}/admin/`;

  async function open(options: Parameters<typeof openWindow>[1] = {}): Promise<void> {
    window = await openWindow(browser, options);
    page = window.page;
  }

  async function logIn(secret = MANAGEMENT_TOKEN, first = 'Overview'): Promise<void> {
    await page.goto(base());
    await page.getByLabel('Management token').fill(secret);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: first, exact: true }).waitFor();
  }

  const operatorWith = async (fields: Record<string, unknown>) =>
    bodyOf<WireOperator & { secret: string }>(await daemon.manage('POST', '/manage/operators', fields), 201);

  const click = (role: 'link' | 'button', name: string) => page.getByRole(role, { name, exact: true }).click();
  const goTo = (section: string) =>
    page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: section }).click();
  const heading = (name: string) => page.getByRole('heading', { name, exact: true, level: 1 }).waitFor();

  for (const javaScriptEnabled of [true, false]) {
    it(`supports all tasks ${javaScriptEnabled ? 'with' : 'without'} JavaScript`, async () => {
      await open({ javaScriptEnabled });
      await logIn();

      await click('link', 'Create a project');
      await page.getByLabel('Name').fill('web');
      await page.getByLabel('Upstream key').fill('upstream-key-of-the-test');
      // The upstream of this daemon is not reachable.
      await click('button', 'Create project');
      await page.getByText('The key could not be checked').waitFor();
      expect(window.complaints.splice(0).join()).to.match(/^Failed to load resource: [^,]* 400 \(Bad Request\)$/);
      await page.getByLabel('Upstream key').fill('upstream-key-of-the-test');
      await page.getByLabel('Check the key with the provider').uncheck();
      await click('button', 'Create project');
      await heading('web');

      await click('link', 'New token');
      await page.getByLabel('Name').fill('ci');
      await page.getByLabel('Request cap').fill('50');
      await click('button', 'Issue token');
      await heading('Token issued');
      const secret = (await page.getByLabel('Secret of the token').textContent()) ?? '';
      expect(secret).to.match(/^sk-wt-[0-9A-Za-z]{49}$/);
      await page.reload();
      await heading('Secret already shown');
      await click('link', 'Go to the token');
      await heading('ci');

      await click('link', 'Revoke…');
      // A dialog with scripts, otherwise a separate page.
      if (javaScriptEnabled) await page.getByRole('dialog', { name: 'Revoke ci?' }).waitFor();
      else await heading('Revoke ci?');
      await page.getByLabel('Reason').fill('leaked');
      await click('button', 'Revoke');
      await page.getByText('Token revoked. It is refused from the next request on').waitFor();
      expect((await daemon.call(secret)).status).to.equal(401);
      expect(await lastAuditOf(daemon)).to.include({ action: 'token.revoke', actor: 'admin', reason: 'leaked' });

      await click('link', 'Reactivate…');
      await click('button', 'Reactivate');
      await page.getByText('Token reactivated.').waitFor();

      await goTo('Tokens');
      await page.getByLabel('State').selectOption('active');
      await click('button', 'Filter');
      await page.waitForURL('**/tokens?state=active&sort=-created_at');
      await page.getByRole('table', { name: 'Tokens' }).getByRole('link', { name: 'ci' }).waitFor();
      await page.getByLabel('Query').fill(secret);
      await page.getByLabel('Query').press('Enter');
      await heading('ci');
      expect(page.url()).to.match(/\/tokens\/[0-9a-f-]{36}$/);

      await goTo('Cache');
      await page.getByRole('button', { name: 'Count…' }).last().click();
      await heading('Purge 0 responses?');
      await click('button', 'Purge');
      await page.getByText('0 responses purged.').waitFor();

      await goTo('Audit');
      await page.getByRole('link', { name: 'token.revoke' }).click();
      await page.getByText('leaked').waitFor();

      await click('button', 'Log out');
      await page.getByText('You are logged out.').waitFor();
      const actions = (await auditOf(daemon)).map(({ action }) => action);
      expect(actions.at(0)).to.equal('admin.login');
      expect(actions.at(-1)).to.equal('admin.logout');
      expect(window.complaints).to.deep.equal([]);
    });
  }

  it('takes a developer who has never seen it from the link to a working request, in six steps and under a minute', async () => {
    const provider = await startProvider();
    const own = await startDaemon({ upstream: provider.url });
    const project = await own.createProject({ name: 'web' });
    const ana = { name: 'ana', role: 'issuer', projects: [project.id], ceilings: { ...CEILINGS, budget: undefined } };
    const { secret } = await bodyOf<{ secret: string }>(await own.manage('POST', '/manage/operators', ana), 201);
    await open();
    await window.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const shell = spawn('bash', { env: { PATH: process.env.PATH }, stdio: ['pipe', 'pipe', 'ignore'] });
    let output = '';
    shell.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
    const clipboard = () => page.evaluate<string>('navigator.clipboard.readText()');
    let steps = 0;
    const step = async (done: Promise<unknown>) => {
      steps += 1;
      await done;
    };
    const startedMs = Date.now();

    await page.goto(`${own.managementUrl}/admin/`); // The link.
    await page.locator('input:focus').waitFor();
    await step(page.keyboard.type(secret).then(() => page.keyboard.press('Enter')));
    await heading('My tokens');
    await page.locator('input:focus').waitFor();
    await step(page.keyboard.type('my laptop').then(() => page.keyboard.press('Enter')));
    await heading('Token issued');
    const copied: string[] = [];
    for (const name of ['Copy', 'Copy: Environment', 'Copy: curl']) {
      await step(click('button', name));
      copied.push(await clipboard());
    }
    const [token, environment, curl] = copied;
    // The shell asks for the token after the first example.
    await step(Promise.resolve(shell.stdin.end(`${environment}\n${token}\n${curl}\n`)));
    await new Promise((ended) => shell.once('close', ended));

    expect(output).to.include('"object":"chat.completion"');
    expect(provider.received.map(({ url }) => url)).to.deep.equal(['/v1/chat/completions']);
    expect(JSON.parse(provider.received[0]!.body.toString())).to.have.property('model', 'gpt-4o');
    expect(steps).to.equal(6);
    expect(Date.now() - startedMs).to.be.below(60_000);
    await click('link', 'I have stored it');
    await page.getByRole('table', { name: 'Tokens issued by me' }).getByText('1 / 500').waitFor();
    await click('link', 'Revoke…');
    await page.getByRole('dialog', { name: 'Revoke my laptop?' }).waitFor();
    await click('button', 'Revoke');
    await page.getByText('Token revoked.').waitFor();
    expect(window.complaints).to.deep.equal([]);
    await own.stop();
    await provider.stop();
  });

  it('shows a secret on one line at every width, and selects all of it', async () => {
    const project = await daemon.createProject({ name: 'web' });
    await open();
    await logIn();
    for (const width of [360, 768, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      await page.goto(`${base()}tokens/new?project_id=${project.id}`);
      await click('button', 'Issue token');
      await heading('Token issued');
      const secret = page.getByLabel('Secret of the token');
      const box = 'document.getElementById("secret")';
      const [lines, height, lineHeight] = await page.evaluate<[number, number, number]>(`(() => {
        const range = document.createRange();
        range.selectNodeContents(${box});
        const { lineHeight } = getComputedStyle(${box});
        return [range.getClientRects().length, range.getBoundingClientRect().height, parseFloat(lineHeight)];
      })()`);
      expect(lines, `${width} px: lines`).to.equal(1);
      expect(height, `${width} px: height`).to.be.at.most(lineHeight);
      // From 768 px on it is visible as a whole. Narrower, it scrolls inside its box.
      if (width >= 768)
        expect(await page.evaluate(`${box}.scrollWidth <= ${box}.clientWidth`), `${width} px`).to.equal(true);
      await secret.click();
      expect(await page.evaluate('getSelection().toString()'), `${width} px`).to.equal(await secret.textContent());
      await expectFine(page, `a new secret, ${width} px`);
    }
  });

  it('P18 P05 shows no secret on going back, and no page on going back after the logout', async () => {
    const project = await daemon.createProject({ name: 'web' });
    await open();
    await logIn();
    await page.goto(`${base()}tokens/new?project_id=${project.id}`);
    await click('button', 'Issue token');
    await heading('Token issued');
    const secret = (await page.getByLabel('Secret of the token').textContent()) ?? '';
    await click('link', 'I have stored it');
    await page.getByRole('link', { name: 'Revoke…' }).waitFor();
    await page.goBack();
    await heading('Secret already shown');
    expect(await page.content()).not.to.include(secret);

    await page.goto(`${base()}tokens`);
    await click('button', 'Log out');
    await page.getByText('You are logged out.').waitFor();
    await page.goBack();
    await page.getByLabel('Management token').waitFor();
    expect(page.url()).to.include('/admin/login');
    expect(await window.context.cookies()).to.deep.equal([]);
  });

  it('P05 P06 P07 stores only a cookie that scripts cannot read; storage and history do not contain the token', async () => {
    await open();
    await logIn();
    const [cookie, ...others] = await window.context.cookies();
    expect(others).to.deep.equal([]);
    expect(cookie).to.include({ httpOnly: true, secure: true, sameSite: 'Strict', path: '/admin/', expires: -1 });
    const seen = await page.evaluate(
      '[document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), String(history.state), location.href].join()',
    );
    expect(seen).not.to.include(MANAGEMENT_TOKEN).and.not.to.include('llmp-admin');
  });

  describe('visited by another site', () => {
    let foreign: Server;
    let foreignUrl: string;

    beforeEach(async () => {
      // Another port of localhost is another origin but the same site; another host name is also another site.
      foreign = createServer((_req, res) => {
        res.setHeader('content-type', 'text/html');
        res.end(`<!doctype html><title>evil</title>
          <iframe name="sink"></iframe>
          <form method="post" action="${base()}projects/new"><input name="name" value="forged">
          <input name="api_key" value="k"><button>Send</button></form>
          <iframe id="framed" src="${base()}"></iframe>`);
      });
      await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve));
      foreignUrl = `http://localhost:${(foreign.address() as AddressInfo).port}/`;
    });
    afterEach(() => {
      foreign.close();
      foreign.closeAllConnections();
    });

    it('P04 changes nothing by a form from there, under any host name', async () => {
      await open();
      await logIn();
      const before = await storedIn(daemon);
      for (const url of [foreignUrl, foreignUrl.replace('localhost', '127.0.0.1')]) {
        await page.goto(url);
        await click('button', 'Send');
        await heading('Cross-site request refused');
      }
      expect(await storedIn(daemon)).to.deep.equal(before);
    });

    it('P03 is not shown in a frame', async () => {
      await open();
      await logIn();
      await page.goto(foreignUrl);
      await eventually('the browser reports that it refused', () =>
        window.complaints.some((text) => /frame-ancestors|X-Frame-Options|ERR_BLOCKED_BY_RESPONSE/i.test(text)),
      );
      const framed = page.frames().find((frame) => frame.url().startsWith(base()));
      expect(await framed?.getByLabel('Management token').count()).to.not.equal(1);
    });
  });

  it('P01 P02 never runs a name as a script, and no page violates its content security policy', async () => {
    const project = await daemon.createProject({ name: EVIL.slice(0, 100) });
    const token = await daemon.createToken(project.id, { name: EVIL.slice(0, 100) });
    await open();
    await logIn();
    const pages = [
      '',
      'tokens',
      `tokens/${token.id}`,
      `tokens/${token.id}/revoke`,
      'projects',
      `projects/${project.id}`,
      'audit',
      'tokens/new',
      `cache/purge?what=project&project_id=${project.id}`,
      `tokens?q=${encodeURIComponent(EVIL.slice(0, 90))}`,
    ];
    for (const to of pages) {
      await page.goto(base() + to);
      expect(await page.title(), to).to.match(/ · llmp$/);
      expect(await page.locator('main img, main script').count(), to).to.equal(0);
    }
    // Also in a dialog, and after an automatic refresh.
    await page.goto(`${base()}tokens/${token.id}`);
    await click('link', 'Revoke…');
    await page.getByRole('dialog').getByRole('heading').waitFor();
    expect(await page.locator('dialog img, dialog script').count()).to.equal(0);
    expect(await page.title()).not.to.equal('hit');
    expect(window.complaints).to.deep.equal([]);
  });

  describe('with scripts', () => {
    let project: WireProject;

    beforeEach(async () => {
      project = await daemon.createProject({ name: 'web' });
      await open();
      await page.clock.install();
    });

    it('refreshes a page automatically, unless it is paused', async () => {
      const token = await daemon.createToken(project.id, { name: 'ci' });
      await logIn();
      await page.goto(`${base()}tokens`);
      await page.getByText('● live').waitFor();
      await daemon.manage('DELETE', `/manage/tokens/${token.id}`);
      await page.clock.runFor(6_000);
      await page.getByRole('table').getByText('revoked').waitFor();

      await click('button', 'Pause');
      await page.getByText('○ paused').waitFor();
      await daemon.manage('PATCH', `/manage/tokens/${token.id}`, { is_active: true });
      await page.clock.runFor(60_000);
      expect(await page.getByRole('table').getByText('revoked').count()).to.equal(1);
      await click('button', 'Resume');
      await page.getByRole('table').getByText('● active').waitFor();
      expect(window.complaints).to.deep.equal([]);
    });

    it('shows its age without a response, and goes to the login when the session has ended', async () => {
      await logIn();
      await page.getByText('● live').waitFor();
      await window.context.setOffline(true);
      await page.clock.runFor(12_000);
      await page.getByText('▲ stale').waitFor();
      await window.context.setOffline(false);
      await page.clock.runFor(6_000);
      await page.getByText('● live').waitFor();
      daemon.clock.advance(31 * 60_000);
      await page.clock.runFor(6_000);
      await page.getByText('Your session has ended.').waitFor();
    });

    it('shows that it is stale while the daemon hangs, and recovers automatically', async () => {
      const token = await daemon.createToken(project.id, { name: 'ci' });
      // It accepts connections and requests without responding, like a stopped process.
      const hanging = new Set<ServerResponse>();
      let hangs = false;
      const front = createServer((req, res) => {
        if (hangs) {
          hanging.add(res);
          return;
        }
        const options = { method: req.method, path: req.url, headers: req.headers, agent: false };
        const outgoing = request(daemon.managementUrl, options, (response) => {
          res.writeHead(response.statusCode ?? 502, response.headers);
          response.pipe(res);
        });
        req.pipe(outgoing);
      });
      await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
      const through = `http://127.0.0.1:${(front.address() as AddressInfo).port}/admin/`;
      await page.goto(`${through}tokens/${token.id}`);
      await page.getByLabel('Management token').fill(MANAGEMENT_TOKEN);
      await click('button', 'Log in');
      await heading('ci');
      await page.getByText('● live').waitFor();
      const look = () => page.evaluate<string>('getComputedStyle(document.querySelector("[data-live]")).filter');
      expect(await look()).to.equal('none');

      hangs = true;
      await page.clock.runFor(5_500);
      expect(await page.getByText('▲ stale').count(), 'after two').to.equal(0);
      await page.clock.runFor(4_000);
      await page.getByText(/▲ stale (?:8|9|1\d)s/).waitFor();
      expect(await look()).to.equal('grayscale(1)');
      await page.clock.runFor(20_000);
      await page.getByText(/▲ stale [23]\ds/).waitFor();

      // The confirmation dialog does not open while the daemon is not responding.
      await click('link', 'Revoke…');
      await page.clock.runFor(6_000);
      await page.getByRole('alert').getByText('The daemon is not responding').waitFor();
      expect(await page.getByRole('dialog').count()).to.equal(0);

      hangs = false;
      for (const res of hanging) res.destroy();
      await page.clock.runFor(6_000);
      await page.getByText('● live').waitFor();
      expect(await look()).to.equal('none');

      // A change without a response.
      await click('link', 'Revoke…');
      await page.getByRole('dialog', { name: 'Revoke ci?' }).waitFor();
      hangs = true;
      // Playwright waits while a page loads, so the timers are shortened in the page itself.
      await page.evaluate(`{
        const real = setTimeout;
        globalThis.setTimeout = (run, ms) => real(run, ms / 20);
        globalThis.said = [];
        new MutationObserver(() => said.push(document.getElementById('script-notice')?.textContent))
          .observe(document.body, { subtree: true, childList: true, characterData: true });
      }`);
      await page.getByRole('button', { name: 'Revoke', exact: true }).click();
      await page.getByRole('alert').getByText('No response within 20 seconds. It is unknown').waitFor();
      expect(await page.evaluate('said.join()')).to.include('has not responded yet');
      expect([...hanging].filter(({ req }) => req.method === 'POST')).to.have.length(1);
      expect((await daemon.token(token.id)).state).to.equal('active');
      front.close();
      front.closeAllConnections();
    });

    it('selects tokens of a page, or all that match the filter, and shows the progress', async () => {
      for (let i = 0; i < 130; i++) await daemon.createToken(project.id, { name: `ci-${i}` });
      await logIn();
      await page.goto(`${base()}tokens?q=ci&sort=name`);
      const rows = page.getByRole('checkbox', { name: /^Select ci-/ });
      await click('button', 'Select all on this page');
      await page.getByRole('button', { name: 'Clear selection' }).waitFor();
      expect(await page.evaluate('document.querySelectorAll("input[name=id]:checked").length')).to.equal(100);

      await page.getByLabel('All 130 that match this filter').check();
      expect(await rows.first().isDisabled()).to.equal(true);
      // Both stay after a refresh.
      await daemon.createToken(project.id, { name: 'ci-new' });
      await page.clock.runFor(3_000);
      await page.getByLabel('All 131 that match this filter').waitFor();
      expect(await page.getByLabel('All 131 that match this filter').isChecked()).to.equal(true);
      expect(await rows.first().isDisabled()).to.equal(true);

      await click('button', 'Revoke selected…');
      await heading('Revoke 131 tokens?');
      await page.getByLabel('Reason').fill('rotation');
      await click('button', 'Revoke');
      await page.getByText('131 tokens revoked.').waitFor();
      expect(await page.getByRole('progressbar').filter({ visible: true }).count(), 'hidden when it is done').to.equal(
        0,
      );
      await expectFine(page, 'a summary');
      await page.setViewportSize({ width: 360, height: 740 });
      await expectFine(page, 'a summary, 360 px');
      await click('button', 'Undo');
      await page.getByText('131 changes undone.').waitFor();
      await expectFine(page, 'an undo, 360 px');
      await goTo('Audit');
      await page.getByRole('link', { name: 'token.revoke × 131' }).click();
      await heading('Batch');
      await page.getByRole('link', { name: 'Undo…' }).waitFor();
      expect(window.complaints).to.deep.equal([]);
    });

    it('findings-3 C6: keeps the rows of a list in which somebody works, and counts new ones', async () => {
      for (let i = 0; i < 30; i++) await daemon.createToken(project.id, { name: `ci-${i}` });
      const names = () => page.getByRole('table', { name: 'Tokens' }).getByRole('rowheader').allTextContents();
      await logIn();
      await page.goto(`${base()}tokens`);
      const row = page.getByRole('row', { name: /ci-20/ });
      await row.getByRole('checkbox').check();
      const [before, place] = [await names(), await row.boundingBox()];
      const { id } = ((await daemon.manage('GET', '/manage/tokens?q=ci-20')).body as { id: string }[])[0]!;
      await daemon.manage('DELETE', `/manage/tokens/${id}`);
      await daemon.createToken(project.id, { name: 'new-1' });
      await daemon.createToken(project.id, { name: 'new-2' });
      await page.clock.runFor(3_000);
      await page.getByRole('button', { name: '2 new tokens, show' }).waitFor();
      await page.mouse.move(0, 0);
      await page.clock.runFor(3_000);
      expect(await names(), 'the focus is in the list').to.deep.equal(before);
      expect(await row.getByText('revoked').count(), 'its state is new').to.equal(1);
      expect(await row.boundingBox()).to.deep.equal(place);
      await click('button', '2 new tokens, show');
      expect(await names()).to.deep.equal(['new-2', 'new-1', ...before]);
      expect(await row.getByRole('checkbox').isChecked()).to.equal(true);
      expect(await page.evaluate('document.activeElement.value'), 'the focus stays').to.equal(id);
      expect(window.complaints).to.deep.equal([]);
    });

    it('findings-3 C6: sorts by the headers with the keyboard', async () => {
      for (const name of ['b', 'c', 'a']) await daemon.createToken(project.id, { name });
      await logIn();
      await page.goto(`${base()}tokens`);
      const header = () => page.getByRole('columnheader', { name: 'Name' });
      const names = () => page.getByRole('rowheader').allTextContents();
      await header().getByRole('link').focus();
      await page.keyboard.press('Enter');
      await page.waitForURL('**/tokens?sort=name');
      expect(await header().getAttribute('aria-sort')).to.equal('ascending');
      expect(await names()).to.deep.equal(['a', 'b', 'c']);
      await header().getByRole('link').focus();
      await page.keyboard.press('Enter');
      await page.waitForURL('**/tokens?sort=-name');
      expect(await names()).to.deep.equal(['c', 'b', 'a']);
    });

    describe('on the Events page', () => {
      let token: WireTokenCreated;
      const use = async (times: number) => {
        for (let i = 0; i < times; i++) await (await daemon.call(token.token)).text();
        daemon.daemon.scheduler.publishAll();
      };
      const rows = () => page.getByRole('list', { name: 'Events', exact: true }).getByRole('listitem');

      beforeEach(async () => {
        token = await daemon.createToken(project.id, { name: 'ci', max_requests: 1 });
        await logIn();
        await page.goto(`${base()}events?show=requests`);
        await page.getByText('● live').waitFor();
      });

      it('shows requests as they come, and opens their details', async () => {
        await page.getByText('No events match.').waitFor();
        await use(2);
        await rows().filter({ hasText: 'refused by llmp' }).waitFor();
        expect(await rows().count()).to.equal(2);
        await rows().first().locator('summary').click();
        await page.getByText('Token request limit reached: ask for another token.').waitFor();
        await use(1);
        await click('button', '1 new event, show');
        expect(await rows().count()).to.equal(3);
        expect(await rows().nth(1).locator('details').getAttribute('open'), 'stays open').to.equal('');
        await rows().nth(1).getByRole('link', { name: 'its events' }).first().click();
        await page.waitForURL(`**/events?token_id=${token.id}`);
        expect(window.complaints).to.deep.equal([]);
      });

      it('holds new ones back while it is paused, and shows up to 200', async () => {
        await click('button', 'Pause');
        await use(3);
        await page.getByRole('button', { name: 'Resume (3 new)' }).click();
        await eventually('it shows them', async () => (await rows().count()) === 3);
        await rows().last().locator('summary').click();
        for (let i = 0; i < 10; i++) {
          await use(20);
          await click('button', '20 new events, show');
          expect(await rows().count()).to.equal(Math.min(3 + 20 * (i + 1), 201));
        }
        // The oldest is open, so it stays.
        expect(await rows().count()).to.equal(201);
        expect(await rows().last().locator('details').getAttribute('open')).to.equal('');
        expect(await page.locator('[data-skipped]').isVisible()).to.equal(false);
        await use(60);
        await page.getByText('There are too many events to show all of them').waitFor();
        expect(await rows().count()).to.equal(201);
      });

      it('findings-3 C6: holds still while somebody works in it', async () => {
        for (const [width, height] of [
          [1280, 800],
          [360, 740],
        ] as const) {
          await page.setViewportSize({ width, height });
          // A list whose first rows were scrolled away holds still, and a browser restores where a page was scrolled to.
          await page.evaluate(`history.scrollRestoration = 'manual'`);
          await page.reload();
          await page.getByText('● live').waitFor();
          await page.mouse.move(0, 0);
          expect(await page.evaluate('scrollY')).to.equal(0);
          const before = await rows().count();
          await use(30);
          await eventually('without anybody there, they come', async () => (await rows().count()) >= before + 30);
          const third = rows().nth(2);
          const own = page.locator(`[id="${await third.getAttribute('id')}"]`);
          const at = async () => [await own.boundingBox(), await page.evaluate('scrollY')];

          const held = async (count: number, what: string) => {
            const [shown, place] = [await rows().count(), await at()];
            await use(count);
            await page.getByRole('button', { name: `${count} new event` }).waitFor();
            await page.clock.runFor(3_000);
            expect(await rows().count(), what).to.equal(shown);
            expect(await at(), what).to.deep.equal(place);
          };
          await own.locator('summary').hover();
          await held(2, 'hovered');
          await page.mouse.move(0, 0);
          await page.clock.runFor(1_000);
          await eventually('they come when the pointer has gone', async () =>
            page.getByRole('button', { name: 'new event' }).isHidden(),
          );
          await own.locator('summary').focus();
          await held(3, 'focused');
          const shown = await rows().count();
          await page.keyboard.press('n');
          expect(await rows().count()).to.equal(shown + 3);
          expect(await page.evaluate('document.activeElement.parentElement.parentElement.id')).to.equal(
            await own.getAttribute('id'),
          );
          await page.keyboard.press('Enter');
          await page.evaluate('document.activeElement.blur()');
          await page.mouse.move(0, 0);
          await held(4, 'with an open row');
          await page.getByRole('button', { name: '4 new events, show' }).focus();
          await page.keyboard.press('Enter');
          expect(await rows().count()).to.equal(shown + 7);
          expect(await own.locator('details').getAttribute('open')).to.equal('');
          expect(await page.evaluate('document.activeElement.tagName'), 'on the first new one').to.equal('SUMMARY');
        }
        expect(window.complaints).to.deep.equal([]);
      });

      it('has no stream in a background tab, and then continues where it ended', async () => {
        const toBackground = (isHidden: boolean) =>
          page.evaluate(`{
            Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
            document.dispatchEvent(new Event('visibilitychange'));
          }`);
        await use(1);
        await rows().first().waitFor();
        await toBackground(true);
        await use(3);
        daemon.clock.advance(2_500);
        await page.clock.runFor(30_000);
        expect(await rows().count()).to.equal(1);
        expect(await page.getByText('stale').count()).to.equal(0);
        await toBackground(false);
        await eventually('it has what came meanwhile', async () => (await rows().count()) === 4);
        await page.getByText('● live').waitFor();
      });

      it('is stale without the daemon, continues without a gap, and goes to the login when the session has ended', async () => {
        await use(1);
        await rows().first().waitFor();
        await window.context.setOffline(true);
        await page.clock.runFor(12_000);
        await page.getByText('▲ stale').waitFor();
        await use(2);
        await window.context.setOffline(false);
        // The browser reconnects by itself, in real time.
        await eventually('it has what came meanwhile', async () => {
          daemon.clock.advance(500);
          return (await rows().count()) === 3;
        });
        await page.getByText('● live').waitFor();
        daemon.clock.advance(31 * 60_000);
        await eventually('it goes to the login page', async () => {
          daemon.clock.advance(2_500);
          await page.clock.runFor(500);
          return page.url().includes('/login');
        });
        await page.getByText('Your session has ended.').waitFor();
      });
    });

    it('copies a secret', async () => {
      await window.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: daemon.managementUrl });
      await logIn();
      await page.goto(`${base()}tokens/new`);
      await click('button', 'Issue token');
      await heading('Token issued');
      await click('button', 'Copy');
      await page.getByRole('button', { name: 'Copied' }).waitFor();
      const secret = await page.getByLabel('Secret of the token').textContent();
      expect(await page.evaluate('navigator.clipboard.readText()')).to.equal(secret);
    });

    it('closes a confirmation dialog on an early key press, and restores the focus', async () => {
      const token = await daemon.createToken(project.id, { name: 'ci' });
      await logIn();
      await page.goto(`${base()}tokens/${token.id}`);
      for (const key of ['Enter', 'Escape']) {
        await page.getByRole('link', { name: 'Revoke…' }).focus();
        await page.keyboard.press('Enter');
        await page.getByRole('dialog', { name: 'Revoke ci?' }).waitFor();
        await page.keyboard.press(key);
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        expect(await page.evaluate('document.activeElement.textContent')).to.equal('Revoke…');
      }
      expect((await daemon.token(token.id)).state).to.equal('active');
      expect(window.complaints).to.deep.equal([]);
    });
  });

  it('shows the busiest tokens with their bars, and new requests as they come', async () => {
    const project = await daemon.createProject({ name: 'web' });
    const { token } = await daemon.createToken(project.id, { name: EVIL.slice(0, 100) });
    const use = async () => {
      await (await daemon.call(token)).text();
      daemon.daemon.scheduler.publishAll();
    };
    await use();
    await open();
    await logIn();
    await goTo('Top');
    await heading('Top');
    await page.getByText('1 request, 1 failure.').waitFor();
    // The upstream of this daemon is not reachable, so a bar for the failed request is drawn.
    const bars = page.getByRole('img', { name: '1 request, 1 failure; up to 1 per 3 min' });
    const box = await bars.locator('.failures').boundingBox();
    expect(box?.height).to.be.greaterThan(10);
    await use();
    await page.getByText('2 requests, 2 failures.').waitFor();
    await page.getByRole('img', { name: '2 requests, 2 failures' }).waitFor();
    await page.getByRole('link', { name: 'Models', exact: true }).click();
    await page.getByText('no model').waitFor();
    expect(await page.title()).to.equal('Top · llmp');
    expect(window.complaints).to.deep.equal([]);
  });

  it('findings-3 A14: sends no key that is pasted into a search field, and clears the field', async () => {
    await daemon.createProject();
    await open();
    await logIn();
    const requested: string[] = [];
    page.on('request', (sent) => requested.push(sent.url(), sent.postData() ?? ''));
    for (const [to, label, secret] of [
      ['tokens', 'Query', `sk-proj-${'a'.repeat(40)}`],
      ['events', 'Query', `sk-proj-${'a'.repeat(40)}`],
      ['top', 'Token', `sk-wt-${'a'.repeat(49)}`],
      ['usage', 'Token', `sk-wt-${'a'.repeat(49)}`],
    ] as const) {
      await page.goto(base() + to);
      const field = page.getByLabel(label, { exact: true });
      await field.fill(secret);
      await field.press('Enter');
      await page.getByText('This is a secret. It was not sent').waitFor();
      expect(await field.inputValue()).to.equal('');
      expect(page.url()).to.equal(base() + to);
    }
    expect(requested.join()).not.to.include('aaaa');
  });

  it('findings-3 C11: finds the token of a pasted secret, which is in no address', async () => {
    const { id, token, obfuscated } = await daemon.createToken((await daemon.createProject()).id, { name: 'ci' });
    await open();
    await logIn();
    const requested: string[] = [];
    page.on('request', (sent) => requested.push(sent.url(), JSON.stringify(sent.headers())));
    for (const [to, line, found] of [
      ['tokens', token, `tokens/${id}`],
      ['tokens', obfuscated, `tokens/${id}`],
      ['events', token, `events?token_id=${id}`],
    ] as const) {
      await page.goto(base() + to);
      await page.getByLabel('Query').fill(line);
      await page.getByLabel('Query').press('Enter');
      await page.waitForURL(base() + found);
    }
    expect(requested.join()).not.to.include(token.slice(0, 20));
    expect(await page.evaluate('JSON.stringify(history.state)')).to.equal('null');
    expect(window.complaints).to.deep.equal([]);
  });

  it('findings-3 C6: shows 20 tokens at 1280x800, and one below the other at 360 px', async () => {
    const project = await daemon.createProject({ name: 'web' });
    for (let i = 0; i < 30; i++)
      await daemon.createToken(project.id, { name: `ci-deploy-of-team-${i}`, max_requests: 50 });
    await open({ viewport: { width: 1280, height: 800 } });
    await logIn();
    const tasks = 'tokens?state=active&q=' + encodeURIComponent('project:web expires:<30d ci');
    for (const to of ['tokens', tasks]) {
      await page.goto(base() + to);
      const visible = await page.evaluate<number>(
        '[...document.querySelectorAll("tbody tr")].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length',
      );
      expect(visible, to).to.be.at.least(20);
    }
    await page.setViewportSize({ width: 360, height: 740 });
    for (const to of [
      'tokens',
      tasks,
      'events',
      'audit',
      'usage',
      'top',
      `tokens?q=${encodeURIComponent('nonsense:yes '.repeat(9))}`,
    ]) {
      await page.goto(base() + to);
      for (const summary of await page.locator('main summary').all()) await summary.click();
      await expectFine(page, `${to}, 360 px`);
    }
  });

  it('can be used by the keyboard alone', async () => {
    await open();
    await page.goto(base());
    await page.locator('input:focus').waitFor(); // On a busy machine the browser sets the focus late.
    await page.keyboard.type(MANAGEMENT_TOKEN);
    await page.keyboard.press('Enter');
    await heading('Overview');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).to.equal('Skip to content');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).to.equal('main');
    const reached: unknown[] = [];
    await page.goto(`${base()}?span=24h`);
    for (let i = 0; i < 13; i++) {
      await page.keyboard.press('Tab');
      reached.push(await page.evaluate('document.activeElement.textContent.trim()'));
    }
    expect(reached).to.deep.equal([
      'Skip to content',
      'llmp',
      'Overview',
      'Tokens',
      'Projects',
      'Top',
      'Usage',
      'Events',
      'Audit',
      'Cache',
      'Operators',
      'Trusts',
      'Log out',
    ]);
  });

  describe('at every width, light and dark', () => {
    it('selects are wide enough for all their options', async () => {
      await daemon.createProject({ name: 'web' });
      await open();
      await logIn();
      for (const to of ['tokens', 'top', 'usage', 'events', 'audit', 'tokens/new', 'cache']) {
        await page.goto(base() + to);
        for (const width of [320, 768, 1280]) {
          await page.setViewportSize({ width, height: 800 });
          await page.evaluate('for (const more of document.querySelectorAll("details.more")) more.open = true');
          expect(await page.evaluate<string[]>(`(${TOO_NARROW})()`), `${to}, ${width} px`).to.deep.equal([]);
        }
      }
    });

    // Colours do not depend on the width.
    for (const [colorScheme, widths] of [
      ['light', [320, 768, 1280]],
      ['dark', [1280]],
    ] as const) {
      for (const width of widths) {
        it(`${width} px, ${colorScheme}: nothing overflows, and axe finds no problems`, async () => {
          const project = await daemon.createProject({ name: 'a-name-without-any-place-to-break-it-'.repeat(2) });
          const token = await daemon.createToken(project.id, { name: 'W'.repeat(100), max_requests: 2147483647 });
          await (await daemon.call(token.token)).text();
          daemon.daemon.scheduler.publishAll();
          await daemon.manage('DELETE', `/manage/tokens/${token.id}`, undefined, { 'x-audit-reason': 'x'.repeat(200) });
          await open({ colorScheme, viewport: { width, height: 800 } });
          await page.goto(base());
          await expectFine(page, 'login');
          await logIn();
          const ana = await operatorWith({ name: 'ana-'.repeat(25), role: 'issuer', ceilings: CEILINGS });
          const trust = await bodyOf<WireTrust>(
            await daemon.manage('POST', '/manage/trusts', {
              issuer: 'https://token.actions.githubusercontent.com',
              audience: 'llmp',
              match: { repository: 'acme/web-'.repeat(12), ref: 'refs/heads/main' },
              project_id: project.id,
              duration_minutes: 30,
            }),
            201,
          );
          const record = (await daemon.manage('GET', '/manage/audit?limit=1')).body as { id: string }[];
          for (const to of [
            '',
            'tokens',
            'tokens?q=nothing',
            'tokens?q=nonsense%3Ayes',
            'events?q=why%3Acap&since=7d',
            `tokens/${token.id}`,
            `tokens/${token.id}/reactivate`,
            `tokens/${token.id}/restrict`,
            `tokens/${token.id}/budget`,
            `tokens/${token.id}/secret`,
            'tokens/new',
            `tokens/new?like=${token.id}`,
            'projects',
            'projects/new',
            `projects/${project.id}`,
            `projects/${project.id}/budget`,
            'operators',
            'operators/new',
            `operators/${ana.id}`,
            `operators/${ana.id}/change`,
            `operators/${ana.id}/deactivate`,
            `operators/${ana.id}/secret`,
            'trusts',
            'trusts/new',
            `trusts/${trust.id}`,
            `trusts/${trust.id}/change`,
            `trusts/${trust.id}/delete`,
            'top?window=5m',
            'top?by=model&window=24h',
            'usage',
            'events',
            'audit',
            `audit/${record[0]!.id}`,
            'cache',
            'cache/purge?what=all',
            'cache/purge?what=nothing',
            'nothing',
          ]) {
            await page.goto(base() + to);
            if (to === 'operators/new') {
              await page.getByText('Ceilings').waitFor({ state: 'hidden' });
              await page.getByLabel('Role').selectOption('issuer');
            }
            for (const summary of await page.locator('summary').all()) await summary.click();
            await expectFine(page, to);
          }
          await page.goto(`${base()}tokens/${token.id}`);
          await click('link', 'Reactivate…');
          await page.getByRole('dialog').waitFor();
          await expectFine(page, 'a dialog');

          await page.goto(base());
          await click('button', 'Log out');
          await logIn(ana.secret, 'My tokens');
          await expectFine(page, 'the first page of an issuer, without tokens');
          await click('button', 'Issue token');
          await heading('Token issued');
          await expectFine(page, 'a secret');
          for (const to of ['', 'tokens', 'tokens/new', 'projects', `projects/${project.id}`, 'audit']) {
            await page.goto(base() + to);
            await expectFine(page, `${to} of an issuer`);
          }
        }).timeout(300_000);
      }
    }
  });
});

/** Runs in the page: the selects that are narrower than their longest option. Project names may be of any length. */
const TOO_NARROW = `() => [...document.querySelectorAll('select:not([name=project_id])')].filter((select) => {
  if (!select.checkVisibility()) return false;
  const free = select.cloneNode(true);
  free.style = 'position: absolute; width: max-content';
  select.after(free);
  const needed = free.offsetWidth;
  free.remove();
  return select.offsetWidth < needed;
}).map(({ name }) => name)`;

/** Runs in the page: the figures and words of tables that are in more than one line, unless each row is a card. */
const WRAPPED = `() => [...document.querySelectorAll('td.number > span, td.whole > span')]
  .filter((it) => innerWidth > 640 && it.offsetHeight > 2 * parseFloat(getComputedStyle(it).fontSize))
  .map((it) => it.textContent)`;

/** Checks that the page does not scroll horizontally, that no figure wraps, and that axe finds no violations. */
async function expectFine(page: Page, what: string): Promise<void> {
  const root = 'document.documentElement';
  const [wide, narrow] = await page.evaluate<[number, number]>(`[${root}.scrollWidth, ${root}.clientWidth]`);
  expect(wide, `${what}: wider than the window`).to.be.at.most(narrow);
  expect(await page.evaluate<string[]>(`(${WRAPPED})()`), `${what}: in more than one line`).to.deep.equal([]);
  // Through the debugger, which is not subject to the content security policy.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run()');
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  expect(found, what).to.deep.equal([]);
}
