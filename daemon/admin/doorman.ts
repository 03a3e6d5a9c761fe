/** Who may come in: the session of a request, and how it begins and ends. */
import type { Request, Response } from 'express';
import { ApiError, type ManagementClient, Unreachable } from '../api/client.js';
import { isOfOurs, type Place, placeOf } from './place.js';
import type { Sealing } from './sealing.js';
import { cookiesOf, type Session, SessionCookies, setCookie } from './session.js';

export interface Asking {
  /** The browser's address; null where there is none. */
  clientIp: string | null;
  /** For the audit record of a change; null for none. */
  reason: string | null;
}

export interface DoormanOptions {
  sealing: Sealing;
  /** Below which the pages are, with a slash at its end. */
  path: string;
  clock: { now(): number };
  clientFor: (asking: Asking) => ManagementClient;
  addressOf: (req: Request) => string | null;
  isTls: (req: Request) => boolean;
  clientsAt: ClientsAt;
}

/** Where the proxy is: on a port of the host that the pages are asked from (null: on the same port), or at a URL. */
export type ClientsAt = { port: number | null } | { url: string };

export interface Visitor {
  session: Session;
  /** Stands in every form of theirs. */
  formToken: string;
}

/** Sent by our script when it asks for a page anew by itself. */
const REFRESH = 'x-llmp-refresh';

// The page it is for is asked for at once.
const HANDED_OVER_SECONDS = 60;
const HANDED_OVER = 'llmp-admin-secret';

export class Doorman {
  readonly #options: DoormanOptions;
  readonly #cookies: SessionCookies;

  constructor(options: DoormanOptions) {
    this.#options = options;
    this.#cookies = new SessionCookies(options);
  }

  get nowMs(): number {
    return this.#options.clock.now();
  }

  placeOf(req: Request): Place {
    return placeOf(req, this.#options.isTls(req));
  }

  isOfOurs(req: Request): boolean {
    return isOfOurs(req, this.placeOf(req));
  }

  /** What a client takes as its base URL; a proxy in front may have another name for it. */
  baseUrlOf(req: Request): string {
    const { clientsAt } = this.#options;
    if ('url' in clientsAt) return new URL('/v1', clientsAt.url).href;
    const { host, isTls } = this.placeOf(req);
    const url = new URL(`${isTls ? 'https' : 'http'}://${/^[\w.:[\]-]+$/.test(host) ? host : 'localhost'}/v1`);
    if (clientsAt.port !== null) url.port = String(clientsAt.port);
    return url.href;
  }

  isRefresh(req: Request): boolean {
    return req.headers[REFRESH] !== undefined;
  }

  client(req: Request, reason: string | null = null): ManagementClient {
    return this.#options.clientFor({ clientIp: this.#options.addressOf(req), reason });
  }

  /** @returns null for who is not logged in, or not any more. @throws what the management API throws: then it is not known. */
  async visitorOf(req: Request): Promise<Visitor | null> {
    const session = this.#cookies.read(req, this.placeOf(req));
    if (session === null || !(await this.#goesOn(req, session.id))) return null;
    return { session, formToken: this.#options.sealing.mark(session.id) };
  }

  /** Whether there is a session, over or not. */
  presentsSession(req: Request): boolean {
    return this.#cookies.isPresented(req, this.placeOf(req));
  }

  isFormOf({ session }: Visitor, formToken: string | null): boolean {
    return this.#options.sealing.isMarkOf(session.id, formToken ?? '');
  }

  /** The session was used. */
  renew(req: Request, res: Response, { session }: Visitor): void {
    if (!this.isRefresh(req)) this.#cookies.renew(res, this.placeOf(req), session);
  }

  /** Begins a session, which is never one that was there before. @throws {ApiError} */
  async logIn(req: Request, res: Response, token: string): Promise<void> {
    const { id, begun_at: begunAt } = await this.client(req).logIn({ token });
    this.#cookies.begin(res, this.placeOf(req), { id, begunAtMs: Date.parse(begunAt) });
  }

  /** Ends the session here and on every other instance. @returns whether that was recorded: else only this browser has forgotten it. */
  async logOut(req: Request, res: Response, { session }: Visitor): Promise<boolean> {
    this.#cookies.forget(res, this.placeOf(req));
    try {
      await this.client(req).logOut(session.id);
      return true;
    } catch (error) {
      if (error instanceof ApiError || error instanceof Unreachable) return isNotFound(error);
      throw error;
    }
  }

  /** Gives a secret to the next page and to no other: sealed, for that path alone, and for a moment. */
  handOver(res: Response, to: string, secret: string): void {
    const { sealing, path } = this.#options;
    const value = sealing.seal(path + to, secret);
    setCookie(res, { name: HANDED_OVER, value, path: path + to, maxAgeSeconds: HANDED_OVER_SECONDS });
  }

  /** @param at the path of the page. @returns null where nothing was handed over, or was taken already. */
  takeOver(req: Request, res: Response, at: string): string | null {
    const { sealing, path } = this.#options;
    const sealed = cookiesOf(req).get(HANDED_OVER);
    if (sealed === undefined) return null;
    setCookie(res, { name: HANDED_OVER, value: '', path: path + at, maxAgeSeconds: 0 });
    const secret = sealing.open(path + at, sealed);
    return typeof secret === 'string' ? secret : null;
  }

  async #goesOn(req: Request, id: string): Promise<boolean> {
    try {
      return (await this.client(req).session(id)).ended_at === null;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }
}

const isNotFound = (error: unknown) => error instanceof ApiError && error.status === 404;
