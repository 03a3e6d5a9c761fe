/** A trust, and its changes. */
import { matchShown } from '../../../console/columns/access.js';
import { allowShown, budgetShown, limitsShown } from '../../../console/columns/policies.js';
import type { TrustPatch, WireTrust } from '../../api/contract.js';
import { counted, exact } from '../../api/formats.js';
import {
  changed,
  doneMessage,
  get,
  invalidRequest,
  type PageRequest,
  type PageResponse,
  post,
  statusOf,
} from '../page-request.js';
import { CommandLine, ErrorNotice, fact, Facts, SuccessNotice } from '../parts/common.js';
import { Heading } from '../parts/document.js';
import { FormButtons, ReasonField } from '../parts/fields.js';
import { escapeBidi, Name, ProjectLink, StateMark, Time } from '../parts/formats.js';
import { ChangeForm, ConfirmLink, Link } from '../parts/frame.js';
import { confirmedChange, confirmPage } from './confirm.js';
import { asChangedSince, versionIn, VersionField } from './policies.js';
import { TrustFields, trustForm, type TrustForm, trustFormOf, trustIn } from './trusts.js';

function TrustPage({ trust, done }: { trust: WireTrust; done: string | null }) {
  const to = `trusts/${trust.id}`;
  const { max_requests: cap, max_active: active, per_hour: hourly } = trust;
  const most = (count: number | null) => (count === null ? 'no maximum' : exact(count));
  return (
    <>
      <Heading
        title={<Name>{matchShown(trust.match)}</Name>}
        path={<Link to="trusts">Trusts</Link>}
        actions={
          <>
            <Link to={`${to}/change`} className="button">
              Change
            </Link>{' '}
            {trust.is_active ? (
              <ConfirmLink to={`${to}/deactivate`} isDangerous>
                Deactivate…
              </ConfirmLink>
            ) : (
              <ConfirmLink to={`${to}/activate`}>Activate…</ConfirmLink>
            )}{' '}
            <ConfirmLink to={`${to}/delete`} isDangerous>
              Delete…
            </ConfirmLink>
          </>
        }
      />
      <SuccessNotice what={done} />
      <Facts
        id="facts"
        facts={[
          { name: 'State', value: <StateMark state={trust.is_active ? 'active' : 'inactive'} /> },
          { name: 'Issuer', value: <code>{escapeBidi(trust.issuer)}</code> },
          { name: 'Audience', value: <code>{escapeBidi(trust.audience)}</code> },
          {
            name: 'Claims',
            value: Object.entries(trust.match).map(([claim, value]) => (
              <span className="line" key={claim}>
                <code>{escapeBidi(`${claim}=${value}`)}</code>
              </span>
            )),
          },
          fact('Public keys', trust.jwks_file, (file) => `from the file ${file}`),
          { name: 'Project', value: <ProjectLink project={{ id: trust.project_id, name: trust.project_name }} /> },
          { name: 'Name of the tokens', value: <Name>{trust.name}</Name> },
          { name: 'Lifetime', value: counted(trust.duration_minutes, 'minute') },
          { name: 'Requests', value: cap === 0 ? 'unlimited' : `up to ${exact(cap)}` },
          { name: 'Allows', value: escapeBidi(allowShown(trust.allow)) },
          { name: 'Limits', value: limitsShown(trust.limits) },
          { name: 'Budget', value: budgetShown(trust.budget) },
          { name: 'Active at the same time', value: most(active) },
          { name: 'In an hour', value: most(hourly) },
          { name: 'Created', value: <Time at={trust.created_at} isFull /> },
          { name: 'Changed', value: <Time at={trust.updated_at} isFull /> },
          { name: 'ID', value: <code className="id">{trust.id}</code> },
        ]}
      />
      <CommandLine line={`llmp trust show ${trust.id}`} />
    </>
  );
}

interface ChangeProps {
  trust: WireTrust;
  given: TrustForm;
  reason: string;
  refused: string | null;
}

function ChangePage({ trust, given, reason, refused }: ChangeProps) {
  const to = `trusts/${trust.id}`;
  return (
    <div className="narrow">
      <Heading title="Change trust" path={<Link to={to}>{<Name>{matchShown(trust.match)}</Name>}</Link>} />
      <ErrorNotice why={refused} />
      <p className="hint">It holds for the next exchange. Tokens that exist keep their terms.</p>
      <ChangeForm to={`${to}/change`}>
        <VersionField of={trust} />
        <TrustFields given={given} />
        <ReasonField reason={reason} />
        <FormButtons cancel={to} verb="Change" />
      </ChangeForm>
    </div>
  );
}

// ---- routes

const DONE = {
  created: 'Trust created. From now on, JWTs that match are exchanged.',
  changed: 'Trust changed. It holds for the next exchange.',
  deactivated: 'Trust deactivated. No JWT is exchanged any more.',
  activated: 'Trust activated. JWTs that match are exchanged again.',
};

async function show(request: PageRequest): Promise<PageResponse> {
  const trust = await request.client.trust(request.id);
  const body = <TrustPage trust={trust} done={doneMessage(request, DONE)} />;
  return { title: escapeBidi(matchShown(trust.match)), section: 'trusts', isLive: true, body };
}

async function ask({ client, id, form }: PageRequest, refused: string | null = null): Promise<PageResponse> {
  const trust = await client.trust(id);
  const given = form.has('version') ? trustForm(form) : trustFormOf(trust);
  const body = <ChangePage trust={trust} given={given} reason={form.get('reason') ?? ''} refused={refused} />;
  return { title: 'Change trust', section: 'trusts', body, ...statusOf(refused) };
}

/** What the form changes. An empty name stays as it is. */
function changesIn(trust: WireTrust, given: TrustForm): TrustPatch {
  const before = trustIn(trustFormOf(trust));
  const isOther = ([name, value]: [string, unknown]) =>
    JSON.stringify(value) !== JSON.stringify(before[name as keyof TrustPatch]);
  return Object.fromEntries(Object.entries(trustIn(given)).filter(isOther));
}

function change(request: PageRequest): Promise<PageResponse> {
  const { client, changeClient, id, form } = request;
  return changed(
    async () => {
      const ifMatch = versionIn(form);
      const changes = changesIn(await client.trust(id), trustForm(form));
      if (Object.keys(changes).length === 0) throw invalidRequest('nothing is changed');
      await changeClient.updateTrust(id, changes, { ifMatch }).catch(asChangedSince);
      return `trusts/${id}?done=changed`;
    },
    (refused) => ask(request, refused),
  );
}

const setActive = (what: 'activate' | 'deactivate', message: string) =>
  confirmedChange({
    section: 'trusts',
    what,
    permission: 'manage access',
    asking: async ({ client, id }) => {
      const isActivated = what === 'activate';
      const verb = isActivated ? 'Activate' : 'Deactivate';
      const title = `${verb} ${escapeBidi(matchShown((await client.trust(id)).match))}?`;
      return { title, message, verb, isDangerous: !isActivated };
    },
    run: async ({ changeClient, id }) => {
      await changeClient.updateTrust(id, { is_active: what === 'activate' });
      return `done=${what}d`;
    },
  });

async function askToDelete(request: PageRequest, refused: string | null = null): Promise<PageResponse> {
  const { match } = await request.client.trust(request.id);
  return confirmPage(request, {
    title: `Delete ${escapeBidi(matchShown(match))}?`,
    section: 'trusts',
    message: 'No JWT is exchanged by it any more. Tokens that exist stay as they are.',
    verb: 'Delete',
    isDangerous: true,
    to: `trusts/${request.id}/delete`,
    back: `trusts/${request.id}`,
    refused,
  });
}

const remove = (request: PageRequest): Promise<PageResponse> =>
  changed(
    async () => {
      await request.changeClient.deleteTrust(request.id);
      return 'trusts?done=deleted';
    },
    (refused) => askToDelete(request, refused),
  );

export const trustRoutes = [
  get('/trusts/:id', 'manage access', show),
  get('/trusts/:id/change', 'manage access', (request) => ask(request)),
  post('/trusts/:id/change', 'manage access', change),
  ...setActive('activate', 'JWTs that match are exchanged again.'),
  ...setActive('deactivate', 'No JWT is exchanged any more. Tokens that exist stay as they are.'),
  get('/trusts/:id/delete', 'manage access', (request) => askToDelete(request)),
  post('/trusts/:id/delete', 'manage access', remove),
];
