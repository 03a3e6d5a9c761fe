/**
 * The one place that builds everything: four builders, one upon the other, and what they made is started and stopped here.
 *
 *   storage     the database, the audit files, and what instances share in Redis
 *   core        the rules: tokens, caps, cache, usage, changes; and how the database comes up
 *   traffic     /v1: requests and upgrades, and all who keep a record of them
 *   management  /manage, Admin UI, probes and metrics, and the listeners
 *
 * Tests call it too, with a clock and a log of their own.
 */
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Reloadable, Settings } from '../config/settings.js';
import type { BuildContext } from './compose/context.js';
import { buildCore, type Core } from './compose/core.js';
import { buildManagement, type Management } from './compose/management.js';
import { openStorage, type Storage } from './compose/storage.js';
import { buildTraffic, type Traffic } from './compose/traffic.js';
import type { Admission } from './core/admission.js';
import type { OnEnded } from './core/events.js';
import type { Neighbours } from './core/neighbours.js';
import type { Clock, Log } from './core/ports.js';
import type { StatusReport } from './core/status.js';
import type { HourlyUsage } from './core/usage.js';
import type { EventStreams } from './http/manage/event-stream.js';
import type { Afterwards } from './http/proxy/afterwards.js';
import { drain } from './process/drain.js';
import { DATABASE_WAITS, type DatabaseWaits } from './store/sql/waits.js';
import { listen } from './process/listen.js';
import type { AuditFiles } from './store/audit-file/open.js';
import type { Stores } from './store/open.js';
import { Opened } from './store/opened.js';
import type { SharedStores } from './store/shared.js';

export interface ComposeOptions {
  settings: Settings;
  /** Those in force until `apply` is called. */
  reloadable: Reloadable;
  log: Log;
  clock: Clock;
  version: string;
  /** How long a database server is waited for, in place of what is shipped. */
  waits?: Readonly<DatabaseWaits>;
  /** How long a command to Redis may take while a request waits for it, in ms, in place of what is shipped. */
  redisCommandMs?: number;
  /** Told of every request on /v1 that is over. */
  onEnded?: OnEnded;
}

/** A daemon that listens. */
export interface Daemon {
  server: Server;
  /** The one that serves /manage, if that is not `server`. */
  managementServer: Server | null;
  stores: Stores;
  shared: SharedStores;
  auditFiles: AuditFiles;
  admission: Admission;
  afterwards: Afterwards;
  streams: EventStreams;
  usage: HourlyUsage;
  /** Null where this instance has its database for itself. */
  neighbours: Neighbours | null;
  /** Rejects when it turns out that the configuration does not fit a database that was away at the start. */
  failed: Promise<never>;
  /** Requests that begin from now on go by these. */
  apply(reloadable: Reloadable): void;
  /** How this instance does. */
  status(): Promise<StatusReport>;
  /** Stops as on SIGTERM: takes no more, lets finish what is in flight, settles, closes. */
  stop(): Promise<void>;
}

/** All that was built. */
interface Parts {
  storage: Storage;
  core: Core;
  traffic: Traffic;
  management: Management;
}

/** @throws {SettingsError} when the configuration does not fit what is there. */
export async function startDaemon(options: ComposeOptions): Promise<Daemon> {
  const opened = new Opened();
  try {
    return await started(options, opened);
  } catch (error) {
    await opened.close().catch(() => undefined); // Why it does not start is what there is to tell.
    throw error;
  }
}

/** @param opened where all goes that must be let go of when this fails. */
async function started(options: ComposeOptions, opened: Opened): Promise<Daemon> {
  const { settings, reloadable, log, clock, version, waits = DATABASE_WAITS, redisCommandMs } = options;
  const live = { current: reloadable };
  const context = { settings, live, log, clock, version, instanceId: randomUUID(), waits, redisCommandMs };
  const parts = await built(context, options.onEnded, opened);
  const { storage, core, traffic, management } = parts;
  const { server, managementServer } = management;
  await begin(context, parts, opened);
  let stopping: Promise<void> | null = null;
  return {
    server,
    managementServer,
    ...storage,
    admission: core.admission,
    afterwards: traffic.afterwards,
    streams: management.streams,
    usage: core.usage,
    neighbours: core.neighbours,
    failed: core.failed,
    apply(next) {
      live.current = next;
    },
    status: management.status,
    stop: () => (stopping ??= stop(context, parts, opened)),
  };
}

async function built(context: BuildContext, onEnded: OnEnded | undefined, opened: Opened): Promise<Parts> {
  const storage = await openStorage(context, opened);
  const core = buildCore(context, storage);
  const { auditFiles, stores, shared } = storage;
  const { redis, bus } = shared;
  const traffic = await buildTraffic(context, core, { bus, auditFiles, onEnded });
  const management = buildManagement(context, core, traffic, { records: stores.records, auditFiles, redis, bus });
  return { storage, core, traffic, management };
}

const serversOf = ({ management: { server, managementServer } }: Parts) =>
  managementServer ? [server, managementServer] : [server];

/** Brings the database up and listens. If that fails, closes all again. */
async function begin({ settings }: BuildContext, parts: Parts, opened: Opened): Promise<void> {
  const { server, managementServer } = parts.management;
  const { managementListenAddress, listenAddress } = settings;
  try {
    await parts.core.comingUp.begin();
    if (managementServer && managementListenAddress) await listen(managementServer, managementListenAddress);
    await listen(server, listenAddress);
  } catch (error) {
    // One may listen already, and would keep the process alive.
    for (const each of serversOf(parts)) each.close().closeAllConnections();
    await close(parts, opened).catch(() => undefined);
    throw error;
  }
}

async function stop({ settings, log, clock }: BuildContext, parts: Parts, opened: Opened): Promise<void> {
  const { core, traffic, management } = parts;
  await drain({
    servers: serversOf(parts),
    readiness: core.readiness,
    clock,
    log,
    settings,
    endStreams: () => {
      management.streams.end();
    },
    cutAll: () => {
      traffic.proxy.cutAll();
      traffic.upgrades.cutAll();
    },
  });
  await close(parts, opened);
}

/** In this order: what still writes is closed before what it writes to. */
async function close({ core, traffic, management }: Parts, opened: Opened): Promise<void> {
  await core.comingUp.close();
  await core.neighbours?.close();
  if (core.readiness.isDatabaseReady) await core.admission.retire();
  await traffic.forwarder.close();
  await management.attempts.close();
  await management.logInAttempts.close();
  traffic.afterwards.settle();
  await traffic.contents.settled();
  await core.usage.close();
  await opened.close();
}
