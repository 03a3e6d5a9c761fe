/** Trusts: their pages. */
import { matchShown, TRUST_COLUMNS } from '../../../console/columns/access.js';
import { allowShown, budgetShown, limitsShown } from '../../../console/columns/policies.js';
import { type PolicyTexts, policyTexts } from '../../../console/columns/policy-fields.js';
import type { TrustCreate, TrustPatch, WireTrust } from '../../api/contract.js';
import { counted, exact } from '../../api/formats.js';
import { MAX_CAP, MAX_DURATION_HOURS } from '../../api/vocabulary.js';
import { formValues, invalidField, type PageRequest } from '../page-request.js';
import { fact } from '../parts/common.js';
import { choicesOf, InputField, SelectField, TextField } from '../parts/fields.js';
import { escapeBidi, Name, ProjectLink } from '../parts/formats.js';
import { EMPTY_POLICY_FORM, NewPolicyFields, NONE_USED, policiesIn, policyForm } from './policies.js';
import { type FieldsProps, resourceRoutes } from './resource.js';

// ---- the form

const EMPTY_TEXTS = {
  issuer: '',
  audience: '',
  match: '',
  project_id: '',
  name: '',
  duration_minutes: '30',
  max_requests: '',
  max_active: '',
  per_hour: '',
  jwks_file: '',
};
type TrustTexts = typeof EMPTY_TEXTS;

/** Values of the form. */
type TrustForm = TrustTexts & PolicyTexts;
const EMPTY_FORM: TrustForm = { ...EMPTY_TEXTS, ...EMPTY_POLICY_FORM };

/** A change has no issuer and no project: they stay as they are. */
function TrustFields({ given, projects, isNew }: FieldsProps<TrustForm>) {
  return (
    <>
      {isNew ? (
        <>
          <InputField
            name="issuer"
            label="Issuer"
            hint="The iss of the JWTs, such as https://token.actions.githubusercontent.com."
            type="url"
            required
            maxLength={500}
            spellCheck={false}
            defaultValue={given.issuer}
          />
          <SelectField
            name="project_id"
            label="Project of the tokens"
            choices={choicesOf(projects)}
            chosen={given.project_id}
            required
          />
        </>
      ) : null}
      <InputField
        name="audience"
        label="Audience"
        hint="The aud of the JWTs."
        required
        maxLength={500}
        spellCheck={false}
        defaultValue={given.audience}
      />
      <TextField
        name="match"
        label="Claims that a JWT must have"
        hint="One in a line, such as repository=acme/web. At least one must identify the owner; the values are exact."
        required
        spellCheck={false}
        maxLength={MAX_MATCH_LENGTH}
        defaultValue={given.match}
      />
      <InputField
        name="name"
        label="Name of the tokens"
        hint="{claim} stands for a claim of the JWT, as in gha {repository}#{run_id}. Optional."
        maxLength={100}
        defaultValue={given.name}
      />
      {NUMBER_FIELDS.map((field) => (
        <InputField
          key={field}
          name={field}
          label={NUMBERS[field].label}
          hint={NUMBERS[field].hint}
          type="number"
          min={NUMBERS[field].min}
          max={NUMBERS[field].max}
          required={field === 'duration_minutes'}
          defaultValue={given[field]}
        />
      ))}
      <InputField
        name="jwks_file"
        label="File with public keys"
        hint="In JWKS_DIR, for an issuer that does not publish them. Usually empty."
        maxLength={200}
        spellCheck={false}
        defaultValue={given.jwks_file}
      />
      <NewPolicyFields
        given={given}
        used={NONE_USED}
        hint="What each token may use, how fast, and what it may spend."
      />
    </>
  );
}

const MAX_MATCH_LENGTH = 12_000;

const NUMBERS = {
  duration_minutes: { label: 'Lifetime of the tokens, minutes', hint: undefined, min: 1, max: MAX_DURATION_HOURS * 60 },
  max_requests: { label: 'Request cap of a token', hint: 'Empty: no cap.', min: 0, max: MAX_CAP },
  max_active: { label: 'Tokens active at the same time', hint: 'Empty: no maximum.', min: 1, max: MAX_CAP },
  per_hour: { label: 'Tokens in an hour', hint: 'Empty: no maximum.', min: 1, max: MAX_CAP },
} as const;
type NumberField = keyof typeof NUMBERS;
const NUMBER_FIELDS = Object.keys(NUMBERS) as NumberField[];

const trustForm = (form: URLSearchParams): TrustForm => ({
  ...formValues(form, EMPTY_TEXTS),
  ...policyForm(form),
});

/** The form for a trust as it is. */
const trustFormOf = (trust: WireTrust): TrustForm => ({
  issuer: trust.issuer,
  audience: trust.audience,
  match: Object.entries(trust.match)
    .map(([claim, value]) => `${claim}=${value}`)
    .join('\n'),
  project_id: trust.project_id,
  name: trust.name,
  duration_minutes: String(trust.duration_minutes),
  max_requests: trust.max_requests === 0 ? '' : String(trust.max_requests),
  max_active: trust.max_active?.toString() ?? '',
  per_hour: trust.per_hour?.toString() ?? '',
  jwks_file: trust.jwks_file ?? '',
  ...policyTexts(trust),
});

/** @throws {ApiError} 400 if a field is wrong. */
function trustIn(given: TrustForm): TrustPatch & Omit<TrustCreate, 'issuer' | 'project_id'> {
  return {
    audience: given.audience,
    match: matchIn(given.match),
    ...(given.name !== '' && { name: given.name }),
    duration_minutes: numberIn(given, 'duration_minutes') ?? 0,
    max_requests: numberIn(given, 'max_requests') ?? 0,
    max_active: numberIn(given, 'max_active'),
    per_hour: numberIn(given, 'per_hour'),
    jwks_file: given.jwks_file === '' ? null : given.jwks_file,
    ...policiesIn(given),
  };
}

function numberIn(given: TrustForm, field: NumberField): number | null {
  const { label, min, max } = NUMBERS[field];
  const text = given[field];
  if (text === '' && field !== 'duration_minutes') return null;
  const number = /^\d{1,10}$/.test(text) ? Number(text) : -1;
  if (number >= min && number <= max) return number;
  throw invalidField(field, `${label.toLowerCase()} must be a whole number from ${min} to ${max}`);
}

function matchIn(text: string): Record<string, string> {
  const match: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const line of text.split(/\r?\n/).filter((each) => each.trim() !== '')) {
    const [, claim, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (claim === undefined || value === undefined || value === '')
      throw invalidField('match', `write each claim as name=value: ${line}`);
    if (claim in match) throw invalidField('match', `the claim ${claim} is there twice`);
    match[claim] = value;
  }
  return { ...match };
}

// ---- routes

const most = (count: number | null) => (count === null ? 'no maximum' : exact(count));

const setActive =
  (isActive: boolean) =>
  async ({ changeClient, id }: PageRequest) => {
    await changeClient.updateTrust(id, { is_active: isActive });
    return `done=${isActive ? 'activated' : 'deactivated'}`;
  };

export const trustRoutes = resourceRoutes<WireTrust, TrustForm, ReturnType<typeof trustIn>>({
  section: 'trusts',
  noun: 'trust',
  purpose:
    'With a trust, a job of GitHub Actions or GitLab, or a pod of Kubernetes, exchanges the JWT that its platform gives it for a token of a project. So the job needs no stored secret.',
  columns: TRUST_COLUMNS.filter(({ id }) => id !== 'id'),
  nameOf: ({ match }) => matchShown(match),
  list: (client, query) => client.trusts(query),
  read: (client, id) => client.trust(id),
  form: {
    empty: EMPTY_FORM,
    given: trustForm,
    of: trustFormOf,
    values: trustIn,
    Fields: TrustFields,
    isOfProject: true,
  },
  create: async ({ changeClient }, given) => {
    const { issuer, project_id: project } = given;
    const { id } = await changeClient.createTrust({ issuer, project_id: project, ...trustIn(given) });
    return `trusts/${id}?done=created`;
  },
  changeHint: 'It holds for the next exchange. Tokens that exist keep their terms.',
  update: (client, id, changes, options) => client.updateTrust(id, changes, options),
  confirmed: [
    {
      what: 'deactivate',
      isFor: ({ is_active: isActive }) => isActive,
      message: 'No JWT is exchanged any more. Tokens that exist stay as they are.',
      isDangerous: true,
      run: setActive(false),
    },
    {
      what: 'activate',
      isFor: ({ is_active: isActive }) => !isActive,
      message: 'JWTs that match are exchanged again.',
      isDangerous: false,
      run: setActive(true),
    },
    {
      what: 'delete',
      isFor: () => true,
      message: 'No JWT is exchanged by it any more. Tokens that exist stay as they are.',
      isDangerous: true,
      isGone: true,
      run: async ({ changeClient, id }) => {
        await changeClient.deleteTrust(id);
        return 'done=deleted';
      },
    },
  ],
  facts: (trust) => [
    { name: 'Issuer', value: <code>{escapeBidi(trust.issuer)}</code> },
    { name: 'Audience', value: <code>{escapeBidi(trust.audience)}</code> },
    {
      name: 'Claims',
      value: Object.entries(trust.match).map(([claim, value]) => (
        <span className="line" key={claim}>
          <code>{escapeBidi(`${claim}=${value}`)}</code>
        </span>
      )),
    },
    fact('Public keys', trust.jwks_file, (file) => `from the file ${file}`),
    { name: 'Project', value: <ProjectLink project={{ id: trust.project_id, name: trust.project_name }} /> },
    { name: 'Name of the tokens', value: <Name>{trust.name}</Name> },
    { name: 'Lifetime', value: counted(trust.duration_minutes, 'minute') },
    { name: 'Requests', value: trust.max_requests === 0 ? 'unlimited' : `up to ${exact(trust.max_requests)}` },
    { name: 'Allows', value: escapeBidi(allowShown(trust.allow)) },
    { name: 'Limits', value: limitsShown(trust.limits) },
    { name: 'Budget', value: budgetShown(trust.budget) },
    { name: 'Active at the same time', value: most(trust.max_active) },
    { name: 'In an hour', value: most(trust.per_hour) },
  ],
  done: {
    created: 'Trust created. From now on, JWTs that match are exchanged.',
    changed: 'Trust changed. It holds for the next exchange.',
    deactivated: 'Trust deactivated. No JWT is exchanged any more.',
    activated: 'Trust activated. JWTs that match are exchanged again.',
    deleted: 'Trust deleted. Tokens that exist stay as they are.',
  },
});
