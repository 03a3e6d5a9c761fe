/** What stands between a request and a page: whether it is of ours, who asks, and whether the form is theirs. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import type { Doorman, Visitor } from './doorman.js';
import { isForm, queryOf, type ReadForm } from './forms.js';
import { FORM_TOKEN } from './pages/frame.js';
import { Problem } from './problem.js';
import type { Render } from './render.js';
import type { Download, Route, Visit } from './visit.js';

/** A page of another site must not be able to change anything by the browser of somebody who is logged in here. */
export function onlyOfOurs(doorman: Doorman): RequestHandler {
  return (req, _res, next) => {
    if (req.method === 'GET' || req.method === 'HEAD') {
      next();
    } else if (!doorman.isOfOurs(req)) {
      throw new Problem(403, 'Not from here', 'This was sent by a page that is not one of these. Nothing was changed.');
    } else if (req.method === 'POST' && !isForm(req)) {
      throw new Problem(415, 'Not a form', 'What a page sends here is a form. Nothing was changed.');
    } else {
      next();
    }
  };
}

type Handle = (req: Request, res: Response, visitor: Visitor, form: URLSearchParams) => Promise<void>;

/** Of those who are logged in. */
export class Gate {
  readonly #path: string;
  readonly #doorman: Doorman;
  readonly #render: Render;
  readonly #readForm: ReadForm;

  constructor(path: string, doorman: Doorman, render: Render, readForm: ReadForm) {
    this.#path = path;
    this.#doorman = doorman;
    this.#render = render;
    this.#readForm = readForm;
  }

  /** To a page that is only looked at. */
  page(answer: Route['answer']): RequestHandler {
    return async (req, res) => {
      const visitor = await this.#doorman.visitorOf(req);
      if (visitor === null) this.#toLogIn(req, res, req.originalUrl);
      else await this.#answer(req, res, { visitor, form: new URLSearchParams(), answer });
    };
  }

  /** To what a form does. */
  form(answer: Route['answer']): RequestHandler {
    return this.behindForm((req, res, visitor, form) => this.#answer(req, res, { visitor, form, answer }));
  }

  /** For a form that a page of theirs has sent, and no other. */
  behindForm(handle: Handle): RequestHandler {
    return async (req, res) => {
      const form = await this.#readForm(req, res);
      const visitor = await this.#doorman.visitorOf(req);
      if (visitor === null) {
        // Back to the page that the form was on.
        this.#toLogIn(req, res, pathOf(req.get('referer')));
      } else if (!this.#doorman.isFormOf(visitor, form.get(FORM_TOKEN))) {
        throw new Problem(
          403,
          'Not your form',
          'This form is not one of your session. Nothing was changed; go back and send it again.',
        );
      } else {
        await handle(req, res, visitor, form);
      }
    };
  }

  #toLogIn(req: Request, res: Response, next: string): void {
    // The script that renews a page is to learn it from the status.
    if (this.#doorman.isRefresh(req)) {
      res.status(401).end();
      return;
    }
    const query = new URLSearchParams({
      ...(this.#doorman.presentsSession(req) && { why: 'ended' }),
      ...(next !== this.#path && next !== '' && { next }),
    });
    res.redirect(303, `${this.#path}login${query.size > 0 ? `?${query.toString()}` : ''}`);
  }

  async #answer(
    req: Request,
    res: Response,
    { visitor, form, answer }: { visitor: Visitor; form: URLSearchParams } & Pick<Route, 'answer'>,
  ): Promise<void> {
    const answered = await answer(this.#visitOf(req, res, form));
    this.#doorman.renew(req, res, visitor);
    if ('to' in answered) res.redirect(303, this.#path + answered.to);
    else if ('download' in answered) await sent(req, res, answered.download);
    else this.#render(res, { ...answered, formToken: visitor.formToken });
  }

  #visitOf(req: Request, res: Response, form: URLSearchParams): Visit {
    const doorman = this.#doorman;
    return {
      params: req.params as Record<string, string>,
      query: queryOf(req),
      form,
      client: () => doorman.client(req),
      changing: () => doorman.client(req, (form.get('reason') ?? '').trim() || null),
      nowMs: doorman.nowMs,
      baseUrl: doorman.baseUrlOf(req),
      handOver: (to, secret) => {
        doorman.handOver(res, to, secret);
      },
      takeOver: () => doorman.takeOver(req, res, req.path.slice(1)),
    };
  }
}

/** In step with who reads it, so that memory stays small. Where it breaks off the connection is cut, and the browser says so. */
async function sent(req: Request, res: Response, { name, type, pieces }: Download): Promise<void> {
  res.set({ 'Content-Type': `${type}; charset=utf-8`, 'Content-Disposition': `attachment; filename="${name}"` });
  if (req.method === 'HEAD') res.end();
  else await pipeline(Readable.from(pieces), res).catch(() => undefined);
}

function pathOf(referer: string | undefined): string {
  if (referer === undefined || !URL.canParse(referer)) return '';
  const { pathname, search } = new URL(referer);
  return pathname + search;
}
