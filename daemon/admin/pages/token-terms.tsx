/** Properties of a token: the fields of the form for a new token, and the details on its pages. */
import { type TermField, termsThat, TOKEN_LINES, TOKEN_TERMS } from '../../../console/columns/tokens.js';
import { exact } from '../../api/formats.js';
import type { WireProject, WireToken } from '../../api/contract.js';
import { CellContent } from './cells.js';
import { choicesOf, InputField, Select, SelectField } from './fields.js';
import { useFrame } from './frame.js';
import { Facts } from './parts.js';
import { Cap, capitalized, Name, StateMark, Time } from './formats.js';

/** Values of the form, by field name. */
export type TokenFormValues = Record<TermField | 'project_id' | 'duration' | 'unit' | 'like', string>;
const DEFAULT_LIFETIME = { duration: '24', unit: 'hours' };
const TERM_FIELDS = Object.keys(TOKEN_TERMS) as TermField[];
const termValues = (valueOf: (field: TermField) => string) =>
  Object.fromEntries(TERM_FIELDS.map((field) => [field, valueOf(field)])) as Record<TermField, string>;

export const EMPTY_TOKEN_FORM: TokenFormValues = {
  project_id: '',
  ...termValues(() => ''),
  ...DEFAULT_LIFETIME,
  like: '',
};

const MINUTES = { day: 24 * 60, hour: 60 };

/** The form for a token like this one. */
export function formLike(token: WireToken): TokenFormValues {
  const minutes = Math.round((Date.parse(token.expires_at) - Date.parse(token.created_at)) / 60_000);
  const [size, unit] =
    minutes % MINUTES.day === 0
      ? [MINUTES.day, 'days']
      : minutes % MINUTES.hour === 0
        ? [MINUTES.hour, 'hours']
        : [1, 'minutes'];
  return {
    project_id: token.project_id,
    // Without a name, or without a cap, a field is empty.
    ...termValues((field) => String(token[field] || '')),
    ...(Number.isNaN(minutes) ? DEFAULT_LIFETIME : { duration: String(minutes / size), unit }),
    like: token.id,
  };
}

const UNITS = [
  ['minutes', 'minutes'],
  ['hours', 'hours'],
  ['days', 'days'],
] as const;

/** @param props.projects the projects to choose from. */
export function TokenFields({ projects, given }: { projects: readonly WireProject[]; given: TokenFormValues }) {
  // No other project instead of one that is not active any more.
  const isKnown = given.project_id === '' || projects.some(({ id }) => id === given.project_id);
  const choices = isKnown ? choicesOf(projects) : [['', 'Choose a project'] as const, ...choicesOf(projects)];
  return (
    <>
      {given.like === '' ? null : <input type="hidden" name="like" value={given.like} />}
      <SelectField
        name="project_id"
        label="Project"
        choices={choices}
        chosen={isKnown ? given.project_id : ''}
        required
      />
      {termsThat(false).map(({ field, label, hint, max }) => (
        <InputField
          key={field}
          name={field}
          label={label}
          hint={given.like === '' ? `${capitalized(hint)}. Optional.` : 'Leave empty for that of the other token.'}
          maxLength={max}
          defaultValue={given[field]}
        />
      ))}
      <fieldset className="pair">
        <legend>Valid for</legend>
        <input type="number" name="duration" min="1" required defaultValue={given.duration} aria-label="Lifetime" />
        <Select choices={UNITS} chosen={given.unit} name="unit" aria-label="Unit of time" />
      </fieldset>
      {termsThat(true).map(({ field, label, hint, max }) => (
        <InputField
          key={field}
          name={field}
          label={label}
          hint={`${capitalized(hint)}.`}
          type="number"
          min="0"
          max={max}
          defaultValue={given[field]}
        />
      ))}
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
  const { nowMs } = useFrame();
  return (
    <Facts
      id="facts"
      facts={[
        { name: 'State', value: <StateMark state={token.state} /> },
        revocationOf(token),
        {
          name: 'Requests',
          value:
            token.max_requests === 0 ? (
              `${exact(token.request_count)}, unlimited`
            ) : (
              <Cap used={token.request_count} cap={token.max_requests} />
            ),
        },
        { name: 'Cache hits', value: exact(token.cache_hit_count) },
        ...TOKEN_LINES.filter(({ id }) => id !== 'id').map((column) => ({
          name: column.title,
          value: <CellContent cell={column.cell(token, nowMs)} isFull />,
        })),
        { name: 'ID', value: <code className="id">{token.id}</code> },
      ]}
    />
  );
}
