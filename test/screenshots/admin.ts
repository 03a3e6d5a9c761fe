/**
 * Screenshots of the Admin UI after a day of use. Without a folder argument it writes those for the README. With one it writes every
 * page at three widths, light and dark, to review changes of the design.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { startAdminFixture, type AdminFixture } from '../admin/admin-fixture.js';
import { openWindow, startBrowser } from '../support/browser.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';

const FOLDER = join(import.meta.dirname, '../../../docs/screenshots');

interface Shot {
  name: string;
  isInReadme?: true;
  path: (scene: AdminFixture) => string;
  /** Steps on the page before the screenshot. */
  act?: (page: Page) => Promise<void>;
}

const SHOTS: readonly Shot[] = [
  { name: 'overview', isInReadme: true, path: () => '' },
  { name: 'tokens', isInReadme: true, path: () => 'tokens' },
  { name: 'token', path: ({ tokens }) => `tokens/${tokens['ci-deploy']!.id}` },
  {
    name: 'revoke',
    path: ({ tokens }) => `tokens/${tokens['ci-deploy']!.id}`,
    act: async (page) => {
      await page.getByRole('link', { name: 'Revoke…' }).click();
      await page.getByRole('dialog').waitFor();
    },
  },
  { name: 'new-token', path: () => 'tokens/new' },
  {
    name: 'issued',
    path: () => 'tokens/new',
    act: async (page) => {
      await page.getByLabel('Name').fill('docs-preview');
      await page.getByRole('button', { name: 'Issue token' }).click();
      await page.getByRole('heading', { name: 'Token issued' }).waitFor();
    },
  },
  { name: 'filtered', path: () => 'tokens?q=nothing-of-this-name' },
  { name: 'projects', path: () => 'projects' },
  { name: 'project', path: ({ projects }) => `projects/${projects.web!.id}` },
  { name: 'top', path: () => 'top?window=24h' },
  { name: 'usage', path: () => 'usage' },
  { name: 'events', path: () => 'events?show=failures' },
  { name: 'audit', path: () => 'audit' },
  { name: 'cache', path: () => 'cache' },
  { name: 'purge', path: () => 'cache/purge?what=all' },
  { name: 'missing', path: () => 'nothing' },
];

interface Wanted {
  folder: string;
  widths: readonly number[];
  scale: number;
  shots: readonly Shot[];
  /** Whether to capture the full height of the page. */
  isWhole: boolean;
  prefix: string;
}

async function takePictures(scene: AdminFixture, browser: Browser, wanted: Wanted): Promise<void> {
  const { folder, widths, scale, shots, isWhole, prefix } = wanted;
  const base = `${scene.daemon.managementUrl}/admin/`;
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of widths) {
      const viewport = { width, height: 800 };
      const { context, page } = await openWindow(browser, { colorScheme, viewport, deviceScaleFactor: scale });
      const pictureOf = (name: string, fullPage: boolean) =>
        page.screenshot({
          path: join(folder, `${prefix}${name}-${colorScheme}${isWhole ? `-${width}` : ''}.png`),
          fullPage,
        });
      await page.goto(base);
      if (isWhole) await pictureOf('login', true);
      await page.getByLabel('Management token').fill(MANAGEMENT_TOKEN);
      await page.getByRole('button', { name: 'Log in' }).click();
      for (const { name, path, act } of shots) {
        await page.goto(base + path(scene));
        await act?.(page);
        await pictureOf(name, isWhole && !act);
      }
      await context.close();
    }
  }
}

const [folder] = process.argv.slice(2);
const wanted: Wanted =
  folder === undefined
    ? {
        folder: FOLDER,
        widths: [1280],
        scale: 2,
        shots: SHOTS.filter(({ isInReadme }) => isInReadme),
        isWhole: false,
        prefix: 'admin-',
      }
    : { folder, widths: [320, 768, 1280], scale: 1, shots: SHOTS, isWhole: true, prefix: '' };
mkdirSync(wanted.folder, { recursive: true });
const [scene, browser] = await Promise.all([startAdminFixture(), startBrowser()]);
try {
  await takePictures(scene, browser, wanted);
} finally {
  await browser.close();
  await scene.stop();
}
