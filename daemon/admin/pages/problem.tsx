import type { ReactNode } from 'react';
import { Link } from './frame.js';

export interface ProblemProps {
  title: string;
  children: ReactNode;
  requestId: string | null;
  /** Selects the link: to the overview, or to the login page. */
  isLoggedIn: boolean;
}

export function problemPage({ title, children, requestId, isLoggedIn }: ProblemProps) {
  return (
    <div className="problem">
      <h1>{title}</h1>
      <p>{children}</p>
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
