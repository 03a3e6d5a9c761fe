/** The third builder: requests on /v1, and all who keep a record of them. */
import type { Settings } from '../../config/settings.js';
import { ContentReaders } from '../core/content/reader.js';
import type { OnEnded, RequestEnded } from '../core/events.js';
import type { EventBus, Log } from '../core/ports.js';
import { publishRequest } from '../core/publishing.js';
import { Pulse } from '../core/pulse.js';
import type { AuditStatus } from '../core/status.js';
import { type AddressOf, addressesBehind } from '../http/client-address.js';
import { HeldBodies } from '../http/held-bodies.js';
import { Afterwards } from '../http/proxy/afterwards.js';
import { decoder } from '../http/proxy/decoding.js';
import { Forwarder } from '../http/proxy/forward.js';
import { upgradesAt } from '../http/proxy/http-proxy.js';
import { createProxy, type Proxy } from '../http/proxy/proxy.js';
import { createUpgrades, type Upgrades } from '../http/proxy/upgrades.js';
import { Bounds } from '../http/server/bounds.js';
import type { Metrics } from '../metrics/metrics.js';
import type { Sources } from '../metrics/sources.js';
import { type Connections, mostDescriptors, withinDescriptors } from '../process/descriptors.js';
import { Heap } from '../process/heap.js';
import type { BuildContext } from './context.js';
import type { Core } from './core.js';

/** Who hears of each request that is over, beside those that are built here. */
export interface TrafficListeners {
  /** Null when nothing is published. */
  bus: EventBus | null;
  auditFiles: { keep(ended: RequestEnded): void; readonly status: AuditStatus };
  onEnded: OnEnded | undefined;
}

export interface Traffic {
  proxy: Proxy;
  upgrades: Upgrades;
  forwarder: Forwarder;
  /** As many as the open files allow. */
  connections: Connections;
  contents: ContentReaders;
  afterwards: Afterwards;
  addressOf: AddressOf;
  heap: Heap;
  bounds: Bounds;
  pulse: Pulse;
  /** Null when none are served. */
  metrics: Metrics | null;
}

export async function buildTraffic(context: BuildContext, core: Core, listeners: TrafficListeners): Promise<Traffic> {
  const { settings, live, log, clock, instanceId } = context;
  const { maxRequestBytes, upstreamBaseUrl } = settings;
  const { admission, rateLimits, cache, readiness } = core;
  const connections = connectionsFor(settings, log);
  const forwarder = new Forwarder({ upstreamBaseUrl, ...connections }, live, clock);
  const heap = new Heap(clock);
  const bounds = new Bounds({ clock, heap, log });
  const afterwards = new Afterwards(clock);
  const mostCaptured = settings.observabilityCaptureBodies ? settings.observabilityMaxBodyBytes : null;
  const contents = new ContentReaders({ decode: decoder(), mostCaptured });
  const addressOf = addressesBehind(settings.trustedProxies);
  const pulse = new Pulse(clock);
  const metrics = settings.metricsEnabled
    ? await metricsOf({
        // Nobody asks for it before all is built.
        inFlight: () => ({ http: proxy.inFlight, websocket: upgrades.inFlight }),
        ...sourcesOf(context, core, listeners),
        shed: () => heap.refused,
        dropped: () => bounds.dropped,
      })
    : null;
  const keepers = keepersOf({ core, listeners, metrics, pulse });
  /** What requests and upgrades have in common. */
  const shared = {
    admission,
    rateLimits,
    addressOf,
    untaken: bounds.untaken,
    bodies: new HeldBodies(),
    clock,
    live,
    isServing: () => readiness.isDatabaseReady && heap.admits(),
    loopMark: `llmp-${instanceId.slice(0, 8)}`,
    afterwards,
    onEnded(ended: RequestEnded, cause: unknown) {
      for (const keep of keepers) keep(ended);
      logEnded(log, ended, cause);
    },
  };
  const proxy = createProxy({ ...shared, cache, contents, forwarder, maxRequestBytes });
  const forward = upgradesAt(upstreamBaseUrl);
  const upgrades = createUpgrades({ ...shared, connections: forwarder, forward });
  return {
    proxy,
    upgrades,
    forwarder,
    connections,
    contents,
    afterwards,
    addressOf,
    heap,
    bounds,
    pulse,
    metrics,
  };
}

interface Keepers {
  core: Core;
  listeners: TrafficListeners;
  metrics: Metrics | null;
  pulse: Pulse;
}

/** All who keep a record of requests on /v1, in the order in which they are told. */
function keepersOf({ core, listeners, metrics, pulse }: Keepers): readonly OnEnded[] {
  const { bus, auditFiles, onEnded } = listeners;
  const all: (OnEnded | null)[] = [
    core.usage.keep,
    onEnded ?? null,
    (ended) => {
      auditFiles.keep(ended);
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
      pulse.record(ended);
    },
  ];
  return all.filter((each) => each !== null);
}

function logEnded(log: Log, ended: RequestEnded, cause: unknown): void {
  const level = ended.outcome === 'upstream_error' ? 'warn' : 'debug';
  const isPlain = cause === undefined && ended.requestBody === null && ended.responseBody === null;
  // What clients and the provider say to each other is for the operators who asked for it; a log has many readers.
  log[level]('request ended', isPlain ? ended : { ...ended, requestBody: null, responseBody: null, error: cause });
}

function connectionsFor(settings: Pick<Settings, keyof Connections>, log: Log): Connections {
  const connections = withinDescriptors(settings, mostDescriptors());
  if (connections.maxConnections < settings.maxConnections) log.warn('too few open files are allowed', connections);
  return connections;
}

/** What the core and the storage count by themselves. */
function sourcesOf({ clock }: BuildContext, core: Core, { bus, auditFiles }: TrafficListeners) {
  const { admission, rateLimits, cache, neighbours } = core;
  const unheardMs = neighbours && (() => clock.monotonic() - neighbours.upToDateAtMs);
  return { admission, rateLimits, cache, bus, audit: () => auditFiles.status, unheardMs };
}

async function metricsOf(sources: Sources): Promise<Metrics> {
  // Who wants none need not load what they are made with.
  const { Metrics } = await import('../metrics/metrics.js');
  return new Metrics(sources);
}
