/** The first page of an issuer: a token in three fields, and the tokens that it has issued. */
import { ceilingsShown } from '../../../console/columns/access.js';
import { TOKEN_COLUMNS } from '../../../console/columns/tokens.js';
import type { WireProject, WireToken } from '../../api/contract.js';
import { counted, exact } from '../../api/formats.js';
import { type Cost, costShown, sumOfCosts } from '../../api/money.js';
import { type Ceilings, MAX_NAME_LENGTH, policiesWithin } from '../../api/vocabulary.js';
import {
  allProjects,
  changed,
  formValues,
  invalidRequest,
  type PageRequest,
  type PageResponse,
  post,
  statusOf,
} from '../page-request.js';
import { tableColumns } from '../parts/cells.js';
import { ErrorNotice, Facts, Table } from '../parts/common.js';
import { Heading } from '../parts/document.js';
import { choicesOf, InputField, SelectField } from '../parts/fields.js';
import { escapeBidi } from '../parts/formats.js';
import { ActionLink, ChangeForm, ConfirmLink, Link } from '../parts/frame.js';
import { issued, NoProject } from './new-token.js';

const EMPTY_FORM = { name: '', hours: '', project_id: '' };
type MyTokenForm = typeof EMPTY_FORM;

interface MyTokensProps {
  projects: readonly WireProject[];
  ceilings: Ceilings | null;
  /** Those that can be used first. */
  tokens: readonly WireToken[];
  hasMore: boolean;
  /** Number of tokens that are active. */
  active: number;
  /** Of all tokens, in the last 30 days. */
  cost: Cost;
  given: MyTokenForm;
  refused: string | null;
}

function MyTokensPage(props: MyTokensProps) {
  const { projects, refused, tokens } = props;
  return (
    <>
      <Heading title="My tokens" />
      <ErrorNotice why={refused} />
      {projects.length === 0 ? (
        <NoProject />
      ) : (
        <div className="columns">
          <NewToken {...props} />
          <Terms {...props} />
        </div>
      )}
      <section aria-labelledby="issued-title">
        <div className="section-head">
          <h2 id="issued-title">Issued by me</h2>
          <Spent {...props} />
        </div>
        {tokens.length === 0 ? <p className="faint">You have not issued a token yet.</p> : <Issued tokens={tokens} />}
        {props.hasMore ? (
          <p>
            <Link to="tokens?sort=live">All my tokens</Link>
          </p>
        ) : null}
      </section>
    </>
  );
}

/** The lifetimes to choose from, in hours. */
const LIFETIMES = [1, 8, 24, 3 * 24, 7 * 24, 30 * 24, 90 * 24];
const USUAL_HOURS = 24;

const lifetimeShown = (hours: number): string =>
  hours > 24 && hours % 24 === 0 ? counted(hours / 24, 'day') : counted(hours, 'hour');

/** Up to the ceiling, and the ceiling itself. */
function lifetimesWithin(ceilings: Ceilings | null): number[] {
  const most = ceilings?.hours ?? Infinity;
  const shorter = LIFETIMES.filter((hours) => hours < most);
  return most === Infinity ? shorter : [...shorter, most];
}

function NewToken({ projects, ceilings, given }: MyTokensProps) {
  const lifetimes = lifetimesWithin(ceilings);
  const usual = lifetimes.findLast((hours) => hours <= USUAL_HOURS);
  return (
    <ChangeForm to="" className="panel">
      <h2>New token</h2>
      <InputField
        name="name"
        label="Name"
        hint="What will use it, such as my laptop. Optional."
        maxLength={MAX_NAME_LENGTH}
        defaultValue={given.name}
        autoFocus
      />
      <SelectField
        name="hours"
        label="Valid for"
        choices={lifetimes.map((hours) => [String(hours), lifetimeShown(hours)] as const)}
        chosen={given.hours || String(usual)}
      />
      <SelectField name="project_id" label="Project" choices={choicesOf(projects)} chosen={given.project_id} required />
      <div className="buttons start">
        <button type="submit" className="primary">
          Issue token
        </button>
        <ActionLink to="tokens/new">More options</ActionLink>
      </div>
    </ChangeForm>
  );
}

/** What a token of the form may do: as much as the ceilings allow. */
function Terms({ ceilings, active }: MyTokensProps) {
  const { hours, requests, active_tokens: most } = ceilings ?? {};
  const { allow, limits, budget } = policiesWithin(ceilings ?? {});
  const shown = (part: Ceilings, otherwise: string) =>
    Object.values(part).some(Boolean) ? ceilingsShown(part) : otherwise;
  return (
    <section aria-labelledby="terms-title" className="panel">
      <h2 id="terms-title">What it may do</h2>
      <p className="hint">The most that you may give to a token. A token of this form has all of it.</p>
      <Facts
        id="terms"
        facts={[
          { name: 'Lifetime', value: hours === undefined ? 'up to a year' : `up to ${lifetimeShown(hours)}` },
          { name: 'Requests', value: requests === undefined ? 'unlimited' : `up to ${exact(requests)}` },
          { name: 'May use', value: escapeBidi(shown({ routes: allow?.routes, models: allow?.models }, 'everything')) },
          { name: 'Speed', value: shown({ limits: limits ?? undefined }, 'unlimited') },
          { name: 'Budget', value: shown({ budget: budget ?? undefined }, 'none') },
          {
            name: 'Active tokens',
            value: most === undefined ? exact(active) : `${exact(active)} of ${exact(most)}`,
          },
        ]}
      />
    </section>
  );
}

function Spent({ cost, tokens }: MyTokensProps) {
  return tokens.length === 0 ? null : (
    <p className="faint">
      <Link to="usage?by=token&since_hours=720">{`${costShown(cost)} in the last 30 days`}</Link>
    </p>
  );
}

const COLUMNS = [
  ...tableColumns(TOKEN_COLUMNS),
  {
    title: 'Action',
    show: ({ id, is_active: isActive }: WireToken) =>
      isActive ? (
        <ConfirmLink to={`tokens/${id}/revoke`} isDangerous>
          Revoke…
        </ConfirmLink>
      ) : null,
  },
];

const Issued = ({ tokens }: Pick<MyTokensProps, 'tokens'>) => (
  <Table id="tokens" label="Tokens issued by me" noun="token" rows={tokens} keyOf={({ id }) => id} columns={COLUMNS} />
);

// ---- routes

const TOKENS_SHOWN = '20';

export async function myTokens(
  { client, user }: PageRequest,
  given: MyTokenForm = EMPTY_FORM,
  refused: string | null = null,
): Promise<PageResponse> {
  const [projects, tokens, active, usage] = await Promise.all([
    allProjects(client, { is_active: 'true' }),
    client.tokens({ sort: 'live', limit: TOKENS_SHOWN }),
    client.tokens({ state: 'active', limit: '1' }),
    client.usage({ by: 'project', since: '30d' }),
  ]);
  const body = (
    <MyTokensPage
      projects={projects}
      ceilings={user.ceilings}
      tokens={tokens.items}
      hasMore={tokens.next !== null}
      active={active.total ?? 0}
      cost={sumOfCosts(usage)}
      given={given}
      refused={refused}
    />
  );
  return { title: 'My tokens', section: 'overview', isLive: true, body, ...statusOf(refused) };
}

function hoursIn({ hours }: MyTokenForm): number {
  if (/^[1-9]\d{0,3}$/.test(hours)) return Number(hours);
  throw invalidRequest('choose how long the token is valid');
}

function issue(request: PageRequest): Promise<PageResponse> {
  const given = formValues(request.form, EMPTY_FORM);
  return changed(
    async () => {
      const { ceilings } = request.user;
      const { allow, limits, budget } = policiesWithin(ceilings ?? {});
      return issued(request, {
        project_id: given.project_id,
        ...(given.name !== '' && { name: given.name }),
        duration_hours: hoursIn(given),
        ...(ceilings?.requests !== undefined && { max_requests: ceilings.requests }),
        ...(allow && { allow }),
        ...(limits && { limits }),
        ...(budget && { budget }),
      });
    },
    (refused) => myTokens(request, given, refused),
  );
}

export const myTokenRoutes = [post('/', 'issue tokens', issue)];
