import { shortId } from '../../../console/columns/cell-text.js';
import { TOKEN_LINES } from '../../../console/columns/tokens.js';
import type { WireAuditRecord, WireToken } from '../../api/contract.js';
import { loadTokenHistory } from '../../api/audit-history.js';
import { exact } from '../../api/formats.js';
import { doneMessage, get, type PageRequest, type PageResponse } from '../page-request.js';
import { Cap, escapeBidi, Name, StateMark, Time } from '../parts/formats.js';
import { CellContent } from '../parts/cells.js';
import { ConfirmLink, Link, useFrame } from '../parts/frame.js';
import { CommandLine, Facts, SuccessNotice } from '../parts/common.js';
import { Heading } from '../parts/document.js';
import { confirmedChange } from './confirm.js';
import { Traffic, usageFor, type Used } from './traffic.js';
import { RecordTable } from './audit.js';

interface TokenProps {
  used: Used;
  token: WireToken;
  records: readonly WireAuditRecord[];
  done: string | null;
}

export function TokenPage({ token, used, records, done }: TokenProps) {
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

function TokenFacts({ token }: { token: WireToken }) {
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

// ---- routes

/** Maximum number of records of each kind of change. */
const CHANGES_SHOWN = 10;

const titleOf = ({ id, name }: WireToken) => (name === null ? `token ${shortId(id)}` : escapeBidi(name));

const DONE = {
  revoked: 'Token revoked. It is refused from the next request on. You can reactivate it.',
  reactivated: 'Token reactivated. It is accepted again, unless it has expired or reached its cap.',
};

async function show(request: PageRequest): Promise<PageResponse> {
  const { client } = request;
  const token = await client.token(request.id);
  const [used, { changes, lastUse }] = await Promise.all([
    usageFor(request, { token_id: token.id }),
    loadTokenHistory(client, token.id, CHANGES_SHOWN),
  ]);
  const records = [...(lastUse ? [lastUse] : []), ...changes].sort((one, other) => other.time.localeCompare(one.time));
  const body = <TokenPage token={token} used={used} records={records} done={doneMessage(request, DONE)} />;
  return { title: titleOf(token), section: 'tokens', isLive: true, body };
}

/** A change with a confirmation page. */
const change = (verb: 'Revoke' | 'Reactivate', isActive: boolean, done: keyof typeof DONE, message: string) =>
  confirmedChange({
    section: 'tokens',
    what: verb.toLowerCase(),
    asking: async ({ client, id }) => {
      const title = `${verb} ${titleOf(await client.token(id))}?`;
      return { title, message, verb, isDangerous: !isActive };
    },
    run: async ({ changeClient, id }) => {
      await changeClient.updateToken(id, { is_active: isActive });
      return `done=${done}`;
    },
  });

export const tokenRoutes = [
  get('/tokens/:id', show),
  ...change(
    'Revoke',
    false,
    'revoked',
    'Clients of the token get 401 from the next request on, and requests in flight are ended. You can reactivate the token.',
  ),
  ...change(
    'Reactivate',
    true,
    'reactivated',
    'The token is accepted again from the next request on, unless it has expired or reached its cap.',
  ),
];
