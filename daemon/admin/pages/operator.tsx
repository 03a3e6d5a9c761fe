/** An operator, and its changes. */
import { ceilingsShown, ROLE_TITLES } from '../../../console/columns/access.js';
import type { OperatorPatch, WireAuditRecord, WireOperator, WireProject } from '../../api/contract.js';
import {
  allProjects,
  changed,
  countMessage,
  doneMessage,
  get,
  invalidRequest,
  type PageRequest,
  type PageResponse,
  post,
  statusOf,
} from '../page-request.js';
import { CommandLine, ErrorNotice, Facts, SuccessNotice } from '../parts/common.js';
import { Heading } from '../parts/document.js';
import { FormButtons, ReasonField } from '../parts/fields.js';
import { escapeBidi, Name, NameOrId, ProjectLink, StateMark, Time } from '../parts/formats.js';
import { ChangeForm, ConfirmLink, Link } from '../parts/frame.js';
import { RecordTable } from './audit.js';
import { confirmedChange } from './confirm.js';
import { OperatorFields, operatorForm, type OperatorForm, operatorFormOf, operatorIn } from './operators.js';
import { asChangedSince, versionIn, VersionField } from './policies.js';

interface OperatorProps {
  operator: WireOperator;
  projects: readonly WireProject[];
  records: readonly WireAuditRecord[];
  done: string | null;
}

const actorOf = ({ name }: WireOperator) => `operator:${name}`;

function OperatorPage({ operator, projects, records, done }: OperatorProps) {
  const { id, name, is_active: isActive } = operator;
  const to = `operators/${id}`;
  return (
    <>
      <Heading
        title={<Name>{name}</Name>}
        path={<Link to="operators">Operators</Link>}
        actions={
          <>
            <Link to={`${to}/change`} className="button">
              Change
            </Link>{' '}
            {isActive ? (
              <ConfirmLink to={`${to}/deactivate`} isDangerous>
                Deactivate…
              </ConfirmLink>
            ) : (
              <ConfirmLink to={`${to}/reactivate`}>Reactivate…</ConfirmLink>
            )}
          </>
        }
      />
      <SuccessNotice what={done} />
      <Facts
        id="facts"
        facts={[
          { name: 'State', value: <StateMark state={isActive ? 'active' : 'inactive'} /> },
          { name: 'Role', value: ROLE_TITLES[operator.role] },
          { name: 'Projects', value: <Projects operator={operator} projects={projects} /> },
          { name: 'Ceilings', value: escapeBidi(ceilingsShown(operator.ceilings)) },
          { name: 'Expires', value: <Time at={operator.expires_at} isFull /> },
          { name: 'Last used', value: <Time at={operator.last_used_at} isFull /> },
          { name: 'Secret', value: <code>{operator.obfuscated}</code> },
          { name: 'Created', value: <Time at={operator.created_at} isFull /> },
          { name: 'Changed', value: <Time at={operator.updated_at} isFull /> },
          { name: 'ID', value: <code className="id">{id}</code> },
        ]}
      />
      <section aria-labelledby="records-title">
        <div className="section-head">
          <h2 id="records-title">What it did</h2>
          <Link to={`audit?${new URLSearchParams({ actor: actorOf(operator) }).toString()}`}>
            Show in the audit log
          </Link>
        </div>
        <RecordTable id="records" label="Audit records of what this operator did" records={records} hasSubjects />
      </section>
      <CommandLine line={`llmp operator show ${id}`} />
    </>
  );
}

/** Those beyond the first page of projects are shown by ID. */
function Projects({ operator: { projects: ids }, projects }: Pick<OperatorProps, 'operator' | 'projects'>) {
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

interface ChangeProps {
  operator: WireOperator;
  given: OperatorForm;
  projects: readonly WireProject[];
  reason: string;
  refused: string | null;
}

function ChangePage({ operator, given, projects, reason, refused }: ChangeProps) {
  const to = `operators/${operator.id}`;
  return (
    <div className="narrow">
      <Heading title="Change operator" path={<Link to={to}>{<Name>{operator.name}</Name>}</Link>} />
      <ErrorNotice why={refused} />
      <p className="hint">
        It holds from the next request on, and ends the sessions of the operator in the Admin UI. Tokens that the
        operator has issued stay as they are.
      </p>
      <ChangeForm to={`${to}/change`}>
        <VersionField of={operator} />
        <OperatorFields given={given} projects={projects} />
        <ReasonField reason={reason} />
        <FormButtons cancel={to} verb="Change" />
      </ChangeForm>
    </div>
  );
}

// ---- routes

const RECORDS_SHOWN = '8';

const DONE = {
  changed: 'Operator changed. It holds from the next request on.',
  deactivated:
    'Operator deactivated. Its secret and its sessions have ended; the tokens that it has issued stay as they are.',
  reactivated: 'Operator reactivated, with the same secret.',
};

async function show(request: PageRequest): Promise<PageResponse> {
  const { client, id } = request;
  const operator = await client.operator(id);
  const [projects, records] = await Promise.all([
    allProjects(client),
    client.auditRecords({ actor: actorOf(operator), limit: RECORDS_SHOWN }),
  ]);
  const revoked = countMessage(request, 'revoked', 'token');
  const done = revoked === null ? doneMessage(request, DONE) : `Operator deactivated. ${revoked}`;
  const body = <OperatorPage operator={operator} projects={projects} records={records.items} done={done} />;
  return { title: escapeBidi(operator.name), section: 'operators', isLive: true, body };
}

async function ask({ client, id, form }: PageRequest, refused: string | null = null): Promise<PageResponse> {
  const [operator, projects] = await Promise.all([client.operator(id), allProjects(client)]);
  const body = (
    <ChangePage
      operator={operator}
      given={form.has('version') ? operatorForm(form) : operatorFormOf(operator)}
      projects={projects}
      reason={form.get('reason') ?? ''}
      refused={refused}
    />
  );
  return { title: 'Change operator', section: 'operators', body, ...statusOf(refused) };
}

/** What the form changes. A field as it was stays as it is: a date has no time of day. */
function changesIn(operator: WireOperator, given: OperatorForm): OperatorPatch {
  const before = operatorFormOf(operator);
  const { expires_at: expires, ...wanted } = operatorIn(given);
  const was = operatorIn(before);
  const isOther = (name: keyof typeof wanted) => JSON.stringify(wanted[name]) !== JSON.stringify(was[name]);
  return {
    ...(isOther('role') && { role: wanted.role }),
    ...(isOther('projects') && { projects: wanted.projects }),
    ...(isOther('ceilings') && { ceilings: wanted.ceilings }),
    ...(given.expires !== before.expires && { expires_at: expires }),
  };
}

function change(request: PageRequest): Promise<PageResponse> {
  const { client, changeClient, id, form } = request;
  return changed(
    async () => {
      const ifMatch = versionIn(form);
      const changes = changesIn(await client.operator(id), operatorForm(form));
      if (Object.keys(changes).length === 0) throw invalidRequest('nothing is changed');
      await changeClient.updateOperator(id, changes, {}, { ifMatch }).catch(asChangedSince);
      return `operators/${id}?done=changed`;
    },
    (refused) => ask(request, refused),
  );
}

const KEEP_TOKENS = 'keep_tokens';

export const operatorRoutes = [
  get('/operators/:id', 'manage access', show),
  get('/operators/:id/change', 'manage access', (request) => ask(request)),
  post('/operators/:id/change', 'manage access', change),
  ...confirmedChange({
    section: 'operators',
    what: 'deactivate',
    permission: 'manage access',
    asking: async ({ client, id }) => {
      const operator = await client.operator(id);
      return {
        title: `Deactivate ${escapeBidi(operator.name)}?`,
        message: 'Its secret and its sessions end at once. The tokens that it has issued are revoked.',
        verb: 'Deactivate',
        isDangerous: true,
        more: (
          <label className="checkbox">
            <input type="checkbox" name={KEEP_TOKENS} value="true" />
            Keep the tokens that it has issued
          </label>
        ),
      };
    },
    run: async ({ changeClient, id, form }) => {
      const isKeeping = form.get(KEEP_TOKENS) === 'true';
      const { revoked_count: count } = await changeClient.deactivateOperator(
        id,
        isKeeping ? { [KEEP_TOKENS]: 'true' } : {},
      );
      return isKeeping ? 'done=deactivated' : `revoked=${count}`;
    },
  }),
  ...confirmedChange({
    section: 'operators',
    what: 'reactivate',
    permission: 'manage access',
    asking: async ({ client, id }) => ({
      title: `Reactivate ${escapeBidi((await client.operator(id)).name)}?`,
      message: 'Its secret is accepted again from the next request on. Tokens that were revoked stay revoked.',
      verb: 'Reactivate',
      isDangerous: false,
    }),
    run: async ({ changeClient, id }) => {
      await changeClient.updateOperator(id, { is_active: true });
      return 'done=reactivated';
    },
  }),
];
