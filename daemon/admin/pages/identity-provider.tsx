/** Log-in with the company's identity provider: the way there, and the way back. */
import type { RequestHandler } from 'express';
import { ApiError } from '../../api/client.js';
import { queryOf } from '../forms.js';
import { Link } from '../parts/frame.js';
import { Problem } from '../problem.js';
import type { Renderer } from '../render.js';
import type { Sessions } from '../sessions.js';
import { loginRedirectTarget } from './log-in.js';

interface IdentityProviderOptions {
  path: string;
  sessions: Sessions;
  renderer: Renderer;
}

/** A cookie holds it. */
const MAX_NEXT_LENGTH = 1_000;

export function identityProviderHandlers({ path, sessions, renderer }: IdentityProviderOptions) {
  /**
   * A link and not a form: the content security policy does not allow forms to lead to another site. Another site may link to it too, and
   * then only begins a log-in of the person herself.
   */
  const leave: RequestHandler = async (req, res) => {
    const next = loginRedirectTarget(queryOf(req).get('next'), path);
    if (!sessions.locationOf(req).acceptsCookies) {
      res.redirect(303, `${path}login`); // It says why one cannot log in here.
      return;
    }
    const { url, state } = await begunOr(sessions.client(req).beginWebLogin());
    sessions.storeLogIn(req, res, { state, next: next.length > MAX_NEXT_LENGTH ? path : next });
    res.redirect(303, url);
  };

  const comeBack: RequestHandler = async (req, res) => {
    const begun = sessions.takeLogIn(req, res);
    if (begun === null) throw new Problem(403, NOT_LOGGED_IN, NOT_BEGUN);
    const { state, next } = begun;
    const query = queryOf(req).toString();
    sessions.adopt(req, res, await begunOr(sessions.client(req).finishWebLogin({ state, query })));
    // Not a redirect: the browser would follow it on behalf of the identity provider, and not send the cookie of the session.
    res.set('Refresh', `0; url=${next}`);
    // The address of this page has a code.
    res.set('Referrer-Policy', 'no-referrer');
    const to = next.slice(path.length);
    await renderer.page(res, {
      title: 'Logged in',
      section: null,
      formToken: null,
      user: null,
      body: (
        <div className="log-in">
          <p className="brand">llmp</p>
          <h1>You are logged in</h1>
          <p>
            <Link to={to}>Continue</Link>
          </p>
        </div>
      ),
    });
  };

  return { leave, comeBack };
}

const NOT_LOGGED_IN = 'You are not logged in';
const NOT_BEGUN =
  'This log-in was not begun at this address in this browser, or it took longer than ten minutes. Begin again on the login page.';

/** @throws {Problem} in the words of the management API, if it refuses the log-in. */
async function begunOr<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { code, status, message } = error;
    if (code === 'log_in_refused') throw new Problem(403, NOT_LOGGED_IN, sentence(message));
    if (status === 404) throw new Problem(404, NOT_LOGGED_IN, 'People cannot log in with an identity provider here.');
    if (code === 'invalid_request')
      throw new Problem(400, NOT_LOGGED_IN, 'The way back from the identity provider is not valid.');
    if (code === 'too_many_attempts')
      throw new Problem(429, NOT_LOGGED_IN, `${sentence(message)} Try again in a minute.`);
    if (code === 'unavailable') throw new Problem(503, NOT_LOGGED_IN, `${sentence(message)} Try again in a moment.`);
    throw error;
  }
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
