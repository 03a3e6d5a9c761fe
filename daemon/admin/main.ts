/** `llmp admin`: the Admin UI without a daemon in the same process. Read the settings, listen, stop on a signal. */
import { type RequestHandler, Router } from 'express';
import type { ListenAddress } from '../../config/kinds.js';
import { type AllSettings, loadPart, secretsOf } from '../../config/settings.js';
import { readEnvFile, type Sources } from '../../config/sources.js';
import { readVersion } from '../../config/version.js';
import { adminUi } from './mount.js';
import { ManagementClient } from '../api/client.js';
import { realClock } from '../process/clock.js';
import { drain } from '../process/drain.js';
import { reportFailure, EXIT, hangUp, nextCrash, nextSignal, stopped } from '../process/ending.js';
import { createApp } from '../http/server/app.js';
import { HeapGuard } from '../process/heap-guard.js';
import { MemoryBounds, memoryLimitOf } from '../http/server/memory-bounds.js';
import { createHttpServer } from '../http/server/server.js';
import { addressOf, listen } from '../process/listen.js';
import { type AdjustableLog, createLog } from '../process/log.js';
import { Readiness } from '../process/readiness.js';

export interface AdminRun {
  /** Settings in a file; the real environment wins over it. */
  envFile?: string;
  /** Only check the settings, without connecting to anything. */
  check: boolean;
  listen: ListenAddress;
  /** URL of the daemon, and its form in messages. */
  server: string;
  shownServer: string;
  fetch: typeof fetch;
  /** Default: the setting MANAGEMENT_TOKEN. */
  managementToken?: string;
}

const KEYS = [
  'managementToken',
  'adminUiPath',
  'trustedProxies',
  'corsAllowedOrigins',
  'clientBodyTimeoutMs',
  'maxConnections',
  'clientKeepAliveMs',
  'logLevel',
  'logFormat',
  'shutdownDelayMs',
  'shutdownGraceMs',
] as const satisfies readonly (keyof AllSettings)[];

type AdminSettings = Pick<AllSettings, (typeof KEYS)[number]>;

/** Runs until a signal. @returns the exit code of the process. */
export async function runAdmin(run: AdminRun): Promise<number> {
  // Otherwise React runs in development mode, with slow checks.
  process.env.NODE_ENV ??= 'production';
  try {
    const loaded = loadPart(sourcesOf(run), KEYS);
    const { settings, warnings } = loaded;
    if (run.check) {
      for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
      process.stderr.write('the configuration is valid\n');
      return 0;
    }
    const { logLevel: level, logFormat: format } = settings;
    const log = createLog({ level, format, secrets: secretsOf(loaded), stream: process.stdout });
    // A closed log pipe is no reason to stop serving.
    process.stdout.on('error', () => undefined);
    for (const warning of warnings) log.warn(warning);
    return await serve(run, settings, log);
  } catch (error) {
    return reportFailure(error);
  }
}

function sourcesOf({ envFile, managementToken }: AdminRun): Sources {
  return {
    env: managementToken === undefined ? process.env : { ...process.env, MANAGEMENT_TOKEN: managementToken },
    file: envFile === undefined ? undefined : readEnvFile(envFile),
    isReadByPeople: process.stdout.isTTY,
    execArgv: process.execArgv,
  };
}

async function serve(run: AdminRun, settings: AdminSettings, log: AdjustableLog): Promise<number> {
  const crashed = nextCrash(log, (code) => process.exit(code));
  const signalled = nextSignal((code) => process.exit(code));
  const readiness = new Readiness();
  const live = { current: settings };
  const { server, fetch } = run;
  const proxyLocation = { url: server };
  const admin = adminUi({ ...settings, server, fetch, proxyLocation, clock: realClock, live, log });
  const { managementToken, maxConnections, adminUiPath } = settings;
  const heap = new HeapGuard(realClock);
  const probes = probeRoutes({ adminUiPath, readiness, heap, client: clientOf(run, managementToken) });
  const listener = createHttpServer({
    proxy: null,
    upgrades: null,
    clientRoutes: null,
    unknownPathErrors: null,
    app: createApp({ log, probes: probes, manage: null, admin, metrics: null, unknownPathErrors: null }),
    clock: realClock,
    log,
    bounds: new MemoryBounds(realClock, memoryLimitOf({ clock: realClock, heap, log })),
    maxConnections,
    keepAliveMs: settings.clientKeepAliveMs,
    isDraining: () => readiness.isDraining,
    live,
  });
  await listen(listener, run.listen);
  log.info('listening', {
    address: addressOf(listener),
    path: adminUiPath,
    server: run.shownServer,
    version: readVersion(),
  });

  const code = await Promise.race([signalled, crashed]);
  const draining = drain({
    servers: [listener],
    readiness,
    clock: realClock,
    log,
    settings,
    endStreams: admin.endStreams,
    cutAll: () => undefined,
  });
  await stopped(draining);
  log.info('stopped');
  if (code === EXIT.hangUp) hangUp();
  return code;
}

const STATUS_TIMEOUT_MS = 1_000;

const clientOf = ({ server, fetch }: AdminRun, managementToken: string) =>
  new ManagementClient({ server, managementToken, frontEnd: 'admin', timeoutMs: STATUS_TIMEOUT_MS, fetch });

interface ProbeOptions {
  adminUiPath: string;
  readiness: Readiness;
  heap: HeapGuard;
  client: ManagementClient;
}

/** The probes of the daemon, and a redirect from `/` to the pages. */
function probeRoutes({ adminUiPath, readiness, heap, client }: ProbeOptions): RequestHandler {
  const router = Router({ caseSensitive: true, strict: true });
  router.get('/', (_req, res) => {
    res.redirect(303, adminUiPath);
  });
  router.get('/live', (_req, res) => {
    res.set('Cache-Control', 'no-store').json({ status: 'ok' });
  });
  router.get('/ready', async (_req, res) => {
    const isReached = await client.status().then(
      () => true,
      () => false,
    );
    const missing = [
      ...(readiness.isDraining ? ['draining'] : []),
      ...(heap.isFull ? ['memory'] : []),
      ...(isReached ? [] : ['daemon']),
    ];
    const isReady = missing.length === 0;
    res.set('Cache-Control', 'no-store').status(isReady ? 200 : 503);
    res.json({ status: isReady ? 'ready' : 'not ready', missing, degraded: [] });
  });
  return router;
}
