/** Parses DATABASE_URL: a file for SQLite, or a server with its credentials. */
import { isIP, isIPv6 } from 'node:net';
import type { Kind } from './kinds.js';

/** The `url` of a server is unparsed and includes the password; `serverAt` parses it. */
export type DatabaseAddress = { driver: 'sqlite'; path: string } | { driver: ServerDriver; url: string };

export type ServerDriver = 'postgres' | 'mysql';

/** TLS modes of libpq. `require` encrypts without verifying the server; `verify-full` also verifies the certificate and its host name. */
const TLS_MODES = ['disable', 'require', 'verify-full'] as const;
/** As of libpq: with `require` a server that does not prove, by the password, that it is the other end of the TLS connection is refused. */
const CHANNEL_BINDINGS = ['disable', 'prefer', 'require'] as const;

export interface DatabaseServerAddress {
  driver: ServerDriver;
  /** A name or an address; IPv6 addresses have no brackets. Empty with a socket. */
  host: string;
  port: number;
  /** The absolute path of a unix socket: of its folder for PostgreSQL, of the socket for MySQL. Null without one. */
  socket: string | null;
  user: string | undefined;
  password: string | undefined;
  database: string;
  tls: (typeof TLS_MODES)[number];
  /** Of PostgreSQL; `disable` on MySQL. */
  channelBinding: (typeof CHANNEL_BINDINGS)[number];
  /** The path of the trusted certificates that replace those of the system; null without one. */
  rootCertificate: string | null;
}

const DRIVERS: Readonly<Record<string, ServerDriver>> = {
  postgres: 'postgres',
  postgresql: 'postgres',
  mysql: 'mysql',
  mariadb: 'mysql',
};
const PORTS: Readonly<Record<ServerDriver, number>> = { postgres: 5432, mysql: 3306 };
const SOCKET: Readonly<Record<ServerDriver, string>> = { postgres: 'host', mysql: 'socket' };

export const databaseAddress: Kind<DatabaseAddress> = {
  accepts:
    'a path, sqlite:PATH, postgres://USER:PASSWORD@HOST:PORT/NAME or mysql://USER:PASSWORD@HOST:PORT/NAME, with special characters as %XX; after NAME optionally ?sslmode=disable, require or verify-full (the last also with &sslrootcert=/PATH, and for MySQL only with a host name), for PostgreSQL with TLS also &channel_binding=require, or for a unix socket, without HOST, ?host=/FOLDER (PostgreSQL) or ?socket=/PATH (MySQL)',
  parse(text) {
    const server = serverAt(text);
    if (server) return { driver: server.driver, url: text };
    const path = sqlitePath(text);
    return path === undefined ? undefined : { driver: 'sqlite', path };
  },
  problemIn(text) {
    const parts = URL_OF_SERVER.exec(text)?.groups;
    const driver = DRIVERS[parts?.scheme?.toLowerCase() ?? ''];
    return driver && problemOf(driver, parts?.parameters);
  },
  secretsIn(text) {
    const written = URL_OF_SERVER.exec(text)?.groups?.password;
    const password = serverAt(text)?.password;
    return [...new Set([written, password])].flatMap((each) => each || []);
  },
};

/** `sqlite:PATH`, `sqlite:///PATH` or a bare path. */
function sqlitePath(text: string): string | undefined {
  const path = text.replace(/^sqlite:(?:\/\/(?=\/))?/, '');
  if (path === '' || path.includes('\0') || path === ':memory:') return undefined;
  // Rejects other schemes, and `sqlite://data/llmp.db`, which looks like a relative path but would mean /data/llmp.db.
  return /^[a-z][a-z0-9+]+:|^\/\//i.test(path) ? undefined : path;
}

// The class URL is not used: it requires a host, silently corrects mistakes, and accepts unknown parameters.
const URL_OF_SERVER =
  /^(?<scheme>[a-z]+):\/\/(?:(?<user>[^:@/?#\s]+)(?::(?<password>[^:@/?#\s]*))?@)?(?<host>\[[0-9a-f:.]+\]|[a-z0-9._-]*)(?::(?<port>[1-9]\d{0,4}))?\/(?<database>[^/?#\s]+)(?:\?(?<parameters>[^?#\s]+))?$/i;

/** @returns undefined if `text` is not the URL of a server, or contains unknown or invalid parts. */
export function serverAt(text: string): DatabaseServerAddress | undefined {
  const parts = URL_OF_SERVER.exec(text)?.groups;
  const driver = parts && DRIVERS[parts.scheme?.toLowerCase() ?? ''];
  const words = parts && decoded([parts.user, parts.password, parts.database]);
  if (!driver || !words || problemOf(driver, parts.parameters) !== undefined) return undefined;
  const parameters = parametersOf(parts.parameters);
  const [user, password, database = ''] = words;
  const port = Number(parts.port ?? PORTS[driver]);
  const host = (parts.host ?? '').replace(/^\[|\]$/g, '');
  const tls = TLS_MODES.find((mode) => mode === (parameters.sslmode ?? 'disable'));
  const { sslrootcert: rootCertificate = null, [SOCKET[driver]]: socket = null } = parameters;
  const channelBinding = CHANNEL_BINDINGS.find((mode) => mode === (parameters.channel_binding ?? 'disable'));

  const isAddress = host.includes(':') ? isIPv6(host) : host !== '' || socket !== null;
  const isOneWay = socket === null || (host === '' && tls === 'disable');
  const arePaths = [rootCertificate, socket].every((path) => path === null || /^\/[^/]/.test(path));
  const isRootAsked = rootCertificate === null || tls === 'verify-full';
  // For an IP address mysql2 would verify the certificate for `localhost`.
  const isNameKnown = tls !== 'verify-full' || driver === 'postgres' || isIP(host) === 0;
  if (!isAddress || !isOneWay || !arePaths || !isRootAsked || !isNameKnown) return undefined;
  if (tls === undefined || channelBinding === undefined || port > 65_535) return undefined;
  return { driver, host, port, socket, user, password, database, tls, channelBinding, rootCertificate };
}

/** The parameters of a URL of each kind, with their values if there are only a few. */
const PARAMETERS: Readonly<Record<ServerDriver, Readonly<Record<string, readonly string[] | null>>>> = {
  postgres: { sslmode: TLS_MODES, sslrootcert: null, channel_binding: CHANNEL_BINDINGS, host: null },
  mysql: { sslmode: TLS_MODES, sslrootcert: null, socket: null },
};

/** @returns what is wrong with a parameter, by its name; undefined if each is known, has a value, and is there once. */
function problemOf(driver: ServerDriver, text: string | undefined): string | undefined {
  const known = new Map(Object.entries(PARAMETERS[driver]));
  const found = new Set<string>();
  for (const each of text?.split('&') ?? []) {
    const [name = '', value = '', ...rest] = each.split('=');
    const values = known.get(name);
    // Anything can be where the name is expected, also a password.
    const shown = /^[a-z_]{1,40}$/i.test(name) && each.includes('=') ? ` ${name}` : '';
    if (values === undefined) return `unknown parameter${shown}; known are ${[...known.keys()].join(', ')}`;
    if (found.has(name)) return `the parameter ${name} is given twice`;
    const [word] = decoded([value]) ?? [];
    if (rest.length > 0 || !word) return `the parameter ${name} has no valid value`;
    if (values && !values.includes(word)) return `the parameter ${name} must be one of ${values.join(', ')}`;
    found.add(name);
  }
  const isUnbound = /(?:^|&)channel_binding=require(?:&|$)/.test(text ?? '') && !/(?:^|&)sslmode=[rv]/.test(text ?? '');
  return isUnbound ? 'the parameter channel_binding=require needs sslmode=require or verify-full' : undefined;
}

/** Of a text in which `problemOf` finds nothing wrong. */
const parametersOf = (text: string | undefined): Record<string, string> =>
  Object.fromEntries(
    (text?.split('&') ?? []).map((each) => {
      const [name = '', value = ''] = each.split('=');
      return [name, decodeURIComponent(value)];
    }),
  );

/** @returns undefined if a part is not correctly encoded, or contains control characters. */
function decoded(words: readonly (string | undefined)[]): (string | undefined)[] | undefined {
  try {
    const all = words.map((word) => word && decodeURIComponent(word));
    return all.some((word) => word !== undefined && /\p{Cc}/u.test(word)) ? undefined : all;
  } catch {
    return undefined;
  }
}
