/** Kinds of settings: how their text is parsed. Invalid text is rejected with the description in `accepts`; nothing is guessed. */

import { isIPv6 } from 'node:net';
import { availableParallelism } from 'node:os';

export interface Kind<T> {
  /** Completes the sentence "NAME must be …". */
  accepts: string;
  /** @returns undefined if the text is not valid. */
  parse(text: string): T | undefined;
  /** What is wrong with a part of a text that is not valid, without secrets; undefined if that cannot be said. */
  problemIn?(text: string): string | undefined;
  /** All valid values, if there are only a few. */
  values?: readonly string[];
  /** Whether it accepts several values, separated by commas. A command-line option can also be repeated. */
  isList?: boolean;
  /** The secret parts of a text, such as a password in a URL, in every form in which they may occur. */
  secretsIn?(text: string): string[];
}

// Node runs a timer with a longer delay after one millisecond.
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const LONGEST_RETENTION_MS = 100 * 8760 * 3_600_000; // A hundred years.

const MS_PER: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const BYTES_PER: Record<string, number> = {
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
};

function withUnit(text: string, pattern: RegExp, units: Record<string, number>): number | undefined {
  const match = pattern.exec(text);
  if (!match?.[1] || !match[2]) return undefined;
  const value = Number(match[1]) * (units[match[2].toLowerCase()] ?? NaN);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Milliseconds of a timer. `zero` is the meaning of a bare 0, if it is allowed. */
export const duration = (zero?: string): Kind<number> => durationUpTo(LONGEST_TIMER_MS, zero);

/** Milliseconds for which records are stored. */
export const retention = (zero: string): Kind<number> => durationUpTo(LONGEST_RETENTION_MS, zero);

function durationUpTo(longestMs: number, zero?: string): Kind<number> {
  const longest = `${Math.floor(longestMs / 3_600_000)}h`;
  return {
    accepts: `a duration such as 500ms, 120s, 2m or 1h, up to ${longest}${zero ? `, or 0 (${zero})` : ''}`,
    parse(text) {
      if (zero && text === '0') return 0;
      const ms = withUnit(text, /^(\d{1,12})(ms|s|m|h)$/i, MS_PER);
      return ms !== undefined && ms > 0 && ms <= longestMs ? ms : undefined;
    },
  };
}

/** Bytes. */
export const size: Kind<number> = {
  accepts: 'a size such as 10KB, 50MB, 2GB (powers of 1000) or 10KiB, 50MiB, 2GiB (powers of 1024)',
  parse(text) {
    const bytes = withUnit(text, /^(\d{1,12})([kmg]i?b)$/i, BYTES_PER);
    return bytes !== undefined && bytes > 0 ? bytes : undefined;
  },
};

export function integer(from: number, to: number): Kind<number> {
  return {
    accepts: `a whole number from ${from} to ${to}`,
    parse(text) {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
      return value >= from && value <= to ? value : undefined;
    },
  };
}

const MAX_WORKERS = 64;

/** A number of processes. */
export const workerCount: Kind<number> = {
  accepts: `a whole number from 1 to ${MAX_WORKERS}, or auto`,
  parse: (text) =>
    text === 'auto' ? Math.min(availableParallelism(), MAX_WORKERS) : integer(1, MAX_WORKERS).parse(text),
};

export const flag: Kind<boolean> = {
  accepts: 'true or false',
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
};

export function oneOf<const T extends string>(...values: readonly T[]): Kind<T> {
  return {
    accepts: values.length === 1 ? `${values.join()} (the only choice in this release)` : `one of ${values.join(', ')}`,
    parse: (text) => values.find((value) => value === text),
    values,
  };
}

/**
 * A credential that is compared byte for byte. White space around it is a mistake, which must not be corrected silently; white space
 * within it is impossible in an `Authorization` header.
 */
export const credential: Kind<string> = {
  accepts: 'visible ASCII characters without white space or newlines',
  parse: (text) => (/^[\x21-\x7e]+$/.test(text) ? text : undefined),
};

/** What is less than the management token, or is stored as a digest, must not become the management token. */
export const managementToken: Kind<string> = {
  accepts: `${credential.accepts}, and not the secret of an operator, a session or a token (sk-op-…, sk-ss-…, sk-wt-…)`,
  parse: (text) => (/^sk-(?:op|ss|wt)-/i.test(text) ? undefined : credential.parse(text)),
};

/** 32 bytes in base64. */
export const encryptionKey: Kind<Buffer> = {
  accepts: '32 bytes in base64 (openssl rand -base64 32)',
  parse(text) {
    const key = /^[A-Za-z0-9+/]{43}=$/.test(text) ? Buffer.from(text, 'base64') : undefined;
    return key?.length === 32 ? key : undefined;
  },
};

export type ListenAddress = { host: string; port: number } | { path: string };

export const listenAddress: Kind<ListenAddress> = {
  accepts: 'host:port, [::]:8080, :8080 or unix:/path',
  parse(text) {
    if (/^unix:\/./.test(text)) return { path: text.slice('unix:'.length) };
    const address = splitAddress(text);
    return address && { ...address, host: address.host || '::' };
  },
};

/** A server to connect to. */
export const hostAndPort: Kind<{ host: string; port: number }> = {
  accepts: 'host:port or [::1]:port, without a scheme',
  parse(text) {
    const address = splitAddress(text);
    return address?.host && address.port > 0 ? address : undefined;
  },
};

function splitAddress(text: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/]*)):(\d{1,5})$/.exec(text);
  if (!match || (match[1] !== undefined && !isIPv6(match[1]))) return undefined;
  const port = Number(match[3]);
  return port > 65_535 ? undefined : { host: match[1] ?? match[2] ?? '', port };
}

/** Free text, such as a name, or a password of another service. */
export const plainText: Kind<string> = {
  accepts: 'text without control characters, up to 1000 characters',
  parse: (text) => (/^\P{Cc}{1,1000}$/u.test(text) ? text : undefined),
};

/** The path of a file, or null for no file. */
export const folder: Kind<string> = {
  accepts: 'the path of a folder',
  parse: (text) => (/^\P{Cc}+$/u.test(text) ? text : undefined),
};

export const fileOrNone: Kind<string | null> = {
  accepts: 'the path of a file, or empty for no file',
  parse: (text) => (text === '' ? null : /^\P{Cc}+$/u.test(text) && !text.endsWith('/') ? text : undefined),
};
