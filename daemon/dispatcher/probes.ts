/** The dispatcher's own /live, /ready and /metrics. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import type { Clock, Log } from '../core/ports.js';
import { Heap } from '../process/heap.js';
import { Bounds } from '../http/server/bounds.js';
import { createHttpServer, type HttpServer } from '../http/server/server.js';

export interface ProbeOptions {
  registry: Registry;
  /** What keeps it from its work, and what only slows it down. */
  state: () => { missing: string[]; degraded: string[] };
  isDraining: () => boolean;
  clock: Clock;
  log: Pick<Log, 'warn'>;
}

// As many as a daemon takes by default: who watches over it must find room beside a thousand strangers.
const MOST_CONNECTIONS = 10_000;

/** A listener that is bounded as the daemon's are: a stranger who reaches it must not be able to end the dispatcher. */
export function createProbeServer({ registry, state, isDraining, clock, log }: ProbeOptions): HttpServer {
  const heap = new Heap(clock);
  const answerReady = (res: ServerResponse) => {
    const { missing, degraded } = state();
    if (heap.isFull) missing.push('memory');
    const isReady = missing.length === 0;
    answer(res, isReady ? 200 : 503, { status: isReady ? 'ready' : 'not ready', missing, degraded });
  };
  const routes: Record<string, (res: ServerResponse) => Promise<void> | void> = {
    '/live': (res) => {
      answer(res, 200, { status: 'ok' });
    },
    '/ready': answerReady,
    '/metrics': async (res) => {
      const text = await registry.metrics();
      res.writeHead(200, { 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' }).end(text);
    },
  };
  const app = (req: IncomingMessage, res: ServerResponse) => {
    const route = routes[(req.url ?? '').replace(/\?.*/, '')];
    if (!route) answer(res, 404, { error: 'there is no such path' });
    else if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.setHeader('Allow', 'GET, HEAD');
      answer(res, 405, { error: 'the method must be GET or HEAD' });
    } else void route(res);
  };
  return createHttpServer({
    proxy: null,
    offPath: null,
    upgrades: null,
    app,
    clock,
    log,
    bounds: new Bounds({ clock, heap, log }),
    maxConnections: MOST_CONNECTIONS,
    isDraining,
    live: { current: { corsAllowedOrigins: undefined } },
  });
}

function answer(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' });
  res.end(JSON.stringify(body));
}
