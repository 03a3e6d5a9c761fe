/** The list of operators, the form for one, and the page that shows its secret once. */
import { OPERATOR_COLUMNS, ROLE_TITLES } from '../../../console/columns/access.js';
import type { OperatorCreate, WireOperator, WireProject } from '../../api/contract.js';
import { counted } from '../../api/formats.js';
import { MAX_NAME_LENGTH, type Role, ROLES } from '../../api/vocabulary.js';
import {
  allProjects,
  changed,
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
import { CommandLine, EmptyState, ErrorNotice, Facts, type ListProps, Paging, Table } from '../parts/common.js';
import { Heading } from '../parts/document.js';
import { FormButtons, InputField, ReasonField, SelectField } from '../parts/fields.js';
import { escapeBidi, Name } from '../parts/formats.js';
import { ChangeForm, Link } from '../parts/frame.js';
import { Secret, SecretGone } from '../parts/secret.js';
import { CeilingFields, ceilingForm, ceilingsIn, type CeilingTexts, ceilingTexts } from './ceilings.js';

interface OperatorsProps extends ListProps {
  operators: readonly WireOperator[];
  total: number | null;
}

function OperatorsPage({ operators, total, next, query, refused }: OperatorsProps) {
  return (
    <>
      <Heading title="Operators" actions={<NewOperator />} />
      <ErrorNotice why={refused} />
      {operators.length === 0 && refused === null ? (
        <EmptyState title="No operators yet">
          <p>
            An operator has a secret of its own, a role, and the projects that it may see. It logs in here or on the
            command line with that secret, in place of the management token.
          </p>
          <p>
            <NewOperator />
          </p>
        </EmptyState>
      ) : (
        <>
          <p className="faint">{total === null ? '' : counted(total, 'operator')}</p>
          <Table
            id="operators"
            label="Operators"
            noun="operator"
            rows={operators}
            keyOf={({ id }) => id}
            columns={COLUMNS}
          />
        </>
      )}
      <Paging to="operators" query={query} next={next} />
      <CommandLine line="llmp operator list" />
    </>
  );
}

const COLUMNS = tableColumns(
  OPERATOR_COLUMNS.filter(({ id }) => id !== 'id' && id !== 'created'),
  {
    name: ({ id, name }) => (
      <Link to={`operators/${id}`}>
        <Name>{name}</Name>
      </Link>
    ),
  },
);

const NewOperator = () => (
  <Link to="operators/new" className="button primary">
    New operator
  </Link>
);

// ---- the form

/** Values of the form. */
export interface OperatorForm extends CeilingTexts {
  role: string;
  /** `some`: only `projects`. */
  extent: string;
  projects: readonly string[];
  /** A date, or empty. */
  expires: string;
}

const EMPTY_FORM: OperatorForm = { role: 'viewer', extent: '', projects: [], expires: '', ...ceilingTexts(null) };

const EXTENTS = [
  ['', 'Choose'],
  ['all', 'all, also future ones'],
  ['some', 'only those that are selected below'],
] as const;

export function OperatorFields({ given, projects }: { given: OperatorForm; projects: readonly WireProject[] }) {
  return (
    <>
      <SelectField
        name="role"
        label="Role"
        choices={ROLES.map((role) => [role, ROLE_TITLES[role]] as const)}
        chosen={given.role}
      />
      <SelectField
        name="extent"
        label="Projects"
        choices={given.extent === '' ? EXTENTS : EXTENTS.slice(1)}
        chosen={given.extent}
        required
      />
      {projects.length === 0 ? null : (
        <fieldset className="choices">
          <legend>Selected projects</legend>
          {projects.map(({ id, name }) => (
            <label className="checkbox" key={id}>
              <input type="checkbox" name="project" value={id} defaultChecked={given.projects.includes(id)} />
              {escapeBidi(name)}
            </label>
          ))}
        </fieldset>
      )}
      <InputField
        name="expires"
        label="Secret expires"
        hint="At the beginning of this day (UTC). Empty: never."
        type="date"
        defaultValue={given.expires}
      />
      <CeilingFields given={given} />
    </>
  );
}

export const operatorForm = (form: URLSearchParams): OperatorForm => ({
  role: form.get('role') ?? '',
  extent: form.get('extent') ?? '',
  projects: form.getAll('project'),
  expires: form.get('expires') ?? '',
  ...ceilingForm(form),
});

/** The form for an operator as it is. */
export const operatorFormOf = ({ role, projects, expires_at: expires, ceilings }: WireOperator): OperatorForm => ({
  role,
  extent: projects === null ? 'all' : 'some',
  projects: projects ?? [],
  expires: expires?.slice(0, 10) ?? '',
  ...ceilingTexts(ceilings),
});

/** @throws {ApiError} 400 if a field is wrong. */
export function operatorIn(given: OperatorForm): Required<Omit<OperatorCreate, 'name'>> {
  const role = ROLES.find((it): it is Role => it === given.role);
  if (role === undefined) throw invalidRequest('choose a role');
  if (given.extent !== 'all' && given.extent !== 'some') throw invalidRequest('choose the projects');
  // An empty selection must not mean all projects.
  if (given.extent === 'some' && given.projects.length === 0) throw invalidRequest('select at least one project');
  return {
    role,
    projects: given.extent === 'all' ? null : [...given.projects],
    expires_at: dateIn(given.expires),
    ceilings: ceilingsIn(given),
  };
}

function dateIn(text: string): string | null {
  if (text === '') return null;
  const date = /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00:00Z`) : new Date(NaN);
  if (Number.isNaN(date.getTime())) throw invalidRequest('the expiry must be a date');
  return date.toISOString();
}

interface NewOperatorProps {
  name: string;
  given: OperatorForm;
  projects: readonly WireProject[];
  reason: string;
  refused: string | null;
}

function NewOperatorPage({ name, given, projects, reason, refused }: NewOperatorProps) {
  return (
    <div className="narrow">
      <Heading title="New operator" path={<Link to="operators">Operators</Link>} />
      <ErrorNotice why={refused} />
      <ChangeForm to="operators/new">
        <InputField
          name="name"
          label="Name"
          hint="The audit log shows it. It must be unique, and does not change."
          required
          maxLength={MAX_NAME_LENGTH}
          defaultValue={name}
        />
        <OperatorFields given={given} projects={projects} />
        <ReasonField reason={reason} />
        <FormButtons cancel="operators" verb="Create operator" />
      </ChangeForm>
    </div>
  );
}

function SecretPage({ operator, secret }: { operator: WireOperator; secret: string | null }) {
  const to = `operators/${operator.id}`;
  return (
    <div className="issued">
      <Heading
        title={secret === null ? 'Secret already shown' : 'Operator created'}
        path={<Link to="operators">Operators</Link>}
      />
      {secret === null ? (
        <SecretGone advice="If nobody has saved it, deactivate this operator and create another." />
      ) : (
        <>
          <Secret of="operator" secret={secret} warning="Anyone who has it can act as this operator." />
          <Facts
            id="facts"
            facts={[
              { name: 'Name', value: <Name>{operator.name}</Name> },
              { name: 'Role', value: ROLE_TITLES[operator.role] },
            ]}
          />
          <p className="hint">
            It is entered in the log-in form of these pages. On the command line it is the value of{' '}
            <code>MANAGEMENT_TOKEN</code>.
          </p>
        </>
      )}
      <p className="buttons start">
        <Link to={to} className="button">
          {secret === null ? 'Go to the operator' : 'I have stored it'}
        </Link>
      </p>
    </div>
  );
}

// ---- routes

async function newOperator(
  { client, form }: PageRequest,
  given: OperatorForm,
  refused: string | null,
): Promise<PageResponse> {
  const body = (
    <NewOperatorPage
      name={form.get('name') ?? ''}
      given={given}
      projects={await allProjects(client)}
      reason={form.get('reason') ?? ''}
      refused={refused}
    />
  );
  return { title: 'New operator', section: 'operators', body, ...statusOf(refused) };
}

/** As for a token: only the response has the secret, so it is passed to the next page. */
function create(request: PageRequest): Promise<PageResponse> {
  const { form, changeClient } = request;
  const given = operatorForm(form);
  return changed(
    async () => {
      const name = form.get('name') ?? '';
      const { id, secret } = await changeClient.createOperator({ name, ...operatorIn(given) });
      const to = `operators/${id}/secret`;
      request.storeSecret(to, secret);
      return to;
    },
    (refused) => newOperator(request, given, refused),
  );
}

export const operatorsRoutes = [
  get('/operators', 'manage access', async ({ client, query }) => {
    const { items, ...page } = await listPage(() => client.operators(parametersOf(query, ['cursor'])));
    const body = <OperatorsPage operators={items} {...page} query={query} />;
    return { title: 'Operators', section: 'operators', isLive: true, body, ...statusOf(page.refused) };
  }),
  get('/operators/new', 'manage access', (request) => newOperator(request, EMPTY_FORM, null)),
  post('/operators/new', 'manage access', create),
  get('/operators/:id/secret', 'manage access', async (request) => {
    const operator = await request.client.operator(request.id);
    const body = <SecretPage operator={operator} secret={request.takeSecret()} />;
    return { title: 'Operator created', section: 'operators', body };
  }),
];
