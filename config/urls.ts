/** Kinds of settings that name hosts, networks, origins and paths. */
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Kind } from './kinds.js';

/** An origin, or an origin and a path prefix; the credentials, query and fragment that a URL may carry have no meaning here. */
export const upstreamUrl: Kind<URL> = {
  accepts:
    'an http or https URL without credentials, query or fragment, such as https://api.openai.com, and not of a link-local or cloud metadata address',
  parse(text) {
    const url = plainUrl(text);
    if (!url || isMetadataHost(url.hostname)) return undefined;
    // The base URL of every SDK ends with it, and the path of every request begins with it.
    url.pathname = url.pathname.replace(API_VERSION, '');
    return url;
  },
};

const API_VERSION = /\/v1\/?$/;

/** What is hardly meant by an upstream's URL, as it was written. */
export function warningsOfUpstream(text: string): string[] {
  const url = plainUrl(text);
  if (!url) return [];
  const warnings: string[] = [];
  if (API_VERSION.test(url.pathname)) {
    const base = `${url.origin}${url.pathname.replace(API_VERSION, '')}`;
    warnings.push(`UPSTREAM_BASE_URL ends with /v1, which is left out: requests are forwarded to ${base}/v1/…`);
  }
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    warnings.push(`UPSTREAM_BASE_URL is http: the keys of your projects go to ${url.hostname} unencrypted. Use https`);
  }
  return warnings;
}

function isLoopbackHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

function plainUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  return url.username || url.password || url.search || url.hash || /[?#\s]/.test(text) ? undefined : url;
}

// Clouds hand out a machine's own credentials there, to whoever asks from the machine.
const METADATA_ADDRESSES = new BlockList();
METADATA_ADDRESSES.addSubnet('169.254.0.0', 16);
METADATA_ADDRESSES.addSubnet('fe80::', 10, 'ipv6');
METADATA_ADDRESSES.addAddress('fd00:ec2::254', 'ipv6'); // Amazon
METADATA_ADDRESSES.addAddress('fd20:ce::254', 'ipv6'); // Google
METADATA_ADDRESSES.addAddress('100.100.100.200'); // Alibaba
METADATA_ADDRESSES.addAddress('192.0.0.192'); // Oracle

const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'metadata.tencentyun.com',
  'instance-data',
  'instance-data.ec2.internal',
]);

/** @param hostname as a URL has it: lower case, IPv4 in four decimals, IPv6 in brackets. */
function isMetadataHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) === 0) return METADATA_NAMES.has(host.replace(/\.$/, ''));
  return METADATA_ADDRESSES.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
}

export interface Network {
  address: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** Networks, a single address among them. */
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

/** What browsers send as `Origin`, byte for byte. */
export const origins: Kind<readonly string[]> = list(
  'exact origins such as https://app.example, separated by commas; neither * nor a path nor a slash at the end',
  (text) => (plainUrl(text)?.origin === text && !text.includes('*') ? text : undefined),
);

/** Paths under /v1; a `*` at the end stands for any rest. */
export const pathPatterns: Kind<readonly string[]> = list(
  '* or paths such as /v1/models and /v1/models/*, separated by commas',
  (text) => (text === '*' || /^\/v1(?:\/[\w.~/-]*\*?)?$/.test(text) ? text : undefined),
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

/** Where a page is served: without a slash at the end, which `pagesPath` adds. */
export const pagePath: Kind<string> = {
  accepts: 'a path such as /metrics',
  parse: (text) => (isPath(text) ? text : undefined),
};

/** Below which pages are served: with a slash at the end, whether or not it was written. */
export const pagesPath: Kind<string> = {
  accepts: 'a path such as /admin/',
  parse(text) {
    const path = text.replace(/\/$/, '');
    return isPath(path) ? `${path}/` : undefined;
  },
};

// A segment of dots alone would be resolved away by the client.
const isPath = (text: string) => /^(?:\/(?!\.+(?:\/|$))[\w.~-]+)+$/.test(text);

/** Where events go: a file, or whatever answers at a URL. */
export const fileOrUrl: Kind<string> = {
  accepts: 'the path of a file, or an http or https URL',
  parse(text) {
    if (/^https?:\/\//i.test(text)) return URL.canParse(text) ? text : undefined;
    return /^\P{Cc}+$/u.test(text) && !/^[a-z][a-z0-9+.-]*:|\/$/i.test(text) ? text : undefined;
  },
};
