/**
 * A session is a cookie that only we can open. It names the session, the host it was begun at, when that was and when it was last used;
 * whether it was ended by a log-out is asked of the management API, so that a copy of the cookie is dead on every instance.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Place } from './place.js';
import type { Sealing } from './sealing.js';

/** As long as nobody uses it. That a page renews itself is no use of it. */
export const IDLE_MS = 30 * 60_000;
export const LONGEST_MS = 12 * 3_600_000;

export interface Session {
  id: string;
  host: string;
  begunAtMs: number;
  seenAtMs: number;
}

const PURPOSE = 'session';

/** Over TLS its name has browsers make sure that no page without TLS has set it. On this machine not all of them would keep it then. */
const nameAt = ({ isTls }: Place) => (isTls ? '__Secure-llmp-admin' : 'llmp-admin');

export interface SessionCookiesOptions {
  sealing: Sealing;
  /** The only path that the cookie is sent to. */
  path: string;
  clock: { now(): number };
}

export interface Cookie {
  name: string;
  value: string;
  path: string;
  /** None: it goes with the browser's window. */
  maxAgeSeconds?: number;
}

export class SessionCookies {
  readonly #options: SessionCookiesOptions;

  constructor(options: SessionCookiesOptions) {
    this.#options = options;
  }

  /** @returns null where there is none, or none any more. */
  read(req: IncomingMessage, place: Place): Session | null {
    const { sealing, clock } = this.#options;
    const sealed = cookiesOf(req).get(nameAt(place));
    const session = sealed === undefined ? null : (sealing.open(PURPOSE, sealed) as Session | null);
    if (session === null || session.host !== place.host) return null;
    const now = clock.now();
    const isOver = now >= session.begunAtMs + LONGEST_MS || now >= session.seenAtMs + IDLE_MS;
    return isOver ? null : session;
  }

  /** Whether there is one, over or not. */
  isPresented(req: IncomingMessage, place: Place): boolean {
    return cookiesOf(req).has(nameAt(place));
  }

  begin(res: ServerResponse, place: Place, { id, begunAtMs }: Pick<Session, 'id' | 'begunAtMs'>): void {
    this.#write(res, place, { id, host: place.host, begunAtMs, seenAtMs: this.#options.clock.now() });
  }

  /** It was used: its idle time begins anew. */
  renew(res: ServerResponse, place: Place, session: Session): void {
    this.#write(res, place, { ...session, seenAtMs: this.#options.clock.now() });
  }

  forget(res: ServerResponse, place: Place): void {
    setCookie(res, { name: nameAt(place), value: '', path: this.#options.path, maxAgeSeconds: 0 });
  }

  #write(res: ServerResponse, place: Place, session: Session): void {
    const { sealing, path } = this.#options;
    setCookie(res, { name: nameAt(place), value: sealing.seal(PURPOSE, session), path });
  }
}

/** Kept from scripts, from foreign sites and from connections that others can read. */
export function setCookie(res: ServerResponse, { name, value, path, maxAgeSeconds }: Cookie): void {
  const age = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`;
  res.appendHeader('Set-Cookie', `${name}=${value}; Path=${path}${age}; Secure; HttpOnly; SameSite=Strict`);
}

/** The first of each name: what was set for the longest path comes first. */
export function cookiesOf({ headers }: IncomingMessage): Map<string, string> {
  const cookies = new Map<string, string>();
  for (const pair of (headers.cookie ?? '').split(';')) {
    const equals = pair.indexOf('=');
    const name = pair.slice(0, equals).trim();
    if (equals > 0 && !cookies.has(name)) cookies.set(name, pair.slice(equals + 1).trim());
  }
  return cookies;
}
