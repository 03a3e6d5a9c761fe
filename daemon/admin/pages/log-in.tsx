/** Login and logout. */
import type { Request, RequestHandler, Response } from 'express';
import { ApiError, Unreachable } from '../../api/client.js';
import type { ActiveSession, Sessions } from '../sessions.js';
import { queryOf, type ReadForm } from '../forms.js';
import type { Renderer } from '../render.js';
import { InputField } from '../parts/fields.js';
import { sentence } from '../page-request.js';
import { ChangeForm, Link } from '../parts/frame.js';
import { ErrorNotice } from '../parts/common.js';

interface LogInProps {
  /** Where to redirect after the login. */
  next: string;
  /** Error message of a failed login. */
  refused: string | null;
  /** A notice, for example that the session has ended. */
  remark: string | null;
  /** Whether browsers accept the session cookie from this host. */
  canLogIn: boolean;
  host: string;
  /** Issuer of the identity provider; null if people cannot log in with one. */
  issuer: string | null;
}

function LogInPage({ next, refused, remark, canLogIn, host, issuer }: LogInProps) {
  return (
    <div className="log-in">
      <p className="brand">llmp</p>
      <h1>Log in</h1>
      {remark === null ? null : (
        <p className="notice" role="status">
          {remark}
        </p>
      )}
      <ErrorNotice why={refused} />
      {canLogIn ? (
        <>
          {issuer === null ? null : <ProviderLogIn next={next} issuer={issuer} />}
          <LogInForm next={next} isOnly={issuer === null} />
        </>
      ) : (
        <LogInUnavailable host={host} />
      )}
    </div>
  );
}

/** A link, because a form may not lead to another site (`form-action`). The page at its address begins the log-in. */
function ProviderLogIn({ next, issuer }: { next: string; issuer: string }) {
  return (
    <p>
      <Link to={`${PROVIDER_LOG_IN}?${new URLSearchParams({ next }).toString()}`} className="button primary">
        {`Log in with ${hostOf(issuer)}`}
      </Link>
    </p>
  );
}

const hostOf = (issuer: string): string => (URL.canParse(issuer) ? new URL(issuer).host : issuer);

function LogInForm({ next, isOnly }: { next: string; isOnly: boolean }) {
  return (
    <ChangeForm to="login">
      <input type="hidden" name="next" value={next} />
      <InputField
        name="token"
        label="Management token or operator’s secret"
        hint="The value of MANAGEMENT_TOKEN on the server, or a secret that begins with sk-op-."
        type="password"
        required
        autoFocus={isOnly}
        maxLength={1000}
        autoComplete="current-password"
        spellCheck={false}
      />
      <button type="submit" className={isOnly ? 'primary' : undefined}>
        Log in
      </button>
    </ChangeForm>
  );
}

function LogInUnavailable({ host }: { host: string }) {
  return (
    <div className="notice bad" role="alert">
      <p>
        <strong>You cannot log in here.</strong> This page was loaded over plain HTTP from <code>{host}</code>. Browsers
        accept the session cookie only over HTTPS or from localhost, and a secret would be sent in clear text.
      </p>
      <p>Do one of the following:</p>
      <ul>
        <li>
          Put a TLS proxy in front of llmp and add it to <code>TRUSTED_PROXIES</code>, so that llmp trusts its{' '}
          <code>X-Forwarded-Proto: https</code> header.
        </li>
        <li>
          Forward a port with <code>ssh -L 8080:127.0.0.1:8080 …</code> and open <code>http://127.0.0.1:8080</code>.
        </li>
      </ul>
    </div>
  );
}

// ---- routes

/** Where the log-in with the identity provider begins, with `next` in its query. */
export const PROVIDER_LOG_IN = 'login/provider';

interface LogInOptions {
  path: string;
  sessions: Sessions;
  renderer: Renderer;
  readForm: ReadForm;
}

/** Notices on the login page, by the `why` in its query. */
const REMARKS: Readonly<Record<string, string>> = {
  ended: 'Your session has ended. Log in to continue.',
  out: 'You are logged out.',
  'not-recorded':
    'You are logged out in this browser, but the logout could not be recorded. The session expires after 30 minutes.',
};

interface Shown {
  status?: number;
  next: string;
  refused: string | null;
  /** Why the session was ended. */
  ended?: string | null;
}

export function logInHandlers({ path, sessions, renderer, readForm }: LogInOptions) {
  const show = async (req: Request, res: Response, { status = 200, next, refused, ended = null }: Shown) => {
    const why = queryOf(req).get('why') ?? '';
    const usual = Object.hasOwn(REMARKS, why) ? (REMARKS[why] ?? null) : null;
    const remark = refused !== null ? null : why === 'ended' && ended !== null ? sentence(ended) : usual;
    const { acceptsCookies, host } = sessions.locationOf(req);
    // Without the daemon, the page says what is wrong when the form is sent.
    const issuer = await sessions.issuer(req).catch(() => null);
    const props = { next, refused, remark, canLogIn: acceptsCookies, host, issuer };
    const body = <LogInPage {...props} />;
    return renderer.page(res, { title: 'Log in', section: null, status, body, formToken: null, user: null });
  };

  const logInForm: RequestHandler = async (req, res) => {
    const next = loginRedirectTarget(queryOf(req).get('next'), path);
    const session = await sessions.authenticate(req).catch(() => null);
    if (session === null) await show(req, res, { next, refused: null, ended: await sessions.whyEnded(req) });
    else res.redirect(303, next);
  };

  const logIn: RequestHandler = async (req, res) => {
    const form = await readForm(req, res);
    const next = loginRedirectTarget(form.get('next'), path);
    if (!sessions.locationOf(req).acceptsCookies) {
      await show(req, res, { status: 403, next, refused: null });
      return;
    }
    try {
      await sessions.logIn(req, res, form.get('token') ?? '');
    } catch (error) {
      const { retryAfterSeconds = null, ...why } = logInFailureOf(error);
      if (retryAfterSeconds !== null) res.set('Retry-After', String(retryAfterSeconds));
      await show(req, res, { ...why, next });
      return;
    }
    res.redirect(303, next);
  };

  const logOut = async (req: Request, res: Response, session: ActiveSession) => {
    const isRecorded = await sessions.logOut(req, res, session);
    res.redirect(303, `${path}login?why=${isRecorded ? 'out' : 'not-recorded'}`);
  };

  return { logInForm, logIn, logOut };
}

interface LogInFailure {
  status: number;
  refused: string;
  retryAfterSeconds?: number | null;
}

/** @throws errors that do not belong on the login page. */
function logInFailureOf(error: unknown): LogInFailure {
  if (error instanceof Unreachable)
    return { status: 503, refused: 'The daemon is not responding. Try again in a moment.' };
  if (!(error instanceof ApiError)) throw error;
  const { code, retryAfterSeconds } = error;
  switch (code) {
    case 'log_in_refused':
    case 'invalid_request': // Empty, or longer than any token.
      return { status: 403, refused: 'Wrong token or secret.' };
    case 'too_many_attempts':
      return {
        status: 429,
        refused: `Too many failed attempts. Try again in ${retryAfterSeconds ?? 60} seconds.`,
        retryAfterSeconds,
      };
    case 'unavailable':
      return {
        status: 503,
        refused: 'You cannot log in now, because logins cannot be recorded. Try again in a moment.',
        retryAfterSeconds,
      };
    default:
      throw error;
  }
}

const PLACEHOLDER_ORIGIN = 'http://anywhere';

/**
 * Redirect target after the login: always a page of the Admin UI, to prevent open redirects. The path comes from a link that anyone can
 * make, and browsers treat `//host` and `/\host` as another site.
 *
 * @param base base path of the pages, with a trailing slash.
 */
export function loginRedirectTarget(asked: string | null | undefined, base: string): string {
  if (!asked?.startsWith('/') || !URL.canParse(asked, PLACEHOLDER_ORIGIN)) return base;
  const { origin, pathname, search } = new URL(asked, PLACEHOLDER_ORIGIN);
  return origin === PLACEHOLDER_ORIGIN && pathname.startsWith(base) ? pathname + search : base;
}
