/** The third builder: requests on /v1, and the recorders of completed requests. */
import type { Settings } from '../../config/settings.js';
import { ContentReaders } from '../core/content/content-reader.js';
import type { OnEnded, RequestEnded } from '../core/events.js';
import type { Log } from '../core/ports.js';
import { publishRequest } from '../core/publishing.js';
import { RecentTraffic } from '../core/recent-traffic.js';
import { type AddressOf, addressesBehind } from '../http/client-identity.js';
import { openDecoder } from '../http/proxy/decoding.js';
import { type ProbeProvider, providerProbe } from '../http/proxy/key-check.js';
import { createProxy, type Proxy } from '../http/proxy/proxy.js';
import { createUpgrades, type Upgrades } from '../http/proxy/upgrades.js';
import { Upstreams } from '../http/proxy/upstreams.js';
import type { ClientRoutes } from '../http/server/client-routes.js';
import { toPrimary } from '../http/server/through-primary.js';
import { tokenExchangeHandler } from '../http/server/token-exchange.js';
import { tokenSelfHandler } from '../http/server/token-self.js';
import type { Metrics } from '../metrics/metrics.js';
import type { Sources } from '../metrics/sources.js';
import { type ConnectionLimits, maxDescriptors, limitToDescriptors } from '../process/descriptors.js';
import { ParsingTurn } from '../http/proxy/upstream-socket.js';
import { MemoryBounds } from '../http/server/memory-bounds.js';
import type { HeapGuard } from '../process/heap-guard.js';
import type { BuildContext } from './context.js';
import type { Core } from './core.js';
import type { Storage } from './storage.js';

/** Recorders of completed requests that are not built here. */
export interface ExternalRecorders {
  onEnded: OnEnded | undefined;
  /** The sums of a primary's workers; null in other processes. */
  ofWorkers: Partial<Sources> | null;
  /** In a worker: sends the records to the primary, which records them. */
  toPrimary: OnEnded | null;
}

export interface Traffic {
  proxy: Proxy;
  upgrades: Upgrades;
  clientRoutes: ClientRoutes;
  upstreams: Upstreams;
  probeProvider: ProbeProvider;
  /** Connection limits, reduced to the limit of open files. */
  connections: ConnectionLimits;
  /** Hands the record of a completed request to all recorders. */
  record: OnEnded;
  addressOf: AddressOf;
  recentTraffic: RecentTraffic;
  /** Null if metrics are disabled. */
  metrics: Metrics | null;
  heap: HeapGuard;
  bounds: MemoryBounds;
}

export async function buildTraffic(
  context: BuildContext,
  core: Core,
  storage: Storage,
  external: ExternalRecorders,
): Promise<Traffic> {
  const { settings, live, log, clock, daemonId, heap, memory, link, isPrimary } = context;
  const { maxRequestBytes, proxyPrefixes } = settings;
  const { admission, rateLimits, costs, cache, readiness } = core;
  const connections = connectionsFor(settings, log);
  const bounds = new MemoryBounds(clock, memory);
  const upstreams = new Upstreams(
    { ...settings, ...connections },
    live,
    clock,
    new ParsingTurn(bounds.scheduler, memory),
  );
  const mostCaptured = settings.observabilityCaptureBodies ? settings.observabilityMaxBodyBytes : null;
  const contents = new ContentReaders({ openDecoder, clock, maxCaptured: mostCaptured });
  if (cache) cache.reportsError = contents.reportsError;
  // A worker has none, and does not load what they need.
  const exchanges = link
    ? toPrimary({ connect: (client) => link.connect(client), memory })
    : (await import('./exchanges.js')).exchangesOf(context, core, storage);
  const addressOf = addressesBehind(settings.trustedProxies);
  const recentTraffic = new RecentTraffic(clock);
  const metrics =
    settings.metricsEnabled && !link
      ? // Loaded only if metrics are enabled.
        new (await import('../metrics/metrics.js')).Metrics({
          // Read only after everything is built.
          inFlight: () => ({ http: proxy.inFlight, websocket: upgrades.inFlight }),
          ...sourcesOf(context, core, storage),
          exchanges: typeof exchanges === 'function' ? {} : exchanges.outcomes,
          managementRefusals: core.registry.refusals,
          shed: () => heap.refused,
          dropped: () => memory.dropped,
          ...external.ofWorkers,
        })
      : null;
  const recorders = external.toPrimary
    ? [external.toPrimary, external.onEnded].filter((each) => each !== undefined)
    : recordersOf(core, storage, external.onEnded, metrics, recentTraffic);
  const record = (ended: RequestEnded) => {
    for (const each of recorders) each(ended);
  };
  const loopMark = `llmp-${daemonId.slice(0, 8)}`;
  /** Options that requests and upgrades share. */
  const shared = {
    admission,
    rateLimits,
    costs,
    addressOf,
    unreadResponses: bounds.unreadResponses,
    memory,
    clock,
    live,
    upstreams,
    isServing: () => readiness.isDatabaseReady && heap.admits(),
    loopMark,
    scheduler: bounds.scheduler,
    contents,
    onEnded(ended: RequestEnded, cause: unknown) {
      record(ended);
      logEnded(log, ended, cause);
    },
  };
  const proxy = createProxy({ ...shared, cache, maxRequestBytes, proxyPrefixes });
  const upgrades = createUpgrades({ ...shared, maxRequestBytes });
  const clientRoutes = {
    tokenSelf: tokenSelfHandler({ ...shared, ending: typeof exchanges === 'function' ? exchanges : core.registry }),
    tokenExchange: tokenExchangeHandler({
      ...shared,
      exchanges,
      // The workers of a primary have counted the request.
      rateLimits: isPrimary ? null : rateLimits,
      log,
    }),
  };
  return {
    proxy,
    upgrades,
    clientRoutes,
    upstreams,
    probeProvider: providerProbe({ upstreams, clock, loopMark }),
    connections,
    record,
    addressOf,
    recentTraffic,
    metrics,
    heap,
    bounds,
  };
}

/** The recorders of completed requests on /v1, in the order in which they are called. */
function recordersOf(
  { usage }: Core,
  { auditFiles, shared: { bus } }: Storage,
  onEnded: OnEnded | undefined,
  metrics: Metrics | null,
  recentTraffic: RecentTraffic,
): readonly OnEnded[] {
  const all: (OnEnded | null)[] = [
    usage.record,
    onEnded ?? null,
    (ended) => {
      auditFiles.record(ended);
    },
    bus &&
      ((ended) => {
        publishRequest(bus, ended);
      }),
    metrics &&
      ((ended) => {
        metrics.record(ended);
      }),
    (ended) => {
      recentTraffic.record(ended);
    },
  ];
  return all.filter((each) => each !== null);
}

function logEnded(log: Log, ended: RequestEnded, cause: unknown): void {
  const level = ended.outcome === 'upstream_error' ? 'warn' : 'debug';
  const isPlain = cause === undefined && ended.requestBody === null && ended.responseBody === null;
  // Bodies are only for operators who enabled their capture. The log has more readers, so it never contains them.
  log[level]('request ended', isPlain ? ended : { ...ended, requestBody: null, responseBody: null, error: cause });
}

function connectionsFor(settings: Pick<Settings, keyof ConnectionLimits>, log: Log): ConnectionLimits {
  const connections = limitToDescriptors(settings, maxDescriptors());
  if (connections.maxConnections < settings.maxConnections)
    log.warn('limit of open files is too low, reducing connection limits', connections);
  return connections;
}

/** Metrics that the core and the storage count themselves. */
function sourcesOf({ clock }: BuildContext, core: Core, { shared: { bus }, auditFiles }: Storage) {
  const { admission, rateLimits, limiter, cache, clusterSync } = core;
  const clusterSyncAgeMs = clusterSync && (() => clock.monotonic() - clusterSync.upToDateAtMs);
  return {
    admission,
    budgets: admission.budgets,
    rateLimits,
    limiter,
    cache,
    bus,
    audit: () => auditFiles.status,
    clusterSyncAgeMs,
  };
}
