/** HTTP server of the dispatcher for /live, /ready and /metrics. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import type { Clock, Log } from '../core/ports.js';
import { HeapGuard } from '../process/heap-guard.js';
import { MemoryBounds, memoryLimitOf } from '../http/server/memory-bounds.js';
import { createHttpServer, type HttpServer } from '../http/server/server.js';

export interface ProbeOptions {
  registry: Registry;
  /** What prevents deliveries, and what only degrades them. */
  state: () => { missing: string[]; degraded: string[] };
  isDraining: () => boolean;
  clock: Clock;
  log: Pick<Log, 'warn'>;
}

// The default of the daemon: monitoring must still connect while other clients hold a thousand connections.
const MAX_CONNECTIONS = 10_000;

/** Has the same limits as the listeners of the daemon: a client that reaches it must not be able to crash the dispatcher. */
export function createProbeServer({ registry, state, isDraining, clock, log }: ProbeOptions): HttpServer {
  const heap = new HeapGuard(clock);
  const sendReady = (res: ServerResponse) => {
    const { missing, degraded } = state();
    if (heap.isFull) missing.push('memory');
    const isReady = missing.length === 0;
    sendJson(res, isReady ? 200 : 503, { status: isReady ? 'ready' : 'not ready', missing, degraded });
  };
  const routes: Record<string, (res: ServerResponse) => Promise<void> | void> = {
    '/live': (res) => {
      sendJson(res, 200, { status: 'ok' });
    },
    '/ready': sendReady,
    '/metrics': async (res) => {
      const text = await registry.metrics();
      res.writeHead(200, { 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' }).end(text);
    },
  };
  const app = (req: IncomingMessage, res: ServerResponse) => {
    const route = routes[(req.url ?? '').replace(/\?.*/, '')];
    if (!route) sendJson(res, 404, { error: 'not found' });
    else if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.setHeader('Allow', 'GET, HEAD');
      sendJson(res, 405, { error: 'the method must be GET or HEAD' });
    } else void route(res);
  };
  return createHttpServer({
    proxy: null,
    unknownPathErrors: null,
    upgrades: null,
    clientRoutes: null,
    app,
    clock,
    log,
    bounds: new MemoryBounds(clock, memoryLimitOf({ clock, heap, log })),
    maxConnections: MAX_CONNECTIONS,
    isDraining,
    live: { current: { corsAllowedOrigins: undefined } },
  });
}

function sendJson(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' });
  res.end(JSON.stringify(body));
}
