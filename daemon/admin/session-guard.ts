/** Checks before a page handler runs: same origin, valid session, CSRF token of the form. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import type { Sessions, ActiveSession } from './sessions.js';
import { isForm, queryOf, type ReadForm } from './forms.js';
import { FORM_TOKEN } from './pages/frame.js';
import { Problem } from './problem.js';
import type { PageStreams } from './page-streams.js';
import type { Renderer } from './render.js';
import type { Download, Route, PageRequest } from './page-request.js';

/** CSRF protection: a page of another site must not make changes with the session of a logged-in user. */
export function requireSameOrigin(sessions: Sessions): RequestHandler {
  return (req, _res, next) => {
    if (req.method === 'GET' || req.method === 'HEAD') {
      next();
    } else if (!sessions.isSameOrigin(req)) {
      throw new Problem(
        403,
        'Cross-site request refused',
        'No page of this Admin UI sent this request. Nothing was changed.',
      );
    } else if (req.method === 'POST' && !isForm(req)) {
      throw new Problem(415, 'Not a form', 'This address accepts only forms. Nothing was changed.');
    } else {
      next();
    }
  };
}

type Handle = (req: Request, res: Response, session: ActiveSession, form: URLSearchParams) => Promise<void>;

export interface SessionGuardOptions {
  path: string;
  sessions: Sessions;
  renderer: Renderer;
  readForm: ReadForm;
  streams: PageStreams;
}

/** Runs handlers only for requests with a valid session; others are redirected to the login page. */
export class SessionGuard {
  readonly #path: string;
  readonly #sessions: Sessions;
  readonly #renderer: Renderer;
  readonly #readForm: ReadForm;
  readonly #streams: PageStreams;

  constructor({ path, sessions, renderer, readForm, streams }: SessionGuardOptions) {
    this.#path = path;
    this.#sessions = sessions;
    this.#renderer = renderer;
    this.#readForm = readForm;
    this.#streams = streams;
  }

  /** Serves a page with GET. */
  page(handler: Route['handler']): RequestHandler {
    return async (req, res) => {
      const session = await this.#sessions.authenticate(req);
      if (session === null) this.#redirectToLogin(req, res, req.originalUrl);
      else await this.#respond(req, res, { session, form: new URLSearchParams(), handler });
    };
  }

  /** Serves a POST form. */
  form(handler: Route['handler']): RequestHandler {
    return this.withForm((req, res, session, form) => this.#respond(req, res, { session, form, handler }));
  }

  /** Requires a form with the CSRF token of the session. */
  withForm(handle: Handle): RequestHandler {
    return async (req, res) => {
      const form = await this.#readForm(req, res);
      const session = await this.#sessions.authenticate(req);
      if (session === null) {
        // After the login, return to the page with the form.
        this.#redirectToLogin(req, res, pathOf(req.get('referer')));
      } else if (!this.#sessions.isFormTokenOf(session, form.get(FORM_TOKEN))) {
        throw new Problem(
          403,
          'Form of another session',
          'This form does not belong to your session. Nothing was changed. Reload the page with the form and try again.',
        );
      } else {
        await handle(req, res, session, form);
      }
    };
  }

  #redirectToLogin(req: Request, res: Response, next: string): void {
    // The script that refreshes pages recognises the end of the session by the status.
    if (this.#sessions.isAutomaticRefresh(req)) {
      res.status(401).end();
      return;
    }
    const query = new URLSearchParams({
      ...(this.#sessions.hasSessionCookie(req) && { why: 'ended' }),
      ...(next !== this.#path && next !== '' && { next }),
    });
    res.redirect(303, `${this.#path}login${query.size > 0 ? `?${query.toString()}` : ''}`);
  }

  async #respond(
    req: Request,
    res: Response,
    { session, form, handler }: { session: ActiveSession; form: URLSearchParams } & Pick<Route, 'handler'>,
  ): Promise<void> {
    const response = await handler(this.#pageRequestOf(req, res, form));
    if ('stream' in response) {
      // It does not count as use of the session, because the script opens it again by itself.
      await this.#streams.serve(req, res, {
        ...response.stream,
        fragment: this.#renderer.fragment,
        isSessionActive: async () => (await this.#sessions.authenticate(req)) !== null,
      });
      return;
    }
    this.#sessions.renew(req, res, session);
    if ('to' in response) res.redirect(303, this.#path + response.to);
    else if ('download' in response) await sendDownload(req, res, response.download);
    else {
      const { rest, ...view } = response;
      const page = { ...view, formToken: session.formToken };
      if (rest) await this.#renderer.pageInParts(res, page, rest);
      else this.#renderer.page(res, page);
    }
  }

  #pageRequestOf(req: Request, res: Response, form: URLSearchParams): PageRequest {
    const sessions = this.#sessions;
    return {
      id: (req.params as Record<string, string>).id ?? '',
      query: queryOf(req),
      form,
      client: sessions.client(req),
      changeClient: sessions.client(req, (form.get('reason') ?? '').trim() || null),
      nowMs: sessions.nowMs,
      baseUrl: sessions.baseUrlOf(req),
      storeSecret: (to, secret) => {
        sessions.storeSecret(res, to, secret);
      },
      takeSecret: () => sessions.takeSecret(req, res, req.path.slice(1)),
    };
  }
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
