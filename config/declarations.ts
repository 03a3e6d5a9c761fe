/**
 * Every setting, declared once: types, parsing and all documentation come from here. After a change run `npm run docs`.
 */
import * as derived from './defaults.js';
import type { DerivedDefault } from './defaults.js';
import {
  DISPATCHER_SERVICE_NAMES,
  dispatcherEndpoint,
  FILE_SERVICES,
  SERVICES_WITH_KEY,
} from './dispatcher-services.js';
import { databaseAddress } from './database-url.js';
import {
  credential,
  duration,
  encryptionKey,
  fileOrNone,
  flag,
  hostAndPort,
  integer,
  type Kind,
  listenAddress,
  oneOf,
  plainText,
  retention,
  size,
} from './kinds.js';
import { fileOrUrl, networks, origins, pagePath, pagesPath, pathPatterns, upstreamUrl } from './urls.js';

export interface Setting<T, IsReloadable extends boolean = boolean> {
  name: string;
  kind: Kind<T>;
  meaning: string;
  /** As it would be written; null: it has none. */
  default: string | DerivedDefault | null;
  isRequired: boolean;
  /** Its value is shown nowhere. */
  isSecret: boolean;
  /** Applied on SIGHUP. */
  isReloadable: IsReloadable;
}

type Mark = 'isRequired' | 'isSecret' | 'isReloadable';

/** Whether that mark is among them. */
type Has<M extends Mark, Marks extends Mark> = M extends Marks ? true : false;

function setting<T, Marks extends Mark = never>(
  name: string,
  kind: Kind<T>,
  fallback: string | DerivedDefault | null,
  meaning: string,
  ...marks: Marks[]
): Setting<T, Has<'isReloadable', Marks>> {
  const marked = <M extends Mark>(mark: M) => (marks as Mark[]).includes(mark) as Has<M, Marks>;
  return {
    name,
    kind,
    default: fallback,
    meaning,
    isRequired: marked('isRequired'),
    isSecret: marked('isSecret'),
    isReloadable: marked('isReloadable'),
  };
}

/** One that may be absent. */
const optional = <T, Marks extends Mark = never>(name: string, kind: Kind<T>, meaning: string, ...marks: Marks[]) =>
  setting<T | undefined, Marks>(name, kind, null, meaning, ...marks);

const listening = {
  managementToken: setting(
    'MANAGEMENT_TOKEN',
    credential,
    null,
    'The credential of the management API, of the command line and of the Admin UI, compared byte for byte. Read at start only.',
    'isRequired',
    'isSecret',
  ),
  listenAddress: setting(
    'LISTEN_ADDR',
    listenAddress,
    '127.0.0.1:8080',
    'Where the daemon listens: host:port, [::]:8080, :8080 for all addresses, or unix:/path.',
  ),
  managementListenAddress: optional(
    'MANAGEMENT_LISTEN_ADDR',
    listenAddress,
    'Where /manage, the Admin UI and the metrics are served, there and only there, so that /v1 can be public alone.',
  ),
  maxConnections: setting('MAX_CONNECTIONS', integer(1, 1_000_000), '10000', 'The most client connections at a time.'),
  trustedProxies: optional(
    'TRUSTED_PROXIES',
    networks,
    'The networks of the proxies in front, separated by commas, whose X-Forwarded-For is believed, which says who the client is, and X-Forwarded-Proto, which says whether a browser came over TLS. Over a unix socket it is believed once there is one of them.',
  ),
  corsAllowedOrigins: optional(
    'CORS_ALLOWED_ORIGINS',
    origins,
    'The origins whose pages may call /v1 and /manage, separated by commas, each exactly as a browser sends it.',
    'isReloadable',
  ),
};

const forwarding = {
  upstreamBaseUrl: setting(
    'UPSTREAM_BASE_URL',
    upstreamUrl,
    'https://api.openai.com',
    'The base URL of the provider, http or https; /v1/… is appended. A trailing /v1, as in the base URL of an SDK, is left out with a warning.',
  ),
  requestTimeoutMs: setting(
    'REQUEST_TIMEOUT',
    duration(),
    '600s',
    "How long the upstream may take for its first byte, counted from the request's last, and then between two pieces; also how long a client may take no byte. Reasoning models think for minutes.",
    'isReloadable',
  ),
  clientBodyTimeoutMs: setting(
    'CLIENT_BODY_TIMEOUT',
    duration(),
    '30s',
    'How long a client that is sending may take for the next KiB of its body.',
    'isReloadable',
  ),
  websocketIdleTimeoutMs: setting(
    'WEBSOCKET_IDLE_TIMEOUT',
    duration(),
    '10m',
    'How long a WebSocket may be silent on both sides.',
    'isReloadable',
  ),
  upstreamConnectTimeoutMs: setting(
    'UPSTREAM_CONNECT_TIMEOUT',
    duration(),
    '10s',
    'How long connecting to the upstream, or waiting for a free connection, may take.',
    'isReloadable',
  ),
  upstreamConnections: setting(
    'UPSTREAM_CONNECTIONS',
    integer(1, 65_535),
    '4096',
    'The most connections to the upstream at a time, WebSockets included.',
  ),
  maxRequestBytes: setting('MAX_REQUEST_SIZE', size, '50MB', 'The largest request body.'),
  errorShape: setting(
    'ERROR_SHAPE',
    oneOf('auto', 'plain', 'openai'),
    'auto',
    "The form of the daemon's own errors under /v1: plain is the form of /manage, openai the one that OpenAI's SDKs read. With auto a request gets openai if it has a header X-Stainless-* or OpenAI-*, or if its User-Agent names openai, ai-sdk or Go-http-client, as those of the ai package and of go-openai do. Any other request gets plain.",
    'isReloadable',
  ),
};

const database = {
  databaseDriver: setting(
    'DB_DRIVER',
    oneOf('sqlite', 'postgres', 'mysql'),
    'sqlite',
    'The kind of database: a file that this instance alone uses, or a server for several. MariaDB is mysql.',
  ),
  database: setting(
    'DATABASE_URL',
    databaseAddress,
    derived.databaseUrl,
    'Where the database is: the path of a file, or postgres://USER:PASSWORD@HOST:PORT/NAME, or mysql://… likewise. Behind the name ?sslmode=require encrypts the connection, and verify-full in place of require makes sure of the server as well, by the certificates of the system or of sslrootcert=/PATH. For a unix socket leave HOST out and say ?host=/FOLDER (PostgreSQL) or ?socket=/PATH (MySQL).',
  ),
  databasePoolSize: setting(
    'DATABASE_POOL_SIZE',
    integer(1, 1000),
    '10',
    'The most connections to the server of a shared database, one more for looking after changes left aside.',
  ),
  autoMigrate: setting(
    'AUTO_MIGRATE',
    flag,
    'true',
    'Whether the schema is brought up to date at start; otherwise /ready is 503 until `llmp migrate up`.',
  ),
  encryptionKey: optional(
    'ENCRYPTION_KEY',
    encryptionKey,
    'Seals the upstream keys at rest: 32 bytes in base64. Without it a key file of mode 0600 is kept beside the file of SQLite; back up both together. Required with a server, for all its instances need the same.',
    'isSecret',
  ),
  previousEncryptionKey: optional(
    'ENCRYPTION_KEY_PREVIOUS',
    encryptionKey,
    'The key before: what it sealed can still be read, until `llmp migrate rekey` has sealed all of it with ENCRYPTION_KEY.',
    'isSecret',
  ),
  tokenStaleLimitMs: setting(
    'TOKEN_STALE_LIMIT',
    duration(),
    '60s',
    'How long requests are let in for a verified token while the database cannot be reached. Requests in flight are not ended.',
  ),
};

const redis = {
  redisAddress: optional('REDIS_ADDR', hostAndPort, 'The Redis that several instances share, host:port.'),
  redisDatabase: setting('REDIS_DB', integer(0, 15), '0', 'The number of its database.'),
  redisUsername: optional('REDIS_USERNAME', plainText, 'The user to log in as.'),
  redisPassword: optional('REDIS_PASSWORD', plainText, 'The password to log in with.', 'isSecret'),
  redisTls: setting('REDIS_TLS', flag, 'false', 'Whether the connection is encrypted.'),
};

const caching = {
  httpCacheEnabled: setting('HTTP_CACHE_ENABLED', flag, 'false', 'Whether answers are cached.'),
  httpCacheBackend: setting(
    'HTTP_CACHE_BACKEND',
    oneOf('redis', 'memory'),
    derived.cacheBackend,
    'Where they are kept: redis, for all instances, or the memory of this one.',
  ),
  httpCacheDefaultTtlSeconds: setting(
    'HTTP_CACHE_DEFAULT_TTL',
    integer(0, 31_536_000),
    '300',
    'How many seconds an answer that states no lifetime is kept; 0: only answers that state one are kept.',
    'isReloadable',
  ),
  httpCacheDefaultTtlPaths: setting(
    'HTTP_CACHE_DEFAULT_TTL_PATHS',
    pathPatterns,
    '/v1/models,/v1/models/*',
    'Which answers without a stated lifetime get it; * is all.',
    'isReloadable',
  ),
  httpCacheMaxObjectBytes: setting(
    'HTTP_CACHE_MAX_OBJECT_BYTES',
    integer(1, 2 ** 31),
    '1048576',
    'The largest answer that is kept, in bytes; in Redis at most 16 MiB.',
    'isReloadable',
  ),
  httpCacheMaxBytes: setting(
    'HTTP_CACHE_MAX_BYTES',
    size,
    '256MB',
    'How much the cache in memory may hold, some 2 KB for each answer beside its bytes included. Garbage that is not collected yet comes on top: half as much as a rule, more for moments while very many are replaced.',
    'isReloadable',
  ),
};

const rateLimits = {
  globalRateLimit: setting(
    'GLOBAL_RATE_LIMIT',
    integer(0, 1_000_000_000),
    '0',
    'The most requests with a valid token in a window, over all instances that share a Redis; 0 is off.',
    'isReloadable',
  ),
  ipRateLimit: setting(
    'IP_RATE_LIMIT',
    integer(0, 1_000_000_000),
    '0',
    'The most requests of a client address in a window, over all instances that share a Redis; 0 is off. An IPv6 network of 64 bits is one address. Behind a proxy set TRUSTED_PROXIES, or all clients are one.',
    'isReloadable',
  ),
  rateLimitWindowMs: setting(
    'RATE_LIMIT_WINDOW',
    duration(),
    '1m',
    'The length of the fixed windows. /manage and probes do not count.',
    'isReloadable',
  ),
  rateLimitOnRedisFailure: setting(
    'RATE_LIMIT_ON_REDIS_FAILURE',
    oneOf('local', 'deny'),
    'local',
    'While the shared Redis is away: local lets each instance count by itself, deny answers 503.',
    'isReloadable',
  ),
};

const events = {
  eventBus: setting(
    'LLM_PROXY_EVENT_BUS',
    oneOf('redis-streams', 'in-memory', 'off'),
    derived.eventBus,
    'Where events of requests and changes are published: to a stream in Redis, for `llmp dispatcher` and all who follow them; in the memory of this instance, for who follows them there; or nowhere.',
  ),
  observabilityBufferSize: setting(
    'OBSERVABILITY_BUFFER_SIZE',
    integer(1, 1_000_000),
    '2000',
    'How many events wait while Redis does not take them; beyond that the newest are dropped, and counted.',
  ),
  observabilityCaptureBodies: setting(
    'OBSERVABILITY_CAPTURE_BODIES',
    flag,
    'false',
    'Whether events hold the bodies of requests and answers.',
  ),
  observabilityMaxBodyBytes: setting(
    'OBSERVABILITY_MAX_BODY_BYTES',
    integer(1, 2 ** 26),
    '65536',
    'How many bytes of each body.',
  ),
  redisStreamKey: setting('REDIS_STREAM_KEY', plainText, 'llmp:events', 'The key of the stream.'),
  redisStreamMaxLength: setting(
    'REDIS_STREAM_MAX_LEN',
    integer(1, 1_000_000_000),
    '100000',
    'How many events the stream keeps, or a few more: the oldest go, dispatched or not.',
  ),
};

const dispatcher = {
  dispatcherService: setting(
    'DISPATCHER_SERVICE',
    oneOf(...DISPATCHER_SERVICE_NAMES),
    'file',
    'What `llmp dispatcher` forwards events to.',
  ),
  dispatcherEndpoint: setting<string | undefined>(
    'DISPATCHER_ENDPOINT',
    fileOrUrl,
    dispatcherEndpoint,
    `Where it is: the path of a file for ${FILE_SERVICES}, a URL for the others.`,
  ),
  dispatcherApiKey: optional(
    'DISPATCHER_API_KEY',
    credential,
    `The credential for it. Required for ${SERVICES_WITH_KEY}.`,
    'isSecret',
  ),
  dispatcherClaimIdleMs: setting(
    'DISPATCHER_CLAIM_IDLE',
    duration(),
    '60s',
    'When the event that another dispatcher took and does not answer for is taken over.',
  ),
  dispatcherListenAddress: setting(
    'DISPATCHER_LISTEN_ADDR',
    listenAddress,
    '127.0.0.1:8082',
    "Where the dispatcher's own /live, /ready and /metrics are. Two dispatchers on one machine need one each.",
  ),
};

const audit = {
  auditLogFile: setting(
    'AUDIT_LOG_FILE',
    fileOrNone,
    derived.auditLogFile,
    'A copy of the audit records of changes, as JSON lines; empty: no file. Never deleted; logrotate may rename it at any time.',
  ),
  auditUseLogFile: setting(
    'AUDIT_USE_LOG_FILE',
    fileOrNone,
    derived.auditUseLogFile,
    'The use of tokens, a line per request; empty: no file.',
  ),
  auditUseLogMaxBytes: setting(
    'AUDIT_USE_LOG_MAX_SIZE',
    size,
    '100MB',
    'The size at which that file is put aside and a new one begun.',
  ),
  auditUseLogMaxFiles: setting('AUDIT_USE_LOG_MAX_FILES', integer(1, 10_000), '10', 'How many of them are kept.'),
  usageRetentionMs: setting(
    'USAGE_RETENTION',
    retention('keeps them'),
    '8760h',
    'How long the hourly usage is kept in the database; 0 keeps it. Records of changes are never deleted.',
  ),
};

const observing = {
  logLevel: setting(
    'LOG_LEVEL',
    oneOf('debug', 'info', 'warn', 'error'),
    'info',
    'The least severe record logged.',
    'isReloadable',
  ),
  logFormat: setting(
    'LOG_FORMAT',
    oneOf('json', 'text'),
    derived.logFormat,
    'JSON lines for machines, or text for people. In the journal of systemd either goes without a time, which the journal has, and with its priority in front (journalctl -p warning).',
  ),
  metricsEnabled: setting(
    'ENABLE_METRICS',
    flag,
    'false',
    'Whether metrics are served, in the format of Prometheus, to whoever asks.',
  ),
  metricsPath: setting('METRICS_PATH', pagePath, '/metrics', 'Where they are served, beside /manage.'),
  adminUiEnabled: setting('ADMIN_UI_ENABLED', flag, 'true', 'Whether the Admin UI is served, where /manage is.'),
  adminUiPath: setting('ADMIN_UI_PATH', pagesPath, '/admin/', 'Below which path the Admin UI is served.'),
};

const stopping = {
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

/** In the order of the documentation. */
export const SECTIONS = {
  Listening: listening,
  Forwarding: forwarding,
  Database: database,
  Redis: redis,
  Cache: caching,
  'Rate limits': rateLimits,
  Events: events,
  Dispatcher: dispatcher,
  Audit: audit,
  'Logs, metrics and Admin UI': observing,
  Shutdown: stopping,
} satisfies Record<string, Record<string, Setting<unknown>>>;

export const DECLARED = {
  ...listening,
  ...forwarding,
  ...database,
  ...redis,
  ...caching,
  ...rateLimits,
  ...events,
  ...dispatcher,
  ...audit,
  ...observing,
  ...stopping,
};

type Declared = typeof DECLARED;

/** Every setting by its key, as one process reads them. */
export type AllSettings = { [K in keyof Declared]: Declared[K] extends Setting<infer T> ? T : never };

/** The keys of those that are declared with the mark `isReloadable`. */
export type ReloadableKey = {
  [K in keyof Declared]: Declared[K]['isReloadable'] extends true ? K : never;
}[keyof Declared];

/** What a daemon starts with and keeps until it ends. Nothing reloadable is among it, so that nobody can read such a setting once and for all. */
export type Settings = Omit<AllSettings, ReloadableKey>;

/** What SIGHUP may change while a daemon runs. */
export type Reloadable = Pick<AllSettings, ReloadableKey>;

/**
 * The reloadable settings that are in force, or some of them. Whoever needs one asks for `live.current` each time: SIGHUP puts
 * another object there. A request asks when it begins, and keeps what it began with.
 */
export interface Live<Key extends ReloadableKey = ReloadableKey> {
  readonly current: Pick<Reloadable, Key>;
}
