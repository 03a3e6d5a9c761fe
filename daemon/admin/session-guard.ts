/** Checks before a page handler runs: same origin, valid session, CSRF token of the form. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import { type ActiveSession, hasSessionEnded, isSameOrigin, type Sessions } from './sessions.js';
import { isForm, queryOf, type ReadForm } from './forms.js';
import { FORM_TOKEN, type Offers, type User } from './parts/frame.js';
import { isNotPermitted, notPermitted, Problem } from './problem.js';
import type { PageStreams } from './page-streams.js';
import type { Renderer } from './render.js';
import type { Download, Route, PageRequest } from './page-request.js';

/** CSRF protection: a page of another site must not make changes with the session of a logged-in user. */
export const requireSameOrigin: RequestHandler = (req, _res, next) => {
  const isReading = req.method === 'GET' || req.method === 'HEAD';
  if (!isReading && !isSameOrigin(req)) {
    throw new Problem(
      403,
      'Cross-site request refused',
      'No page of this Admin UI sent this request. Nothing was changed.',
    );
  }
  if (req.method === 'POST' && !isForm(req)) {
    throw new Problem(415, 'Not a form', 'This address accepts only forms. Nothing was changed.');
  }
  next();
};

type Handle = (req: Request, res: Response, session: ActiveSession, form: URLSearchParams) => Promise<void>;

export interface SessionGuardOptions {
  path: string;
  sessions: Sessions;
  renderer: Renderer;
  readForm: ReadForm;
  streams: PageStreams;
  offersTo: (user: User | null) => Offers;
}

/** Handlers that run only for requests with a valid session; others are redirected to the login page. */
export function sessionGuard({ path, sessions, renderer, readForm, streams, offersTo }: SessionGuardOptions) {
  const redirectToLogin = (req: Request, res: Response, next: string) => {
    // The script that refreshes pages recognises the end of the session by the status.
    if (sessions.isAutomaticRefresh(req)) {
      res.status(401).end();
      return;
    }
    const query = new URLSearchParams({
      ...(sessions.hasSessionCookie(req) && { why: 'ended' }),
      ...(next !== path && next !== '' && { next }),
    });
    res.redirect(303, `${path}login${query.size > 0 ? `?${query.toString()}` : ''}`);
  };

  const redirectFrom = (req: Request, res: Response) => {
    // After the login, return to the page with the form.
    redirectToLogin(req, res, req.method === 'POST' ? pathOf(req.get('referer')) : req.originalUrl);
  };

  const pageRequestOf = (req: Request, res: Response, session: ActiveSession, form: URLSearchParams): PageRequest => ({
    user: session.user,
    may: offersTo(session.user).may,
    id: (req.params as Record<string, string>).id ?? '',
    query: queryOf(req),
    form,
    client: sessions.clientOf(req, session),
    changeClient: sessions.clientOf(req, session, (form.get('reason') ?? '').trim() || null).inBatch(randomUUID()),
    nowMs: sessions.nowMs,
    baseUrl: sessions.baseUrlOf(req),
    isSecret: (text) => sessions.isSecret(text),
    storeSecret: (to, secret) => {
      sessions.storeSecret(res, to, secret);
    },
    takeSecret: () => sessions.takeSecret(req, res, req.path.slice(1)),
  });

  const responding =
    ({ permission, handler }: Route): Handle =>
    async (req, res, session, form) => {
      const { user } = session;
      if (!offersTo(user).may(permission)) throw notPermitted(user, permission);
      const response = await handler(pageRequestOf(req, res, session, form));
      if ('stream' in response) {
        // It does not count as use of the session, because the script opens it again by itself.
        await streams.serve(req, res, {
          ...response.stream,
          fragment: (part) => renderer.fragment(part, user),
          isSessionActive: async () => (await sessions.authenticate(req)) !== null,
        });
        return;
      }
      sessions.renew(req, res, session);
      if ('to' in response) res.redirect(303, path + response.to);
      else if ('download' in response) await sendDownload(req, res, response.download);
      else await renderer.page(res, { ...response, formToken: session.formToken, user });
    };

  /** Requires a form with the CSRF token of the session. */
  const withForm =
    (handle: Handle): RequestHandler =>
    async (req, res) => {
      const form = await readForm(req, res);
      const session = await sessions.authenticate(req);
      if (session === null) {
        redirectFrom(req, res);
      } else if (!sessions.isFormTokenOf(session, form.get(FORM_TOKEN))) {
        throw new Problem(
          403,
          'Form of another session',
          'This form does not belong to your session. Nothing was changed. Reload the page with the form and try again.',
        );
      } else {
        await unlessEnded(req, res, handle(req, res, session, form));
      }
    };

  /** The session can end while the page is made: then the response is the same as without a session. */
  async function unlessEnded(req: Request, res: Response, responded: Promise<void>): Promise<void> {
    try {
      await responded;
    } catch (error) {
      if (res.headersSent || !(await isOfEnd(req, error))) throw error;
      redirectFrom(req, res);
    }
  }

  /** A change that is refused because of what the user may do now can be the first to show that the session has ended. */
  const isOfEnd = async (req: Request, error: unknown): Promise<boolean> =>
    hasSessionEnded(error) || (isNotPermitted(error) && (await sessions.authenticate(req)) === null);

  return {
    withForm,
    /** Serves a page with GET. */
    page: (route: Route): RequestHandler => {
      const respond = responding(route);
      return async (req, res) => {
        const session = await sessions.authenticate(req);
        if (session === null) redirectFrom(req, res);
        else await unlessEnded(req, res, respond(req, res, session, new URLSearchParams()));
      };
    },
    /** Serves a POST form. */
    form: (route: Route): RequestHandler => withForm(responding(route)),
  };
}

/** Streams a file at the pace of the client, so that it needs little memory. An error aborts the connection, so the browser reports a failed download. */
async function sendDownload(req: Request, res: Response, { name, type, pieces }: Download): Promise<void> {
  res.set({ 'Content-Type': `${type}; charset=utf-8`, 'Content-Disposition': `attachment; filename="${name}"` });
  if (req.method === 'HEAD') res.end();
  else await pipeline(Readable.from(pieces), res).catch(() => undefined);
}

function pathOf(referer: string | undefined): string {
  if (referer === undefined || !URL.canParse(referer)) return '';
  const { pathname, search } = new URL(referer);
  return pathname + search;
}
