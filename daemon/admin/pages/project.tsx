import { counted, exact } from '../../api/formats.js';
import { KEY_CHECK_SENTENCES, projectCheckSentence } from '../../api/checked-key.js';
import type { WireAuditRecord, WireProject } from '../../api/contract.js';
import { allowShown, limitsShown, spentShown } from '../../../console/columns/policies.js';
import type { Permission } from '../../api/permissions.js';
import { missingUsageTitle } from '../../api/providers.js';
import { MAX_NAME_LENGTH } from '../../api/vocabulary.js';
import {
  changed,
  countMessage,
  doneMessage,
  get,
  type PageRequest,
  type PageResponse,
  post,
  statusOf,
} from '../page-request.js';
import { BudgetUse, escapeBidi, Name, StateMark, Time } from '../parts/formats.js';
import { Heading } from '../parts/document.js';
import { InputField, KeyFields } from '../parts/fields.js';
import { ActionLink, ChangeForm, ConfirmLink, Link, useMay } from '../parts/frame.js';
import { CommandLine, ErrorNotice, Facts, SuccessNotice } from '../parts/common.js';
import { POLICY_DONE } from './policies.js';
import { isKeyChecked, ProviderShown, sendKey } from './provider.js';
import { type Confirmation, confirmedChange } from './confirm.js';
import { Traffic, usageFor, type Used } from './traffic.js';
import { RecordTable } from './audit.js';

interface ProjectProps {
  used: Used;
  project: WireProject;
  /** Null if the user may not read them. */
  records: readonly WireAuditRecord[] | null;
  done: string | null;
  refused: string | null;
  /** Whether the form for another key has its checkbox selected. */
  isChecked: boolean;
}

function ProjectPage(props: ProjectProps) {
  const { project, used, records, done, refused, isChecked } = props;
  const to = `projects/${project.id}`;
  return (
    <>
      <Heading
        title={<Name>{project.name}</Name>}
        path={<Link to="projects">Projects</Link>}
        actions={
          project.is_active ? (
            <ActionLink to={`tokens/new?project_id=${project.id}`} className="button primary">
              New token
            </ActionLink>
          ) : null
        }
      />
      <SuccessNotice what={done} />
      <ErrorNotice why={refused} />
      <ProjectFacts project={project} />
      <Traffic used={used} to={to} />
      <p className="links">
        <ActionLink to={`events?project_id=${project.id}`}>Live requests</ActionLink>
        <Link to={`top?project_id=${project.id}`}>Top tokens</Link>
        <Link to={`usage?project_id=${project.id}&by=token`}>Usage by token</Link>
        <Link to={`usage?project_id=${project.id}&by=day%2Cmodel&sort=time`}>Usage by day and model</Link>
      </p>
      <Changes project={project} to={to} isChecked={isChecked} />
      {records === null ? null : (
        <section aria-labelledby="records-title">
          <div className="section-head">
            <h2 id="records-title">Audit</h2>
            <Link to={`audit?project_id=${project.id}`}>Show in the audit log</Link>
          </div>
          <RecordTable id="records" label="Audit records of this project" records={records} />
        </section>
      )}
      <CommandLine line={`llmp project get ${project.id}`} />
    </>
  );
}

function ProjectFacts({ project }: Pick<ProjectProps, 'project'>) {
  const { deactivated_at: deactivatedAt } = project;
  return (
    <Facts
      id="facts"
      facts={[
        { name: 'State', value: <StateMark state={project.is_active ? 'active' : 'inactive'} /> },
        {
          name: 'Tokens',
          value: (
            <Link to={`tokens?project_id=${project.id}`}>
              {counted(project.active_token_count, 'active token')} of {exact(project.token_count)}
            </Link>
          ),
        },
        {
          name: 'Last 24 h',
          value: (
            <Link to={`top?project_id=${project.id}&window=24h`}>
              {counted(project.requests_24h, 'request')}, {counted(project.errors_24h, 'failure')}
            </Link>
          ),
        },
        { name: 'Last used', value: <Time at={project.last_used_at} isFull /> },
        {
          name: 'Provider',
          value: (
            <>
              <ProviderShown project={project} />{' '}
              <ActionLink to={`projects/${project.id}/provider`}>Change provider</ActionLink>
            </>
          ),
        },
        { name: 'Missing usage', value: missingUsageTitle(project.missing_usage) },
        { name: 'Allows', value: allowShown(project.allow) },
        {
          name: 'Limits',
          value: (
            <>
              {limitsShown(project.limits)}{' '}
              <ActionLink to={`projects/${project.id}/restrict`}>Change limits</ActionLink>
            </>
          ),
        },
        {
          name: 'Budget',
          value: (
            <>
              <BudgetUse spender={project} />{' '}
              <ActionLink to={`projects/${project.id}/budget`}>Change budget</ActionLink>
            </>
          ),
        },
        { name: 'Spent', value: spentShown(project) },
        { name: 'Upstream key', value: <code>{`…${project.api_key_hint}`}</code> },
        { name: 'Created', value: <Time at={project.created_at} isFull /> },
        deactivatedAt === null ? null : { name: 'Deactivated', value: <Time at={deactivatedAt} isFull /> },
        { name: 'ID', value: <code className="id">{project.id}</code> },
      ]}
    />
  );
}

function Changes({ project, to, isChecked }: Pick<ProjectProps, 'project' | 'isChecked'> & { to: string }) {
  const may = useMay();
  if (!may('change projects') && !may('change tokens')) return null;
  return (
    <section aria-labelledby="change-title">
      <h2 id="change-title">Change</h2>
      <div className="columns">
        <ChangeForm to={`${to}/rename`} className="panel">
          <InputField name="name" label="Name" required maxLength={MAX_NAME_LENGTH} defaultValue={project.name} />
          <button type="submit">Rename</button>
        </ChangeForm>
        <ChangeForm to={`${to}/key`} className="panel">
          <KeyFields isChecked={isChecked} />
          <button type="submit">Replace key</button>
        </ChangeForm>
        <ChangeForm to={`${to}/check`} className="panel">
          <h3>Check</h3>
          <p className="hint">Sends one request, which costs nothing, to the provider with the stored key.</p>
          <button type="submit">Check provider</button>
        </ChangeForm>
        <div className="panel">
          <h3>Access</h3>
          <p className="hint">
            {!may('change projects')
              ? 'Its tokens are refused from the next request on, until they are reactivated.'
              : project.is_active
                ? 'While a project is inactive, its tokens are refused. Deactivating it also ends requests in flight.'
                : 'Its tokens are refused until it is active again.'}
          </p>
          <p className="buttons start">
            {project.is_active ? (
              <ConfirmLink to={`${to}/deactivate`} isDangerous>
                Deactivate…
              </ConfirmLink>
            ) : (
              <ConfirmLink to={`${to}/activate`}>Activate…</ConfirmLink>
            )}
            <ConfirmLink to={`${to}/revoke-all`} isDangerous>
              Revoke all tokens…
            </ConfirmLink>
          </p>
        </div>
      </div>
    </section>
  );
}

// ---- routes

const RECORDS_SHOWN = '8';

/** Success messages. `check` in the query adds how the check of the key ended. */
const DONE: Readonly<Record<string, string>> = {
  created: 'Project created.',
  renamed: 'Project renamed.',
  provider: 'Provider changed. New requests go to it.',
  ...POLICY_DONE,
  key: 'Upstream key replaced. New requests use the new key.',
  activated: 'Project activated. Its tokens are accepted again.',
  deactivated: 'Project deactivated. Its tokens are refused from now on.',
};

const NEXT_STEP = 'Now issue a token for it.';

function doneWords(request: PageRequest): string | null {
  const done = doneMessage(request, DONE);
  const check = doneMessage(request, KEY_CHECK_SENTENCES, 'check');
  const next = request.query.get('done') === 'created' ? NEXT_STEP : null;
  return done === null ? null : [done, check, next].filter((words) => words !== null).join(' ');
}

interface Shown {
  /** A message of success in place of the usual one. */
  said?: string;
  /** The address of the response is that of a form, which has no page. */
  isAnswer?: boolean;
}

async function show(
  request: PageRequest,
  refused: string | null = null,
  { said, isAnswer = false }: Shown = {},
): Promise<PageResponse> {
  const { client, may } = request;
  const project = await client.project(request.id);
  const [used, records] = await Promise.all([
    usageFor(request, { project_id: project.id }),
    may('read the audit log') ? client.auditRecords({ project_id: project.id, limit: RECORDS_SHOWN }) : null,
  ]);
  const done = refused === null ? (said ?? countMessage(request, 'revoked', 'token') ?? doneWords(request)) : null;
  const body = (
    <ProjectPage
      project={project}
      used={used}
      records={records?.items ?? null}
      done={done}
      refused={refused}
      isChecked={isKeyChecked(request)}
    />
  );
  const title = escapeBidi(project.name);
  if (isAnswer) return { title, section: 'projects', isLive: false, body };
  return { title, section: 'projects', isLive: true, body, ...statusOf(refused) };
}

/** Asks the provider. What is wrong there is an answer, not an error of this request. */
async function checkProvider(request: PageRequest): Promise<PageResponse> {
  const check = await request.client.checkProject(request.id);
  const sentence = projectCheckSentence(check);
  return check.result === 'accepted'
    ? show(request, null, { said: sentence, isAnswer: true })
    : show(request, sentence, { isAnswer: true });
}

function rename(request: PageRequest): Promise<PageResponse> {
  const { id, changeClient, form } = request;
  return changed(
    async () => {
      await changeClient.updateProject(id, { name: form.get('name') ?? '' });
      return `projects/${id}?done=renamed`;
    },
    (refused) => show(request, refused),
  );
}

function changeKey(request: PageRequest): Promise<PageResponse> {
  const { id, changeClient } = request;
  return changed(
    async () => {
      const { check } = await sendKey(request, (fields) => changeClient.updateProject(id, fields));
      return `projects/${id}?done=key${check}`;
    },
    (refused) => show(request, refused),
  );
}

// ---- changes with a confirmation page

const toActivate = ({ name }: WireProject): Confirmation => ({
  title: `Activate ${escapeBidi(name)}?`,
  message: 'Its tokens are accepted again from the next request on.',
  verb: 'Activate',
  isDangerous: false,
});

const toDeactivate = ({ name }: WireProject): Confirmation => ({
  title: `Deactivate ${escapeBidi(name)}?`,
  message:
    'All its tokens are refused from the next request on, and requests in flight are ended. You can activate the project again.',
  verb: 'Deactivate',
  isDangerous: true,
});

async function toRevokeAll({ id, name }: WireProject, request: PageRequest): Promise<Confirmation> {
  const { total } = await request.client.tokens({ project_id: id, active_only: 'true', limit: '1' });
  return {
    title: `Revoke all tokens of ${escapeBidi(name)}?`,
    message: `${counted(total ?? 0, 'token')} can be used now. Their clients get 401 from the next request on, and requests in flight are ended. You can reactivate the tokens one by one.`,
    verb: 'Revoke all',
    isDangerous: true,
  };
}

const confirmed = (
  what: string,
  permission: Permission,
  asking: (project: WireProject, request: PageRequest) => Confirmation | Promise<Confirmation>,
  run: (request: PageRequest) => Promise<string>,
) =>
  confirmedChange({
    section: 'projects',
    what,
    permission,
    asking: async (request) => asking(await request.client.project(request.id), request),
    run,
  });

const setActive =
  (isActive: boolean, done: string) =>
  async ({ changeClient, id }: PageRequest) => {
    await changeClient.updateProject(id, { is_active: isActive });
    return `done=${done}`;
  };

export const projectRoutes = [
  get('/projects/:id', 'read projects', (request) => show(request)),
  post('/projects/:id/rename', 'change projects', rename),
  post('/projects/:id/key', 'change projects', changeKey),
  post('/projects/:id/check', 'change projects', checkProvider),
  ...confirmed('activate', 'change projects', toActivate, setActive(true, 'activated')),
  ...confirmed('deactivate', 'change projects', toDeactivate, setActive(false, 'deactivated')),
  ...confirmed('revoke-all', 'change tokens', toRevokeAll, async ({ changeClient, id }) => {
    const { revoked_count: count } = await changeClient.revokeTokensOf(id);
    return `revoked=${count}`;
  }),
];
