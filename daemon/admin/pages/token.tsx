import type { WireAuditRecord, WireProject, WireToken, WireUsageLine } from '../../api/contract.js';
import { RecordTable } from './audit.js';
import { type SpanName, Usage } from './chart.js';
import { Heading } from './document.js';
import { AskingLink, Link } from './frame.js';
import { namesOf, ProjectLink } from './links.js';
import { Done, Facts, OnCommandLine } from './parts.js';
import { Name, number, shortId, StateMark, Time, Uses } from './words.js';

export interface TokenProps {
  token: WireToken;
  project: WireProject;
  usage: readonly WireUsageLine[];
  spanName: SpanName;
  records: readonly WireAuditRecord[];
  done: string | null;
}

export function tokenPage({ token, project, usage, spanName, records, done }: TokenProps) {
  const to = `tokens/${token.id}`;
  return (
    <>
      <Heading
        title={token.name === null ? `Token ${shortId(token.id)}` : <Name>{token.name}</Name>}
        path={<Link to="tokens">Tokens</Link>}
        actions={
          token.is_active ? (
            <AskingLink to={`${to}/revoke`} isDangerous>
              Revoke…
            </AskingLink>
          ) : (
            <AskingLink to={`${to}/reactivate`}>Reactivate…</AskingLink>
          )
        }
      />
      <Done what={done} />
      <TokenFacts token={token} project={project} />
      <Usage lines={usage} spanName={spanName} to={to} />
      <p>
        <Link to={`usage?token_id=${token.id}&by=day%2Cmodel&sort=day`}>Usage by day and model</Link>
      </p>
      <section aria-labelledby="records-title">
        <div className="section-head">
          <h2 id="records-title">Audit</h2>
          <Link to={`audit?token_id=${token.id}`}>Show in the audit log</Link>
        </div>
        <RecordTable id="records" label="Audit records of this token" records={records} names={null} />
      </section>
      <OnCommandLine line={`llmp token ${token.is_active ? 'revoke' : 'reactivate'} ${token.id}`} />
    </>
  );
}

function TokenFacts({ token, project }: Pick<TokenProps, 'token' | 'project'>) {
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
