/** The address of the Admin UI as the browser sees it. It decides whether the session cookie works, and whether a request is same-origin. */
import type { IncomingMessage } from 'node:http';

export interface BrowserLocation {
  /** The `Host` header: with the port, unless it is the default port or a proxy removed it. */
  host: string;
  isTls: boolean;
  /** Browsers accept `Secure` cookies over TLS and on localhost. Elsewhere they drop them silently. */
  acceptsCookies: boolean;
}

export function browserLocationOf({ headers: { host = '' } }: IncomingMessage, isTls: boolean): BrowserLocation {
  return { host, isTls, acceptsCookies: isTls || isLoopback(hostnameOf(host)) };
}

const hostnameOf = (host: string) => host.replace(/:\d*$/, '').toLowerCase();

const isLoopback = (hostname: string) => /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);

/**
 * Whether a request comes from a page of the Admin UI. `Sec-Fetch-Site`, which browsers send over TLS and on localhost, takes precedence.
 * `Origin` must also name this host. After DNS rebinding the browser considers all of it one origin, but then both headers contain the
 * foreign name, for which there are no sessions and no login (session-cookies.ts).
 */
export function isSameOrigin({ headers }: IncomingMessage, { host }: BrowserLocation): boolean {
  const { origin, 'sec-fetch-site': site } = headers;
  if (site !== undefined) {
    if (site !== 'same-origin') return false;
    // A proxy may remove the port from `Host`; the browser has already compared the ports.
    return origin === undefined || hostnameOf(hostIn(origin)) === hostnameOf(host);
  }
  return origin !== undefined && hostIn(origin) === host.toLowerCase();
}

/** Empty for `null` and for an invalid origin. */
const hostIn = (origin: string) => /^https?:\/\/(.+)$/.exec(origin)?.[1]?.toLowerCase() ?? '';
