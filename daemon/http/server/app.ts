/** The Express app for everything except /v1. The middleware is listed in the order in which a request passes it. */
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import { NO_SUCH_PATH } from '../../api/vocabulary.js';
import type { Log } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import { ClientGone } from '../connection-ends.js';
import type { Locals } from '../manage/caller.js';
import { requestIdOf } from '../client-identity.js';
import type { UnknownPathErrors } from './unknown-path.js';
import { asRefusal, codeOf, sendProblem, statusOf } from '../problems.js';
import { type MetricsEndpoint, metricsRoute } from './metrics-route.js';

export interface AppOptions {
  log: Log;
  /** Null if this listener has no health endpoints. */
  probes: RequestHandler | null;
  /** Null if another listener serves the management API. */
  manage: RequestHandler | null;
  /** Null if there is no Admin UI. It is served where the management API is. */
  admin: MountedPages | null;
  /** Null if this listener serves no metrics. */
  metrics: MetricsEndpoint | null;
  /** How requests outside of /v1 are refused; null if this listener does not serve /v1. */
  unknownPathErrors: UnknownPathErrors | null;
}

/** Pages that another module serves. */
export interface MountedPages {
  /** The path below which they are served, with a slash at its end. */
  path: string;
  pages: RequestHandler;
}

export function createApp({ log, probes, manage, admin, metrics, unknownPathErrors }: AppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false); // Routes that have a query parse it strictly themselves.
  app.set('case sensitive routing', true);
  app.set('strict routing', true);

  app.use(identify);
  // On every listener, since a monitoring system may be able to reach only one of them.
  if (probes) app.use(probes);
  if (metrics) app.use(metricsRoute(metrics));
  if (manage) app.use(manage);
  if (admin) mount(app, admin);
  app.use(notFound);
  app.use(problems(log, unknownPathErrors));
  return app;
}

function mount(app: Express, { path, pages }: MountedPages): void {
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
  throw new Refusal('not_found', NO_SUCH_PATH);
};

function problems(log: Log, unknownPathErrors: UnknownPathErrors | null): ErrorRequestHandler {
  // Express recognises an error handler by its four parameters.
  return (error: unknown, req, res, _next) => {
    if (error instanceof ClientGone) return;
    const refusal = isOfExpress(error) ? new Refusal('invalid_request', 'malformed request') : asRefusal(error);
    const { requestId, cors } = res.locals as Locals;
    const status = statusOf(refusal);
    if (status >= 500) {
      log.error('request failed', { requestId, method: req.method, code: codeOf(refusal), error: refusal.cause });
    }
    sendProblem(res, refusal, requestId, cors, unknownPathErrors?.wording(refusal, req));
  };
}

/** Whether Express created this error for the client, such as for a path that cannot be decoded. Its text quotes what the client sent. */
const isOfExpress = (error: unknown) => (error as { status?: number }).status === 400;
