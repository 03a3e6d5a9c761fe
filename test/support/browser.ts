/** Debian's Chromium, without a screen. Where it is missing the tests are skipped, and say so; in CI they fail. */
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

/** For a `before` hook: skips what follows where there is no browser. @throws in CI. */
export function needsBrowser(test: Mocha.Context): void {
  if (existsSync(CHROMIUM)) return;
  const why = `no browser: ${CHROMIUM} is missing`;
  if (process.env.CI === 'true') throw new Error(why);
  console.log(`      skipped: ${why}`);
  test.skip();
}

/** A fresh one, with nothing of any before in it. */
export const startBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, headless: true, args: FLAGS });

export interface Window {
  context: BrowserContext;
  page: Page;
  /** What its pages complained of: errors on the console, among them whatever their policy forbade, and exceptions. */
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
