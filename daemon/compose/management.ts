/** The fourth builder: /manage, the Admin UI, probes and metrics, and the listeners that serve them. */
import { ADMIN_UI, MANAGEMENT_API, FailedAttempts } from '../core/failed-attempts.js';
import type { Scope } from '../core/ports.js';
import type { StatusReport } from '../core/status.js';
import { tlsBehind } from '../http/client-identity.js';
import { EventStreams } from '../http/manage/event-streams.js';
import type { Proxy } from '../http/proxy/proxy.js';
import type { Upgrades } from '../http/proxy/upgrades.js';
import { type AppOptions, createApp } from '../http/server/app.js';
import { type ClientRoutes, forClients } from '../http/server/client-routes.js';
import { type UnknownPathErrors, unknownPathErrors } from '../http/server/unknown-path.js';
import { type Probes, probeRoutes } from '../http/server/probes.js';
import { createHttpServer, type HttpServer } from '../http/server/server.js';
import { serverForWorkers, throughPrimary } from '../http/server/through-primary.js';
import type { BuildContext } from './context.js';
import type { Core } from './core.js';
import { statusReports } from './status.js';
import type { Storage } from './storage.js';
import type { Traffic } from './traffic.js';

export interface Management {
  /** Counters of wrong credentials, for the management API and for the Admin UI. */
  attempts: FailedAttempts;
  logInAttempts: FailedAttempts;
  streams: EventStreams;
  status: (scope?: Scope) => Promise<StatusReport>;
  /** The server of /v1. It does not listen yet. */
  server: HttpServer;
  /** The server of /manage, if it is not `server`. */
  managementServer: HttpServer | null;
  /** Another mapping of roles is in force. */
  rolesChanged: () => void;
}

/** In the list of degraded parts. */
export const AUDIT_FAILING = 'audit_file';

/** For the public listener, if another one serves operators. */
const CLIENTS_ONLY = { manage: null, admin: null, metrics: null };

export async function buildManagement(
  context: BuildContext,
  core: Core,
  traffic: Traffic,
  storage: Storage,
): Promise<Management> {
  const { settings, live, log, clock } = context;
  const { crew } = storage;
  const { records } = storage.stores;
  const attempts = new FailedAttempts({ surface: MANAGEMENT_API, store: records, clock, log });
  const logInAttempts = new FailedAttempts({ surface: ADMIN_UI, store: records, clock, log });
  const streams = new EventStreams(clock);
  // Each change of what somebody may do is recorded. Those of other instances are noticed a little later.
  records.onCommitted(() => {
    streams.recheck();
  });
  const probes = probesOf(context, core, traffic, storage);
  const status = statusReports(context, core, traffic, storage, probes);
  const { proxy, upgrades } = traffic;
  const serverOf = (serves: ServedParts) => listenerOf(context, core, traffic, probes, serves);
  const { link, isPrimary } = context;
  const { rolesChanged, ...forOperators } = link
    ? { ...CLIENTS_ONLY, rolesChanged: () => undefined }
    : // Loaded only where it is served: it weighs more than all that requests on /v1 need.
      (await import('./operators.js')).partsForOperators(context, core, traffic, storage, {
        streams,
        status,
        attempts,
        logInAttempts,
      });
  const servedClients = {
    proxy,
    upgrades,
    clientRoutes: traffic.clientRoutes,
    unknownPathErrors: unknownPathErrors({ live, isTls: tlsBehind(settings.trustedProxies) }),
  };
  const isApart = settings.managementListenAddress !== undefined;
  const served = { ...servedClients, ...(isApart ? CLIENTS_ONLY : forOperators) };
  const server = isPrimary
    ? serverForWorkers(forClients(traffic.clientRoutes, appOf(context, probes, served)), traffic.bounds)
    : serverOf(served);
  const managementServer =
    isApart && !link
      ? serverOf({ proxy: null, upgrades: null, clientRoutes: null, unknownPathErrors: null, ...forOperators })
      : null;
  const currentStatus = async () => {
    await crew?.reported();
    return status();
  };
  return { attempts, logInAttempts, streams, status: currentStatus, server, managementServer, rolesChanged };
}

function probesOf(context: BuildContext, core: Core, { heap }: Traffic, storage: Storage): Probes {
  const { clock, link } = context;
  const { readiness, admission, limits, pingDatabase } = core;
  const { auditFiles, crew } = storage;
  const { redis, bus } = storage.shared;
  return {
    clock,
    startedAtMs: clock.monotonic(),
    missing: () => [
      ...readiness.missing,
      ...(heap.isFull ? ['memory'] : []),
      ...(crew && !crew.isServing ? ['workers'] : []),
    ],
    degraded: () => (link ? [...link.health.degraded] : auditFiles.isFailing ? [AUDIT_FAILING] : []),
    pingDatabase: async () => {
      await pingDatabase();
      admission.accounts.onDatabaseContact();
    },
    servesWithoutDatabase: () => admission.accounts.isWithinStaleLimit,
    pingRedis: redis && (() => redis.ping()),
    isMemoryFull: () => heap.isFull,
    limits: () => limits.state,
    isBusFailing: link ? busOf(link) : bus && (() => bus.isFailing),
  };
}

/** The primary publishes the events of a worker. */
const busOf = (link: NonNullable<BuildContext['link']>) =>
  link.health.isBusFailing === null ? null : () => link.health.isBusFailing === true;

/** The parts that a listener serves in addition to probes; null for parts that it does not serve. */
interface ServedParts extends Pick<AppOptions, 'manage' | 'admin' | 'metrics'> {
  proxy: Proxy | null;
  upgrades: Upgrades | null;
  clientRoutes: ClientRoutes | null;
  unknownPathErrors: UnknownPathErrors | null;
}

/** Serves everything except /v1. */
const appOf = ({ log }: BuildContext, probes: Probes, serves: ServedParts) =>
  createApp({ log, probes: probeRoutes(probes), ...serves });

function listenerOf(
  context: BuildContext,
  { readiness }: Core,
  { bounds, connections }: Traffic,
  probes: Probes,
  serves: ServedParts,
): HttpServer {
  const { log, clock, live, link, settings } = context;
  const app = appOf(context, probes, serves);
  return createHttpServer({
    proxy: serves.proxy,
    upgrades: serves.upgrades,
    clientRoutes: serves.clientRoutes,
    unknownPathErrors: serves.unknownPathErrors,
    app:
      link && settings.managementListenAddress === undefined
        ? throughPrimary({ connect: (client) => link.connect(client), app, memory: bounds.memory })
        : app,
    clock,
    log,
    bounds,
    maxConnections: connections.maxConnections,
    keepAliveMs: settings.clientKeepAliveMs,
    isDraining: () => readiness.isDraining,
    live,
  });
}
