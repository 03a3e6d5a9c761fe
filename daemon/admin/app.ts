/**
 * The Admin UI: pages for browsers, made here and finished when they arrive, so that they need no script. All they show and change goes
 * through the management API, by whose rules it is checked and recorded.
 *
 * A request meets, in this order: the header fields that protect the browser; the question whether it is of ours, if it may change
 * anything; the files of the pages; the log-in; the session; the hidden token of a form; the page.
 */
import { type ErrorRequestHandler, type RequestHandler, Router } from 'express';
import { ApiError, Unreachable } from '../api/client.js';
import { assetRoutes } from './assets.js';
import { Doorman, type DoormanOptions } from './doorman.js';
import { formReader, type ReadBody } from './forms.js';
import { Gate, onlyOfOurs } from './gate.js';
import { problemPage } from './pages/problem.js';
import { Problem, problemIn } from './problem.js';
import { protection } from './protection.js';
import { type Render, rendering } from './render.js';
import { auditRoutes } from './routes/audit.js';
import { cacheRoutes } from './routes/cache.js';
import { logInHandlers } from './routes/log-in.js';
import { overviewRoutes } from './routes/overview.js';
import { projectRoutes } from './routes/projects.js';
import { tokenRoutes } from './routes/tokens.js';
import { usageRoutes } from './routes/usage.js';
import { Sealing } from './sealing.js';
import type { Route } from './visit.js';

export interface AdminOptions extends Omit<DoormanOptions, 'sealing'> {
  /** Where the keys of the sessions come from; what was typed is compared with it elsewhere. */
  managementToken: string;
  readBody: ReadBody;
  log: { error(message: string, fields?: object): void };
}

// A change that was sent may have been made although no answer to it came, or the database was lost while it was made.
const NOT_KNOWN = 'It is not known whether the change was made: look before you send it again.';

const ROUTES: readonly Route[] = [
  ...overviewRoutes,
  ...projectRoutes,
  ...tokenRoutes,
  ...usageRoutes,
  ...auditRoutes,
  ...cacheRoutes,
];

/** What is served below `path`; it is to be mounted there. */
export function createAdminApp(options: AdminOptions): RequestHandler {
  const { path, clock, log } = options;
  const { assets, routes } = assetRoutes();
  const render = rendering({ base: path, assets, clock });
  const doorman = new Doorman({ ...options, sealing: new Sealing(options.managementToken) });
  const readForm = formReader(options.readBody);
  const gate = new Gate(path, doorman, render, readForm);
  const { logInForm, logIn, logOut } = logInHandlers({ path, doorman, render, readForm });

  const router = Router({ caseSensitive: true, strict: true });
  router.use(protection, (_req, res, next) => {
    res.set('Cache-Control', 'no-store');
    next();
  });
  router.use(onlyOfOurs(doorman));
  router.use(routes);
  router
    .route('/login')
    .get(logInForm)
    .post(logIn)
    .all(notAllowed(['GET', 'POST']));
  router
    .route('/logout')
    .post(gate.behindForm(logOut))
    .all(notAllowed(['POST']));
  for (const at of new Set(ROUTES.map((route) => route.path))) {
    const here = ROUTES.filter((route) => route.path === at);
    const route = router.route(at);
    for (const { method, answer } of here) {
      if (method === 'GET') route.get(gate.page(answer));
      else route.post(gate.form(answer));
    }
    route.all(notAllowed(here.map(({ method }) => method)));
  }
  router.use(() => {
    throw new Problem(404, 'No such page', 'There is nothing at this address.');
  });
  router.use(problems(doorman, render, log));
  return router;
}

function notAllowed(methods: readonly string[]): RequestHandler {
  return (_req, res) => {
    res.set('Allow', methods.join(', '));
    throw new Problem(405, 'Not possible here', 'This address is for something else.');
  };
}

function problems(doorman: Doorman, render: Render, log: AdminOptions['log']): ErrorRequestHandler {
  return async (error: unknown, req, res, next) => {
    const problem = problemIn(error);
    if (problem === null || res.headersSent) {
      next(error);
      return;
    }
    const { requestId = null } = res.locals as { requestId?: string };
    const { title, status } = problem;
    const isUnknown =
      status >= 500 && req.method === 'POST' && (error instanceof Unreachable || error instanceof ApiError);
    const message = isUnknown ? `${problem.message} ${NOT_KNOWN}` : problem.message;
    if (status >= 500) log.error('a page could not be shown', { requestId, error });
    const visitor = await doorman.visitorOf(req).catch(() => null);
    const isLoggedIn = visitor !== null;
    const body = problemPage({ title, children: message, requestId, isLoggedIn });
    render(res, { title, section: isLoggedIn ? 'none' : null, status, body, formToken: visitor?.formToken ?? null });
  };
}
