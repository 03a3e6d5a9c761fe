/** A browser without a screen, scripts or mercy: it keeps cookies by their paths, sends forms, and looks at what comes. */
import { request } from 'node:http';
import { inspect } from '../support/leaks.js';

export interface Seen {
  status: number;
  headers: Headers;
  html: string;
  /** Where it leads to; null if nowhere. */
  to: string | null;
  /** As they were set. */
  cookies: string[];
}

interface Kept {
  value: string;
  path: string;
}

export type Fields = Readonly<Record<string, string>>;

export interface VisitorOptions {
  /** What stands in front of the pages; nothing it says is the browser's own. */
  headers?: Fields;
  base?: string;
  /** What the address bar says, if not what is called. */
  host?: string;
}

export class Visitor {
  readonly url: string;
  readonly #options: VisitorOptions;
  readonly cookies = new Map<string, Kept>();
  readonly base: string;
  readonly host: string;
  formToken = '';

  constructor(url: string, options: VisitorOptions = {}) {
    this.url = url;
    this.#options = options;
    this.base = options.base ?? '/admin/';
    this.host = options.host ?? new URL(url).host;
  }

  /** @param to below the base, or a path of its own. */
  get(to = '', headers: Fields = {}): Promise<Seen> {
    return this.send('GET', to, headers);
  }

  /** Sends a form as a page of ours would. */
  post(to: string, fields: Fields = {}, headers: Fields = {}): Promise<Seen> {
    const scheme = this.#options.headers?.['x-forwarded-proto'] ?? 'http';
    const form = new URLSearchParams({ ...(this.formToken && { form_token: this.formToken }), ...fields });
    const own = { origin: `${scheme}://${this.host}`, 'content-type': 'application/x-www-form-urlencoded' };
    return this.send('POST', to, { ...own, ...headers }, form.toString());
  }

  async logIn(token: string, next = this.base): Promise<Seen> {
    const seen = await this.post('login', { token, next });
    if (seen.status === 303) await this.get();
    return seen;
  }

  /** Follows where an answer leads to. */
  async follow(answer: Promise<Seen>): Promise<Seen> {
    const { to, status, html } = await answer;
    if (to === null) throw new Error(`leads nowhere: ${status} ${html}`);
    return this.get(to);
  }

  send(method: string, to: string, headers: Fields = {}, body?: string): Promise<Seen> {
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
          for (const set of cookies) this.#keep(set);
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
    const fitting = [...this.cookies].filter(([, kept]) => path.startsWith(kept.path));
    return fitting.map(([name, { value }]) => `${name}=${value}`).join('; ');
  }

  #keep(set: string): void {
    const [, name = '', value = '', path = ''] = /^([^=]+)=([^;]*); Path=([^;]+)/.exec(set) ?? [];
    if (/; Max-Age=0;/.test(set)) this.cookies.delete(name);
    else this.cookies.set(name, { value, path });
  }
}
