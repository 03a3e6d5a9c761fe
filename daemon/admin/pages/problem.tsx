import type { ReactNode } from 'react';
import { Link } from './frame.js';

export interface ProblemProps {
  title: string;
  children: ReactNode;
  requestId: string | null;
  /** Whether there is somewhere to go back to. */
  isLoggedIn: boolean;
}

export function problemPage({ title, children, requestId, isLoggedIn }: ProblemProps) {
  return (
    <div className="problem">
      <h1>{title}</h1>
      <p>{children}</p>
      <p>
        <Link to={isLoggedIn ? '' : 'login'}>{isLoggedIn ? 'To the overview' : 'To the log-in'}</Link>
      </p>
      {requestId === null ? null : (
        <p className="hint">
          Request <code className="id">{requestId}</code>
        </p>
      )}
    </div>
  );
}
