/** The way in and out. */
import type { Request, RequestHandler, Response } from 'express';
import { ApiError, Unreachable } from '../../api/client.js';
import type { Doorman, Visitor } from '../doorman.js';
import { queryOf, type ReadForm } from '../forms.js';
import { nextOf } from '../next.js';
import { logInPage } from '../pages/log-in.js';
import type { Render } from '../render.js';

export interface LogInOptions {
  path: string;
  doorman: Doorman;
  render: Render;
  readForm: ReadForm;
}

/** Why somebody who was somewhere is asked to log in. */
const REMARKS: Readonly<Record<string, string>> = {
  ended: 'Your session has ended. Log in to go on.',
  out: 'You are logged out.',
  'not-recorded':
    'This browser has forgotten the session, but its end could not be recorded. It ends by itself after 30 minutes.',
};

interface Shown {
  status?: number;
  next: string;
  refused: string | null;
}

export function logInHandlers({ path, doorman, render, readForm }: LogInOptions) {
  const show = (req: Request, res: Response, { status = 200, next, refused }: Shown) => {
    const place = doorman.placeOf(req);
    const why = queryOf(req).get('why') ?? '';
    const remark = refused === null && Object.hasOwn(REMARKS, why) ? (REMARKS[why] ?? null) : null;
    const body = logInPage({ next, refused, remark, isPossible: place.keepsCookies, host: place.host });
    render(res, { title: 'Log in', section: null, status, body, formToken: null });
  };

  const logInForm: RequestHandler = async (req, res) => {
    const next = nextOf(queryOf(req).get('next'), path);
    const visitor = await doorman.visitorOf(req).catch(() => null);
    if (visitor === null) show(req, res, { next, refused: null });
    else res.redirect(303, next);
  };

  const logIn: RequestHandler = async (req, res) => {
    const form = await readForm(req, res);
    const next = nextOf(form.get('next'), path);
    if (!doorman.placeOf(req).keepsCookies) {
      show(req, res, { status: 403, next, refused: null });
      return;
    }
    try {
      await doorman.logIn(req, res, form.get('token') ?? '');
    } catch (error) {
      const { retryAfterSeconds = null, ...why } = whyNot(error);
      if (retryAfterSeconds !== null) res.set('Retry-After', String(retryAfterSeconds));
      show(req, res, { ...why, next });
      return;
    }
    res.redirect(303, next);
  };

  const logOut = async (req: Request, res: Response, visitor: Visitor) => {
    const isRecorded = await doorman.logOut(req, res, visitor);
    res.redirect(303, `${path}login?why=${isRecorded ? 'out' : 'not-recorded'}`);
  };

  return { logInForm, logIn, logOut };
}

interface WhyNot {
  status: number;
  refused: string;
  retryAfterSeconds?: number | null;
}

/** @throws what is no matter of the log-in. */
function whyNot(error: unknown): WhyNot {
  if (error instanceof Unreachable)
    return { status: 503, refused: 'The daemon does not answer. Try again in a moment.' };
  if (!(error instanceof ApiError)) throw error;
  const { code, retryAfterSeconds } = error;
  switch (code) {
    case 'log_in_refused':
    case 'invalid_request': // Nothing, or more than a token can be.
      return { status: 403, refused: 'This is not the management token.' };
    case 'too_many_attempts':
      return {
        status: 429,
        refused: `Too many wrong tokens. Try again in ${retryAfterSeconds ?? 60} seconds.`,
        retryAfterSeconds,
      };
    case 'unavailable':
      return {
        status: 503,
        refused: 'Log-ins cannot be recorded now, so there are none. Try again in a moment.',
        retryAfterSeconds,
      };
    default:
      throw error;
  }
}
