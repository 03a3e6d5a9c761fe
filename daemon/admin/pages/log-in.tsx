import { Field } from './fields.js';
import { ChangeForm } from './frame.js';
import { Refused } from './parts.js';

export interface LogInProps {
  /** Where to go then. */
  next: string;
  /** Why not, after a try. */
  refused: string | null;
  /** What happened before: the session has ended, say. */
  remark: string | null;
  /** Whether this browser would keep a session. */
  isPossible: boolean;
  host: string;
}

export function logInPage({ next, refused, remark, isPossible, host }: LogInProps) {
  return (
    <div className="log-in">
      <p className="brand">llmp</p>
      <h1>Log in</h1>
      {remark === null ? null : (
        <p className="notice" role="status">
          {remark}
        </p>
      )}
      <Refused why={refused} />
      {isPossible ? <LogInForm next={next} /> : <WhyNot host={host} />}
    </div>
  );
}

function LogInForm({ next }: { next: string }) {
  return (
    <ChangeForm to="login">
      <input type="hidden" name="next" value={next} />
      <Field name="token" label="Management token" hint="The one that MANAGEMENT_TOKEN holds on the server.">
        {(attributes) => (
          <input
            type="password"
            required
            autoFocus
            maxLength={1000}
            autoComplete="current-password"
            spellCheck={false}
            {...attributes}
          />
        )}
      </Field>
      <button type="submit" className="primary">
        Log in
      </button>
    </ChangeForm>
  );
}

function WhyNot({ host }: { host: string }) {
  return (
    <div className="notice bad" role="alert">
      <p>
        <strong>No log-in works here.</strong> This page came over plain http from <code>{host}</code>. A browser keeps
        the cookie of a session only over https or from this machine itself; and the management token would travel in
        clear text.
      </p>
      <p>Either of these helps:</p>
      <ul>
        <li>
          Put TLS in front, and name that proxy in <code>TRUSTED_PROXIES</code>, so that its{' '}
          <code>X-Forwarded-Proto: https</code> is believed.
        </li>
        <li>
          Forward a port, <code>ssh -L 8080:127.0.0.1:8080 …</code>, and open <code>http://127.0.0.1:8080</code>.
        </li>
      </ul>
    </div>
  );
}
