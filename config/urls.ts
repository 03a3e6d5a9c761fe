/** Kinds of settings for URLs, networks, origins and paths. */
import { isIP } from 'node:net';
import type { Kind } from './kinds.js';
import { isMetadataHost } from './metadata-addresses.js';

/** An origin, optionally with a path prefix. Credentials, query and fragment are not allowed. */
export const upstreamUrl: Kind<URL> = {
  accepts:
    'an http or https URL such as https://api.openai.com, without credentials, query or fragment, and not a link-local or cloud metadata address',
  parse(text) {
    const url = plainUrl(text);
    if (!url || isMetadataHost(url.hostname)) return undefined;
    // The base URLs of SDKs end with /v1, but the path of every request already starts with it.
    url.pathname = url.pathname.replace(API_VERSION, '');
    return url;
  },
};

/**
 * The base URL of one project, as it is stored: without `/v1` and slashes at its end.
 *
 * @param allowedHosts the setting UPSTREAM_ALLOWED_HOSTS.
 * @returns what is wrong with it instead, as the end of a sentence, if it is not valid.
 */
export function projectBaseUrl(text: string, allowedHosts: readonly string[]): { url: string } | { problem: string } {
  const url = upstreamUrl.parse(text);
  if (!url)
    return { problem: 'must be an https URL without credentials, query and fragment, and not a metadata address' };
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    return { problem: 'must be an https URL: http is only accepted for localhost, because it exposes the API key' };
  }
  if (!allowedHosts.some((pattern) => matchesHost(pattern, url.hostname))) {
    return { problem: `must have a host that UPSTREAM_ALLOWED_HOSTS allows: ${allowedHosts.join(', ')}` };
  }
  return { url: url.href.replace(/\/+$/, '') };
}

function matchesHost(pattern: string, hostname: string): boolean {
  if (pattern === '*') return true;
  const host = hostname.replace(/\.$/, '');
  return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;
}

const API_VERSION = /\/v1\/?$/;

/** Warnings about an upstream URL that is probably a mistake. */
export function warningsOfUpstream(text: string): string[] {
  const url = plainUrl(text);
  if (!url) return [];
  const warnings: string[] = [];
  if (API_VERSION.test(url.pathname)) {
    const base = `${url.origin}${url.pathname.replace(API_VERSION, '')}`;
    warnings.push(`UPSTREAM_BASE_URL ends with /v1, which is ignored: requests are forwarded to ${base}/v1/…`);
  }
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    warnings.push(
      `UPSTREAM_BASE_URL uses http: the keys of your projects are sent to ${url.hostname} unencrypted; use https`,
    );
  }
  return warnings;
}

/** Whether UPSTREAM_PROXY is not used for an upstream. The proxy's own `localhost` is another machine. */
export const isReachedDirectly = ({ hostname }: URL, bypass: readonly string[]): boolean =>
  isLoopbackHost(hostname) || bypass.some((pattern) => matchesHost(pattern, hostname));

// Not names below `localhost`: some resolvers look them up in the network.
function isLoopbackHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

function plainUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  return url.username || url.password || url.search || url.hash || /[?#\s]/.test(text) ? undefined : url;
}

/** The issuer of an identity provider, as it is written: it is compared with what tokens say. */
export const issuerUrl: Kind<string> = {
  accepts:
    'an https URL such as https://login.example.com, without credentials, query or fragment, and not a metadata address; http is only accepted for localhost',
  parse: (text) => {
    const url = encryptedUrl(text);
    return url && !isMetadataHost(url.hostname) ? text : undefined;
  },
};

/** Where browsers reach the Admin UI: an origin. */
export const publicUrl: Kind<URL> = {
  accepts: 'an https URL such as https://llmp.example.com, without a path; http is only accepted for localhost',
  parse: (text) => {
    const url = encryptedUrl(text);
    return url?.pathname === '/' ? url : undefined;
  },
};

function encryptedUrl(text: string): URL | undefined {
  const url = plainUrl(text);
  return url && isEncryptedOrLocal(url) ? url : undefined;
}

/** Whether a URL has https, or http and leads to this machine. */
export const isEncryptedOrLocal = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));

export interface Network {
  address: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** Networks, including single addresses. */
export const networks: Kind<readonly Network[]> = list(
  'addresses or networks such as 10.0.0.0/8 and 2001:db8::/32, separated by commas',
  (text) => {
    const [address = '', prefix, ...rest] = text.split('/');
    const version = isIP(address);
    if (version === 0 || rest.length > 0 || address.includes('%')) return undefined;
    const longest = version === 4 ? 32 : 128;
    if (prefix !== undefined && (!/^(?:0|[1-9]\d{0,2})$/.test(prefix) || Number(prefix) > longest)) return undefined;
    return { address, prefix: Number(prefix ?? longest), family: version === 4 ? 'ipv4' : 'ipv6' };
  },
);

/** Hosts of URLs; `*.` matches any subdomain. */
export const hostPatterns: Kind<readonly string[]> = list(
  '* or host names such as api.openai.com and *.openai.azure.com, separated by commas',
  (text) => {
    const pattern = text.toLowerCase();
    return pattern === '*' || /^(?:\*\.)?[a-z\d](?:[a-z\d.-]*[a-z\d])?$|^\[[\da-f:.]+\]$/.test(pattern)
      ? pattern
      : undefined;
  },
);

/** What browsers send as `Origin`, byte for byte. */
export const origins: Kind<readonly string[]> = list(
  'exact origins such as https://app.example, separated by commas, without *, path or trailing slash',
  (text) => (plainUrl(text)?.origin === text && !text.includes('*') ? text : undefined),
);

/** Paths of requests to providers; a trailing `*` matches any rest. */
export const pathPatterns: Kind<readonly string[]> = list(
  '* or paths such as /v1/models and /v1/models/*, separated by commas',
  (text) => (text === '*' || /^\/[\w-][\w.~-]*(?:\/[\w.~/-]*\*?)?$/.test(text) ? text : undefined),
);

/** Prefixes of paths, each of whole segments, without a slash at the end. */
export const pathPrefixes: Kind<readonly string[]> = list(
  'paths such as /v1 and /v1beta, separated by commas, without a trailing slash',
  (text) => (isPath(text) ? text : undefined),
);

function list<T>(accepts: string, parseOne: (text: string) => T | undefined): Kind<readonly T[]> {
  return {
    accepts,
    parse(text) {
      const parsed = text.split(',').map((item) => parseOne(item.trim()));
      return parsed.every((item) => item !== undefined) ? parsed : undefined;
    },
  };
}

/** The path of a page, without a trailing slash. */
export const pagePath: Kind<string> = {
  accepts: 'a path such as /metrics',
  parse: (text) => (isPath(text) ? text : undefined),
};

/** The path prefix of several pages. The value always ends with a slash. */
export const pagesPath: Kind<string> = {
  accepts: 'a path such as /admin/',
  parse(text) {
    const path = text.replace(/\/$/, '');
    return isPath(path) ? `${path}/` : undefined;
  },
};

// Clients remove segments of dots when they resolve a URL.
const isPath = (text: string) => /^(?:\/(?!\.+(?:\/|$))[\w.~-]+)+$/.test(text);

/** The destination of events: a file or a URL. */
export const fileOrUrl: Kind<string> = {
  accepts: 'the path of a file, or an http or https URL',
  parse(text) {
    if (/^https?:\/\//i.test(text)) return URL.canParse(text) ? text : undefined;
    return /^\P{Cc}+$/u.test(text) && !/^[a-z][a-z0-9+.-]*:|\/$/i.test(text) ? text : undefined;
  },
  secretsIn: passwordsIn,
};

/** An HTTP proxy. */
export const proxyUrl: Kind<URL> = {
  accepts:
    'an http or https URL such as http://proxy.example:3128 or http://USER:PASSWORD@proxy.example:3128, without a path',
  parse(text) {
    if (!/^https?:\/\/[^/?#\s]+\/?$/i.test(text) || !URL.canParse(text)) return undefined;
    const url = new URL(text);
    return [url.username, url.password].every((part) => decoded(part) !== undefined) ? url : undefined;
  },
  secretsIn(text) {
    if (!URL.canParse(text)) return [];
    const { username, password } = new URL(text);
    if (password === '') return [];
    const credentials = `${decoded(username) ?? ''}:${decoded(password) ?? ''}`;
    // Also as the proxy gets them.
    return [...passwordsIn(text), Buffer.from(credentials).toString('base64')];
  },
};

/** The password in a URL, as written and decoded. */
function passwordsIn(text: string): string[] {
  if (!URL.canParse(text)) return [];
  const { password } = new URL(text);
  return password === '' ? [] : [...new Set([password, decoded(password) ?? password])];
}

/** @returns undefined if it is not correctly encoded. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
