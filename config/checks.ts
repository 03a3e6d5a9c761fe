/** Checks beyond single settings: invalid combinations, and dangerous options of the process. */
import { resolve } from 'node:path';
import type { AllSettings } from './declarations.js';
import { DISPATCHER_SERVICES } from './dispatcher-services.js';
import type { ListenAddress } from './kinds.js';
import type { Sources } from './sources.js';

type Key = keyof AllSettings;

interface Check {
  /** The settings that it needs. It runs only if all of them are valid. */
  of: readonly Key[];
  /** @returns undefined if nothing is wrong. */
  problem: (settings: AllSettings) => string | undefined;
}

const CHECKS: readonly Check[] = [
  {
    of: ['listenAddress', 'managementListenAddress'],
    problem({ listenAddress, managementListenAddress: other }) {
      if (!other || !overlap(listenAddress, other)) return undefined;
      return 'MANAGEMENT_LISTEN_ADDR must differ from LISTEN_ADDR';
    },
  },
  {
    of: ['encryptionKey', 'previousEncryptionKey'],
    problem({ encryptionKey, previousEncryptionKey }) {
      if (!previousEncryptionKey || !encryptionKey?.equals(previousEncryptionKey)) return undefined;
      return 'ENCRYPTION_KEY_PREVIOUS must differ from ENCRYPTION_KEY';
    },
  },
  {
    of: ['databaseDriver', 'database'],
    problem({ databaseDriver, database }) {
      if (databaseDriver === database.driver) return undefined;
      if (database.driver === 'sqlite') {
        return `DB_DRIVER=${databaseDriver} requires a DATABASE_URL such as ${databaseDriver}://USER:PASSWORD@HOST/NAME`;
      }
      return `DATABASE_URL is a ${database.driver} URL; set DB_DRIVER=${database.driver}`;
    },
  },
  {
    of: ['databaseDriver', 'encryptionKey'],
    problem({ databaseDriver, encryptionKey }) {
      if (databaseDriver === 'sqlite' || encryptionKey) return undefined;
      return `ENCRYPTION_KEY is required with DB_DRIVER=${databaseDriver}: all instances must use the same key (generate one with: openssl rand -base64 32)`;
    },
  },
  {
    of: ['httpCacheBackend', 'redisAddress'],
    problem({ httpCacheBackend, redisAddress }) {
      if (httpCacheBackend !== 'redis' || redisAddress) return undefined;
      return 'HTTP_CACHE_BACKEND=redis requires REDIS_ADDR';
    },
  },
  {
    of: ['eventBus', 'redisAddress'],
    problem({ eventBus, redisAddress }) {
      if (eventBus !== 'redis-streams' || redisAddress) return undefined;
      return 'LLM_PROXY_EVENT_BUS=redis-streams requires REDIS_ADDR';
    },
  },
  {
    of: ['httpCacheBackend', 'httpCacheMaxObjectBytes', 'httpCacheMaxBytes'],
    problem({ httpCacheBackend, httpCacheMaxObjectBytes, httpCacheMaxBytes }) {
      if (httpCacheBackend !== 'memory' || httpCacheMaxObjectBytes <= httpCacheMaxBytes) return undefined;
      return 'HTTP_CACHE_MAX_OBJECT_BYTES must not exceed HTTP_CACHE_MAX_BYTES';
    },
  },
  {
    of: ['workers', 'maxConnections'],
    problem: ({ workers, maxConnections }) =>
      maxConnections < workers ? 'MAX_CONNECTIONS must not be less than WORKERS' : undefined,
  },
  {
    of: ['workers', 'upstreamConnections'],
    problem: ({ workers, upstreamConnections }) =>
      upstreamConnections < workers ? 'UPSTREAM_CONNECTIONS must not be less than WORKERS' : undefined,
  },
  {
    of: ['workers', 'httpCacheBackend', 'httpCacheMaxObjectBytes', 'httpCacheMaxBytes'],
    problem({ workers, httpCacheBackend, httpCacheMaxObjectBytes, httpCacheMaxBytes }) {
      if (workers === 1 || httpCacheBackend !== 'memory') return undefined;
      if (httpCacheMaxObjectBytes <= 1000 * kilobytesPerWorker(httpCacheMaxBytes, workers)) return undefined;
      return 'HTTP_CACHE_MAX_OBJECT_BYTES must not exceed the share of a worker: HTTP_CACHE_MAX_BYTES divided by WORKERS';
    },
  },
  {
    of: ['dispatcherService', 'dispatcherEndpoint'],
    problem({ dispatcherService, dispatcherEndpoint }) {
      if (dispatcherEndpoint === undefined) return undefined;
      const isUrl = /^https?:/i.test(dispatcherEndpoint);
      if (isUrl === (DISPATCHER_SERVICES[dispatcherService].endpoint === 'URL')) return undefined;
      return `DISPATCHER_ENDPOINT must be ${isUrl ? 'the path of a file' : 'a URL'} with DISPATCHER_SERVICE=${dispatcherService}`;
    },
  },
  {
    of: ['auditLogFile', 'auditUseLogFile'],
    problem({ auditLogFile, auditUseLogFile }) {
      if (auditLogFile === null || auditLogFile !== auditUseLogFile) return undefined;
      return 'AUDIT_USE_LOG_FILE must differ from AUDIT_LOG_FILE';
    },
  },
  {
    of: ['metricsPath', 'proxyPrefixes'],
    problem: ({ metricsPath, proxyPrefixes }) => clash('METRICS_PATH', metricsPath, [...ROUTES, ...proxyPrefixes]),
  },
  {
    of: ['adminUiPath', 'proxyPrefixes'],
    problem: ({ adminUiPath, proxyPrefixes }) => clash('ADMIN_UI_PATH', adminUiPath, [...ROUTES, ...proxyPrefixes]),
  },
  {
    of: ['proxyPrefixes', 'adminUiPath'],
    problem({ proxyPrefixes, adminUiPath }) {
      // Pages below a prefix are reported above.
      const reserved = (prefix: string) => (isBelow(adminUiPath, prefix) ? ROUTES : [...ROUTES, adminUiPath]);
      return proxyPrefixes
        .map((prefix) => clash('PROXY_PREFIXES', prefix, reserved(prefix)))
        .find((problem) => problem !== undefined);
    },
  },
  {
    of: ['metricsEnabled', 'metricsPath', 'adminUiEnabled', 'adminUiPath'],
    problem({ metricsEnabled, metricsPath, adminUiEnabled, adminUiPath }) {
      if (!metricsEnabled || !adminUiEnabled) return undefined;
      return clash('METRICS_PATH', metricsPath, [adminUiPath]) ?? clash('ADMIN_UI_PATH', adminUiPath, [metricsPath]);
    },
  },
  {
    of: ['oidcIssuer', 'oidcClientId', 'oidcClientSecret', 'oidcRoles', 'publicUrl'],
    problem({ oidcIssuer, oidcClientId, oidcClientSecret, oidcRoles, publicUrl }) {
      const others = {
        OIDC_CLIENT_ID: oidcClientId,
        OIDC_CLIENT_SECRET: oidcClientSecret,
        OIDC_ROLES: oidcRoles ?? undefined,
        PUBLIC_URL: publicUrl,
      };
      const missing = Object.entries(others).flatMap(([name, value]) => (value === undefined ? [name] : []));
      if (oidcIssuer !== undefined)
        return missing.length > 0 ? `OIDC_ISSUER requires ${missing.join(', ')}` : undefined;
      const given = Object.keys(others).find((name) => name.startsWith('OIDC_') && !missing.includes(name));
      return given === undefined ? undefined : `${given} requires OIDC_ISSUER`;
    },
  },
];

/** A worker's share of a size. */
export const kilobytesPerWorker = (bytes: number, workers: number): number =>
  Math.max(1, Math.floor(bytes / workers / 1000));

const EVERY_ADDRESS = ['::', '0.0.0.0'];

/** Whether two addresses are the same, or one includes the other. Port 0 never overlaps, because each listener gets a free port. */
function overlap(one: ListenAddress, other: ListenAddress): boolean {
  if ('path' in one || 'path' in other) {
    return 'path' in one && 'path' in other && resolve(one.path) === resolve(other.path);
  }
  const hosts = [one.host, other.host];
  const isSameHost = hosts[0] === hosts[1] || hosts.some((host) => EVERY_ADDRESS.includes(host));
  return one.port === other.port && one.port !== 0 && isSameHost;
}

/** Paths that are always served. */
const ROUTES = ['/manage', '/token', '/live', '/ready', '/health'];

function clash(name: string, path: string, routes: readonly string[]): string | undefined {
  const taken = routes.find((route) => isBelow(path, route));
  return taken && `${name}=${path} conflicts with ${taken}`;
}

/** Whether `path` is `route` or below it, ignoring case, because paths that differ only in case would confuse readers. */
function isBelow(path: string, route: string): boolean {
  const asFolder = (text: string) => `${text.replace(/\/$/, '').toLowerCase()}/`;
  return asFolder(path).startsWith(asFolder(route));
}

/** @param settings the valid settings. */
export function combinationProblems(settings: Partial<AllSettings>): string[] {
  return CHECKS.filter(({ of }) => of.every((key) => key in settings)).flatMap(
    ({ problem }) => problem(settings as AllSettings) ?? [],
  );
}

const DANGEROUS_OPTION = /^--(?:inspect(?:-brk|-wait)?|insecure-http-parser)(?==|$)/;

/** Options of the process that would expose secrets or allow request smuggling, whatever the settings are. */
export function processProblems({ env, execArgv = [] }: Sources): string[] {
  const problems = [];
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    problems.push('NODE_TLS_REJECT_UNAUTHORIZED=0 would send upstream keys to unverified servers; unset it');
  }
  const inOptions = (env.NODE_OPTIONS ?? '').split(/[\s"]+/);
  for (const [where, options] of [
    ['NODE_OPTIONS', inOptions],
    ['the command line of node', execArgv],
  ] as const) {
    for (const option of options) {
      // Node accepts underscores in place of dashes.
      const [name] = DANGEROUS_OPTION.exec(option.replaceAll('_', '-')) ?? [];
      if (name?.startsWith('--inspect'))
        problems.push(`${name} in ${where} exposes all secrets to a debugger; remove it`);
      else if (name) problems.push(`${name} in ${where} allows request smuggling; remove it`);
    }
  }
  return problems;
}

const SHORTEST_GOOD_CREDENTIAL = 16;

/** Warnings about valid values that are probably mistakes. @param settings the valid settings. @param sources where they were read. */
export function warningsFor(settings: Partial<AllSettings>, { env, file }: Sources): string[] {
  const { managementToken, trustedProxies } = settings;
  const warnings = sharedDatabaseWarnings(settings);
  if (managementToken !== undefined && managementToken.length < SHORTEST_GOOD_CREDENTIAL) {
    warnings.push(`MANAGEMENT_TOKEN is shorter than ${SHORTEST_GOOD_CREDENTIAL} characters and can be guessed`);
  }
  if (trustedProxies?.some(({ prefix }) => prefix === 0)) {
    warnings.push('TRUSTED_PROXIES trusts all addresses: any client can claim any address');
  }
  if (settings.escapes === 'allow') {
    warnings.push('ESCAPES=allow: tokens with a cap, a list or limits can have models run without being counted');
  }
  warnings.push(...proxyWarnings(settings, { env, file }));
  return warnings;
}

/** A proxy that other programs would use, and this process does not. */
function proxyWarnings(settings: Partial<AllSettings>, { env, file }: Sources): string[] {
  const given = PROXY_VARIABLES.find((name) => [env, file?.values ?? {}].some((values) => values[name]));
  if (given === undefined) return [];
  if ('upstreamProxy' in settings) {
    return settings.upstreamProxy
      ? []
      : [`${given} is not used: to reach the provider through a proxy, set UPSTREAM_PROXY`];
  }
  return 'dispatcherEndpoint' in settings
    ? [`${given} is not used: the dispatcher connects to its service directly`]
    : [];
}

/** The variables with which other programs find a proxy. */
const PROXY_VARIABLES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'];

/** Warnings about what several instances on one database do not share. */
function sharedDatabaseWarnings(settings: Partial<AllSettings>): string[] {
  const { database, redisAddress, httpCacheEnabled, httpCacheBackend } = settings;
  if (!database || database.driver === 'sqlite') return [];
  if ('redisAddress' in settings && !redisAddress) {
    return [
      'REDIS_ADDR is not set: each instance on this database has its own cache, rate limits and events, and applies changes made on another instance within a second',
    ];
  }
  if (!httpCacheEnabled || httpCacheBackend !== 'memory') return [];
  return [
    'HTTP_CACHE_BACKEND=memory with a shared database: each instance has its own cache, and fetches each response once',
  ];
}
