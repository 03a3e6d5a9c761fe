import { shortId } from '../../../console/columns/cell-text.js';
import { allowShown, limitsShown, spentShown } from '../../../console/columns/policies.js';
import { TOKEN_LINES } from '../../../console/columns/tokens.js';
import { ApiError, type ManagementClient } from '../../api/client.js';
import type { WireAuditRecord, WireRequestEvent, WireToken } from '../../api/contract.js';
import { loadTokenHistory } from '../../api/audit-history.js';
import { exact } from '../../api/formats.js';
import { causeOf, causeOfState } from '../../api/request-outcome.js';
import { ALL_FAILURES, REQUEST_EVENT_KIND } from '../../api/vocabulary.js';
import { doneMessage, get, type PageRequest, type PageResponse } from '../page-request.js';
import { BudgetUse, Cap, escapeBidi, Name, StateMark, Time } from '../parts/formats.js';
import { CellContent } from '../parts/cells.js';
import { ActionLink, ConfirmLink, Link, type Offers, useFrame, useMay } from '../parts/frame.js';
import { CommandLine, Facts, SuccessNotice, Table } from '../parts/common.js';
import { Heading } from '../parts/document.js';
import { confirmedChange } from './confirm.js';
import { Traffic, usageFor, type Used } from './traffic.js';
import { RecordTable } from './audit.js';
import { POLICY_DONE } from './policies.js';
import { remedyOf, Why } from './events.js';

interface TokenProps {
  used: Used;
  token: WireToken;
  /** Null if the user may not read them. */
  records: readonly WireAuditRecord[] | null;
  /** Its last requests that failed, the newest first; null if the daemon publishes no events, or the user may not read them. */
  failures: readonly WireRequestEvent[] | null;
  done: string | null;
}

export function TokenPage({ token, used, records, failures, done }: TokenProps) {
  const to = `tokens/${token.id}`;
  const may = useMay();
  return (
    <>
      <Heading
        title={token.name === null ? `Token ${shortId(token.id)}` : <Name>{token.name}</Name>}
        path={<Link to="tokens">Tokens</Link>}
        actions={
          <>
            <ActionLink to={`tokens/new?like=${token.id}`} className="button">
              Issue again…
            </ActionLink>{' '}
            <ActionLink to={`${to}/restrict`} className="button">
              Change limits
            </ActionLink>{' '}
            <ActionLink to={`${to}/budget`} className="button">
              Change budget
            </ActionLink>{' '}
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
      <Refused token={token} />
      <TokenFacts token={token} />
      <Traffic used={used} to={to} />
      <p className="links">
        <ActionLink to={`events?token_id=${token.id}`}>Live requests</ActionLink>
        <Link to={`top?by=model&token_id=${token.id}`}>Top models</Link>
        <Link to={`usage?token_id=${token.id}&by=day%2Cmodel&sort=time`}>Usage by day and model</Link>
      </p>
      {failures === null ? null : <Failures failures={failures} token={token} />}
      {records === null ? null : (
        <section aria-labelledby="records-title">
          <div className="section-head">
            <h2 id="records-title">Audit</h2>
            <Link to={`audit?token_id=${token.id}`}>Show in the audit log</Link>
          </div>
          <RecordTable id="records" label="Audit records of this token" records={records} />
        </section>
      )}
      <CommandLine line={`llmp token ${commandOf(token, may)} ${token.id}`} />
    </>
  );
}

/** The command that does what the page offers first. */
function commandOf({ is_active: isActive }: WireToken, may: Offers['may']): string {
  if (isActive) return may('revoke tokens') ? 'revoke' : 'get';
  return may('change tokens') ? 'reactivate' : 'get';
}

/** Why the requests of the token are refused now, and what to do. It is a live part, empty for a token that can be used. */
function Refused({ token: { state } }: Pick<TokenProps, 'token'>) {
  const cause = causeOfState(state);
  return (
    <div id="refused" data-live="">
      {cause === null ? null : (
        <p className="notice">
          Its requests are refused: {cause.why}. <strong>What to do:</strong> {remedyOf(cause)}
        </p>
      )}
    </div>
  );
}

function Failures({ failures, token: { id } }: { failures: readonly WireRequestEvent[]; token: WireToken }) {
  return (
    <section aria-labelledby="failures-title" id="failures" data-live="">
      <div className="section-head">
        <h2 id="failures-title">Last failures</h2>
        <Link to={`events?show=failures&token_id=${id}`}>All failures of this token</Link>
      </div>
      {failures.length === 0 ? (
        <p className="faint">None.</p>
      ) : (
        <Table
          id="failed"
          label="Last requests of this token that failed"
          rows={failures}
          keyOf={(event) => event.id}
          columns={[
            { title: 'Why', show: (event) => <Why event={event} /> },
            { title: 'What to do', show: (event) => remedyOf(causeOf(event) ?? { why: '' }) },
            { title: 'Status', isNumber: true, show: ({ status }) => exact(status) },
            { title: 'Request', show: ({ method, path }) => escapeBidi(`${method} ${path}`) },
            { title: 'Time', show: ({ time }) => <Time at={time} /> },
          ]}
        />
      )}
    </section>
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
        { name: 'Allows', value: escapeBidi(allowShown(token.allow)) },
        { name: 'Limits', value: limitsShown(token.limits) },
        { name: 'Budget', value: <BudgetUse spender={token} /> },
        { name: 'Spent', value: spentShown(token) },
        { name: 'Cache hits', value: exact(token.cache_hit_count) },
        ...TOKEN_LINES.filter(({ id }) => !['id', 'allows', 'limits'].includes(id)).map((column) => ({
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
const FAILURES_SHOWN = '5';

async function failuresOf(client: ManagementClient, id: string): Promise<WireRequestEvent[] | null> {
  try {
    const { items } = await client.storedEvents({ token_id: id, outcome: ALL_FAILURES, limit: FAILURES_SHOWN });
    return items.filter((event) => event.kind === REQUEST_EVENT_KIND);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

async function recordsOf(client: ManagementClient, id: string): Promise<WireAuditRecord[]> {
  const { changes, lastUse } = await loadTokenHistory(client, id, CHANGES_SHOWN);
  return [...(lastUse ? [lastUse] : []), ...changes].sort((one, other) => other.time.localeCompare(one.time));
}

const titleOf = ({ id, name }: WireToken) => (name === null ? `token ${shortId(id)}` : escapeBidi(name));

const DONE = {
  revoked: 'Token revoked. It is refused from the next request on. You can reactivate it.',
  ...POLICY_DONE,
  reactivated: 'Token reactivated. It is accepted again, unless it has expired or reached its cap.',
};

async function show(request: PageRequest): Promise<PageResponse> {
  const { client, may } = request;
  const token = await client.token(request.id);
  const [used, records, failures] = await Promise.all([
    usageFor(request, { token_id: token.id }),
    may('read the audit log') ? recordsOf(client, token.id) : null,
    may('read events') ? failuresOf(client, token.id) : null,
  ]);
  const props = { token, used, records, failures, done: doneMessage(request, DONE) };
  const body = <TokenPage {...props} />;
  return { title: titleOf(token), section: 'tokens', isLive: true, body };
}

/** A change with a confirmation page. */
const change = (verb: 'Revoke' | 'Reactivate', isActive: boolean, done: keyof typeof DONE, message: string) =>
  confirmedChange({
    section: 'tokens',
    what: verb.toLowerCase(),
    permission: isActive ? 'change tokens' : 'revoke tokens',
    asking: async ({ client, id }) => {
      const title = `${verb} ${titleOf(await client.token(id))}?`;
      return { title, message, verb, isDangerous: !isActive };
    },
    run: async ({ changeClient, id }) => {
      await (isActive ? changeClient.updateToken(id, { is_active: true }) : changeClient.revokeToken(id));
      return `done=${done}`;
    },
  });

export const tokenRoutes = [
  get('/tokens/:id', 'read tokens', show),
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
