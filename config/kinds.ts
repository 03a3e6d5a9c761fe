/** How the text of a setting becomes a value. Anything odd is refused with the sentence in `accepts`; nothing is guessed. */

import { isIPv6 } from 'node:net';

export interface Kind<T> {
  /** Completes the sentence "NAME must be …". */
  accepts: string;
  /** @returns undefined when the text is not acceptable. */
  parse(text: string): T | undefined;
  /** All that there is to choose from, where that is few words. */
  values?: readonly string[];
  /** Several values are taken, separated by commas. An option of the command line may give them one by one. */
  isList?: boolean;
  /** What is secret in a text that is not secret as a whole, in every form in which it may turn up. */
  secretsIn?(text: string): string[];
}

// Node fires a timer longer than this after one millisecond.
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

/** Milliseconds that drive a timer. `zero` says what a bare 0 means, where it is allowed. */
export const duration = (zero?: string): Kind<number> => durationUpTo(LONGEST_TIMER_MS, zero);

/** Milliseconds that records are kept for. */
export const retention = (zero: string): Kind<number> => durationUpTo(LONGEST_RETENTION_MS, zero);

function durationUpTo(longestMs: number, zero?: string): Kind<number> {
  const longest = `${Math.floor(longestMs / 3_600_000)}h`;
  return {
    accepts: `a duration such as 500ms, 120s, 2m or 1h, at most ${longest}${zero ? `, or 0 (${zero})` : ''}`,
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
 * A credential compared byte for byte, so white space around it is a mistake that must not be repaired silently; within
 * it, no `Authorization` header could present it.
 */
export const credential: Kind<string> = {
  accepts: 'visible ASCII without white space or a newline in it or around it',
  parse: (text) => (/^[\x21-\x7e]+$/.test(text) ? text : undefined),
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

/** Words of the operator's own, such as a name or a password elsewhere. */
export const plainText: Kind<string> = {
  accepts: 'text without control characters, at most 1000 characters',
  parse: (text) => (/^\P{Cc}{1,1000}$/u.test(text) ? text : undefined),
};

/** A path, null for none. */
export const fileOrNone: Kind<string | null> = {
  accepts: 'the path of a file, or empty for none',
  parse: (text) => (text === '' ? null : /^\P{Cc}+$/u.test(text) && !text.endsWith('/') ? text : undefined),
};
