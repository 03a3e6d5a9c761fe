import { InputField } from './fields.js';
import { ChangeForm } from './frame.js';
import { ErrorNotice } from './parts.js';

export interface LogInProps {
  /** Where to redirect after the login. */
  next: string;
  /** Error message of a failed login. */
  refused: string | null;
  /** A notice, for example that the session has ended. */
  remark: string | null;
  /** Whether browsers accept the session cookie from this host. */
  canLogIn: boolean;
  host: string;
}

export function logInPage({ next, refused, remark, canLogIn, host }: LogInProps) {
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
      {canLogIn ? <LogInForm next={next} /> : <LogInUnavailable host={host} />}
    </div>
  );
}

function LogInForm({ next }: { next: string }) {
  return (
    <ChangeForm to="login">
      <input type="hidden" name="next" value={next} />
      <InputField
        name="token"
        label="Management token"
        hint="The value of MANAGEMENT_TOKEN on the server."
        type="password"
        required
        autoFocus
        maxLength={1000}
        autoComplete="current-password"
        spellCheck={false}
      />
      <button type="submit" className="primary">
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
        accept the session cookie only over HTTPS or from localhost, and the management token would be sent in clear
        text.
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
