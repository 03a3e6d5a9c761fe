/** Where the database is: a file for SQLite, or a server with whatever it takes to be let in. */
import { isIP, isIPv6 } from 'node:net';
import type { Kind } from './kinds.js';

/** Of a server, `url` as it was written, password and all: `serverAt` reads it. */
export type DatabaseAddress = { driver: 'sqlite'; path: string } | { driver: ServerDriver; url: string };

export type ServerDriver = 'postgres' | 'mysql';

/** As libpq has them. `require` encrypts and believes whoever answers; `verify-full` wants the certificate of that very host. */
const TLS_MODES = ['disable', 'require', 'verify-full'] as const;

export interface DatabaseServerAddress {
  driver: ServerDriver;
  /** A name or an address; an IPv6 one without brackets. With a socket it is not asked. */
  host: string;
  port: number;
  /** Of a unix socket an absolute path: of its folder for PostgreSQL, of itself for MySQL. Null without one. */
  socket: string | null;
  user: string | undefined;
  password: string | undefined;
  database: string;
  tls: (typeof TLS_MODES)[number];
  /** The path of the certificates that are believed instead of those of the system; null without one. */
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
    'a path, sqlite:PATH, postgres://USER:PASSWORD@HOST:PORT/NAME or mysql://USER:PASSWORD@HOST:PORT/NAME; behind the name of a server ?sslmode=disable, require or verify-full (for MySQL with the name of the server, not its address), &sslrootcert=/PATH with the last, and for a unix socket, without HOST, ?host=/FOLDER for PostgreSQL and ?socket=/PATH for MySQL; what is special in a URL written as %XX',
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
  // Another scheme, or `sqlite://data/llmp.db`, which reads as a relative path and would be /data/llmp.db.
  return /^[a-z][a-z0-9+]+:|^\/\//i.test(path) ? undefined : path;
}

// By hand: URL takes a host to be there, puts right what is wrong, and passes over parameters that nobody knows.
const URL_OF_SERVER =
  /^(?<scheme>[a-z]+):\/\/(?:(?<user>[^:@/?#\s]+)(?::(?<password>[^:@/?#\s]*))?@)?(?<host>\[[0-9a-f:.]+\]|[a-z0-9._-]*)(?::(?<port>[1-9]\d{0,4}))?\/(?<database>[^/?#\s]+)(?:\?(?<parameters>[^?#\s]+))?$/i;

/** @returns undefined for what is no URL of a server, or is one that says what nobody here understands. */
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
  // Of an address mysql2 would make sure that the certificate is one for `localhost`.
  const isNameKnown = tls !== 'verify-full' || driver === 'postgres' || isIP(host) === 0;
  if (!isAddress || !isOneWay || !arePaths || !isRootAsked || !isNameKnown) return undefined;
  if (tls === undefined || port > 65_535) return undefined;
  return { driver, host, port, socket, user, password, database, tls, rootCertificate };
}

/** @returns undefined when one is given twice, is none of `known`, or says nothing. */
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

/** @returns undefined when one is not well encoded, or has control characters. */
function decoded(words: readonly (string | undefined)[]): (string | undefined)[] | undefined {
  try {
    const all = words.map((word) => word && decodeURIComponent(word));
    return all.some((word) => word !== undefined && /\p{Cc}/u.test(word)) ? undefined : all;
  } catch {
    return undefined;
  }
}
