/** Sessions of the Admin UI: authentication of requests, login and logout. */
import type { Request, Response } from 'express';
import { ApiError, type ManagementClient, Unreachable } from '../api/client.js';
import { isSameOrigin, type BrowserLocation, browserLocationOf } from './browser-location.js';
import type { CookieCrypto } from './cookie-crypto.js';
import { cookiesOf, type Session, SessionCookies, setCookie } from './session-cookies.js';

export interface CallContext {
  /** IP address of the browser; null if unknown. */
  clientIp: string | null;
  /** Reason for the audit record of a change; null for none. */
  reason: string | null;
}

export interface SessionsOptions {
  cookieCrypto: CookieCrypto;
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

export interface ActiveSession {
  session: Session;
  /** CSRF token of the session, in each of its forms. */
  formToken: string;
}

/** Header of the script's automatic refreshes. */
const REFRESH_HEADER = 'x-llmp-refresh';

// The browser requests the next page at once.
const SECRET_COOKIE_SECONDS = 60;
const SECRET_COOKIE = 'llmp-admin-secret';

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #cookies: SessionCookies;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#cookies = new SessionCookies(options);
  }

  get nowMs(): number {
    return this.#options.clock.now();
  }

  locationOf(req: Request): BrowserLocation {
    return browserLocationOf(req, this.#options.isTls(req));
  }

  isSameOrigin(req: Request): boolean {
    return isSameOrigin(req, this.locationOf(req));
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

  client(req: Request, reason: string | null = null): ManagementClient {
    return this.#options.clientFor({ clientIp: this.#options.addressOf(req), reason });
  }

  /** @returns null if the request has no valid session. @throws if the management API fails: then that is unknown. */
  async authenticate(req: Request): Promise<ActiveSession | null> {
    const session = this.#cookies.read(req, this.locationOf(req));
    if (session === null || !(await this.#isActive(req, session.id))) return null;
    return { session, formToken: this.#options.cookieCrypto.sign(session.id) };
  }

  /** Whether the request has a session cookie, valid or not. */
  hasSessionCookie(req: Request): boolean {
    return this.#cookies.isPresent(req, this.locationOf(req));
  }

  isFormTokenOf({ session }: ActiveSession, formToken: string | null): boolean {
    return this.#options.cookieCrypto.verify(session.id, formToken ?? '');
  }

  /** Restarts the idle timeout. An automatic refresh does not count as use. */
  renew(req: Request, res: Response, { session }: ActiveSession): void {
    if (!this.isAutomaticRefresh(req)) this.#cookies.renew(res, this.locationOf(req), session);
  }

  /** Starts a session, always with a new ID. @throws {ApiError} */
  async logIn(req: Request, res: Response, token: string): Promise<void> {
    const { id, begun_at: begunAt } = await this.client(req).logIn({ token });
    this.#cookies.create(res, this.locationOf(req), { id, begunAtMs: Date.parse(begunAt) });
  }

  /** Ends the session on all instances. @returns whether that was recorded; otherwise only the cookie of this browser is deleted. */
  async logOut(req: Request, res: Response, { session }: ActiveSession): Promise<boolean> {
    this.#cookies.clear(res, this.locationOf(req));
    try {
      await this.client(req).logOut(session.id);
      return true;
    } catch (error) {
      if (error instanceof ApiError || error instanceof Unreachable) return isNotFound(error);
      throw error;
    }
  }

  /** Passes a secret to one page in an encrypted, short-lived cookie for its path only. */
  storeSecret(res: Response, to: string, secret: string): void {
    const { cookieCrypto, path } = this.#options;
    const value = cookieCrypto.encrypt(path + to, secret);
    setCookie(res, { name: SECRET_COOKIE, value, path: path + to, maxAgeSeconds: SECRET_COOKIE_SECONDS });
  }

  /** Reads and deletes that cookie. @param at path of the page. @returns null if there is none, or it was already read. */
  takeSecret(req: Request, res: Response, at: string): string | null {
    const { cookieCrypto, path } = this.#options;
    const sealed = cookiesOf(req).get(SECRET_COOKIE);
    if (sealed === undefined) return null;
    setCookie(res, { name: SECRET_COOKIE, value: '', path: path + at, maxAgeSeconds: 0 });
    const secret = cookieCrypto.decrypt(path + at, sealed);
    return typeof secret === 'string' ? secret : null;
  }

  async #isActive(req: Request, id: string): Promise<boolean> {
    try {
      return (await this.client(req).session(id)).ended_at === null;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }
}

const isNotFound = (error: unknown) => error instanceof ApiError && error.status === 404;
