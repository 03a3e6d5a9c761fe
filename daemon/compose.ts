/**
 * Builds, starts and stops a daemon. Four builders depend on each other in this order:
 *
 *   storage     the database, the audit files, and the data that instances share in Redis
 *   core        the rules: tokens, caps, cache, usage, changes; and the startup of the database
 *   traffic     /v1: requests and upgrades, and the recorders of completed requests
 *   management  /manage, Admin UI, probes and metrics, and the listeners
 *
 * Tests use this too, with their own clock and log.
 */
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import { endOfSupport } from '../config/node-support.js';
import type { Reloadable, Settings } from '../config/settings.js';
import type { BuildContext } from './compose/context.js';
import { buildCore, type Core } from './compose/core.js';
import { machineSources } from './compose/machine-sources.js';
import { buildManagement, type Management } from './compose/management.js';
import { openStorage, type Storage } from './compose/storage.js';
import { buildTraffic, type Traffic } from './compose/traffic.js';
import { recordsTo, serveThePrimary } from './compose/worker.js';
import { createWorkers, type Workers, type WorkersOptions } from './compose/workers.js';
import type { Admission } from './core/admission.js';
import type { OnEnded } from './core/events.js';
import { neverRecord } from './core/masking.js';
import type { ClusterSync } from './core/cluster-sync.js';
import type { Clock, Log } from './core/ports.js';
import type { StatusReport } from './core/status.js';
import type { Costs } from './core/cost/costs.js';
import type { UsageStatistics } from './core/usage.js';
import type { EventStreams } from './http/manage/event-streams.js';
import type { Scheduler } from './http/scheduler.js';
import { memoryLimitOf } from './http/server/memory-bounds.js';
import type { RoleMapping } from './oidc/role-mapping.js';
import { drain } from './process/drain.js';
import { HeapGuard } from './process/heap-guard.js';
import { DATABASE_TIMEOUTS, type DatabaseTimeouts } from './store/sql/database.js';
import { addressOf, listen } from './process/listen.js';
import type { PriceFile } from './process/price-lists.js';
import { beginDespiteOrphans, listenDespiteOrphans } from './process/orphaned-workers.js';
import type { AuditFiles } from './store/audit-file/open.js';
import type { Stores } from './store/open.js';
import type { PrimaryLink } from './store/ipc/primary-link.js';
import type { EndedRecords } from './store/ipc/records.js';
import { ResourceStack } from './store/resource-stack.js';
import type { SharedStores } from './store/shared.js';

export interface ComposeOptions {
  settings: Settings;
  /** The reloadable settings until `apply` is called. */
  reloadable: Reloadable;
  /** `PRICES_FILE` until `apply` is called; null: none. */
  priceFile?: PriceFile | null;
  /** `OIDC_ROLES` until `apply` is called; null: people do not log in. */
  roleMapping?: RoleMapping | null;
  log: Log;
  clock: Clock;
  version: string;
  /** Overrides how long to wait for a database server. */
  databaseTimeouts?: Readonly<DatabaseTimeouts>;
  /** Overrides the timeout in ms of Redis commands that a request waits for. */
  redisCommandMs?: number;
  /** Called for each completed request on /v1. */
  onEnded?: OnEnded;
  /** For WORKERS above 1: starts them. Without it this process serves /v1 itself. */
  workers?: WorkersOptions;
  /** A worker's connection to its primary, its instance ID, and that of the primary. */
  link?: PrimaryLink;
  instanceId?: string;
  daemonId?: string;
}

/** The files that settings name, as they are now; null: there is none. What is undefined was not read again. */
export interface ReloadedFiles {
  prices?: PriceFile | null;
  roles?: RoleMapping | null;
}

/** A running daemon. */
export interface Daemon {
  /** In a primary it does not listen. */
  server: Server;
  /** The address at which /v1 is served. */
  address: string | null;
  /** The server of /manage, if it is not `server`. */
  managementServer: Server | null;
  stores: Stores;
  shared: SharedStores;
  auditFiles: AuditFiles;
  admission: Admission;
  scheduler: Scheduler;
  streams: EventStreams;
  usage: UsageStatistics;
  costs: Costs;
  /** Hands the record of a completed request to all recorders, as the proxy does. The demo creates its past with it. */
  record: OnEnded;
  /** Null if this instance does not share its database. */
  clusterSync: ClusterSync | null;
  /** Rejects if the database was unavailable at start and its content turns out not to fit the configuration. */
  failed: Promise<never>;
  /** Applies reloadable settings to requests that begin from now on, and the files that were read again. */
  apply(reloadable: Reloadable, files?: ReloadedFiles): void;
  status(): Promise<StatusReport>;
  /** Stops as on SIGTERM: refuses new requests, lets requests in flight finish, writes counts, and closes everything. */
  stop(): Promise<void>;
}

/** The results of the four builders. */
interface Parts {
  storage: Storage;
  core: Core;
  traffic: Traffic;
  management: Management;
  /** Null unless this process is a primary. */
  workers: Workers | null;
  /** Null unless this process is a worker. */
  toPrimary: EndedRecords | null;
}

/** @throws {SettingsError} if the configuration does not fit the database or the files. */
export async function startDaemon(options: ComposeOptions): Promise<Daemon> {
  const opened = new ResourceStack();
  try {
    return await started(options, opened);
  } catch (error) {
    await opened.close().catch(() => undefined); // The reason for the failed start matters more.
    throw error;
  }
}

/** @param opened collects the resources that must be closed if this fails. */
async function started(options: ComposeOptions, opened: ResourceStack): Promise<Daemon> {
  const { settings, reloadable, log, clock, version, databaseTimeouts = DATABASE_TIMEOUTS, redisCommandMs } = options;
  const { priceFile = null, roleMapping = null } = options;
  const { link = null, instanceId = randomUUID(), daemonId = instanceId } = options;
  const isPrimary = options.workers !== undefined && settings.workers > 1;
  neverRecord(settings.managementToken);
  if (settings.oidcClientSecret !== undefined) neverRecord(settings.oidcClientSecret);
  // Workers run with the Node.js of their primary.
  const unsupported = link === null ? endOfSupport(process.versions.node, clock.now()) : null;
  if (unsupported) log.warn(`${unsupported.problem}. ${unsupported.advice}`);
  const live = { current: reloadable };
  const roles = { current: roleMapping };
  const shared = { settings, live, priceFile, roles, log, clock, version, databaseTimeouts, redisCommandMs };
  const heap = new HeapGuard(clock);
  const memory = memoryLimitOf({ clock, heap, log, live });
  const context = { ...shared, instanceId, newId: randomUUID, daemonId, heap, memory, isPrimary, link };
  const parts = await built(context, options, opened);
  const { storage, core, traffic, management, workers } = parts;
  const { server, managementServer } = management;
  const address = await begin(context, parts, opened);
  let stopping: Promise<void> | null = null;
  return {
    server,
    address,
    managementServer,
    ...storage,
    admission: core.admission,
    scheduler: traffic.bounds.scheduler,
    streams: management.streams,
    usage: core.usage,
    costs: core.costs,
    record: traffic.record,
    clusterSync: core.clusterSync,
    failed: workers ? Promise.race([core.failed, workers.failed]) : core.failed,
    apply(next, { prices, roles: mapping } = {}) {
      live.current = next;
      if (mapping !== undefined && mapping?.sha256 !== roles.current?.sha256) {
        roles.current = mapping;
        management.rolesChanged();
      }
      if (prices !== undefined && prices?.sha256 !== core.costs.lists.file?.sha256) {
        core.costs.replaceFile(prices);
        if (!link) core.notePrices();
      }
      workers?.reload(prices);
    },
    status: management.status,
    stop: () => (stopping ??= stop(context, parts, opened)),
  };
}

async function built(context: BuildContext, options: ComposeOptions, opened: ResourceStack): Promise<Parts> {
  const { onEnded } = options;
  const storage = await openStorage(context, opened);
  const core = await buildCore(context, storage);
  const { crew } = storage;
  const toPrimary = context.link && recordsTo(context.link, context.clock, context.log);
  const traffic = await buildTraffic(context, core, storage, {
    onEnded,
    ofWorkers: crew && machineSources(crew, core),
    toPrimary: toPrimary && toPrimary.record,
  });
  const management = await buildManagement(context, core, traffic, storage);
  if (context.link && toPrimary) serveThePrimary(context.link, core, traffic, toPrimary);
  const workers =
    crew && options.workers ? createWorkers(context, crew, storage, core, traffic, management, options.workers) : null;
  return { storage, core, traffic, management, workers, toPrimary };
}

const serversOf = ({ management: { server, managementServer } }: Parts) =>
  managementServer ? [server, managementServer] : [server];

/** Connects to the database, and listens. If that fails, closes everything. @returns the address at which /v1 is served. */
async function begin(context: BuildContext, parts: Parts, opened: ResourceStack): Promise<string | null> {
  const { server, managementServer } = parts.management;
  const { managementListenAddress, listenAddress } = context.settings;
  try {
    await beginDespiteOrphans(context, () => parts.core.startup.begin());
    if (managementServer && managementListenAddress) await listen(managementServer, managementListenAddress);
    if (parts.workers) return await parts.workers.begin();
    if (context.link) await listen(server, listenAddress, true);
    else await listenDespiteOrphans(context, () => listen(server, listenAddress));
    return addressOf(server);
  } catch (error) {
    // One server may listen already, and would keep the process alive.
    for (const each of serversOf(parts)) each.close().closeAllConnections();
    parts.workers?.stop();
    await parts.workers?.ended();
    await close(parts, opened).catch(() => undefined);
    throw error;
  }
}

async function stop({ settings, log, clock, link }: BuildContext, parts: Parts, opened: ResourceStack): Promise<void> {
  const { core, traffic, management, workers } = parts;
  workers?.stop();
  await drain({
    servers: serversOf(parts),
    readiness: core.readiness,
    clock,
    log,
    settings,
    isWorker: link !== null,
    endStreams: () => {
      management.streams.end();
    },
    cutAll: () => {
      traffic.proxy.cutAll();
      traffic.upgrades.cutAll();
    },
  });
  await workers?.ended();
  await close(parts, opened);
}

/** Closes everything in this order: writers before the stores that they write to. */
async function close({ core, traffic, management, toPrimary }: Parts, opened: ResourceStack): Promise<void> {
  await core.startup.close();
  await core.clusterSync?.close();
  // The last requests are charged.
  traffic.bounds.scheduler.publishAll();
  if (core.readiness.isDatabaseReady) await core.admission.retire();
  await traffic.upstreams.close();
  await management.attempts.close();
  await management.logInAttempts.close();
  await toPrimary?.close();
  await core.sharedLimits?.close();
  await core.usage.close();
  await opened.close();
}
