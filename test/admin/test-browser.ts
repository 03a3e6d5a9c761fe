/** A minimal browser without scripts: it stores cookies by path, sends forms, and returns the responses. */
import { request } from 'node:http';
import { MANAGEMENT_TOKEN, type TestDaemon, type TestDaemonOptions, startDaemon } from '../support/daemon.js';
import { inspect } from '../support/leaks.js';
import { perTest } from '../support/per-test.js';

export interface PageResult {
  status: number;
  headers: Headers;
  html: string;
  /** Redirect target, or null. */
  to: string | null;
  /** The `Set-Cookie` headers. */
  cookies: string[];
}

interface StoredCookie {
  value: string;
  path: string;
}

export type Fields = Readonly<Record<string, string>>;

export interface TestBrowserOptions {
  /** Headers of a reverse proxy, added to every request. */
  headers?: Fields;
  base?: string;
  /** Host in the address bar (default: that of `url`). */
  host?: string;
}

export class TestBrowser {
  readonly url: string;
  readonly #options: TestBrowserOptions;
  readonly cookies = new Map<string, StoredCookie>();
  readonly base: string;
  readonly host: string;
  formToken = '';

  constructor(url: string, options: TestBrowserOptions = {}) {
    this.url = url;
    this.#options = options;
    this.base = options.base ?? '/admin/';
    this.host = options.host ?? new URL(url).host;
  }

  /** A browser with the same cookies. */
  copy({ url = this.url, host = this.host }: { url?: string; host?: string } = {}): TestBrowser {
    const copy = new TestBrowser(url, { ...this.#options, host });
    for (const [name, cookie] of this.cookies) copy.cookies.set(name, cookie);
    copy.formToken = this.formToken;
    return copy;
  }

  /** @param to path relative to the base, or an absolute path. */
  get(to = '', headers: Fields = {}): Promise<PageResult> {
    return this.send('GET', to, headers);
  }

  /** Sends a form like a page of the Admin UI. @param fields pairs if some are repeated. */
  post(to: string, fields: Fields | string[][] = {}, headers: Fields = {}): Promise<PageResult> {
    const scheme = this.#options.headers?.['x-forwarded-proto'] ?? 'http';
    const pairs = Array.isArray(fields) ? fields : Object.entries(fields);
    const form = new URLSearchParams(pairs as [string, string][]);
    if (this.formToken && !form.has('form_token')) form.set('form_token', this.formToken);
    const own = { origin: `${scheme}://${this.host}`, 'content-type': 'application/x-www-form-urlencoded' };
    return this.send('POST', to, { ...own, ...headers }, form.toString());
  }

  async logIn(token: string, next = this.base): Promise<PageResult> {
    const seen = await this.post('login', { token, next });
    if (seen.status === 303) await this.get();
    return seen;
  }

  /** Follows the redirect of a response. */
  async follow(response: Promise<PageResult>): Promise<PageResult> {
    const { to, status, html } = await response;
    if (to === null) throw new Error(`not a redirect: ${status} ${html}`);
    return this.get(to);
  }

  /** Opens a stream of server-sent events, as `EventSource` does. */
  openStream(to: string, headers: Fields = {}): Promise<Response> {
    const path = this.base + to;
    return fetch(this.url + path, { redirect: 'manual', headers: { cookie: this.#cookiesFor(path), ...headers } });
  }

  /** Sends a form, and leaves the response to the caller. @param signal the user closes the page. */
  openForm(to: string, fields: Fields, signal: AbortSignal): Promise<Response> {
    const path = this.base + to;
    const body = new URLSearchParams({ ...fields, form_token: this.formToken });
    const headers = { cookie: this.#cookiesFor(path), origin: `http://${this.host}` };
    return fetch(this.url + path, { method: 'POST', redirect: 'manual', headers, body, signal });
  }

  send(method: string, to: string, headers: Fields = {}, body?: string): Promise<PageResult> {
    const path = to.startsWith('/') ? to : this.base + to;
    const cookie = this.#cookiesFor(path);
    const all = {
      host: this.host,
      ...(cookie && { cookie }),
      ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
      ...this.#options.headers,
      ...headers,
    };
    return new Promise((resolve, reject) => {
      const outgoing = request(this.url, { method, path, headers: all, agent: false }, (response) => {
        const pieces: Buffer[] = [];
        response.on('error', reject);
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('end', () => {
          const html = Buffer.concat(pieces).toString();
          const cookies = response.headers['set-cookie'] ?? [];
          for (const set of cookies) this.#storeCookie(set);
          this.formToken = /name="form_token" value="([^"]+)"/.exec(html)?.[1] ?? this.formToken;
          const fields = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
          const to = response.headers.location ?? null;
          if (to !== null) inspect('address of a page', to);
          const seen = { status: response.statusCode ?? 0, headers: new Headers(fields) };
          resolve({ ...seen, html, cookies, to });
        });
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  }

  #cookiesFor(path: string): string {
    const fitting = [...this.cookies].filter(([, cookie]) => path.startsWith(cookie.path));
    return fitting.map(([name, { value }]) => `${name}=${value}`).join('; ');
  }

  #storeCookie(set: string): void {
    const [, name = '', value = '', path = ''] = /^([^=]+)=([^;]*); Path=([^;]+)/.exec(set) ?? [];
    if (/; Max-Age=0;/.test(set)) this.cookies.delete(name);
    else this.cookies.set(name, { value, path });
  }
}

/** The field of a form that is marked as wrong and has the focus, and the message next to it. */
export function wrongField(html: string): [name: string | undefined, message: string | undefined] {
  const [, field] =
    /<(?:input|select|textarea)(?=[^>]* aria-invalid="true")(?=[^>]* autofocus="")[^>]* name="([^"]*)"/.exec(html) ??
    [];
  return [field, new RegExp(`<p class="error" id="field-${field}-error">([^<]*)<`).exec(html)?.[1]];
}

/** A browser in which an operator has logged in. */
export async function loggedIn(url: string, options?: TestBrowserOptions): Promise<TestBrowser> {
  const browser = new TestBrowser(url, options);
  await browser.logIn(MANAGEMENT_TOKEN);
  return browser;
}

/** A daemon for each test, and such a browser. @param options of the daemon, asked for when it starts. */
export function adminForEachTest(options: () => TestDaemonOptions = () => ({})): {
  daemon: TestDaemon;
  browser: TestBrowser;
} {
  const daemon = perTest(() => startDaemon(options()));
  return { daemon, browser: perTest(() => loggedIn(daemon.managementUrl)) };
}
