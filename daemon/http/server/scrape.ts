import { Router } from 'express';
import { route } from '../manage/endpoints.js';

export interface Scraped {
  /** Where it is served. */
  path: string;
  metrics: { contentType: string; render(): Promise<string> };
}

/** Metrics, for whoever reaches this listener: as Prometheus expects, without a credential. */
export function scrapeRoute({ path, metrics }: Scraped): Router {
  const router = Router({ caseSensitive: true, strict: true });
  route(router, path, {
    GET: async (_req, res) => {
      const text = await metrics.render();
      res.setHeader('Cache-Control', 'no-store');
      // As it stands: Express would put its own notion of the type's parameters in.
      res.setHeader('Content-Type', metrics.contentType);
      res.end(text);
    },
  });
  return router;
}
