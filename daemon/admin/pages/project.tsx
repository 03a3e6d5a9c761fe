import { counted, exact } from '../../api/formats.js';
import type { WireAuditRecord, WireProject } from '../../api/contract.js';
import { RecordTable } from './audit.js';
import { Traffic, type Used } from './traffic.js';
import { Heading } from './document.js';
import { InputField, KeyFields } from './fields.js';
import { ConfirmLink, ChangeForm, Link } from './frame.js';
import { SuccessNotice, Facts, CommandLine, ErrorNotice } from './parts.js';
import { Name, StateMark, Time } from './formats.js';
import { ProviderShown } from './provider.js';
import { missingUsageTitle } from '../../api/providers.js';
import { MAX_NAME_LENGTH } from '../../api/vocabulary.js';

export interface ProjectProps {
  used: Used;
  project: WireProject;
  records: readonly WireAuditRecord[];
  done: string | null;
  refused: string | null;
  /** Whether the form for another key has its checkbox selected. */
  isKeyChecked: boolean;
}

export function projectPage(props: ProjectProps) {
  const { project, used, records, done, refused, isKeyChecked } = props;
  const to = `projects/${project.id}`;
  return (
    <>
      <Heading
        title={<Name>{project.name}</Name>}
        path={<Link to="projects">Projects</Link>}
        actions={
          project.is_active ? (
            <Link to={`tokens/new?project_id=${project.id}`} className="button primary">
              New token
            </Link>
          ) : null
        }
      />
      <SuccessNotice what={done} />
      <ErrorNotice why={refused} />
      <ProjectFacts project={project} />
      <Traffic used={used} to={to} />
      <p className="links">
        <Link to={`events?project_id=${project.id}`}>Live requests</Link>
        <Link to={`top?project_id=${project.id}`}>Top tokens</Link>
        <Link to={`usage?project_id=${project.id}&by=token`}>Usage by token</Link>
        <Link to={`usage?project_id=${project.id}&by=day%2Cmodel&sort=time`}>Usage by day and model</Link>
      </p>
      <Changes project={project} to={to} isKeyChecked={isKeyChecked} />
      <section aria-labelledby="records-title">
        <div className="section-head">
          <h2 id="records-title">Audit</h2>
          <Link to={`audit?project_id=${project.id}`}>Show in the audit log</Link>
        </div>
        <RecordTable id="records" label="Audit records of this project" records={records} />
      </section>
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
              {counted(project.requests_24h, 'request')}, {counted(project.errors_24h, 'error')}
            </Link>
          ),
        },
        { name: 'Last used', value: <Time at={project.last_used_at} isFull /> },
        {
          name: 'Provider',
          value: (
            <>
              <ProviderShown project={project} /> <Link to={`projects/${project.id}/provider`}>Change provider</Link>
            </>
          ),
        },
        { name: 'Missing usage', value: missingUsageTitle(project.missing_usage) },
        { name: 'Upstream key', value: <code>{`…${project.api_key_hint}`}</code> },
        { name: 'Created', value: <Time at={project.created_at} isFull /> },
        deactivatedAt === null ? null : { name: 'Deactivated', value: <Time at={deactivatedAt} isFull /> },
        { name: 'ID', value: <code className="id">{project.id}</code> },
      ]}
    />
  );
}

function Changes({ project, to, isKeyChecked }: Pick<ProjectProps, 'project' | 'isKeyChecked'> & { to: string }) {
  return (
    <section aria-labelledby="change-title">
      <h2 id="change-title">Change</h2>
      <div className="columns">
        <ChangeForm to={`${to}/rename`} className="panel">
          <InputField name="name" label="Name" required maxLength={MAX_NAME_LENGTH} defaultValue={project.name} />
          <button type="submit">Rename</button>
        </ChangeForm>
        <ChangeForm to={`${to}/key`} className="panel">
          <KeyFields isChecked={isKeyChecked} />
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
            {project.is_active
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
