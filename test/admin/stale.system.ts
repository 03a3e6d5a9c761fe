/** A page of the Admin UI while the process of the daemon is stopped and continues. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { needsBrowser, openWindow, startBrowser, type Window } from '../support/browser.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { freezeProcess } from '../support/freeze-process.js';
import { type ListeningDaemon, spawnDaemon } from '../support/process.js';

describe('the Admin UI of a daemon that hangs', function () {
  this.timeout(120_000);
  let browser: Browser;
  let folder: string;
  let daemon: ListeningDaemon;
  let window: Window;

  before(async function () {
    needsBrowser(this);
    browser = await startBrowser();
    folder = mkdtempSync(join(tmpdir(), 'llmp-stale-'));
    daemon = await spawnDaemon({
      MANAGEMENT_TOKEN,
      DATABASE_URL: join(folder, 'llmp.db'),
      UPSTREAM_BASE_URL: 'http://127.0.0.1:9',
    });
  });
  after(async () => {
    await (browser as Browser | undefined)?.close();
    await (daemon as ListeningDaemon | undefined)?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  it('says after three missed refreshes how old the page is, greys it, and recovers', async () => {
    window = await openWindow(browser);
    const { page } = window;
    await page.clock.install();
    await page.goto(`${daemon.url}/admin/`);
    await page.getByLabel('Management token').fill(MANAGEMENT_TOKEN);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('● live').waitFor();
    const look = () => page.evaluate<string>('getComputedStyle(document.getElementById("instance")).filter');
    expect(await look()).to.equal('none');

    freezeProcess(daemon.child.pid!);
    await page.clock.runFor(5_500);
    expect(await page.getByText('▲ stale').count(), 'after two missed refreshes').to.equal(0);
    await page.clock.runFor(3_000);
    await page.getByText(/▲ stale (?:8|9|10)s/).waitFor();
    expect(await look()).to.equal('grayscale(1)');

    daemon.child.kill('SIGCONT');
    await page.clock.runFor(12_000);
    await page.getByText('● live').waitFor();
    expect(await look()).to.equal('none');
  });

  it('does the same for events, and opens their stream again', async () => {
    const { page } = window;
    await page.goto(`${daemon.url}/admin/events`);
    await page.getByText('● live').waitFor();
    freezeProcess(daemon.child.pid!);
    await page.clock.runFor(20_000);
    await page.getByText(/▲ stale \d\ds/).waitFor();
    const isReopened = page.waitForResponse((response) => response.url().includes('/events/stream'));
    daemon.child.kill('SIGCONT');
    expect((await isReopened).status()).to.equal(200);
    await page.getByText('● live').waitFor();
  });
});
