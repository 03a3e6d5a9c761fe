/** The declarations of all settings. Types, parsing and documentation are derived from them; after a change run `npm run docs`. */
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
  folder,
  hostAndPort,
  integer,
  type Kind,
  listenAddress,
  managementToken,
  oneOf,
  plainText,
  retention,
  size,
  workerCount,
} from './kinds.js';
import {
  fileOrUrl,
  hostPatterns,
  issuerUrl,
  networks,
  origins,
  pagePath,
  pagesPath,
  pathPatterns,
  pathPrefixes,
  proxyUrl,
  publicUrl,
  upstreamUrl,
} from './urls.js';

export interface Setting<T, IsReloadable extends boolean = boolean> {
  name: string;
  kind: Kind<T>;
  meaning: string;
  /** The default as it would be written; null for none. */
  default: string | DerivedDefault | null;
  isRequired: boolean;
  /** Whether the value must never be shown. */
  isSecret: boolean;
  /** Whether SIGHUP applies a change. */
  isReloadable: IsReloadable;
}

type Mark = 'isRequired' | 'isSecret' | 'isReloadable';

/** Whether `M` is one of `Marks`. */
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

/** A setting without a default. */
const optional = <T, Marks extends Mark = never>(name: string, kind: Kind<T>, meaning: string, ...marks: Marks[]) =>
  setting<T | undefined, Marks>(name, kind, null, meaning, ...marks);

const listening = {
  managementToken: setting(
    'MANAGEMENT_TOKEN',
    managementToken,
    null,
    'The credential for the management API, the command line and the Admin UI. It is compared byte for byte.',
    'isRequired',
    'isSecret',
  ),
  listenAddress: setting(
    'LISTEN_ADDR',
    listenAddress,
    '127.0.0.1:8080',
    'The listen address of the daemon: host:port, [::]:8080, :8080 for all addresses, or unix:/path.',
  ),
  managementListenAddress: optional(
    'MANAGEMENT_LISTEN_ADDR',
    listenAddress,
    'A separate listen address for /manage, the Admin UI and the metrics. They are then served only there, so that LISTEN_ADDR can be public.',
  ),
  maxConnections: setting(
    'MAX_CONNECTIONS',
    integer(1, 1_000_000),
    '10000',
    'The maximum number of concurrent client connections. With WORKERS each worker gets an equal share.',
  ),
  workers: setting(
    'WORKERS',
    workerCount,
    '1',
    'The number of processes that serve /v1, or auto: one for each processor core. With more than one, a primary process starts them, replaces one that ends, and serves /manage; limits, counts and changes apply to all of them together. UPSTREAM_CONNECTIONS, MAX_CONNECTIONS and HTTP_CACHE_MAX_BYTES are divided among them.',
  ),
  clientKeepAliveMs: setting(
    'CLIENT_KEEP_ALIVE',
    duration(),
    '75s',
    'How long an idle client connection stays open for the next request. It must be longer than the keep-alive time of a load balancer in front, which would otherwise send a request just as the connection is closed, and respond with 502.',
  ),
  trustedProxies: optional(
    'TRUSTED_PROXIES',
    networks,
    'The networks of trusted reverse proxies, separated by commas. The daemon takes the client address from X-Forwarded-For, and whether a browser uses TLS from X-Forwarded-Proto, only on connections from these networks and, if any network is set, on unix sockets.',
  ),
  corsAllowedOrigins: optional(
    'CORS_ALLOWED_ORIGINS',
    origins,
    'The origins from which web pages may call /v1 and /manage, separated by commas, exactly as browsers send them.',
    'isReloadable',
  ),
};

const forwarding = {
  upstreamBaseUrl: setting(
    'UPSTREAM_BASE_URL',
    upstreamUrl,
    'https://api.openai.com',
    'The base URL of the provider, http or https; /v1/… is appended. A trailing /v1, as in the base URL of an SDK, is ignored with a warning.',
  ),
  proxyPrefixes: setting(
    'PROXY_PREFIXES',
    pathPrefixes,
    '/v1,/v1beta,/openai,/ws',
    'The paths that are forwarded, each with everything below it. The defaults are those of the SDKs of OpenAI and Anthropic, of Google, of Azure and Groq, and of the Live API of Google.',
  ),
  upstreamAllowedHosts: setting(
    'UPSTREAM_ALLOWED_HOSTS',
    hostPatterns,
    '*',
    'The hosts that the base URL of a project may have. It is checked when a base URL is stored. The host of UPSTREAM_BASE_URL is always allowed for projects that name none.',
    'isReloadable',
  ),
  pricesFile: setting(
    'PRICES_FILE',
    fileOrNone,
    '',
    'A JSON file with prices of models. They take precedence over the shipped prices: see docs/prices.md. Empty for no file.',
    'isReloadable',
  ),
  jwksFolder: optional(
    'JWKS_DIR',
    folder,
    'The folder with the files of public keys that trusts name with jwks_file, for issuers that do not publish theirs. A file is read again when it was changed.',
  ),
  upstreamProxy: optional(
    'UPSTREAM_PROXY',
    proxyUrl,
    'The HTTP proxy through which providers, the identity provider and issuers of JWTs are reached, with CONNECT. It resolves their names, so that names are not checked for metadata addresses. Those on this machine are reached directly. HTTPS_PROXY and the like are not used.',
  ),
  upstreamProxyBypass: optional(
    'UPSTREAM_PROXY_BYPASS',
    hostPatterns,
    'The hosts that are reached without UPSTREAM_PROXY.',
  ),
  requestTimeoutMs: setting(
    'REQUEST_TIMEOUT',
    duration(),
    '600s',
    'The time limit for the first byte of the response after the last byte of the request, and for pauses within the response. It also limits how long a client may read nothing. Reasoning models can be silent for minutes.',
    'isReloadable',
  ),
  clientBodyTimeoutMs: setting(
    'CLIENT_BODY_TIMEOUT',
    duration(),
    '30s',
    'The time limit for each KiB of a request body.',
    'isReloadable',
  ),
  websocketIdleTimeoutMs: setting(
    'WEBSOCKET_IDLE_TIMEOUT',
    duration(),
    '10m',
    'The idle timeout of WebSockets: how long both sides may be silent.',
    'isReloadable',
  ),
  upstreamConnectTimeoutMs: setting(
    'UPSTREAM_CONNECT_TIMEOUT',
    duration(),
    '10s',
    'The time limit for connecting to the upstream, including the wait for a free connection.',
    'isReloadable',
  ),
  upstreamConnections: setting(
    'UPSTREAM_CONNECTIONS',
    integer(1, 65_535),
    '4096',
    'The maximum number of concurrent connections to the upstream, including WebSockets.',
  ),
  queryKey: setting(
    'QUERY_KEY',
    oneOf('refuse', 'accept'),
    'refuse',
    'What happens with a token in the URL, in the query parameter key as in ?key=sk-wt-…: some clients of Google send it there. With refuse it gets 401 credential_in_query. With accept it is read as the header X-Goog-Api-Key and removed from the URL, so that no provider, cache, event or log of llmp contains it; servers in front of llmp may still log it.',
    'isReloadable',
  ),
  countReads: setting(
    'COUNT_READS',
    flag,
    'true',
    "Whether a request that runs no model counts as a use of its token: GET and HEAD without a body, such as the list of models, and the counting of tokens (POST to Anthropic's /messages/count_tokens, OpenAI's /responses/input_tokens and Google's :countTokens). If false, such a request spends no unit of a cap and is not in request_count; with a used-up cap it is refused all the same. Usage, events, metrics and audit contain it in both cases.",
    'isReloadable',
  ),
  escapes: setting(
    'ESCAPES',
    oneOf('refuse', 'allow'),
    'refuse',
    'Whether restricted tokens may use escapes: routes whose effects outlive the request or lead around the daemon, such as file batches, fine-tuning, and secrets for other clients. A token is restricted if it or its project has a cap, allow or limits. With refuse it gets 403 route_escapes, unless its list of routes names the route. allow is for programs that depend on such routes.',
  ),
  maxRequestBytes: setting('MAX_REQUEST_SIZE', size, '50MB', 'The maximum size of a request body.'),
  errorShape: setting(
    'ERROR_SHAPE',
    oneOf('auto', 'plain', 'openai', 'anthropic', 'google'),
    'auto',
    "The format of the daemon's own errors under /v1: plain is the format of /manage; openai, anthropic and google are those that the SDKs of these providers read. With auto, the daemon uses the one that the client reads, and for errors that no retry cures a status with which the client gives up: docs/clients/README.md lists what it recognises clients by.",
    'isReloadable',
  ),
};

const database = {
  databaseDriver: setting(
    'DB_DRIVER',
    oneOf('sqlite', 'postgres', 'mysql'),
    'sqlite',
    'The type of database: sqlite is a file for a single instance; postgres and mysql are servers for several instances. For MariaDB use mysql.',
  ),
  database: setting(
    'DATABASE_URL',
    databaseAddress,
    derived.databaseUrl,
    'The database: the path of a file, postgres://USER:PASSWORD@HOST:PORT/NAME or mysql://USER:PASSWORD@HOST:PORT/NAME. ?sslmode=require encrypts the connection; ?sslmode=verify-full also verifies the server, with the certificates of the system or of &sslrootcert=/PATH. For a unix socket omit HOST and add ?host=/FOLDER (PostgreSQL) or ?socket=/PATH (MySQL).',
  ),
  databasePoolSize: setting(
    'DATABASE_POOL_SIZE',
    integer(1, 1000),
    '10',
    'The maximum number of connections to a database server. The daemon uses one more connection to watch for changes.',
  ),
  autoMigrate: setting(
    'AUTO_MIGRATE',
    flag,
    'true',
    'Whether the daemon migrates the database schema when it starts. If false, /ready responds with 503 until you run `llmp migrate up`.',
  ),
  encryptionKey: optional(
    'ENCRYPTION_KEY',
    encryptionKey,
    'The key that encrypts upstream keys in the database: 32 bytes in base64. With SQLite the default is a key file with mode 0600 beside the database; back it up as well. Required with a database server; all instances must use the same key.',
    'isSecret',
  ),
  previousEncryptionKey: optional(
    'ENCRYPTION_KEY_PREVIOUS',
    encryptionKey,
    'The previous encryption key. The daemon can decrypt upstream keys with it until `llmp migrate rekey` has re-encrypted them with ENCRYPTION_KEY.',
    'isSecret',
  ),
  tokenStaleLimitMs: setting(
    'TOKEN_STALE_LIMIT',
    duration(),
    '60s',
    'How long requests with a verified token are accepted while the database is unreachable. Requests in flight are not interrupted.',
  ),
};

const redis = {
  redisAddress: optional(
    'REDIS_ADDR',
    hostAndPort,
    'The address of Redis, host:port. All instances must use the same Redis.',
  ),
  redisDatabase: setting('REDIS_DB', integer(0, 15), '0', 'The number of the Redis database.'),
  redisUsername: optional('REDIS_USERNAME', plainText, 'The user name for Redis.'),
  redisPassword: optional('REDIS_PASSWORD', plainText, 'The password for Redis.', 'isSecret'),
  redisTls: setting('REDIS_TLS', flag, 'false', 'Whether the connection to Redis uses TLS.'),
};

const caching = {
  httpCacheEnabled: setting('HTTP_CACHE_ENABLED', flag, 'false', 'Whether responses are cached.'),
  httpCacheBackend: setting(
    'HTTP_CACHE_BACKEND',
    oneOf('redis', 'memory'),
    derived.cacheBackend,
    'Where cached responses are stored: redis, shared by all instances, or memory, for this instance only.',
  ),
  httpCacheDefaultTtlSeconds: setting(
    'HTTP_CACHE_DEFAULT_TTL',
    integer(0, 31_536_000),
    '300',
    'The lifetime in seconds of cached responses that do not state one; 0: only responses with a stated lifetime are cached.',
    'isReloadable',
  ),
  httpCacheDefaultTtlPaths: setting(
    'HTTP_CACHE_DEFAULT_TTL_PATHS',
    pathPatterns,
    '/v1/models,/v1/models/*',
    'The paths to which HTTP_CACHE_DEFAULT_TTL applies, separated by commas; * is all.',
    'isReloadable',
  ),
  httpCacheMaxObjectBytes: setting(
    'HTTP_CACHE_MAX_OBJECT_BYTES',
    integer(1, 2 ** 31),
    '1048576',
    'The maximum size of a cached response in bytes; with Redis never more than 16 MiB.',
    'isReloadable',
  ),
  httpCacheMaxBytes: setting(
    'HTTP_CACHE_MAX_BYTES',
    size,
    '256MB',
    'The maximum size of the cache in memory, including about 2 KB of overhead per response. With WORKERS each worker has an equal share, and its own copies. Uncollected garbage adds to it: usually up to half as much, and more for moments while many responses are replaced.',
    'isReloadable',
  ),
};

const rateLimits = {
  globalRateLimit: setting(
    'GLOBAL_RATE_LIMIT',
    integer(0, 1_000_000_000),
    '0',
    'The maximum number of requests with a valid token per window, counted over all instances with the same Redis; 0 is unlimited.',
    'isReloadable',
  ),
  ipRateLimit: setting(
    'IP_RATE_LIMIT',
    integer(0, 1_000_000_000),
    '0',
    'The maximum number of requests per client address and window, counted over all instances with the same Redis; 0 is unlimited. An IPv6 /64 network counts as one address. Behind a reverse proxy set TRUSTED_PROXIES; otherwise all clients have the same address.',
    'isReloadable',
  ),
  rateLimitWindowMs: setting(
    'RATE_LIMIT_WINDOW',
    duration(),
    '1m',
    'The length of the fixed windows of both rate limits. Requests to /manage and probes do not count.',
    'isReloadable',
  ),
  rateLimitOnRedisFailure: setting(
    'RATE_LIMIT_ON_REDIS_FAILURE',
    oneOf('local', 'deny'),
    'local',
    'What happens while Redis is unreachable: with local each instance counts its own requests; with deny requests get 503.',
    'isReloadable',
  ),
};

const events = {
  eventBus: setting(
    'LLM_PROXY_EVENT_BUS',
    oneOf('redis-streams', 'in-memory', 'off'),
    derived.eventBus,
    'Where events about requests and changes are published: redis-streams for `llmp dispatcher` and for `llmp events tail` on any instance, in-memory for `llmp events tail` on this instance only, or off.',
  ),
  observabilityBufferSize: setting(
    'OBSERVABILITY_BUFFER_SIZE',
    integer(1, 1_000_000),
    '2000',
    'How many events are buffered while Redis does not accept them. If the buffer is full, new events are dropped and counted.',
  ),
  observabilityCaptureBodies: setting(
    'OBSERVABILITY_CAPTURE_BODIES',
    flag,
    'false',
    'Whether events contain the bodies of requests and responses.',
  ),
  observabilityMaxBodyBytes: setting(
    'OBSERVABILITY_MAX_BODY_BYTES',
    integer(1, 2 ** 26),
    '65536',
    'How many bytes of each body events contain.',
  ),
  redisStreamKey: setting('REDIS_STREAM_KEY', plainText, 'llmp:events', 'The Redis key of the event stream.'),
  redisStreamMaxLength: setting(
    'REDIS_STREAM_MAX_LEN',
    integer(1, 1_000_000_000),
    '100000',
    'The approximate maximum length of the event stream. The oldest events are removed, even if they were not dispatched.',
  ),
};

const dispatcher = {
  dispatcherService: setting(
    'DISPATCHER_SERVICE',
    oneOf(...DISPATCHER_SERVICE_NAMES),
    'file',
    'The service to which `llmp dispatcher` forwards events.',
  ),
  dispatcherEndpoint: setting<string | undefined>(
    'DISPATCHER_ENDPOINT',
    fileOrUrl,
    dispatcherEndpoint,
    `The address of the service: the path of a file for ${FILE_SERVICES}, a URL for the others.`,
  ),
  dispatcherApiKey: optional(
    'DISPATCHER_API_KEY',
    credential,
    `The API key of the service. Required for ${SERVICES_WITH_KEY}.`,
    'isSecret',
  ),
  dispatcherClaimIdleMs: setting(
    'DISPATCHER_CLAIM_IDLE',
    duration(),
    '60s',
    'How long an event stays with a dispatcher that does not acknowledge it. After that, another dispatcher takes it over.',
  ),
  dispatcherListenAddress: setting(
    'DISPATCHER_LISTEN_ADDR',
    listenAddress,
    '127.0.0.1:8082',
    'The listen address for /live, /ready and /metrics of the dispatcher. Two dispatchers on one machine need different addresses.',
  ),
};

const audit = {
  auditLogFile: setting(
    'AUDIT_LOG_FILE',
    fileOrNone,
    derived.auditLogFile,
    'The file for audit records of changes, as JSON lines; empty for no file. llmp never deletes it; logrotate can rename it at any time.',
  ),
  auditUseLogFile: setting(
    'AUDIT_USE_LOG_FILE',
    fileOrNone,
    derived.auditUseLogFile,
    'The file for uses of tokens, one line per request; empty for no file.',
  ),
  auditUseLogMaxBytes: setting(
    'AUDIT_USE_LOG_MAX_SIZE',
    size,
    '100MB',
    'The size at which AUDIT_USE_LOG_FILE is rotated.',
  ),
  auditUseLogMaxFiles: setting(
    'AUDIT_USE_LOG_MAX_FILES',
    integer(1, 10_000),
    '10',
    'The number of rotated files of AUDIT_USE_LOG_FILE; older files are deleted.',
  ),
  usageRetentionMs: setting(
    'USAGE_RETENTION',
    retention('forever'),
    '8760h',
    'How long hourly usage is stored in the database; 0: forever. Audit records of changes are never deleted.',
  ),
};

const observing = {
  logLevel: setting(
    'LOG_LEVEL',
    oneOf('debug', 'info', 'warn', 'error'),
    'info',
    'The lowest severity that is logged.',
    'isReloadable',
  ),
  logFormat: setting(
    'LOG_FORMAT',
    oneOf('json', 'text'),
    derived.logFormat,
    'The log format: JSON lines or text. In the systemd journal, records have no timestamp, because the journal adds one, and start with their priority (journalctl -p warning).',
  ),
  metricsEnabled: setting(
    'ENABLE_METRICS',
    flag,
    'false',
    'Whether metrics are served in the Prometheus format. They need no credential.',
  ),
  metricsPath: setting(
    'METRICS_PATH',
    pagePath,
    '/metrics',
    'The path of the metrics, on the listen address of /manage.',
  ),
  adminUiEnabled: setting(
    'ADMIN_UI_ENABLED',
    flag,
    'true',
    'Whether the Admin UI is served, on the listen address of /manage.',
  ),
  adminUiPath: setting('ADMIN_UI_PATH', pagesPath, '/admin/', 'The path of the Admin UI.'),
};

const people = {
  oidcIssuer: optional(
    'OIDC_ISSUER',
    issuerUrl,
    'The issuer of the identity provider (OpenID Connect) with which people log in to the Admin UI and with `llmp login`. Its configuration is read from /.well-known/openid-configuration below it. See docs/operators.md.',
  ),
  oidcClientId: optional('OIDC_CLIENT_ID', plainText, 'The client ID of llmp at the identity provider.'),
  oidcClientSecret: optional(
    'OIDC_CLIENT_SECRET',
    plainText,
    'The client secret of llmp at the identity provider. Only the daemon uses it.',
    'isSecret',
  ),
  oidcRoles: setting(
    'OIDC_ROLES',
    fileOrNone,
    '',
    'A JSON file that gives people their roles by the claims of the identity provider: see docs/operators.md. A change of its content ends all sessions of people. Empty for no file.',
    'isReloadable',
  ),
  publicUrl: optional(
    'PUBLIC_URL',
    publicUrl,
    'The URL at which browsers reach the Admin UI, without its path. The identity provider sends people back there: register this URL, followed by ADMIN_UI_PATH and oidc/callback, as a redirect URI of the client.',
  ),
};

const stopping = {
  shutdownDelayMs: setting(
    'SHUTDOWN_DELAY',
    duration('stop accepting requests at once'),
    '1s',
    'How long the daemon still accepts requests after SIGTERM. /ready already responds with 503, so that load balancers stop sending requests.',
  ),
  shutdownGraceMs: setting(
    'SHUTDOWN_GRACE',
    duration('interrupt them at once'),
    '30s',
    'How long requests in flight may then take to finish.',
  ),
};

/** The settings by section, in the order of the documentation. */
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
  'Log-in of people': people,
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
  ...people,
  ...stopping,
};

type Declared = typeof DECLARED;

/** The values of all settings by key, as a process reads them. */
export type AllSettings = { [K in keyof Declared]: Declared[K] extends Setting<infer T> ? T : never };

/** The keys of the settings with the mark `isReloadable`. */
export type ReloadableKey = {
  [K in keyof Declared]: Declared[K]['isReloadable'] extends true ? K : never;
}[keyof Declared];

/** The settings that are fixed when a daemon starts. Reloadable settings are excluded, so that no code can read one of them once and keep it. */
export type Settings = Omit<AllSettings, ReloadableKey>;

/** The settings that SIGHUP can change in a running daemon. */
export type Reloadable = Pick<AllSettings, ReloadableKey>;

/**
 * The current reloadable settings, or some of them. Code that needs one reads `live.current` each time, because SIGHUP replaces that
 * object. A request reads it when it starts, and uses these values until it ends.
 */
export interface Live<Key extends ReloadableKey = ReloadableKey> {
  readonly current: Pick<Reloadable, Key>;
}
