/** Properties of a token: the fields of the form for a new token, and the details on its pages. */
import { exact } from '../../api/formats.js';
import type { TokenCreateTerms, WireProject, WireToken } from '../../api/contract.js';
import { MAX_CAP, MAX_NAME_LENGTH } from '../../api/vocabulary.js';
import { Field, Select } from './fields.js';
import { choicesOf, ProjectLink } from './links.js';
import { Facts } from './parts.js';
import { Name, StateMark, Time, Uses } from './formats.js';

/** Values of the form, by field name. */
export type TokenFormValues = Record<keyof TokenCreateTerms | 'duration' | 'unit', string>;
export const EMPTY_TOKEN_FORM: TokenFormValues = {
  project_id: '',
  name: '',
  duration: '24',
  unit: 'hours',
  max_requests: '',
};

const UNITS = [
  ['minutes', 'minutes'],
  ['hours', 'hours'],
  ['days', 'days'],
] as const;

/** @param props.projects the projects to choose from. */
export function TokenFields({ projects, given }: { projects: readonly WireProject[]; given: TokenFormValues }) {
  return (
    <>
      <Field name="project_id" label="Project">
        {(attributes) => <Select choices={choicesOf(projects)} chosen={given.project_id} required {...attributes} />}
      </Field>
      <Field name="name" label="Name" hint="Who or what will use it. Optional.">
        {(attributes) => <input type="text" maxLength={MAX_NAME_LENGTH} defaultValue={given.name} {...attributes} />}
      </Field>
      <fieldset className="pair">
        <legend>Valid for</legend>
        <input type="number" name="duration" min="1" required defaultValue={given.duration} aria-label="Lifetime" />
        <Select choices={UNITS} chosen={given.unit} name="unit" aria-label="Unit of time" />
      </fieldset>
      <Field name="max_requests" label="Request cap" hint="Leave empty for no cap.">
        {(attributes) => (
          <input type="number" min="0" max={MAX_CAP} defaultValue={given.max_requests} {...attributes} />
        )}
      </Field>
    </>
  );
}

/** Details of a new token. */
export function IssuedFacts({ token }: { token: WireToken }) {
  return (
    <Facts
      id="facts"
      facts={[
        token.name === null ? null : { name: 'Name', value: <Name>{token.name}</Name> },
        { name: 'Expires', value: <Time at={token.expires_at} isFull /> },
        {
          name: 'Requests',
          value: token.max_requests === 0 ? 'unlimited' : `up to ${exact(token.max_requests)}`,
        },
      ]}
    />
  );
}

function revocationOf({ revoked_at: at, revoked_by: by, revoke_reason: reason }: WireToken) {
  if (at === null) return null;
  const value = (
    <>
      <Time at={at} isFull />
      {by === null ? null : ' by '}
      {by === null ? null : <Name>{by}</Name>}
      {reason === null ? null : ': '}
      {reason === null ? null : <Name>{reason}</Name>}
    </>
  );
  return { name: 'Revoked', value };
}

/** Details on the page of a token. */
export function TokenFacts({ token }: { token: WireToken }) {
  return (
    <Facts
      id="facts"
      facts={[
        { name: 'State', value: <StateMark state={token.state} /> },
        revocationOf(token),
        {
          name: 'Project',
          value: <ProjectLink project={{ id: token.project_id, name: token.project_name }} />,
        },
        {
          name: 'Requests',
          value: token.max_requests === 0 ? `${exact(token.request_count)}, unlimited` : <Uses token={token} />,
        },
        { name: 'Cache hits', value: exact(token.cache_hit_count) },
        { name: 'Expires', value: <Time at={token.expires_at} isFull /> },
        { name: 'Last used', value: <Time at={token.last_used_at} isFull /> },
        { name: 'Created', value: <Time at={token.created_at} isFull /> },
        { name: 'Secret', value: <code>{token.obfuscated}</code> },
        { name: 'ID', value: <code className="id">{token.id}</code> },
      ]}
    />
  );
}
