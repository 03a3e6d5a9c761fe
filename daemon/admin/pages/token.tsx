import { shortId } from '../../../console/columns/cell-text.js';
import type { WireAuditRecord, WireToken } from '../../api/contract.js';
import { RecordTable } from './audit.js';
import { Traffic, type Used } from './traffic.js';
import { Heading } from './document.js';
import { ConfirmLink, Link } from './frame.js';
import { SuccessNotice, CommandLine } from './parts.js';
import { TokenFacts } from './token-terms.js';
import { Name } from './formats.js';

export interface TokenProps {
  used: Used;
  token: WireToken;
  records: readonly WireAuditRecord[];
  done: string | null;
}

export function tokenPage({ token, used, records, done }: TokenProps) {
  const to = `tokens/${token.id}`;
  return (
    <>
      <Heading
        title={token.name === null ? `Token ${shortId(token.id)}` : <Name>{token.name}</Name>}
        path={<Link to="tokens">Tokens</Link>}
        actions={
          <>
            <Link to={`tokens/new?like=${token.id}`} className="button">
              Issue again…
            </Link>{' '}
            {token.is_active ? (
              <ConfirmLink to={`${to}/revoke`} isDangerous>
                Revoke…
              </ConfirmLink>
            ) : (
              <ConfirmLink to={`${to}/reactivate`}>Reactivate…</ConfirmLink>
            )}
          </>
        }
      />
      <SuccessNotice what={done} />
      <TokenFacts token={token} />
      <Traffic used={used} to={to} />
      <p className="links">
        <Link to={`events?token_id=${token.id}`}>Live requests</Link>
        <Link to={`top?by=model&token_id=${token.id}`}>Top models</Link>
        <Link to={`usage?token_id=${token.id}&by=day%2Cmodel&sort=time`}>Usage by day and model</Link>
      </p>
      <section aria-labelledby="records-title">
        <div className="section-head">
          <h2 id="records-title">Audit</h2>
          <Link to={`audit?token_id=${token.id}`}>Show in the audit log</Link>
        </div>
        <RecordTable id="records" label="Audit records of this token" records={records} />
      </section>
      <CommandLine line={`llmp token ${token.is_active ? 'revoke' : 'reactivate'} ${token.id}`} />
    </>
  );
}
