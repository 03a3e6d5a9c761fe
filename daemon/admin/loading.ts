import type { RequestHandler } from 'express';
import type { AdminOptions } from './app.js';

/**
 * Loads the Admin UI on the first request to it. React and its other modules cost memory and startup time, and many daemons never serve
 * a page.
 */
export function lazyAdminApp(options: AdminOptions): RequestHandler {
  let loading: Promise<RequestHandler> | null = null;
  return async (req, res, next) => {
    loading ??= import('./app.js').then(({ createAdminApp }) => createAdminApp(options));
    (await loading)(req, res, next);
  };
}
