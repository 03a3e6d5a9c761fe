import type { TokenCreateTerms, WireProject, WireToken } from '../../api/contract.js';
import { Heading } from './document.js';
import { Field, Select } from './fields.js';
import { ChangeForm, Link } from './frame.js';
import { choicesOf } from './links.js';
import { Empty, Facts, Refused } from './parts.js';
import { Snippets } from './snippets.js';
import { Name, number, Time } from './words.js';
import { MAX_CAP, MAX_NAME_LENGTH } from '../../api/vocabulary.js';

export interface NewTokenProps {
  /** The active ones: for others there are no new tokens. */
  projects: readonly WireProject[];
  given: GivenToken;
  refused: string | null;
}

/** What the form is filled in with, by the names of its fields. */
export type GivenToken = Record<keyof TokenCreateTerms | 'duration' | 'unit', string>;
export const NOTHING_GIVEN: GivenToken = { project_id: '', name: '', duration: '24', unit: 'hours', max_requests: '' };

const UNITS = [
  ['minutes', 'minutes'],
  ['hours', 'hours'],
  ['days', 'days'],
] as const;

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
        <Field name="project_id" label="Project">
          {(attributes) => <Select choices={choicesOf(projects)} chosen={given.project_id} required {...attributes} />}
        </Field>
        <Field name="name" label="Name" hint="Who or what will use it. Optional.">
          {(attributes) => <input type="text" maxLength={MAX_NAME_LENGTH} defaultValue={given.name} {...attributes} />}
        </Field>
        <fieldset className="pair">
          <legend>Valid for</legend>
          <input
            type="number"
            name="duration"
            min="1"
            required
            defaultValue={given.duration}
            aria-label="How long it is valid"
          />
          <Select choices={UNITS} chosen={given.unit} name="unit" aria-label="Unit of time" />
        </fieldset>
        <Field name="max_requests" label="Requests at most" hint="Empty: any number.">
          {(attributes) => (
            <input type="number" min="0" max={MAX_CAP} defaultValue={given.max_requests} {...attributes} />
          )}
        </Field>
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
      <Facts
        id="facts"
        facts={[
          token.name === null ? null : { name: 'Name', value: <Name>{token.name}</Name> },
          { name: 'Expires', value: <Time at={token.expires_at} isFull /> },
          {
            name: 'Requests',
            value: token.max_requests === 0 ? 'any number' : `at most ${number(token.max_requests)}`,
          },
        ]}
      />
      <Snippets baseUrl={baseUrl} />
    </>
  );
}
