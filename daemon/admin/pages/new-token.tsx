import type { WireProject, WireToken } from '../../api/contract.js';
import { Heading } from './document.js';
import { ChangeForm, Link } from './frame.js';
import { Empty, Refused } from './parts.js';
import { Snippets } from './snippets.js';
import { type GivenToken, IssuedFacts, TokenFields } from './token-terms.js';

export interface NewTokenProps {
  /** The active ones: for others there are no new tokens. */
  projects: readonly WireProject[];
  given: GivenToken;
  refused: string | null;
}

export function newTokenPage(props: NewTokenProps) {
  return (
    <div className="narrow">
      <Heading title="New token" path={<Link to="tokens">Tokens</Link>} />
      {props.projects.length === 0 ? <NoProject /> : <NewTokenForm {...props} />}
    </div>
  );
}

function NoProject() {
  return (
    <Empty title="There is no active project">
      <p>
        A token belongs to a project. <Link to="projects/new">Create one</Link>, or{' '}
        <Link to="projects">activate one</Link>.
      </p>
    </Empty>
  );
}

function NewTokenForm({ projects, given, refused }: NewTokenProps) {
  return (
    <>
      <Refused why={refused} />
      <ChangeForm to="tokens/new">
        <TokenFields projects={projects} given={given} />
        <div className="buttons">
          <Link to="tokens" className="button">
            Cancel
          </Link>
          <button type="submit" className="primary">
            Issue token
          </button>
        </div>
      </ChangeForm>
    </>
  );
}

export interface SecretProps {
  token: WireToken;
  /** Null when it was shown before: it exists nowhere any more. */
  secret: string | null;
  baseUrl: string;
}

/** Shown once: neither going back nor asking again brings it back. */
export function secretPage({ token, secret, baseUrl }: SecretProps) {
  return (
    <div className="narrow">
      <Heading
        title={secret === null ? 'Its secret was shown' : 'Token issued'}
        path={<Link to="tokens">Tokens</Link>}
      />
      {secret === null ? (
        <p>A secret is shown once, and kept nowhere. If nobody has it, revoke this token and issue another.</p>
      ) : (
        <Revealed token={token} secret={secret} baseUrl={baseUrl} />
      )}
      <p className="buttons start">
        <Link to={`tokens/${token.id}`} className="button primary">
          {secret === null ? 'To the token' : 'I have stored it'}
        </Link>
      </p>
    </div>
  );
}

function Revealed({ token, secret, baseUrl }: { token: WireToken; secret: string; baseUrl: string }) {
  return (
    <>
      <p className="notice">
        <strong>Copy it now: it is shown only this once.</strong> Whoever has it can use it until it is spent.
      </p>
      <div className="secret">
        <code id="secret" tabIndex={0} role="textbox" aria-readonly="true" aria-label="Secret of the token">
          {secret}
        </code>
        <button type="button" data-copy="secret" hidden>
          Copy
        </button>
      </div>
      <IssuedFacts token={token} />
      <Snippets baseUrl={baseUrl} />
    </>
  );
}
