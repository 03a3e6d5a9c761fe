/** What a token is issued with, and what is shown of it: the fields of the form, and the facts on its pages. */
import type { TokenCreateTerms, WireProject, WireToken } from '../../api/contract.js';
import { MAX_CAP, MAX_NAME_LENGTH } from '../../api/vocabulary.js';
import { Field, Select } from './fields.js';
import { choicesOf, namesOf, ProjectLink } from './links.js';
import { Facts } from './parts.js';
import { Name, number, StateMark, Time, Uses } from './words.js';

/** What the form is filled in with, by the names of its fields. */
export type GivenToken = Record<keyof TokenCreateTerms | 'duration' | 'unit', string>;
export const NOTHING_GIVEN: GivenToken = { project_id: '', name: '', duration: '24', unit: 'hours', max_requests: '' };

const UNITS = [
  ['minutes', 'minutes'],
  ['hours', 'hours'],
  ['days', 'days'],
] as const;

/** @param props.projects to choose from. */
export function TokenFields({ projects, given }: { projects: readonly WireProject[]; given: GivenToken }) {
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
    </>
  );
}

/** Of a token that was just issued. */
export function IssuedFacts({ token }: { token: WireToken }) {
  return (
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
  );
}

/** Of a token on its own page. */
export function TokenFacts({ token, project }: { token: WireToken; project: WireProject }) {
  return (
    <Facts
      id="facts"
      facts={[
        { name: 'State', value: <StateMark state={token.state} /> },
        { name: 'Project', value: <ProjectLink id={project.id} names={namesOf([project])} /> },
        {
          name: 'Requests',
          value: token.max_requests === 0 ? `${number(token.request_count)}, unlimited` : <Uses token={token} />,
        },
        { name: 'Cache hits', value: number(token.cache_hit_count) },
        { name: 'Expires', value: <Time at={token.expires_at} isFull /> },
        { name: 'Last used', value: <Time at={token.last_used_at} isFull /> },
        { name: 'Created', value: <Time at={token.created_at} isFull /> },
        { name: 'Secret', value: <code>{token.obfuscated}</code> },
        { name: 'Id', value: <code className="id">{token.id}</code> },
      ]}
    />
  );
}
