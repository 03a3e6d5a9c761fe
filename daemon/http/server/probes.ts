import { type Response, Router } from 'express';
import { inTime } from '../../core/in-time.js';
import type { Clock } from '../../core/ports.js';
import { route } from '../manage/endpoints.js';

export interface Probes {
  clock: Clock;
  startedAtMs: number;
  /** What this instance lacks to do its work; empty when it is ready. */
  missing: () => string[];
  /** What fails beside the database and Redis, without keeping requests from being served. */
  degraded: () => string[];
  /** Rejects when the database does not answer. */
  pingDatabase: () => Promise<void>;
  /** Whether verified tokens are served although the database is away. */
  outlastsDatabase: () => boolean;
  /** Rejects when Redis does not answer; null where there is none. */
  pingRedis: (() => Promise<void>) | null;
  /** Whether requests are refused because the heap is almost full. */
  isMemoryFull: () => boolean;
  /** Whether events cannot be published now; null where none are. */
  isBusFailing: (() => boolean) | null;
}

const CHECK_WITHIN_MS = 1_000;

export interface Condition {
  /** What is lacking; whoever is ready lacks nothing. */
  missing: string[];
  /** What is done without for now. */
  degraded: string[];
  isDatabaseUp: boolean;
  /** Null where there is none. */
  isRedisUp: boolean | null;
}

/** Asks all that an instance depends on. Takes a second at most. */
export async function conditionOf({
  clock,
  missing,
  pingDatabase,
  outlastsDatabase,
  pingRedis,
  degraded: alsoDegraded,
}: Probes): Promise<Condition> {
  const [isDatabaseUp, isRedisUp] = await Promise.all([
    isFine(clock, pingDatabase()),
    pingRedis && isFine(clock, pingRedis()),
  ]);
  const lacking = new Set(missing());
  const degraded = alsoDegraded();
  if (!isDatabaseUp && !lacking.has('database')) {
    if (outlastsDatabase()) degraded.push('database');
    else lacking.add('database');
  }
  if (isRedisUp === false) degraded.push('redis');
  return { missing: [...lacking], degraded, isDatabaseUp, isRedisUp };
}

export function probeRoutes(probes: Probes): Router {
  const { clock, startedAtMs, pingDatabase, pingRedis, isMemoryFull, isBusFailing } = probes;
  const router = Router({ caseSensitive: true, strict: true });

  route(router, '/live', {
    GET: (_req, res) => {
      answer(res, true, { status: 'ok' });
    },
  });

  route(router, '/ready', {
    GET: async (_req, res) => {
      const { missing, degraded } = await conditionOf(probes);
      const isReady = missing.length === 0;
      answer(res, isReady, { status: isReady ? 'ready' : 'not ready', missing, degraded });
    },
  });

  route(router, '/health', {
    GET: async (_req, res) => {
      const [isUp, isRedisUp] = await Promise.all([
        isFine(clock, pingDatabase()),
        pingRedis && isFine(clock, pingRedis()),
      ]);
      const redis = isRedisUp === null ? 'off' : isRedisUp ? 'ok' : 'failing';
      const bus = isBusFailing === null ? 'off' : isBusFailing() ? 'failing' : 'ok';
      const isFull = isMemoryFull();
      const isServing = isUp && !isFull;
      answer(res, isServing, {
        status: isServing ? 'ok' : 'failing',
        uptime_s: Math.floor((clock.monotonic() - startedAtMs) / 1000),
        checks: { database: isUp ? 'ok' : 'failing', redis, event_bus: bus, memory: isFull ? 'full' : 'ok' },
      });
    },
  });
  return router;
}

function answer(res: Response, isFine: boolean, body: object): void {
  res.setHeader('Cache-Control', 'no-store');
  res.status(isFine ? 200 : 503).json(body);
}

function isFine(clock: Clock, check: Promise<void>): Promise<boolean> {
  const answer = check.then(
    () => true,
    () => false,
  );
  return inTime(clock, CHECK_WITHIN_MS, answer, () => false);
}
