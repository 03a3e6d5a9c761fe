/**
 * Sessions of the Admin UI: authentication of requests, login and logout.
 *
 * A session is in a cookie, which is encrypted and contains the session ID, the host of the login, and the times of login and last use.
 * The management API says of each request who the session belongs to and what that user may do, or that it has ended: by a logout, or by
 * a change of what the user may do. So a copied cookie is invalid on every instance after that.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Request, Response } from 'express';
import { ApiError, type ManagementClient, Unreachable } from '../api/client.js';
import type { WireSession } from '../api/contract.js';
import { holdsSecret } from '../api/vocabulary.js';
import { sealed, unsealed } from '../core/sealing.js';
import type { User } from './parts/frame.js';

export interface CallContext {
  /** ID of the session whose authority the requests have; null: that of the management token. */
  session: string | null;
  /** IP address of the browser; null if unknown. */
  clientIp: string | null;
  /** Reason for the audit record of a change; null for none. */
  reason: string | null;
}

export interface SessionsOptions {
  /** The keys of the cookies are derived from it. The management API checks the token that the user enters. */
  managementToken: string;
  /** Base path of the pages, with a trailing slash. */
  path: string;
  clock: { now(): number };
  clientFor: (asking: CallContext) => ManagementClient;
  addressOf: (req: Request) => string | null;
  isTls: (req: Request) => boolean;
  proxyLocation: ProxyLocation;
}

/** Where clients reach the proxy: on a port of the host that serves these pages (null: the same port), or at a URL. */
export type ProxyLocation = { port: number | null } | { url: string };

export interface BrowserLocation {
  /** The `Host` header: with the port, unless it is the default port or a proxy removed it. */
  host: string;
  isTls: boolean;
  /** Browsers accept `Secure` cookies over TLS and on localhost. Elsewhere they drop them silently. */
  acceptsCookies: boolean;
}

/** The content of a session cookie. */
interface Session {
  id: string;
  host: string;
  begunAtMs: number;
  seenAtMs: number;
}

export interface ActiveSession {
  session: Session;
  user: User;
  /** CSRF token of the session, in each of its forms. */
  formToken: string;
}

/** Idle timeout. Automatic refreshes of a page do not count as use. */
const IDLE_TIMEOUT_MS = 30 * 60_000;
const MAX_LIFETIME_MS = 8 * 3_600_000;

const SESSION_PURPOSE = 'session';

/**
 * The `__Secure-` prefix makes browsers reject the cookie from pages without TLS. On localhost, some browsers would reject it always. `__Host-`
 * requires the path `/`, which ADMIN_UI_PATH never is: the proxy and all other services of the same host name would get the cookie, too, and
 * two Admin UIs of a host would overwrite each other's. What `__Host-` would add is little: a page of a sibling domain can set a cookie here, but
 * only one that was sealed for this host name can be opened, so at most that of another user of this daemon, whom all pages name.
 */
const cookieName = ({ isTls }: BrowserLocation) => (isTls ? '__Secure-llmp-admin' : 'llmp-admin');

/** Header of the script's automatic refreshes. */
const REFRESH_HEADER = 'x-llmp-refresh';

// The browser requests the next page at once.
const SECRET_COOKIE_SECONDS = 60;
const SECRET_COOKIE = 'llmp-admin-secret';

/** Folder of the pages between which a person is at the identity provider. */
export const LOG_IN_FOLDER = 'oidc/';
const LOG_IN_SECONDS = 600;
const LOG_IN_PURPOSE = 'log-in';

/** A log-in with the identity provider that has begun in this browser. */
export interface BegunLogIn {
  /** Of the management API, which ends the log-in. */
  state: string;
  /** Where to go after the log-in. */
  next: string;
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #crypto: CookieCrypto;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#crypto = new CookieCrypto(options.managementToken);
  }

  get nowMs(): number {
    return this.#options.clock.now();
  }

  /** The address of the Admin UI as the browser sees it. */
  locationOf(req: Request): BrowserLocation {
    const { host = '' } = req.headers;
    const isTls = this.#options.isTls(req);
    return { host, isTls, acceptsCookies: isTls || isLoopback(hostnameOf(host)) };
  }

  /** Base URL for clients. A reverse proxy in front may have another one. */
  baseUrlOf(req: Request): string {
    const { proxyLocation } = this.#options;
    if ('url' in proxyLocation) return new URL('/v1', proxyLocation.url).href;
    const { host, isTls } = this.locationOf(req);
    const url = new URL(`${isTls ? 'https' : 'http'}://${/^[\w.:[\]-]+$/.test(host) ? host : 'localhost'}/v1`);
    if (proxyLocation.port !== null) url.port = String(proxyLocation.port);
    return url.href;
  }

  isAutomaticRefresh(req: Request): boolean {
    return req.headers[REFRESH_HEADER] !== undefined;
  }

  /** A client with the authority of the management token. */
  client(req: Request): ManagementClient {
    return this.#clientFor(req, { session: null, reason: null });
  }

  /** A client with the authority of the user. @param reason for the audit records of changes. */
  clientOf(req: Request, { session }: Pick<ActiveSession, 'session'>, reason: string | null = null): ManagementClient {
    return this.#clientFor(req, { session: session.id, reason });
  }

  #clientFor(req: Request, context: Omit<CallContext, 'clientIp'>): ManagementClient {
    return this.#options.clientFor({ ...context, clientIp: this.#options.addressOf(req) });
  }

  /** @returns null if the request has no valid session. @throws if the management API fails: then that is unknown. */
  async authenticate(req: Request): Promise<ActiveSession | null> {
    const session = this.#sessionIn(req);
    if (session === null) return null;
    try {
      const user = await this.clientOf(req, { session }).self();
      return { session, user, formToken: this.#crypto.sign(session.id) };
    } catch (error) {
      if (hasSessionEnded(error)) return null;
      throw error;
    }
  }

  /** The issuer with which people log in; null if there is none. */
  async issuer(req: Request): Promise<string | null> {
    return (await this.client(req).login()).issuer;
  }

  /** Why the session of the request was ended, as the management API says it; null if it is not known. */
  async whyEnded(req: Request): Promise<string | null> {
    const session = this.#sessionIn(req);
    if (session === null) return null;
    return this.clientOf(req, { session })
      .self()
      .then(
        () => null,
        (error: unknown) => (hasSessionEnded(error) ? (error as ApiError).message : null),
      );
  }

  /** Whether the request has a session cookie, valid or not. */
  hasSessionCookie(req: Request): boolean {
    return cookiesOf(req).has(cookieName(this.locationOf(req)));
  }

  isFormTokenOf({ session }: ActiveSession, formToken: string | null): boolean {
    return this.#crypto.verify(session.id, formToken ?? '');
  }

  /** Restarts the idle timeout. An automatic refresh does not count as use. */
  renew(req: Request, res: Response, { session }: ActiveSession): void {
    if (!this.isAutomaticRefresh(req)) this.#writeCookie(req, res, session);
  }

  /** Starts a session, always with a new ID. @param token that the user entered. @throws {ApiError} */
  async logIn(req: Request, res: Response, token: string): Promise<void> {
    this.adopt(req, res, await this.client(req).logIn({ token }));
  }

  /** Gives the browser a session that the management API has started. */
  adopt(req: Request, res: Response, { id, begun_at: begunAt }: Pick<WireSession, 'id' | 'begun_at'>): void {
    this.#writeCookie(req, res, { id, begunAtMs: Date.parse(begunAt) });
  }

  /** What the browser holds while the person is at the identity provider. */
  storeLogIn(req: Request, res: Response, begun: BegunLogIn): void {
    // The identity provider is another site: on the way back from there, browsers do not send Strict cookies.
    setCookie(res, { ...this.#logInCookie(req), value: this.#crypto.encrypt(LOG_IN_PURPOSE, begun), sameSite: 'Lax' });
  }

  /** Reads and deletes it. @returns null if the browser holds none. */
  takeLogIn(req: Request, res: Response): BegunLogIn | null {
    const cookie = this.#logInCookie(req);
    const sealed = cookiesOf(req).get(cookie.name);
    if (sealed === undefined) return null;
    setCookie(res, { ...cookie, value: '', maxAgeSeconds: 0, sameSite: 'Lax' });
    return this.#crypto.decrypt(LOG_IN_PURPOSE, sealed) as BegunLogIn | null;
  }

  #logInCookie(req: Request) {
    const name = `${cookieName(this.locationOf(req))}-oidc`;
    return { name, path: `${this.#options.path}${LOG_IN_FOLDER}`, maxAgeSeconds: LOG_IN_SECONDS };
  }

  /** Ends the session on all instances. @returns whether that was recorded; otherwise only the cookie of this browser is deleted. */
  async logOut(req: Request, res: Response, { session }: ActiveSession): Promise<boolean> {
    const { path } = this.#options;
    setCookie(res, { name: cookieName(this.locationOf(req)), value: '', path, maxAgeSeconds: 0 });
    try {
      await this.client(req).logOut(session.id);
      return true;
    } catch (error) {
      if (error instanceof ApiError || error instanceof Unreachable) return isNotFound(error);
      throw error;
    }
  }

  /** Whether a text must not be in an address: it holds a secret, a key, or the management token. */
  isSecret(text: string): boolean {
    return holdsSecret(text) || text.includes(this.#options.managementToken);
  }

  /** Passes a secret to one page in an encrypted, short-lived cookie for its path only. */
  storeSecret(res: Response, to: string, secret: string): void {
    const { path } = this.#options;
    const value = this.#crypto.encrypt(path + to, secret);
    setCookie(res, { name: SECRET_COOKIE, value, path: path + to, maxAgeSeconds: SECRET_COOKIE_SECONDS });
  }

  /** Reads and deletes that cookie. @param at path of the page. @returns null if there is none, or it was already read. */
  takeSecret(req: Request, res: Response, at: string): string | null {
    const { path } = this.#options;
    const sealed = cookiesOf(req).get(SECRET_COOKIE);
    if (sealed === undefined) return null;
    setCookie(res, { name: SECRET_COOKIE, value: '', path: path + at, maxAgeSeconds: 0 });
    const secret = this.#crypto.decrypt(path + at, sealed);
    return typeof secret === 'string' ? secret : null;
  }

  /** @returns null if the cookie is missing, invalid or expired. */
  #sessionIn(req: Request): Session | null {
    const location = this.locationOf(req);
    const sealed = cookiesOf(req).get(cookieName(location));
    const session = sealed === undefined ? null : (this.#crypto.decrypt(SESSION_PURPOSE, sealed) as Session | null);
    if (session === null || session.host !== location.host) return null;
    const now = this.nowMs;
    const isOver = now >= session.begunAtMs + MAX_LIFETIME_MS || now >= session.seenAtMs + IDLE_TIMEOUT_MS;
    return isOver ? null : session;
  }

  #writeCookie(req: Request, res: Response, { id, begunAtMs }: Pick<Session, 'id' | 'begunAtMs'>): void {
    const location = this.locationOf(req);
    const session: Session = { id, host: location.host, begunAtMs, seenAtMs: this.nowMs };
    const value = this.#crypto.encrypt(SESSION_PURPOSE, session);
    setCookie(res, { name: cookieName(location), value, path: this.#options.path });
  }
}

/** It can end between two requests for one page. */
export const hasSessionEnded = (error: unknown): boolean => error instanceof ApiError && error.code === 'session_ended';

const isNotFound = (error: unknown) => error instanceof ApiError && error.status === 404;

// ---- cookies

interface Cookie {
  name: string;
  value: string;
  path: string;
  /** Default: not sent with any request that another site begins. */
  sameSite?: 'Strict' | 'Lax';
  /** Default: until the browser is closed. */
  maxAgeSeconds?: number;
}

/** Sets a cookie that is not accessible to scripts, not sent by other sites, and not sent over unencrypted connections. */
function setCookie(res: ServerResponse, { name, value, path, sameSite = 'Strict', maxAgeSeconds }: Cookie): void {
  const age = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`;
  res.appendHeader('Set-Cookie', `${name}=${value}; Path=${path}${age}; Secure; HttpOnly; SameSite=${sameSite}`);
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

// ---- the origin of a request

const hostnameOf = (host: string) => host.replace(/:\d*$/, '').toLowerCase();

const isLoopback = (hostname: string) => /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);

/**
 * Whether a request comes from a page of the Admin UI. `Sec-Fetch-Site`, which browsers send over TLS and on localhost, takes precedence.
 * `Origin` must also name this host. After DNS rebinding the browser considers all of it one origin, but then both headers contain the
 * foreign name, for which there are no sessions and no login.
 */
export function isSameOrigin({ headers }: IncomingMessage): boolean {
  const { host = '', origin, 'sec-fetch-site': site } = headers;
  if (site !== undefined) {
    if (site !== 'same-origin') return false;
    // A proxy may remove the port from `Host`; the browser has already compared the ports.
    return origin === undefined || hostnameOf(hostIn(origin)) === hostnameOf(host);
  }
  return origin !== undefined && hostIn(origin) === host.toLowerCase();
}

/** Empty for `null` and for an invalid origin. */
const hostIn = (origin: string) => /^https?:\/\/(.+)$/.exec(origin)?.[1]?.toLowerCase() ?? '';

const KEY_BYTES = 32;

/**
 * Encryption and signatures for cookies and forms, with keys derived from the management token. So the keys are the same on every
 * instance without being stored or exchanged, and a new management token ends all sessions.
 */
class CookieCrypto {
  readonly #encryptionKey: Buffer;
  readonly #signingKey: Buffer;

  constructor(managementToken: string) {
    const derived = (purpose: string) =>
      Buffer.from(hkdfSync('sha256', managementToken, '', `llmp admin ${purpose}`, KEY_BYTES));
    this.#encryptionKey = derived('seal');
    this.#signingKey = derived('mark');
  }

  /** @param purpose authenticated with the value: it can only be decrypted for the same purpose. @returns base64url. */
  encrypt(purpose: string, value: unknown): string {
    const pieces = sealed(this.#encryptionKey, Buffer.from(purpose), [Buffer.from(JSON.stringify(value))]);
    return Buffer.concat(pieces).toString('base64url');
  }

  /** @returns null unless the text was encrypted for this purpose under the same management token. */
  decrypt(purpose: string, text: string): unknown {
    const plain = unsealed(this.#encryptionKey, Buffer.from(purpose), Buffer.from(text, 'base64url'));
    return plain && (JSON.parse(plain.toString()) as unknown);
  }

  /** HMAC of `subject`. */
  sign(subject: string): string {
    return createHmac('sha256', this.#signingKey).update(subject).digest('base64url');
  }

  verify(subject: string, presented: string): boolean {
    const expected = Buffer.from(this.sign(subject));
    const given = Buffer.from(presented);
    // All signatures have the same length, so comparing lengths reveals nothing.
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}
