import type { WireProject, WireToken } from '../../api/contract.js';
import { Heading } from './document.js';
import { FormButtons } from './fields.js';
import { ChangeForm, Link } from './frame.js';
import { TokenLink } from './formats.js';
import { EmptyState, ErrorNotice } from './parts.js';
import { Snippets } from './snippets.js';
import { type TokenFormValues, IssuedFacts, TokenFields } from './token-terms.js';

export interface NewTokenProps {
  /** The active projects: inactive projects cannot have new tokens. */
  projects: readonly WireProject[];
  given: TokenFormValues;
  /** The token whose settings the form has. */
  like: WireToken | null;
  refused: string | null;
}

export function newTokenPage(props: NewTokenProps) {
  return (
    <div className="narrow">
      <Heading title={props.like ? 'Issue again' : 'New token'} path={<Link to="tokens">Tokens</Link>} />
      {props.like ? <LikeNotice token={props.like} /> : null}
      {props.projects.length === 0 ? <NoProject /> : <NewTokenForm {...props} />}
    </div>
  );
}

function NoProject() {
  return (
    <EmptyState title="No active project">
      <p>
        A token belongs to a project. <Link to="projects/new">Create one</Link>, or{' '}
        <Link to="projects">activate one</Link>.
      </p>
    </EmptyState>
  );
}

function LikeNotice({ token }: { token: WireToken }) {
  return (
    <p className="notice">
      A new token with the settings of <TokenLink token={token} />, which stays as it is.{' '}
      {token.state === 'active' ? 'Revoke it when its clients use the new one.' : ''}
    </p>
  );
}

function NewTokenForm({ projects, given, refused }: NewTokenProps) {
  return (
    <>
      <ErrorNotice why={refused} />
      <ChangeForm to="tokens/new">
        <TokenFields projects={projects} given={given} />
        <FormButtons cancel="tokens" verb="Issue token" />
      </ChangeForm>
    </>
  );
}

export interface SecretProps {
  token: WireToken;
  /** Null if the secret was already shown; it is not stored anywhere. */
  secret: string | null;
  baseUrl: string;
}

/** Shows the secret once; going back or reloading does not show it again. */
export function secretPage({ token, secret, baseUrl }: SecretProps) {
  return (
    <div className={secret === null ? 'narrow' : 'issued'}>
      <Heading
        title={secret === null ? 'Secret already shown' : 'Token issued'}
        path={<Link to="tokens">Tokens</Link>}
      />
      {secret === null ? (
        <p>
          A secret is shown only once and is not stored. If you did not save it, revoke this token and issue a new one.
        </p>
      ) : (
        <Revealed token={token} secret={secret} baseUrl={baseUrl} />
      )}
      <p className="buttons start">
        <Link to={`tokens/${token.id}`} className={secret === null ? 'button primary' : 'button'}>
          {secret === null ? 'Go to the token' : 'I have stored it'}
        </Link>
      </p>
    </div>
  );
}

function Revealed({ token, secret, baseUrl }: { token: WireToken; secret: string; baseUrl: string }) {
  return (
    <>
      <p className="notice">
        <strong>Copy the secret now. It is shown only once.</strong> Anyone who has it can use the token.
      </p>
      <div className="secret">
        <code id="secret" tabIndex={0} role="textbox" aria-readonly="true" aria-label="Secret of the token">
          {secret}
        </code>
        <button type="button" className="primary" data-copy="secret" hidden>
          Copy
        </button>
      </div>
      <IssuedFacts token={token} />
      <Snippets baseUrl={baseUrl} />
    </>
  );
}
