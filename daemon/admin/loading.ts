import type { RequestHandler } from 'express';
import type { AdminOptions } from './app.js';

/**
 * The Admin UI, which is loaded when its first page is asked for: React and what else it needs would cost every daemon memory and a part
 * of its start, and many a daemon is never looked at.
 */
export function loadedWhenAsked(options: AdminOptions): RequestHandler {
  let loading: Promise<RequestHandler> | null = null;
  return async (req, res, next) => {
    loading ??= import('./app.js').then(({ createAdminApp }) => createAdminApp(options));
    (await loading)(req, res, next);
  };
}
