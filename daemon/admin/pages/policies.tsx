/** What tokens and projects may use, and how fast: the fields of forms, and the pages that change it. */
import {
  isListField,
  MAX_LIST_LENGTH,
  POLICY_FIELDS,
  policiesOf,
  policyChanges,
  policyFields,
  type PolicyTexts,
  policyTexts,
  USED_SINCE,
  usedModels,
} from '../../../console/columns/policy-fields.js';
import { shortId } from '../../../console/columns/cell-text.js';
import { ApiError, type ChangeOptions, etagOf, type ManagementClient } from '../../api/client.js';
import type { WireProject, WireToken } from '../../api/contract.js';
import { MAX_LIMIT, NO_POLICIES, type Policies } from '../../api/vocabulary.js';
import { changed, get, invalidRequest, type PageRequest, type PageResponse, post, statusOf } from '../page-request.js';
import { ErrorNotice } from '../parts/common.js';
import { Heading } from '../parts/document.js';
import { FormButtons, InputField, ReasonField } from '../parts/fields.js';
import { capitalized, escapeBidi, Name } from '../parts/formats.js';
import { ChangeForm, Link } from '../parts/frame.js';

export const EMPTY_POLICY_FORM = policyTexts(NO_POLICIES);

/** Models to offer. */
export interface UsedModels {
  models: readonly string[];
  /** The project that has used them; null: all projects. */
  by: string | null;
}

/** @param project null: all projects. */
export async function usedModelsOf(
  client: ManagementClient,
  project: Pick<WireProject, 'id' | 'name'> | null,
): Promise<UsedModels> {
  const query = { by: 'model', since: USED_SINCE, ...(project && { project_id: project.id }) };
  return { models: usedModels(await client.usage(query)), by: project?.name ?? null };
}

/** A checkbox for each model that was used lately. Other names and patterns are in the field for models. */
function PolicyFields({ given, used }: { given: PolicyTexts; used: UsedModels }) {
  const names = listOf(given.models);
  const others = names.filter((name) => !used.models.includes(name));
  return (
    <>
      {used.models.length === 0 ? null : (
        <fieldset className="choices">
          <legend>Models that {used.by === null ? 'were' : escapeBidi(used.by)} used in the last 30 days</legend>
          {used.models.map((model) => (
            <label className="checkbox" key={model}>
              <input type="checkbox" name={USED_MODEL} value={model} defaultChecked={names.includes(model)} />
              {escapeBidi(model)}
            </label>
          ))}
        </fieldset>
      )}
      {policyFields.map((field) => {
        const { label, hint } = POLICY_FIELDS[field];
        const isOther = field === 'models' && used.models.length > 0;
        const common = { name: field, label: isOther ? 'Other models' : label, hint: `${capitalized(hint)}.` };
        return isListField(field) ? (
          <InputField
            key={field}
            {...common}
            maxLength={MAX_LIST_LENGTH}
            spellCheck={false}
            defaultValue={field === 'models' ? others.join(', ') : given[field]}
          />
        ) : (
          <InputField key={field} {...common} type="number" min="1" max={MAX_LIMIT} defaultValue={given[field]} />
        );
      })}
    </>
  );
}

/** The fields in the form of a new token or project: closed while they are empty, so that the form stays short. */
export function NewPolicyFields({ hint, ...fields }: { given: PolicyTexts; used: UsedModels; hint?: string }) {
  return (
    <details open={policyFields.some((field) => fields.given[field] !== '')}>
      <summary>Models, routes and limits</summary>
      {hint === undefined ? null : <p className="hint">{hint}</p>}
      <PolicyFields {...fields} />
    </details>
  );
}

const USED_MODEL = 'used_model';

const listOf = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');

/** The fields as they were sent. */
export function policyForm(form: URLSearchParams): PolicyTexts {
  const given = (name: string) => (form.get(name) ?? '').trim();
  const texts = Object.fromEntries(policyFields.map((field) => [field, given(field)])) as PolicyTexts;
  const models = new Set([...form.getAll(USED_MODEL), ...listOf(texts.models)]);
  return { ...texts, models: [...models].join(', ') };
}

/** @throws {ApiError} 400 if a field is wrong. */
export function policiesIn(texts: PolicyTexts): Policies {
  const policies = policiesOf(texts);
  if ('words' in policies) throw invalidRequest(policies.words);
  return policies;
}

/** What the fields of a project mean. */
export const OF_PROJECT = 'What each of its tokens may use, and how fast all of them together may be used.';

// ---- pages

interface RestrictProps {
  /** Path of the token or project. */
  to: string;
  title: string;
  of: WireToken | WireProject;
  given: PolicyTexts;
  used: UsedModels;
  reason: string;
  refused: string | null;
  message: string;
}

function RestrictPage({ to, title, of, given, used, reason, refused, message }: RestrictProps) {
  return (
    <div className="narrow">
      <Heading title="Change limits" path={<Link to={to}>{<Name>{title}</Name>}</Link>} />
      <ErrorNotice why={refused} />
      <p className="hint">{message}</p>
      <ChangeForm to={`${to}/restrict`}>
        <input type="hidden" name="version" value={etagOf(of) ?? ''} />
        <PolicyFields given={given} used={used} />
        <ReasonField reason={reason} />
        <FormButtons cancel={to} verb="Change" />
      </ChangeForm>
    </div>
  );
}

/** A kind of what can be restricted. */
interface Restricted<T extends WireToken | WireProject> {
  section: 'tokens' | 'projects';
  message: string;
  read: (client: ManagementClient, id: string) => Promise<T>;
  titleOf: (of: T) => string;
  projectOf: (of: T) => Pick<WireProject, 'id' | 'name'>;
  update: (client: ManagementClient, id: string, body: Partial<Policies>, options: ChangeOptions) => Promise<unknown>;
}

function restrictRoutes<T extends WireToken | WireProject>(kind: Restricted<T>) {
  const { section } = kind;

  async function ask(request: PageRequest, refused: string | null = null): Promise<PageResponse> {
    const { client, form, id } = request;
    const of = await kind.read(client, id);
    const body = (
      <RestrictPage
        to={`${section}/${of.id}`}
        title={kind.titleOf(of)}
        of={of}
        given={form.has('version') ? policyForm(form) : policyTexts(of)}
        used={await usedModelsOf(client, kind.projectOf(of))}
        reason={form.get('reason') ?? ''}
        refused={refused}
        message={kind.message}
      />
    );
    return { title: 'Change limits', section, body, ...statusOf(refused) };
  }

  const change = (request: PageRequest): Promise<PageResponse> =>
    changed(
      async () => {
        const { id, client, changeClient, form } = request;
        // A form must not replace what somebody else has set since it was loaded.
        const ifMatch = form.get('version') ?? '';
        if (!ETAG.test(ifMatch)) throw changedSince();
        const body = policyChanges(await kind.read(client, id), policyForm(form));
        if ('words' in body) throw invalidRequest(body.words);
        if (Object.keys(body).length === 0) throw invalidRequest('nothing is changed');
        await kind.update(changeClient, id, body, { ifMatch }).catch(asFormError);
        return `${section}/${id}?done=restricted`;
      },
      (refused) => ask(request, refused),
    );

  return [get(`/${section}/:id/restrict`, (request) => ask(request)), post(`/${section}/:id/restrict`, change)];
}

const ETAG = /^"[\x21\x23-\x7e]{1,200}"$/;

const changedSince = () =>
  invalidRequest(
    'somebody has changed it since this form was loaded: compare it with the page of it, and send it again',
  );

function asFormError(error: unknown): never {
  throw error instanceof ApiError && error.code === 'precondition_failed' ? changedSince() : error;
}

export const policyRoutes = [
  ...restrictRoutes<WireToken>({
    section: 'tokens',
    message: 'What the token may use, and how fast. It holds from the next request on. Requests in flight go on.',
    read: (client, id) => client.token(id),
    titleOf: ({ id, name }) => name ?? `Token ${shortId(id)}`,
    projectOf: ({ project_id: id, project_name: name }) => ({ id, name }),
    update: (client, id, body, options) => client.updateToken(id, body, options),
  }),
  ...restrictRoutes<WireProject>({
    section: 'projects',
    message: `${OF_PROJECT} It holds from the next request on. Requests in flight go on.`,
    read: (client, id) => client.project(id),
    titleOf: ({ name }) => name,
    projectOf: (project) => project,
    update: (client, id, body, options) => client.updateProject(id, body, options),
  }),
];
