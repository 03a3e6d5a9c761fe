/** Operators: their pages, and the page that shows a secret once. */
import { ceilingsShown, OPERATOR_COLUMNS, ROLE_TITLES } from '../../../console/columns/access.js';
import { quotedValue } from '../../../console/query/terms.js';
import type { OperatorCreate, WireOperator, WireProject } from '../../api/contract.js';
import { MAX_NAME_LENGTH, type Role, ROLES } from '../../api/vocabulary.js';
import { countMessage, get, invalidField, type PageRequest } from '../page-request.js';
import { Facts } from '../parts/common.js';
import { Heading } from '../parts/document.js';
import { InputField, SelectField } from '../parts/fields.js';
import { escapeBidi, Name, NameOrId, ProjectLink, Time } from '../parts/formats.js';
import { Link } from '../parts/frame.js';
import { Secret, SecretGone } from '../parts/secret.js';
import { RecordTable } from './audit.js';
import { CeilingFields, ceilingForm, ceilingsIn, type CeilingTexts, ceilingTexts } from './ceilings.js';
import { type FieldsProps, resourceRoutes } from './resource.js';

// ---- the form

/** Values of the form. */
interface OperatorForm extends CeilingTexts {
  /** Only of a new one. */
  name: string;
  role: string;
  /** `some`: only `projects`. */
  extent: string;
  projects: readonly string[];
  /** A date, or empty. */
  expires: string;
}

const EMPTY_FORM: OperatorForm = {
  name: '',
  role: 'viewer',
  extent: '',
  projects: [],
  expires: '',
  ...ceilingTexts(null),
};

const EXTENTS = [
  ['', 'Choose'],
  ['all', 'all, also future ones'],
  ['some', 'only those that are selected below'],
] as const;

/** As on its page, projects beyond the first page are shown by ID: a form without them would take them away. */
function OperatorFields({ given, projects, isNew }: FieldsProps<OperatorForm>) {
  return (
    <>
      {isNew ? (
        <InputField
          name="name"
          label="Name"
          hint="The audit log shows it. It must be unique, and does not change."
          required
          maxLength={MAX_NAME_LENGTH}
          defaultValue={given.name}
        />
      ) : null}
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
        <fieldset className="choices some">
          <legend>Selected projects</legend>
          {projects.map(({ id, name }) => (
            <label className="checkbox" key={id}>
              <input type="checkbox" name="project" value={id} defaultChecked={given.projects.includes(id)} />
              {escapeBidi(name)}
            </label>
          ))}
          {given.projects
            .filter((id) => !projects.some((project) => project.id === id))
            .map((id) => (
              <label className="checkbox" key={id}>
                <input type="checkbox" name="project" value={id} defaultChecked />
                <NameOrId id={id} name={null} />
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

const operatorForm = (form: URLSearchParams): OperatorForm => ({
  name: form.get('name') ?? '',
  role: form.get('role') ?? '',
  extent: form.get('extent') ?? '',
  projects: form.getAll('project'),
  expires: form.get('expires') ?? '',
  ...ceilingForm(form),
});

/** The form for an operator as it is. */
const operatorFormOf = ({ name, role, projects, expires_at: expires, ceilings }: WireOperator): OperatorForm => ({
  name,
  role,
  extent: projects === null ? 'all' : 'some',
  projects: projects ?? [],
  expires: expires?.slice(0, 10) ?? '',
  ...ceilingTexts(ceilings),
});

/** @throws {ApiError} 400 if a field is wrong. */
function operatorIn(given: OperatorForm): Required<Omit<OperatorCreate, 'name'>> {
  const role = ROLES.find((it): it is Role => it === given.role);
  if (role === undefined) throw invalidField('role', 'choose a role');
  if (given.extent !== 'all' && given.extent !== 'some') throw invalidField('extent', 'choose the projects');
  // An empty selection must not mean all projects.
  if (given.extent === 'some' && given.projects.length === 0)
    throw invalidField('extent', 'select at least one project');
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
  if (Number.isNaN(date.getTime())) throw invalidField('expires', 'the expiry must be a date');
  return date.toISOString();
}

// ---- its page

const actorOf = ({ name }: WireOperator) => `operator:${name}`;

/** Those beyond the first page of projects are shown by ID. */
function Projects({
  operator: { projects: ids },
  projects,
}: {
  operator: WireOperator;
  projects: readonly WireProject[];
}) {
  if (ids === null) return <>all, also future ones</>;
  return (
    <>
      {ids.map((id, at) => {
        const project = projects.find((it) => it.id === id);
        return (
          <span key={id}>
            {at === 0 ? '' : ', '}
            {project ? <ProjectLink project={project} /> : <NameOrId id={id} name={null} />}
          </span>
        );
      })}
    </>
  );
}

const RECORDS_SHOWN = '8';

async function whatItDid(operator: WireOperator, { client }: PageRequest) {
  const actor = actorOf(operator);
  const records = await client.auditRecords({ actor, limit: RECORDS_SHOWN });
  return (
    <>
      <p className="links">
        <Link to={`tokens?${new URLSearchParams({ q: `by:${quotedValue(actor)}` }).toString()}`}>
          Tokens that it has issued
        </Link>
      </p>
      <section aria-labelledby="records-title">
        <div className="section-head">
          <h2 id="records-title">What it did</h2>
          <Link to={`audit?${new URLSearchParams({ actor }).toString()}`}>Show in the audit log</Link>
        </div>
        <RecordTable id="records" label="Audit records of what this operator did" records={records.items} hasSubjects />
      </section>
    </>
  );
}

// ---- its secret

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

const KEEP_TOKENS = 'keep_tokens';

export const operatorRoutes = [
  ...resourceRoutes<WireOperator, OperatorForm, ReturnType<typeof operatorIn>>({
    section: 'operators',
    noun: 'operator',
    purpose:
      'An operator has a secret of its own, a role, and the projects that it may see. It logs in here or on the command line with that secret, in place of the management token.',
    columns: OPERATOR_COLUMNS.filter(({ id }) => id !== 'id' && id !== 'created'),
    nameOf: ({ name }) => name,
    list: (client, query) => client.operators(query),
    read: (client, id) => client.operator(id),
    form: {
      empty: EMPTY_FORM,
      given: operatorForm,
      of: operatorFormOf,
      values: operatorIn,
      Fields: OperatorFields,
    },
    // As for a token: only the response has the secret, so it is passed to the next page.
    create: async (request, given) => {
      const { id, secret } = await request.changeClient.createOperator({ name: given.name, ...operatorIn(given) });
      const to = `operators/${id}/secret`;
      request.storeSecret(to, secret);
      return to;
    },
    changeHint:
      'It holds from the next request on, and ends the sessions of the operator in the Admin UI. Tokens that the operator has issued stay as they are.',
    update: (client, id, changes, options) => client.updateOperator(id, changes, {}, options),
    confirmed: [
      {
        what: 'deactivate',
        isFor: ({ is_active: isActive }) => isActive,
        message: 'Its secret and its sessions end at once. The tokens that it has issued are revoked.',
        isDangerous: true,
        more: (
          <label className="checkbox">
            <input type="checkbox" name={KEEP_TOKENS} value="true" />
            Keep the tokens that it has issued
          </label>
        ),
        run: async ({ changeClient, id, form }) => {
          const isKeeping = form.get(KEEP_TOKENS) === 'true';
          const query = isKeeping ? { [KEEP_TOKENS]: 'true' } : {};
          const { revoked_count: count } = await changeClient.deactivateOperator(id, query);
          return isKeeping ? 'done=deactivated' : `revoked=${count}`;
        },
      },
      {
        what: 'reactivate',
        isFor: ({ is_active: isActive }) => !isActive,
        message: 'Its secret is accepted again from the next request on. Tokens that were revoked stay revoked.',
        isDangerous: false,
        run: async ({ changeClient, id }) => {
          await changeClient.updateOperator(id, { is_active: true });
          return 'done=reactivated';
        },
      },
    ],
    facts: (operator, projects) => [
      { name: 'Role', value: ROLE_TITLES[operator.role] },
      { name: 'Projects', value: <Projects operator={operator} projects={projects} /> },
      { name: 'Ceilings', value: escapeBidi(ceilingsShown(operator.ceilings)) },
      { name: 'Expires', value: <Time at={operator.expires_at} isFull /> },
      { name: 'Last used', value: <Time at={operator.last_used_at} isFull /> },
      { name: 'Secret', value: <code>{operator.obfuscated}</code> },
    ],
    more: whatItDid,
    done: {
      changed: 'Operator changed. It holds from the next request on.',
      deactivated:
        'Operator deactivated. Its secret and its sessions have ended; the tokens that it has issued stay as they are.',
      reactivated: 'Operator reactivated, with the same secret.',
    },
    doneOf: (request) => {
      const revoked = countMessage(request, 'revoked', 'token');
      return revoked === null ? null : `Operator deactivated. ${revoked}`;
    },
  }),
  get('/operators/:id/secret', 'manage access', async (request) => {
    const operator = await request.client.operator(request.id);
    const body = <SecretPage operator={operator} secret={request.takeSecret()} />;
    return { title: 'Operator created', section: 'operators', body };
  }),
];
