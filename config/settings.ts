/**
 * Every setting of the daemon, declared once. Each is an environment variable, and also `NAME_FILE` (the
 * path of a file that holds the value) and a systemd credential of the same name in lower case with dashes.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  credential,
  duration,
  encryptionKey,
  flag,
  integer,
  type Kind,
  type ListenAddress,
  listenAddress,
  oneOf,
  size,
  sqlitePath,
  upstreamUrl,
} from './kinds.js';

export type Environment = Readonly<Record<string, string | undefined>>;

interface Setting<T> {
  name: string;
  kind: Kind<T>;
  meaning: string;
  /** As it would be written; null: it has none. */
  default: string | ((env: Environment) => string) | null;
  isRequired: boolean;
  secret: boolean;
}

function setting<T>(
  name: string,
  kind: Kind<T>,
  fallback: string | ((env: Environment) => string),
  meaning: string,
): Setting<T> {
  return { name, kind, default: fallback, meaning, isRequired: false, secret: false };
}

const inStateDirectory = (env: Environment) =>
  env.STATE_DIRECTORY ? `sqlite:${join(env.STATE_DIRECTORY, 'llmp.db')}` : 'sqlite:./data/llmp.db';

const SETTINGS = {
  managementToken: {
    name: 'MANAGEMENT_TOKEN',
    kind: credential,
    default: null,
    isRequired: true,
    secret: true,
    meaning: 'The credential of the management API. Read at start only.',
  } as Setting<string>,
  listenAddress: setting('LISTEN_ADDR', listenAddress, '127.0.0.1:8080', 'Where the daemon listens.'),
  managementListenAddress: {
    name: 'MANAGEMENT_LISTEN_ADDR',
    kind: listenAddress,
    default: null,
    isRequired: false,
    secret: false,
    meaning: 'Where /manage is served, and then only there, so that /v1 can be public alone.',
  } as Setting<ListenAddress | undefined>,
  upstreamBaseUrl: setting(
    'UPSTREAM_BASE_URL',
    upstreamUrl,
    'https://api.openai.com',
    'The provider; /v1/… is appended.',
  ),
  requestTimeoutMs: setting(
    'REQUEST_TIMEOUT',
    duration(),
    '600s',
    "How long the upstream may take for its first byte, counted from the request's last, and then between two pieces; also how long a client may take no byte.",
  ),
  clientBodyTimeoutMs: setting(
    'CLIENT_BODY_TIMEOUT',
    duration(),
    '30s',
    'How long a client that is sending may be silent.',
  ),
  upstreamConnectTimeoutMs: setting(
    'UPSTREAM_CONNECT_TIMEOUT',
    duration(),
    '10s',
    'How long connecting to the upstream, or waiting for a free connection, may take.',
  ),
  upstreamConnections: setting(
    'UPSTREAM_CONNECTIONS',
    integer(1, 65_535),
    '4096',
    'The most connections to the upstream at a time.',
  ),
  maxRequestBytes: setting('MAX_REQUEST_SIZE', size, '50MB', 'The largest request body.'),
  maxConnections: setting('MAX_CONNECTIONS', integer(1, 1_000_000), '10000', 'The most client connections at a time.'),
  databaseDriver: setting('DB_DRIVER', oneOf('sqlite'), 'sqlite', 'The kind of database.'),
  databasePath: setting('DATABASE_URL', sqlitePath, inStateDirectory, 'Where the database is.'),
  autoMigrate: setting(
    'AUTO_MIGRATE',
    flag,
    'true',
    'Whether the schema is brought up to date at start; otherwise /ready is 503 until `llmp migrate up`.',
  ),
  encryptionKey: {
    name: 'ENCRYPTION_KEY',
    kind: encryptionKey,
    default: null,
    isRequired: false,
    secret: true,
    meaning: 'Seals the upstream keys at rest. Without it a key file of mode 0600 is kept beside the database.',
  } as Setting<Buffer | undefined>,
  tokenStaleLimitMs: setting(
    'TOKEN_STALE_LIMIT',
    duration(),
    '60s',
    'How long a verified token is served while the database is away.',
  ),
  logLevel: setting('LOG_LEVEL', oneOf('debug', 'info', 'warn', 'error'), 'info', 'The least severe record logged.'),
  logFormat: setting(
    'LOG_FORMAT',
    oneOf('json', 'text'),
    'json',
    'JSON lines for machines, or text for a person at a terminal.',
  ),
  shutdownDelayMs: setting(
    'SHUTDOWN_DELAY',
    duration('stop accepting at once'),
    '1s',
    'How long the daemon goes on accepting after SIGTERM, with /ready already 503, so that load balancers notice.',
  ),
  shutdownGraceMs: setting(
    'SHUTDOWN_GRACE',
    duration('cut at once'),
    '30s',
    'How long requests in flight may then take.',
  ),
};

type Declared = typeof SETTINGS;
export type Settings = { [K in keyof Declared]: Declared[K] extends Setting<infer T> ? T : never };

/** Everything that is wrong with the configuration, one line each, without a value of a secret. */
export class SettingsError extends Error {
  override name = 'SettingsError';
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}

/** Where a value came from. `text` is as written, before parsing. */
interface Found {
  text: string;
  origin: string;
}

export interface Loaded {
  settings: Settings;
  warnings: string[];
  /** For `--print-config`: one `NAME=value  # origin` a line, secrets masked. */
  describe(): string;
}

/**
 * Reads all settings from `env`.
 *
 * @throws {SettingsError} with all problems at once.
 */
export function loadSettings(env: Environment): Loaded {
  const lines: string[] = [];
  const settings = readSettings(env, Object.keys(SETTINGS) as (keyof Settings)[], (declared, found) => {
    const shown = found ? (declared.secret ? '********' : found.text) : '';
    lines.push(`${declared.name}=${shown}  # ${found?.origin ?? 'not set'}`);
  });
  if (settings.managementListenAddress && overlap(settings.listenAddress, settings.managementListenAddress)) {
    throw new SettingsError(['MANAGEMENT_LISTEN_ADDR must be another address than LISTEN_ADDR']);
  }
  return { settings, warnings: warningsFor(settings), describe: () => lines.join('\n') };
}

/**
 * Reads some of the settings: for what needs the database but not, say, the management token.
 *
 * @throws {SettingsError} with all problems of these at once.
 */
export function readSettings<Key extends keyof Settings>(
  env: Environment,
  keys: readonly Key[],
  onFound: (declared: Setting<unknown>, found: Found | undefined) => void = () => undefined,
): Pick<Settings, Key> {
  const problems: string[] = [];
  const settings: Record<string, unknown> = {};
  for (const key of keys) {
    const declared: Setting<unknown> = SETTINGS[key];
    try {
      const found = find(declared, env);
      settings[key] = found && parse(declared, found);
      onFound(declared, found);
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return settings as Pick<Settings, Key>;
}

function find(declared: Setting<unknown>, env: Environment): Found | undefined {
  const { name } = declared;
  const direct = env[name];
  const file = env[`${name}_FILE`];
  if (direct !== undefined && file !== undefined) throw new Error(`${name} and ${name}_FILE are both set; keep one`);
  if (direct !== undefined) return { text: direct, origin: 'environment' };
  if (file !== undefined) return { text: readValue(`${name}_FILE`, file), origin: file };
  if (env.CREDENTIALS_DIRECTORY) {
    const path = join(env.CREDENTIALS_DIRECTORY, name.toLowerCase().replaceAll('_', '-'));
    if (existsSync(path)) return { text: readValue(name, path), origin: path };
  }
  if (declared.isRequired) throw new Error(`${name} is required`);
  if (declared.default === null) return undefined;
  return { text: typeof declared.default === 'string' ? declared.default : declared.default(env), origin: 'default' };
}

function parse(declared: Setting<unknown>, { text }: Found): unknown {
  const value = declared.kind.parse(text);
  if (value !== undefined) return value;
  if (declared.isRequired && text.trim() === '') throw new Error(`${declared.name} is required`);
  const given = declared.secret ? '' : `, not ${JSON.stringify(withoutCredentials(text))}`;
  throw new Error(`${declared.name} must be ${declared.kind.accepts}${given}`);
}

/** A URL in a place that takes no password may have one all the same. */
const withoutCredentials = (text: string) => text.replace(/(?<=:\/\/).*(?=@)|(?<=\?).*/gs, '********');

function readValue(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new Error(`${name}: cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? 'failed'}`, {
      cause: error,
    });
  }
}

const EVERY_ADDRESS = ['::', '0.0.0.0'];

/** Whether one of two addresses is the other or part of it. With port 0 each gets a port of its own. */
function overlap(one: ListenAddress, other: ListenAddress): boolean {
  if ('path' in one || 'path' in other) {
    return 'path' in one && 'path' in other && resolve(one.path) === resolve(other.path);
  }
  const hosts = [one.host, other.host];
  const isSameHost = hosts[0] === hosts[1] || hosts.some((host) => EVERY_ADDRESS.includes(host));
  return one.port === other.port && one.port !== 0 && isSameHost;
}

const SHORTEST_GOOD_CREDENTIAL = 16;

function warningsFor(settings: Settings): string[] {
  const warnings = [];
  if (settings.managementToken.length < SHORTEST_GOOD_CREDENTIAL) {
    warnings.push(`MANAGEMENT_TOKEN is shorter than ${SHORTEST_GOOD_CREDENTIAL} characters and can be guessed`);
  }
  return warnings;
}
