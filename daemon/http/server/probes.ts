import { type Response, Router } from 'express';
import { withTimeout } from '../../core/timing.js';
import type { Clock, LimitState } from '../../core/ports.js';
import { route } from '../routing.js';

export interface Probes {
  clock: Clock;
  startedAtMs: number;
  /** What is missing for this instance to serve requests; empty when it is ready. */
  missing: () => string[];
  /** Other failing parts that do not prevent serving requests. */
  degraded: () => string[];
  /** Rejects if the database does not respond. */
  pingDatabase: () => Promise<void>;
  /** Whether verified tokens are served while the database is unavailable. */
  servesWithoutDatabase: () => boolean;
  /** Rejects if Redis does not respond; null if Redis is not used. */
  pingRedis: (() => Promise<void>) | null;
  /** Whether requests are refused because the heap is almost full. */
  isMemoryFull: () => boolean;
  /** Where the limits of tokens and projects are counted. */
  limits: () => LimitState;
  /** Whether publishing events fails; null if none are published. */
  isBusFailing: (() => boolean) | null;
}

const CHECK_TIMEOUT_MS = 1_000;

export interface DependencyStatus {
  /** What is missing; empty if the instance is ready. */
  missing: string[];
  /** What is unavailable without preventing service. */
  degraded: string[];
  isDatabaseUp: boolean;
  /** Null if Redis is not used. */
  isRedisUp: boolean | null;
}

/** Checks everything that an instance depends on. Takes at most a second. */
export async function checkDependencies({
  clock,
  missing,
  pingDatabase,
  servesWithoutDatabase,
  pingRedis,
  degraded: alsoDegraded,
}: Probes): Promise<DependencyStatus> {
  const [isDatabaseUp, isRedisUp] = await Promise.all([
    succeedsInTime(clock, pingDatabase()),
    pingRedis && succeedsInTime(clock, pingRedis()),
  ]);
  const lacking = new Set(missing());
  const degraded = alsoDegraded();
  if (!isDatabaseUp && !lacking.has('database')) {
    if (servesWithoutDatabase()) degraded.push('database');
    else lacking.add('database');
  }
  if (isRedisUp === false) degraded.push('redis');
  return { missing: [...lacking], degraded, isDatabaseUp, isRedisUp };
}

export function probeRoutes(probes: Probes): Router {
  const { clock, startedAtMs, pingDatabase, pingRedis, isMemoryFull, isBusFailing, limits } = probes;
  const router = Router({ caseSensitive: true, strict: true });

  route(router, '/live', {
    GET: (_req, res) => {
      respond(res, true, { status: 'ok' });
    },
  });

  route(router, '/ready', {
    GET: async (_req, res) => {
      const { missing, degraded } = await checkDependencies(probes);
      const isReady = missing.length === 0;
      respond(res, isReady, { status: isReady ? 'ready' : 'not ready', missing, degraded });
    },
  });

  route(router, '/health', {
    GET: async (_req, res) => {
      const [isUp, isRedisUp] = await Promise.all([
        succeedsInTime(clock, pingDatabase()),
        pingRedis && succeedsInTime(clock, pingRedis()),
      ]);
      const redis = isRedisUp === null ? 'off' : isRedisUp ? 'ok' : 'failing';
      const bus = isBusFailing === null ? 'off' : isBusFailing() ? 'failing' : 'ok';
      const isFull = isMemoryFull();
      const isServing = isUp && !isFull;
      const { mode, instances, isFull: isWindowFull } = limits();
      respond(res, isServing, {
        status: isServing ? 'ok' : 'failing',
        uptime_s: Math.floor((clock.monotonic() - startedAtMs) / 1000),
        checks: { database: isUp ? 'ok' : 'failing', redis, event_bus: bus, memory: isFull ? 'full' : 'ok' },
        limits: { mode, instances, window: isWindowFull ? 'full' : 'counted' },
      });
    },
  });
  return router;
}

function respond(res: Response, isOk: boolean, body: object): void {
  res.setHeader('Cache-Control', 'no-store');
  res.status(isOk ? 200 : 503).json(body);
}

function succeedsInTime(clock: Clock, check: Promise<void>): Promise<boolean> {
  const result = check.then(
    () => true,
    () => false,
  );
  return withTimeout(clock, CHECK_TIMEOUT_MS, result, () => false);
}
