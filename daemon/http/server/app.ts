/** The Express app for all but /v1: one list, in the order a request meets it. */
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import type { Log } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import { ClientGone } from '../body.js';
import type { Locals } from '../manage/caller.js';
import { requestIdOf } from '../credentials.js';
import { type ManageOptions, manageRoutes } from '../manage/routes.js';
import type { OffPath } from './off-path.js';
import { asRefusal, codeOf, sendProblem, statusOf } from '../problems.js';
import { type Scraped, scrapeRoute } from './scrape.js';

export interface AppOptions {
  log: Log;
  /** Null where nobody asks whether it is up. */
  probes: RequestHandler | null;
  /** Null where management is served by another listener. */
  manage: ManageOptions | null;
  /** Null where there is no Admin UI; it is at home where management is. */
  admin: Mounted | null;
  /** Null where no metrics are served. */
  metrics: Scraped | null;
  /** How who misses /v1 is refused; null where /v1 is not served. */
  offPath: OffPath | null;
}

/** Pages of somebody else's making. */
export interface Mounted {
  /** The path below which they are, with a slash at its end. */
  path: string;
  pages: RequestHandler;
}

export function createApp({ log, probes, manage, admin, metrics, offPath }: AppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false); // Read strictly where a route has a query.
  app.set('case sensitive routing', true);
  app.set('strict routing', true);

  app.use(identify);
  // On every listener: whoever asks whether this instance is up may only be able to reach one of them.
  if (probes) app.use(probes);
  if (metrics) app.use(scrapeRoute(metrics));
  if (manage) app.use(manageRoutes(manage));
  if (admin) mount(app, admin);
  app.use(notFound);
  app.use(problems(log, offPath));
  return app;
}

function mount(app: Express, { path, pages }: Mounted): void {
  const withoutSlash = path.slice(0, -1);
  app.get(withoutSlash, (_req, res) => {
    res.redirect(308, path);
  });
  app.use(withoutSlash, pages);
}

const identify: RequestHandler = (req, res, next) => {
  const requestId = requestIdOf(req.headers['x-request-id']);
  (res.locals as Locals).requestId = requestId;
  res.setHeader('X-Request-ID', requestId);
  next();
};

const notFound: RequestHandler = () => {
  throw new Refusal('not_found', 'no such path');
};

function problems(log: Log, offPath: OffPath | null): ErrorRequestHandler {
  // Express tells an error handler by its four parameters.
  return (error: unknown, req, res, _next) => {
    if (error instanceof ClientGone) return;
    const refusal = isOfExpress(error) ? new Refusal('invalid_request', 'malformed request') : asRefusal(error);
    const { requestId, cors } = res.locals as Locals;
    const status = statusOf(refusal);
    if (status >= 500) {
      log.error('a request failed', { requestId, method: req.method, code: codeOf(refusal), error: refusal.cause });
    }
    sendProblem(res, refusal, requestId, cors, offPath?.wording(refusal, req));
  };
}

/** An error that Express means for the client, such as a path that cannot be decoded. Its text quotes what the client sent. */
const isOfExpress = (error: unknown) => (error as { status?: number }).status === 400;
