/**
 * Session cookies. A cookie is encrypted and contains the session ID, the host of the login, and the times of login and last use. Logouts
 * are checked with the management API, so that a copied cookie is invalid on every instance after the logout.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BrowserLocation } from './browser-location.js';
import type { CookieCrypto } from './cookie-crypto.js';

/** Idle timeout. Automatic refreshes of a page do not count as use. */
export const IDLE_TIMEOUT_MS = 30 * 60_000;
export const MAX_LIFETIME_MS = 12 * 3_600_000;

export interface Session {
  id: string;
  host: string;
  begunAtMs: number;
  seenAtMs: number;
}

const PURPOSE = 'session';

/** The `__Secure-` prefix makes browsers reject the cookie from pages without TLS. On localhost, some browsers would reject it always. */
const cookieName = ({ isTls }: BrowserLocation) => (isTls ? '__Secure-llmp-admin' : 'llmp-admin');

export interface SessionCookiesOptions {
  cookieCrypto: CookieCrypto;
  /** Path attribute of the cookie. */
  path: string;
  clock: { now(): number };
}

export interface Cookie {
  name: string;
  value: string;
  path: string;
  /** Default: until the browser is closed. */
  maxAgeSeconds?: number;
}

export class SessionCookies {
  readonly #options: SessionCookiesOptions;

  constructor(options: SessionCookiesOptions) {
    this.#options = options;
  }

  /** @returns null if the cookie is missing, invalid or expired. */
  read(req: IncomingMessage, location: BrowserLocation): Session | null {
    const { cookieCrypto, clock } = this.#options;
    const sealed = cookiesOf(req).get(cookieName(location));
    const session = sealed === undefined ? null : (cookieCrypto.decrypt(PURPOSE, sealed) as Session | null);
    if (session === null || session.host !== location.host) return null;
    const now = clock.now();
    const isOver = now >= session.begunAtMs + MAX_LIFETIME_MS || now >= session.seenAtMs + IDLE_TIMEOUT_MS;
    return isOver ? null : session;
  }

  /** Whether the request has a session cookie, valid or not. */
  isPresent(req: IncomingMessage, location: BrowserLocation): boolean {
    return cookiesOf(req).has(cookieName(location));
  }

  create(res: ServerResponse, location: BrowserLocation, { id, begunAtMs }: Pick<Session, 'id' | 'begunAtMs'>): void {
    this.#write(res, location, { id, host: location.host, begunAtMs, seenAtMs: this.#options.clock.now() });
  }

  /** Restarts the idle timeout. */
  renew(res: ServerResponse, location: BrowserLocation, session: Session): void {
    this.#write(res, location, { ...session, seenAtMs: this.#options.clock.now() });
  }

  clear(res: ServerResponse, location: BrowserLocation): void {
    setCookie(res, { name: cookieName(location), value: '', path: this.#options.path, maxAgeSeconds: 0 });
  }

  #write(res: ServerResponse, location: BrowserLocation, session: Session): void {
    const { cookieCrypto, path } = this.#options;
    setCookie(res, { name: cookieName(location), value: cookieCrypto.encrypt(PURPOSE, session), path });
  }
}

/** Sets a cookie that is not accessible to scripts, not sent by other sites, and not sent over unencrypted connections. */
export function setCookie(res: ServerResponse, { name, value, path, maxAgeSeconds }: Cookie): void {
  const age = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`;
  res.appendHeader('Set-Cookie', `${name}=${value}; Path=${path}${age}; Secure; HttpOnly; SameSite=Strict`);
}

/** The first cookie of each name: browsers send the one with the longest path first (RFC 6265, 5.4). */
export function cookiesOf({ headers }: IncomingMessage): Map<string, string> {
  const cookies = new Map<string, string>();
  for (const pair of (headers.cookie ?? '').split(';')) {
    const equals = pair.indexOf('=');
    const name = pair.slice(0, equals).trim();
    if (equals > 0 && !cookies.has(name)) cookies.set(name, pair.slice(equals + 1).trim());
  }
  return cookies;
}
