/** Parses DATABASE_URL: a file for SQLite, or a server with its credentials. */
import { isIP, isIPv6 } from 'node:net';
import type { Kind } from './kinds.js';

/** The `url` of a server is unparsed and includes the password; `serverAt` parses it. */
export type DatabaseAddress = { driver: 'sqlite'; path: string } | { driver: ServerDriver; url: string };

export type ServerDriver = 'postgres' | 'mysql';

/** TLS modes of libpq. `require` encrypts without verifying the server; `verify-full` also verifies the certificate and its host name. */
const TLS_MODES = ['disable', 'require', 'verify-full'] as const;

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
    'a path, sqlite:PATH, postgres://USER:PASSWORD@HOST:PORT/NAME or mysql://USER:PASSWORD@HOST:PORT/NAME, with special characters as %XX; after NAME optionally ?sslmode=disable, require or verify-full (the last also with &sslrootcert=/PATH, and for MySQL only with a host name), or for a unix socket, without HOST, ?host=/FOLDER (PostgreSQL) or ?socket=/PATH (MySQL)',
  parse(text) {
    const server = serverAt(text);
    if (server) return { driver: server.driver, url: text };
    const path = sqlitePath(text);
    return path === undefined ? undefined : { driver: 'sqlite', path };
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
  const parameters = driver && parametersOf(parts.parameters, ['sslmode', 'sslrootcert', SOCKET[driver]]);
  if (!driver || !words || !parameters) return undefined;
  const [user, password, database = ''] = words;
  const port = Number(parts.port ?? PORTS[driver]);
  const host = (parts.host ?? '').replace(/^\[|\]$/g, '');
  const tls = TLS_MODES.find((mode) => mode === (parameters.sslmode ?? 'disable'));
  const { sslrootcert: rootCertificate = null, [SOCKET[driver]]: socket = null } = parameters;

  const isAddress = host.includes(':') ? isIPv6(host) : host !== '' || socket !== null;
  const isOneWay = socket === null || (host === '' && tls === 'disable');
  const arePaths = [rootCertificate, socket].every((path) => path === null || /^\/[^/]/.test(path));
  const isRootAsked = rootCertificate === null || tls === 'verify-full';
  // For an IP address mysql2 would verify the certificate for `localhost`.
  const isNameKnown = tls !== 'verify-full' || driver === 'postgres' || isIP(host) === 0;
  if (!isAddress || !isOneWay || !arePaths || !isRootAsked || !isNameKnown) return undefined;
  if (tls === undefined || port > 65_535) return undefined;
  return { driver, host, port, socket, user, password, database, tls, rootCertificate };
}

/** @returns undefined if a parameter is repeated, unknown or empty. */
function parametersOf(text: string | undefined, known: readonly string[]): Record<string, string> | undefined {
  const found: Record<string, string> = {};
  for (const each of text?.split('&') ?? []) {
    const [name = '', value = '', ...rest] = each.split('=');
    const [word] = decoded([value]) ?? [];
    if (!known.includes(name) || name in found || rest.length > 0 || !word) return undefined;
    found[name] = word;
  }
  return found;
}

/** @returns undefined if a part is not correctly encoded, or contains control characters. */
function decoded(words: readonly (string | undefined)[]): (string | undefined)[] | undefined {
  try {
    const all = words.map((word) => word && decodeURIComponent(word));
    return all.some((word) => word !== undefined && /\p{Cc}/u.test(word)) ? undefined : all;
  } catch {
    return undefined;
  }
}
