import { Router } from 'express';
import { route } from '../routing.js';

export interface MetricsEndpoint {
  /** Path of the endpoint. */
  path: string;
  metrics: { contentType: string; render(): Promise<string> };
}

/** Metrics endpoint, without a credential, as Prometheus expects. */
export function metricsRoute({ path, metrics }: MetricsEndpoint): Router {
  const router = Router({ caseSensitive: true, strict: true });
  route(router, path, {
    GET: async (_req, res) => {
      const text = await metrics.render();
      res.setHeader('Cache-Control', 'no-store');
      // Set directly, because Express would change the parameters of the type.
      res.setHeader('Content-Type', metrics.contentType);
      res.end(text);
    },
  });
  return router;
}
