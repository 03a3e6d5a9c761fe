/** The list of trusts, and the form for one. */
import { matchShown, TRUST_COLUMNS } from '../../../console/columns/access.js';
import type { PolicyTexts } from '../../../console/columns/policy-fields.js';
import { policyTexts } from '../../../console/columns/policy-fields.js';
import type { TrustCreate, TrustPatch, WireProject, WireTrust } from '../../api/contract.js';
import { counted } from '../../api/formats.js';
import { MAX_CAP, MAX_DURATION_HOURS } from '../../api/vocabulary.js';
import {
  allProjects,
  changed,
  formValues,
  get,
  invalidRequest,
  listPage,
  type PageRequest,
  type PageResponse,
  parametersOf,
  post,
  statusOf,
} from '../page-request.js';
import { tableColumns } from '../parts/cells.js';
import { CommandLine, EmptyState, ErrorNotice, type ListProps, Paging, SuccessNotice, Table } from '../parts/common.js';
import { Heading } from '../parts/document.js';
import { choicesOf, FormButtons, InputField, ReasonField, SelectField, TextField } from '../parts/fields.js';
import { Name } from '../parts/formats.js';
import { ChangeForm, Link } from '../parts/frame.js';
import { NoProject } from './new-token.js';
import { EMPTY_POLICY_FORM, NewPolicyFields, NONE_USED, policiesIn, policyForm } from './policies.js';

interface TrustsProps extends ListProps {
  trusts: readonly WireTrust[];
  total: number | null;
  done: string | null;
}

function TrustsPage({ trusts, total, next, query, refused, done }: TrustsProps) {
  return (
    <>
      <Heading title="Trusts" actions={<NewTrust />} />
      <SuccessNotice what={done} />
      <ErrorNotice why={refused} />
      {trusts.length === 0 && refused === null ? (
        <EmptyState title="No trusts yet">
          <p>
            With a trust, a job of GitHub Actions or GitLab, or a pod of Kubernetes, exchanges the JWT that its platform
            gives it for a token of a project. So the job needs no stored secret.
          </p>
          <p>
            <NewTrust />
          </p>
        </EmptyState>
      ) : (
        <>
          <p className="faint">{total === null ? '' : counted(total, 'trust')}</p>
          <Table id="trusts" label="Trusts" noun="trust" rows={trusts} keyOf={({ id }) => id} columns={COLUMNS} />
        </>
      )}
      <Paging to="trusts" query={query} next={next} />
      <CommandLine line="llmp trust list" />
    </>
  );
}

const COLUMNS = tableColumns(
  TRUST_COLUMNS.filter(({ id }) => id !== 'id'),
  {
    match: ({ id, match }) => (
      <Link to={`trusts/${id}`}>
        <Name>{matchShown(match)}</Name>
      </Link>
    ),
  },
);

const NewTrust = () => (
  <Link to="trusts/new" className="button primary">
    New trust
  </Link>
);

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
export type TrustForm = TrustTexts & PolicyTexts;
const EMPTY_FORM: TrustForm = { ...EMPTY_TEXTS, ...EMPTY_POLICY_FORM };

/** The fields that a change has too. An issuer and a project stay as they are. */
export function TrustFields({ given }: { given: TrustForm }) {
  return (
    <>
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

export const trustForm = (form: URLSearchParams): TrustForm => ({
  ...formValues(form, EMPTY_TEXTS),
  ...policyForm(form),
});

/** The form for a trust as it is. */
export const trustFormOf = (trust: WireTrust): TrustForm => ({
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
export function trustIn(given: TrustForm): TrustPatch & Omit<TrustCreate, 'issuer' | 'project_id'> {
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
  throw invalidRequest(`${label.toLowerCase()} must be a whole number from ${min} to ${max}`);
}

function matchIn(text: string): Record<string, string> {
  const match: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const line of text.split(/\r?\n/).filter((each) => each.trim() !== '')) {
    const [, claim, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (claim === undefined || value === undefined || value === '')
      throw invalidRequest(`write each claim as name=value: ${line}`);
    if (claim in match) throw invalidRequest(`the claim ${claim} is there twice`);
    match[claim] = value;
  }
  return { ...match };
}

interface NewTrustProps {
  projects: readonly WireProject[];
  given: TrustForm;
  reason: string;
  refused: string | null;
}

function NewTrustPage({ projects, given, reason, refused }: NewTrustProps) {
  return (
    <div className="narrow">
      <Heading title="New trust" path={<Link to="trusts">Trusts</Link>} />
      <ErrorNotice why={refused} />
      {projects.length === 0 ? (
        <NoProject />
      ) : (
        <ChangeForm to="trusts/new">
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
          <TrustFields given={given} />
          <ReasonField reason={reason} />
          <FormButtons cancel="trusts" verb="Create trust" />
        </ChangeForm>
      )}
    </div>
  );
}

// ---- routes

async function newTrust(
  { client, form }: PageRequest,
  given: TrustForm,
  refused: string | null,
): Promise<PageResponse> {
  const projects = await allProjects(client, { is_active: 'true' });
  const reason = form.get('reason') ?? '';
  const body = <NewTrustPage projects={projects} given={given} reason={reason} refused={refused} />;
  return { title: 'New trust', section: 'trusts', body, ...statusOf(refused) };
}

function create(request: PageRequest): Promise<PageResponse> {
  const given = trustForm(request.form);
  return changed(
    async () => {
      const { issuer, project_id: project } = given;
      const { id } = await request.changeClient.createTrust({ issuer, project_id: project, ...trustIn(given) });
      return `trusts/${id}?done=created`;
    },
    (refused) => newTrust(request, given, refused),
  );
}

export const trustsRoutes = [
  get('/trusts', 'manage access', async ({ client, query }) => {
    const { items, ...page } = await listPage(() => client.trusts(parametersOf(query, ['cursor'])));
    const done = query.get('done') === 'deleted' ? 'Trust deleted. Tokens that exist stay as they are.' : null;
    const body = <TrustsPage trusts={items} {...page} query={query} done={done} />;
    return { title: 'Trusts', section: 'trusts', isLive: true, body, ...statusOf(page.refused) };
  }),
  get('/trusts/new', 'manage access', (request) => newTrust(request, EMPTY_FORM, null)),
  post('/trusts/new', 'manage access', create),
];
