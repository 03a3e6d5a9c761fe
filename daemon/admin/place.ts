/** Where the browser believes it is: by that it keeps our cookie or not, and by that a request of ours is told from a foreign one. */
import type { IncomingMessage } from 'node:http';

export interface Place {
  /** As the browser wrote it: with its port, unless that is the scheme's own or a proxy left it out. */
  host: string;
  isTls: boolean;
  /** Browsers keep `Secure` cookies over TLS and on this machine. Elsewhere they drop them, and do not say so. */
  keepsCookies: boolean;
}

export function placeOf({ headers: { host = '' } }: IncomingMessage, isTls: boolean): Place {
  return { host, isTls, keepsCookies: isTls || isLoopback(hostnameOf(host)) };
}

const hostnameOf = (host: string) => host.replace(/:\d*$/, '').toLowerCase();

const isLoopback = (hostname: string) => /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);

/**
 * Whether a request that may change something comes from a page of ours. The browser's own word on it (`Sec-Fetch-Site`) counts most,
 * and is given over TLS and on this machine. `Origin` must name our host too. Where a foreign name was bound to our address, the browser
 * takes all of it for one origin, but then that name is in both, and there are neither sessions nor log-ins under it (session.ts).
 */
export function isOfOurs({ headers }: IncomingMessage, { host }: Place): boolean {
  const { origin, 'sec-fetch-site': site } = headers;
  if (site !== undefined) {
    if (site !== 'same-origin') return false;
    // A proxy may leave the port out of `Host`, and the browser has just compared it.
    return origin === undefined || hostnameOf(hostIn(origin)) === hostnameOf(host);
  }
  return origin !== undefined && hostIn(origin) === host.toLowerCase();
}

/** Empty for `null` and for what is no origin. */
const hostIn = (origin: string) => /^https?:\/\/(.+)$/.exec(origin)?.[1]?.toLowerCase() ?? '';
