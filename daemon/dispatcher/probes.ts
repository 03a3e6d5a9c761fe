/** The dispatcher's own /live, /ready and /metrics. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';

export interface ProbeOptions {
  registry: Registry;
  /** What keeps it from its work, and what only slows it down. */
  state: () => { missing: string[]; degraded: string[] };
}

export function createProbeServer({ registry, state }: ProbeOptions): Server {
  const answerReady = (res: ServerResponse) => {
    const { missing, degraded } = state();
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
  const server = createServer({ requestTimeout: 5_000, connectionsCheckingInterval: 1_000 }, (req, res) => {
    const route = routes[(req.url ?? '').replace(/\?.*/, '')];
    if (!route) answer(res, 404, { error: 'there is no such path' });
    else if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.setHeader('Allow', 'GET, HEAD');
      answer(res, 405, { error: 'the method must be GET or HEAD' });
    } else void route(res);
  });
  server.maxConnections = 100;
  return server;
}

function answer(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' });
  res.end(JSON.stringify(body));
}
