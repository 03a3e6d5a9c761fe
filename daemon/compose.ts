/** The one place that builds everything. Tests call it too, with a clock and a log of their own. */
import { randomUUID } from 'node:crypto';
import { chmodSync, unlinkSync } from 'node:fs';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { ListenAddress } from '../config/kinds.js';
import type { Settings } from '../config/settings.js';
import { SettingsError } from '../config/settings.js';
import { Migrator, SchemaTooNew } from '../migrations/migrator.js';
import { Admission } from './core/admission.js';
import type { RequestEnded } from './core/events.js';
import type { Clock, Log } from './core/ports.js';
import { Registry } from './core/registry.js';
import { drain } from './drain.js';
import { createApp } from './http/app.js';
import { Forwarder } from './http/forward.js';
import { createProxy } from './http/proxy.js';
import { createHttpServer } from './http/server.js';
import { Readiness } from './readiness.js';
import { openStores, type Stores } from './store/open.js';

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms);
    timer.unref();
    return () => {
      clearTimeout(timer);
    };
  },
};

export interface ComposeOptions {
  settings: Settings;
  log: Log;
  clock: Clock;
  version: string;
  /** Told of every request on /v1 that is over. */
  onEnded?: (ended: RequestEnded) => void;
}

/** A daemon that listens. */
export interface Daemon {
  server: Server;
  stores: Stores;
  admission: Admission;
  /** Requests that begin from now on go by these; they differ from those before in reloadable ones only. */
  apply(settings: Settings): void;
  /** Stops as on SIGTERM: takes no more, lets finish what is in flight, settles, closes. */
  stop(): Promise<void>;
}

/** @throws {SettingsError} when the configuration does not fit what is there. */
export async function startDaemon(options: ComposeOptions): Promise<Daemon> {
  const { settings, log, clock, version } = options;
  const live = { current: settings };
  const instanceId = randomUUID();
  const stores = await openStores(settings);
  const migrator = new Migrator(stores.database.sequelize, version, () => clock.now());
  const readiness = new Readiness();
  const { lookup, ledger } = stores;
  const admission = new Admission({
    lookup,
    ledger,
    clock,
    log,
    instanceId,
    staleLimitMs: settings.tokenStaleLimitMs,
  });

  /** Everything that needs the tables to be there. */
  const beginServing = async () => {
    await stores.checkEncryptionKey();
    await ledger.enrol(instanceId, clock.now());
    readiness.pendingMigrations = [];
    readiness.isDatabaseReady = true;
  };
  const migrateUp = async () => {
    const report = await migrator.up();
    if (!readiness.isDatabaseReady) await beginServing();
    return report;
  };

  const registry = new Registry(stores.records, admission, clock);
  const forwarder = new Forwarder(settings, live, clock);
  const proxy = createProxy({
    admission,
    forwarder,
    clock,
    live,
    isServing: () => readiness.isDatabaseReady,
    onEnded(ended, cause) {
      options.onEnded?.(ended);
      const level = ended.outcome === 'upstream_error' ? 'warn' : 'debug';
      log[level]('request ended', { ...ended, ...(cause !== undefined && { error: cause }) });
    },
  });
  const app = createApp({
    log,
    probes: {
      clock,
      startedAtMs: clock.monotonic(),
      missing: () => readiness.missing,
      pingDatabase: async () => {
        await stores.database.select('SELECT 1');
        admission.heardFromDatabase();
      },
      outlastsDatabase: () => admission.outlastsDatabase,
    },
    manage: {
      managementToken: settings.managementToken,
      registry,
      migrations: { status: () => migrator.status(), up: migrateUp },
    },
  });
  const server = createHttpServer({
    proxy,
    app,
    clock,
    maxConnections: settings.maxConnections,
    isDraining: () => readiness.isDraining,
  });

  const close = async () => {
    if (readiness.isDatabaseReady) await admission.retire();
    await forwarder.close();
    await stores.close();
  };
  try {
    await refuseForeignSchema(migrator);
    if (settings.autoMigrate) await migrateUp();
    else readiness.pendingMigrations = (await migrator.status()).pending;
    if (readiness.pendingMigrations.length === 0 && !readiness.isDatabaseReady) await beginServing();
    await listen(server, settings.listenAddress);
  } catch (error) {
    await close();
    throw error;
  }

  let stopping: Promise<void> | null = null;
  const stop = async () => {
    await drain({
      server,
      readiness,
      clock,
      log,
      settings,
      cutAll: () => {
        proxy.cutAll();
      },
    });
    await close();
  };
  return {
    server,
    stores,
    admission,
    apply(next) {
      live.current = next;
    },
    stop: () => (stopping ??= stop()),
  };
}

async function refuseForeignSchema(migrator: Migrator): Promise<void> {
  try {
    await migrator.refuseNewerSchema();
  } catch (error) {
    throw error instanceof SchemaTooNew ? new SettingsError([`DATABASE_URL: ${error.message}`]) : error;
  }
}

async function listen(server: Server, address: ListenAddress): Promise<void> {
  if ('path' in address) await removeStaleSocket(address.path);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      resolve();
    });
  });
  if ('path' in address) chmodSync(address.path, 0o660);
}

/** A socket file outlives a killed daemon. One that nobody answers on is in the way of nobody else. */
function removeStaleSocket(path: string): Promise<void> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(); // Somebody is there: listening will say so.
    });
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') unlinkSync(path);
      resolve();
    });
  });
}
