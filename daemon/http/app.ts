/** The Express app for all but /v1: one list, in the order a request meets it. */
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import type { Log } from '../core/ports.js';
import { Refusal } from '../core/refusal.js';
import type { Locals } from './caller.js';
import { requestIdOf } from './credentials.js';
import { type ManageOptions, manageRoutes } from './manage.js';
import { asRefusal, codeOf, sendProblem, statusOf } from './problems.js';
import { type Probes, probeRoutes } from './probes.js';

export interface AppOptions {
  log: Log;
  probes: Probes;
  /** Null where management is served by another listener. */
  manage: ManageOptions | null;
}

export function createApp({ log, probes, manage }: AppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false); // Read strictly where a route has a query.
  app.set('case sensitive routing', true);
  app.set('strict routing', true);

  app.use(identify);
  // On every listener: whoever asks whether this instance is up may only be able to reach one of them.
  app.use(probeRoutes(probes));
  if (manage) app.use(manageRoutes(manage));
  app.use(notFound);
  app.use(problems(log));
  return app;
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

function problems(log: Log): ErrorRequestHandler {
  // Express tells an error handler by its four parameters.
  return (error: unknown, req, res, _next) => {
    const refusal = ofExpress(error) ?? asRefusal(error);
    const { requestId, cors } = res.locals as Locals;
    const status = statusOf(refusal);
    if (status >= 500) {
      log.error('a request failed', { requestId, method: req.method, code: codeOf(refusal), error: refusal.cause });
    }
    sendProblem(res, refusal, requestId, cors);
  };
}

/** Errors that Express and its body parser mean for the client. Their texts quote the client's input, so ours replace them. */
function ofExpress(error: unknown): Refusal | null {
  const { type, status } = error as { type?: string; status?: number };
  switch (type) {
    case 'entity.parse.failed':
      return new Refusal('invalid_request', 'the body is not valid JSON');
    case 'entity.too.large':
      return new Refusal('body_too_large', 'request body too large');
    case 'charset.unsupported':
    case 'encoding.unsupported':
      return new Refusal('unsupported_media_type', 'the body must be plain application/json in UTF-8');
    default:
      return status === 400 ? new Refusal('invalid_request', 'malformed request') : null;
  }
}
