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
import { complain, EXIT, hangUp, nextCrash, nextSignal } from '../process/ending.js';
import { createApp } from '../http/server/app.js';
import { Heap } from '../process/heap.js';
import { Bounds } from '../http/server/bounds.js';
import { createHttpServer } from '../http/server/server.js';
import { addressOf, listen } from '../process/listen.js';
import { type AdjustableLog, createLog } from '../process/log.js';
import { Readiness } from '../process/readiness.js';

export interface AdminRun {
  /** Settings in a file; the real environment wins over it. */
  envFile?: string;
  /** Only say whether the settings are good. Connects to nothing. */
  check: boolean;
  listen: ListenAddress;
  /** The daemon, as a URL and as it is called in messages. */
  server: string;
  shownServer: string;
  fetch: typeof fetch;
  /** None: it is a setting. */
  managementToken?: string;
}

const KEYS = [
  'managementToken',
  'adminUiPath',
  'trustedProxies',
  'corsAllowedOrigins',
  'clientBodyTimeoutMs',
  'maxConnections',
  'logLevel',
  'logFormat',
  'shutdownDelayMs',
  'shutdownGraceMs',
] as const satisfies readonly (keyof AllSettings)[];

type AdminSettings = Pick<AllSettings, (typeof KEYS)[number]>;

/** @returns the process's exit code, once it has ended. */
export async function runAdmin(run: AdminRun): Promise<number> {
  // React would otherwise take it for a developer's machine, where it checks everything and is slow.
  process.env.NODE_ENV ??= 'production';
  try {
    const loaded = loadPart(sourcesOf(run), KEYS);
    const { settings, warnings } = loaded;
    if (run.check) {
      for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
      process.stderr.write('the configuration is good\n');
      return 0;
    }
    const { logLevel: level, logFormat: format } = settings;
    const log = createLog({ level, format, secrets: secretsOf(loaded), stream: process.stdout });
    // Nobody reads the log any more: no reason to stop serving.
    process.stdout.on('error', () => undefined);
    for (const warning of warnings) log.warn(warning);
    return await serve(run, settings, log);
  } catch (error) {
    return complain(error);
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
  const clientsAt = { url: server };
  const admin = adminUi({ ...settings, server, fetch, clientsAt, clock: realClock, live, log });
  const { managementToken, maxConnections, adminUiPath } = settings;
  const heap = new Heap(realClock);
  const front = inFront({ adminUiPath, readiness, heap, client: clientOf(run, managementToken) });
  const listener = createHttpServer({
    proxy: null,
    upgrades: null,
    offPath: null,
    app: createApp({ log, probes: front, manage: null, admin, metrics: null, offPath: null }),
    clock: realClock,
    log,
    bounds: new Bounds({ clock: realClock, heap, log }),
    maxConnections,
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
  const nothing = () => undefined;
  await drain({
    servers: [listener],
    readiness,
    clock: realClock,
    log,
    settings,
    endStreams: nothing,
    cutAll: nothing,
  });
  log.info('stopped');
  if (code === EXIT.hangUp) hangUp();
  return code;
}

const ASKED_WITHIN_MS = 1_000;

const clientOf = ({ server, fetch }: AdminRun, managementToken: string) =>
  new ManagementClient({ server, managementToken, frontEnd: 'admin', timeoutMs: ASKED_WITHIN_MS, fetch });

interface Front {
  adminUiPath: string;
  readiness: Readiness;
  heap: Heap;
  client: ManagementClient;
}

/** Probes as the daemon has them, and the way from the bare address to the pages. */
function inFront({ adminUiPath, readiness, heap, client }: Front): RequestHandler {
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
