/**
 * The Admin UI: server-rendered pages that work without scripts. They read and change everything through the management API, which
 * validates and records it.
 *
 * The middleware runs in this order: security headers, same-origin check (for requests that can make changes), static assets, login and
 * logout, session, CSRF token of forms, page.
 */
import { type ErrorRequestHandler, type RequestHandler, Router } from 'express';
import helmet from 'helmet';
import { ApiError, Unreachable } from '../api/client.js';
import { assetRoutes } from './assets.js';
import { Sessions, type SessionsOptions } from './sessions.js';
import { formReader, queryOf, type ReadBody } from './forms.js';
import { offersOf } from './offers.js';
import { requireSameOrigin, sessionGuard } from './session-guard.js';
import { Problem, problemIn, problemPage } from './problem.js';
import type { PageStreams } from './page-streams.js';
import { type Renderer, rendering } from './render.js';
import { auditRoutes } from './pages/audit.js';
import { cacheRoutes } from './pages/cache.js';
import { eventRoutes } from './pages/events.js';
import { logInHandlers, PROVIDER_LOG_IN } from './pages/log-in.js';
import { identityProviderHandlers } from './pages/identity-provider.js';
import { myTokenRoutes } from './pages/my-tokens.js';
import { overviewRoutes } from './pages/overview.js';
import { projectRoutes } from './pages/project.js';
import { projectsRoutes } from './pages/projects.js';
import { policyRoutes } from './pages/policies.js';
import { operatorRoutes } from './pages/operators.js';
import { providerRoutes } from './pages/provider.js';
import { batchRoutes } from './pages/batch.js';
import { bulkRoutes } from './pages/bulk.js';
import { newTokenRoutes } from './pages/new-token.js';
import { tokenRoutes } from './pages/token.js';
import { tokensRoutes } from './pages/tokens.js';
import { topRoutes } from './pages/top.js';
import { trustRoutes } from './pages/trusts.js';
import { usageRoutes } from './pages/usage.js';
import type { Route } from './page-request.js';
import { isIssuer } from './parts/frame.js';

export interface AdminOptions extends SessionsOptions {
  readBody: ReadBody;
  /** The streams of open pages. The caller ends them. */
  streams: PageStreams;
  log: { error(message: string, fields?: object): void };
}

// A change may have been made although its response was lost, or although the connection to the database failed meanwhile.
const UNKNOWN_OUTCOME = 'It is unknown whether the change was made: check before you try again.';

/** The pages, in the order in which they match. */
export const ROUTES: readonly Route[] = [
  ...overviewRoutes,
  ...myTokenRoutes,
  ...projectsRoutes,
  ...projectRoutes,
  ...providerRoutes,
  ...policyRoutes,
  ...tokensRoutes,
  ...newTokenRoutes,
  ...bulkRoutes,
  ...batchRoutes,
  ...tokenRoutes,
  ...topRoutes,
  ...usageRoutes,
  ...eventRoutes,
  ...auditRoutes,
  ...cacheRoutes,
  ...operatorRoutes,
  ...trustRoutes,
];

/**
 * Security headers of all pages. Headers that work only over TLS (Strict-Transport-Security, upgrade-insecure-requests,
 * Cross-Origin-Opener-Policy) are left out: there is no TLS on localhost, and elsewhere the TLS proxy sets them.
 */
const protection = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      connectSrc: ["'self'"],
      formAction: ["'self'"],
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  // With `no-referrer`, the default of helmet, browsers send `Origin: null` with forms.
  referrerPolicy: { policy: 'same-origin' },
  xFrameOptions: { action: 'deny' },
  crossOriginResourcePolicy: { policy: 'same-origin' },
  crossOriginEmbedderPolicy: false,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  strictTransportSecurity: false,
});

/** The Admin UI as a handler, to be mounted at `path`. */
export function createAdminApp(options: AdminOptions): RequestHandler {
  const { path, clock, log } = options;
  const { assets, routes } = assetRoutes();
  const offersTo = offersOf(ROUTES);
  const renderer = rendering({ base: path, assets, clock, offersTo });
  const sessions = new Sessions(options);
  const readForm = formReader(options.readBody);
  const requireSession = sessionGuard({ path, sessions, renderer, readForm, streams: options.streams, offersTo });
  const { logInForm, logIn, logOut } = logInHandlers({ path, sessions, renderer, readForm });

  const router = Router({ caseSensitive: true, strict: true });
  router.use(protection, (_req, res, next) => {
    res.set('Cache-Control', 'no-store');
    next();
  });
  const { leave, comeBack } = identityProviderHandlers({ path, sessions, renderer });
  router
    .route(`/${PROVIDER_LOG_IN}`)
    .get(leave)
    .all(notAllowed(['GET']));
  // Before the search for secrets in addresses: the identity provider chooses this one.
  router
    .route('/oidc/callback')
    .get(comeBack)
    .all(notAllowed(['GET']));
  router.use(withoutSecretsInUrl(path, sessions));
  router.use(requireSameOrigin);
  router.use(routes);
  router
    .route('/login')
    .get(logInForm)
    .post(logIn)
    .all(notAllowed(['GET', 'POST']));
  router
    .route('/logout')
    .post(requireSession.withForm(logOut))
    .all(notAllowed(['POST']));
  for (const at of new Set(ROUTES.map((route) => route.path))) {
    const here = ROUTES.filter((route) => route.path === at);
    const route = router.route(at);
    for (const it of here) {
      if (it.method === 'GET') route.get(requireSession.page(it));
      else route.post(requireSession.form(it));
    }
    route.all(notAllowed(here.map(({ method }) => method)));
  }
  router.get(`/${SECRET_PAGE}`, () => {
    throw new Problem(400, 'This was a secret', SECRET_SENT);
  });
  router.use(() => {
    throw new Problem(404, 'Page not found', 'There is no page at this address.');
  });
  router.use(problemHandler(sessions, renderer, log));
  return router;
}

const SECRET_PAGE = 'secret';
const SECRET_SENT =
  'What was entered is the secret of a token, or a key, so nothing was searched for, and it is not in the history of this browser. ' +
  'A server in front of this page may have logged it: if that log has readers, revoke it. The query box of the tokens finds the token of a secret.';

/**
 * A form with a search field puts its text into the URL. The script of the pages does not send a secret; without it, this redirect keeps
 * the secret from the history of the browser, from the log-in page, and from the requests to the management API.
 */
function withoutSecretsInUrl(path: string, sessions: Sessions): RequestHandler {
  const isSecret = (text: string) => sessions.isSecret(text);
  return (req, res, next) => {
    const query = [...queryOf(req)].filter(([name]) => name !== 'cursor');
    if (req.method === 'GET' && [req.path, ...query.flat()].some(isSecret)) res.redirect(303, path + SECRET_PAGE);
    else next();
  };
}

function notAllowed(methods: readonly string[]): RequestHandler {
  return (_req, res) => {
    res.set('Allow', methods.join(', '));
    throw new Problem(405, 'Method not allowed', 'This address does not support this kind of request.');
  };
}

function problemHandler(sessions: Sessions, renderer: Renderer, log: AdminOptions['log']): ErrorRequestHandler {
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
    const message = isUnknown ? `${problem.message} ${UNKNOWN_OUTCOME}` : problem.message;
    if (status >= 500) log.error('cannot serve a page of the Admin UI', { requestId, error });
    const session = await sessions.authenticate(req).catch(() => null);
    const isLoggedIn = session !== null;
    const body = problemPage({ title, message, requestId, isLoggedIn, isIssuer: isIssuer(session?.user ?? null) });
    await renderer.page(res, {
      title,
      section: isLoggedIn ? 'none' : null,
      status,
      body,
      formToken: session?.formToken ?? null,
      user: session?.user ?? null,
    });
  };
}
