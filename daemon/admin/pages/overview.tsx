import { COSTS_TITLE, costsQuery, type ProjectCost, projectCosts } from '../../../console/columns/costs.js';
import {
  NEARLY_SPENT_TOKENS,
  NOTHING_WRONG,
  type Problem,
  problemsIn,
  type Spenders,
} from '../../../console/problems.js';
import { quotedValue } from '../../../console/query/terms.js';
import { duration, exact, rate } from '../../api/formats.js';
import type { WireIncidents, WireStatus, WireToken } from '../../api/contract.js';
import { TOKEN_STATES } from '../../api/vocabulary.js';
import { costShown, sumOfCosts } from '../../api/money.js';
import { allProjects, get } from '../page-request.js';
import { Heading } from '../parts/document.js';
import { ActionLink, isIssuer, Link } from '../parts/frame.js';
import {
  capitalized,
  ComponentMark,
  escapeBidi,
  milliseconds,
  Money,
  Name,
  NameOrId,
  percent,
  ProjectLink,
  StateMark,
  StatusMark,
  Time,
  TokenLink,
} from '../parts/formats.js';
import { EmptyState, Facts } from '../parts/common.js';
import { myTokens } from './my-tokens.js';
import { Traffic, usageFor, type Used } from './traffic.js';

interface OverviewProps {
  used: Used;
  status: WireStatus;
  incidents: WireIncidents;
  spenders: Spenders;
  costs: readonly ProjectCost[];
  /** Sorted by expiry, the next to expire first. */
  expiring: readonly WireToken[];
}

function OverviewPage({ status, incidents, spenders, costs, used, expiring }: OverviewProps) {
  return (
    <>
      <Heading title="Overview" />
      <Health status={status} />
      {status.projects?.all === 0 ? (
        <FirstSteps />
      ) : (
        <>
          <Problems incidents={incidents} spenders={spenders} />
          <Tiles status={status} />
          <Traffic used={used} to="" />
        </>
      )}
      <div className="columns">
        {status.projects?.all === 0 ? null : (
          <>
            <Costs costs={costs} />
            <Tokens tokens={status.tokens} />
            <Expiring tokens={expiring} />
          </>
        )}
        <Instance status={status} />
      </div>
    </>
  );
}

/** What fails now, each cause once, in the words of the other front ends. */
function Problems({ incidents, spenders }: Pick<OverviewProps, 'incidents' | 'spenders'>) {
  // `Health` says what the instance itself misses.
  const problems = problemsIn({ missing: [], degraded: [] }, incidents, spenders);
  return (
    <section aria-labelledby="problems-title" id="problems" data-live="">
      <h2 id="problems-title">Now</h2>
      {problems.length === 0 ? (
        <p className="faint">{`${capitalized(NOTHING_WRONG)}.`}</p>
      ) : (
        <ul className="problems">
          {problems.map((problem) => (
            <ProblemRow key={problem.id} problem={problem} />
          ))}
        </ul>
      )}
    </section>
  );
}

function ProblemRow({ problem }: { problem: Problem }) {
  const { isFailure, subject, why, extent, remedy, incident, of: whose } = problem;
  const who = escapeBidi(capitalized(subject));
  const look = isFailure ? { look: 'revoked', glyph: '✗' } : { look: 'rate_limited', glyph: '▲' };
  const { token_id: token, project_id: project } = whose ?? {};
  const of = token ? `tokens/${token}` : project ? `projects/${project}` : null;
  const filter = {
    ...(incident?.kind === 'slow_provider' ? { took_over: '2s' } : { show: 'failures', q: `why:${quotedValue(why)}` }),
    ...(token ? { token_id: token } : project ? { project_id: project } : {}),
    since: '15m',
  };
  return (
    <li>
      <span>
        {of === null ? who : <Link to={of}>{who}</Link>} <StatusMark {...look} word={escapeBidi(why)} />
      </span>
      {incident === null ? (
        <span>{extent}</span>
      ) : (
        <Link to={`events?${new URLSearchParams(filter).toString()}`}>{extent}</Link>
      )}
      <span>{remedy === null ? '' : `${escapeBidi(capitalized(remedy))}.`}</span>
    </li>
  );
}

function Health({ status: { status, missing, degraded } }: { status: WireStatus }) {
  const isReady = status !== 'not ready';
  const says = !isReady
    ? `Not ready. Missing: ${missing.join(', ')}.`
    : degraded.length > 0
      ? `Degraded: ${degraded.join(', ')}.`
      : null;
  return (
    <div id="health" data-live="" role="status">
      {says === null ? null : <p className={isReady ? 'notice' : 'notice bad'}>{says}</p>}
    </div>
  );
}

function FirstSteps() {
  return (
    <EmptyState title="Nothing here yet">
      <p>A project holds the API key of an upstream provider. Clients use its tokens instead of that key.</p>
      <ol>
        <li>
          <Link to="projects/new">Create a project</Link> with the provider’s key.
        </li>
        <li>Issue a token for it.</li>
        <li>
          Give a client the token as its API key, and this server’s <code>/v1</code> as its base URL.
        </li>
      </ol>
    </EmptyState>
  );
}

function Tiles({ status: { requests, cache, upstream, tokens } }: { status: WireStatus }) {
  const tiles = [
    ['Active tokens', tokens ? exact(tokens.active) : '–', 'tokens?state=active'],
    ['Requests', requests ? `${rate(requests.per_second)} /s` : '–', 'usage?by=token&since_hours=24'],
    [
      'Failures',
      requests ? `${rate(requests.errors_per_second)} /s` : '–',
      'usage?by=token%2Cmodel&since_hours=24&sort=errors',
    ],
    ['Cache hits', percent(cache.hit_ratio), 'cache'],
    ['Upstream median', milliseconds(upstream.p50_ms), null],
    ['Upstream 95th percentile', milliseconds(upstream.p95_ms), null],
  ] as const;
  return (
    <dl className="tiles" id="tiles" data-live="">
      {tiles.map(([name, value, to]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{to === null ? value : <Link to={to}>{value}</Link>}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The usage report of the same days. */
const COSTS_PAGE = 'usage?by=project%2Cmodel&since_hours=168&sort=cost_usd';
const COSTS_SHOWN = 6;

/** The projects that cost most, each with its most expensive model. */
function Costs({ costs }: Pick<OverviewProps, 'costs'>) {
  return (
    <section aria-labelledby="costs-title" id="costs" data-live="">
      <div className="section-head">
        <h2 id="costs-title">{COSTS_TITLE}</h2>
        <Link to={COSTS_PAGE}>{costs.length === 0 ? 'Usage' : `${costShown(sumOfCosts(costs))} in all`}</Link>
      </div>
      {costs.length === 0 ? (
        <p className="faint">No costs.</p>
      ) : (
        <ul className="rows">
          {costs.slice(0, COSTS_SHOWN).map((project) => (
            <li key={project.id}>
              <span>
                <ProjectLink project={project} />{' '}
                {project.model === null ? null : (
                  <span className="faint">
                    most by <Name>{project.model.name ?? 'no model'}</Name>, {costShown(project.model)}
                  </span>
                )}
              </span>
              <span className="amount">
                <Money cost={project} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Tokens({ tokens }: { tokens: WireStatus['tokens'] }) {
  return (
    <section aria-labelledby="by-state-title" id="by-state" data-live="">
      <h2 id="by-state-title">Tokens</h2>
      {tokens === null ? (
        <p className="faint">Unknown while the database is unavailable.</p>
      ) : (
        <ul className="counts">
          {TOKEN_STATES.map((state) => (
            <li key={state}>
              <Link to={`tokens?state=${state}`}>
                <StateMark state={state} />
                <span className="count">{exact(tokens[state])}</span>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Expiring({ tokens }: { tokens: readonly WireToken[] }) {
  return (
    <section aria-labelledby="expiring-title" id="expiring" data-live="">
      <h2 id="expiring-title">Expiring next</h2>
      {tokens.length === 0 ? (
        <p>
          No active tokens. <ActionLink to="tokens/new">Issue one</ActionLink>
        </p>
      ) : (
        <ul className="rows">
          {tokens.map((token) => (
            <li key={token.id}>
              <span>
                <TokenLink token={token} />{' '}
                <span className="faint">
                  <NameOrId id={token.project_id} name={token.project_name} />
                </span>
              </span>
              <Time at={token.expires_at} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Instance({ status }: { status: WireStatus }) {
  const { database, redis, event_bus: bus, audit } = status;
  return (
    <section aria-labelledby="instance-title">
      <h2 id="instance-title">This instance</h2>
      <Facts
        id="instance"
        facts={[
          { name: 'Version', value: status.version },
          { name: 'Uptime', value: duration(status.uptime_s * 1000) },
          {
            name: 'Database',
            value: (
              <>
                <ComponentMark status={database.status} /> <span className="faint">{database.driver}</span>
              </>
            ),
          },
          { name: 'Redis', value: <ComponentMark status={redis} /> },
          { name: 'Events', value: <ComponentMark status={bus.status} /> },
          { name: 'Audit files', value: <ComponentMark status={audit.status} /> },
          { name: 'In flight', value: status.requests ? exact(status.requests.in_flight) : '–' },
        ]}
      />
    </section>
  );
}

// ---- routes

const EXPIRING_SHOWN = '6';

export const overviewRoutes = [
  get('/', 'read the status', async (request) => {
    if (isIssuer(request.user)) return myTokens(request);
    const { client } = request;
    const now = new Date(request.nowMs).toISOString();
    const [status, incidents, used, expiring, costs, spenders, projects] = await Promise.all([
      client.status(),
      client.incidents(),
      usageFor(request),
      client.tokens({ state: 'active', expires_after: now, sort: 'expires_at', limit: EXPIRING_SHOWN }),
      client.usage(costsQuery(request.nowMs)),
      client.tokens(NEARLY_SPENT_TOKENS),
      allProjects(client, { is_active: 'true' }),
    ]);
    const body = (
      <OverviewPage
        status={status}
        incidents={incidents}
        spenders={{ tokens: spenders.items, projects }}
        costs={projectCosts(costs)}
        used={used}
        expiring={expiring.items}
      />
    );
    return { title: 'Overview', section: 'overview', isLive: true, body };
  }),
];
