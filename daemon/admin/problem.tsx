import { ApiError, Unreachable } from '../api/client.js';
import type { Permission } from '../api/permissions.js';
import { Link, type User } from './parts/frame.js';

/** An error that is shown as a page. */
export class Problem extends Error {
  readonly status: number;
  readonly title: string;

  constructor(status: number, title: string, message: string) {
    super(message);
    this.status = status;
    this.title = title;
  }
}

const NOT_PERMITTED = 'Not permitted';

export const isNotPermitted = (error: unknown): boolean => error instanceof ApiError && error.code === 'not_permitted';

/** For a page that no link offers to this user. */
export const notPermitted = ({ role }: User, permission: Permission): Problem =>
  new Problem(403, NOT_PERMITTED, `The role ${role ?? ''} may not ${permission}.`);

const sentenceOf = ({ message }: ApiError) => `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;

/** @returns null for unexpected errors, which the server around the Admin UI handles. */
export function problemIn(error: unknown): Problem | null {
  if (error instanceof Problem) return error;
  if (error instanceof Unreachable) {
    return new Problem(503, 'The daemon is not responding', `${error.message}. Try again in a moment.`);
  }
  if (!(error instanceof ApiError)) return null;
  if (error.status === 404) return new Problem(404, 'Not found', 'This resource does not exist.');
  if (isNotPermitted(error)) return new Problem(403, NOT_PERMITTED, sentenceOf(error));
  if (error.status === 401) {
    return new Problem(
      502,
      'The daemon refused this Admin UI',
      'Its MANAGEMENT_TOKEN differs from the daemon’s. Restart the Admin UI with the token of the daemon.',
    );
  }
  if (error.status < 500) return new Problem(400, 'Invalid request', `${error.message}.`);
  return new Problem(
    503,
    'Temporarily unavailable',
    'The database or the audit log is unavailable. Try again in a moment.',
  );
}

interface ProblemProps {
  title: string;
  message: string;
  requestId: string | null;
  /** Selects the link: to the overview, or to the login page. */
  isLoggedIn: boolean;
}

export function problemPage({ title, message, requestId, isLoggedIn }: ProblemProps) {
  return (
    <div className="problem">
      <h1>{title}</h1>
      <p>{message}</p>
      <p>
        <Link to={isLoggedIn ? '' : 'login'}>{isLoggedIn ? 'Go to the overview' : 'Go to the login page'}</Link>
      </p>
      {requestId === null ? null : (
        <p className="hint">
          Request <code className="id">{requestId}</code>
        </p>
      )}
    </div>
  );
}
