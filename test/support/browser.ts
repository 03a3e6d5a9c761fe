/** Debian's Chromium in headless mode. Where it is missing the tests are skipped with a message; in CI they fail. */
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const CHROMIUM = '/usr/bin/chromium';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** For a `before` hook: skips the tests where no browser is installed. @throws in CI. */
export function needsBrowser(test: Mocha.Context): void {
  if (existsSync(CHROMIUM)) return;
  const why = `no browser: ${CHROMIUM} is missing`;
  if (process.env.CI === 'true') throw new Error(why);
  console.log(`      skipped: ${why}`);
  test.skip();
}

/** A new one without any state of earlier ones. */
export const startBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, headless: true, args: FLAGS });

export interface Window {
  context: BrowserContext;
  page: Page;
  /** The errors of its pages: console errors, including whatever the CSP blocked, and exceptions. */
  complaints: string[];
}

export async function openWindow(browser: Browser, options: BrowserContextOptions = {}): Promise<Window> {
  const context = await browser.newContext(options);
  const complaints: string[] = [];
  context.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  context.on('weberror', (error) => {
    complaints.push(error.error().message);
  });
  return { context, page: await context.newPage(), complaints };
}
