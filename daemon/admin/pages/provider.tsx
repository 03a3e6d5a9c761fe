/** The provider of a project: how pages show it, the fields of forms, and the page that changes it. */
import { ApiError } from '../../api/client.js';
import type { ProjectPatch, WireProject, WireProjectChanged } from '../../api/contract.js';
import {
  authTitle,
  DEFAULT_PROVIDER,
  FORM_PROVIDERS,
  formProviderOf,
  missingUsageTitle,
  OTHER_PROVIDER,
  type ProjectUpstream,
  providerTitle,
  upstreamFrom,
  UpstreamIncomplete,
  WITH_BASE_URL,
} from '../../api/providers.js';
import { MISSING_USAGES, type MissingUsage, UPSTREAM_AUTHS } from '../../api/vocabulary.js';
import { formValues, invalidRequest, type PageRequest } from '../page-request.js';
import { InputField, KeyFields, SelectField } from '../parts/fields.js';
import { formRoutes } from './form.js';

export const EMPTY_PROVIDER_FORM = { provider: DEFAULT_PROVIDER, base_url: '', auth: 'bearer', missing_usage: 'off' };

/** Values of the form, by field name. */
export type ProviderFormValues = typeof EMPTY_PROVIDER_FORM;

/** The form for the current provider of a project. */
function providerFormOf(project: WireProject): ProviderFormValues {
  const provider = formProviderOf(project);
  const baseUrl = WITH_BASE_URL.includes(provider) ? project.upstream_base_url : null;
  const { upstream_auth: auth, missing_usage: missingUsage } = project;
  return { provider, base_url: baseUrl ?? '', auth, missing_usage: missingUsage };
}

const AUTHS = UPSTREAM_AUTHS.map((auth) => [auth, authTitle(auth)] as const);
const MISSING = MISSING_USAGES.map((value) => [value, missingUsageTitle(value)] as const);

export function ProviderFields({ given }: { given: ProviderFormValues }) {
  return (
    <>
      <SelectField name="provider" label="Provider" choices={FORM_PROVIDERS} chosen={given.provider} />
      <InputField
        name="base_url"
        label="Base URL"
        hint="Required for Azure OpenAI and for Other. Leave empty for the usual one of another provider."
        type="url"
        maxLength={500}
        spellCheck={false}
        placeholder="https://"
        defaultValue={given.base_url}
      />
      <SelectField name="auth" label="Key sent as" hint="Used for Other only." choices={AUTHS} chosen={given.auth} />
      <SelectField
        name="missing_usage"
        label="Missing usage"
        hint="For chat streams that do not ask for their usage. With inject, the client does not see it."
        choices={MISSING}
        chosen={given.missing_usage}
      />
    </>
  );
}

/** Name and base URL. */
export function ProviderShown({ project }: { project: WireProject }) {
  const { upstream_base_url: baseUrl } = project;
  if (baseUrl === null) return <>default of the daemon</>;
  return (
    <>
      {providerTitle(project)} <code>{baseUrl}</code>
    </>
  );
}

/** @returns the form as it was sent, or as it begins. */
export function providerForm({ form }: PageRequest, beginning: ProviderFormValues): ProviderFormValues {
  return form.has('provider') ? formValues(form, beginning) : beginning;
}

/** The missing usage of the form, if it has one. */
export function missingUsageOf(given: ProviderFormValues): { missing_usage?: MissingUsage } {
  const chosen = MISSING_USAGES.find((it) => it === given.missing_usage);
  return chosen === undefined ? {} : { missing_usage: chosen };
}

/** The provider of the form. @throws {ApiError} 400 if the fields do not fit together. */
export function upstreamOf(given: ProviderFormValues): Partial<ProjectUpstream> {
  const baseUrl = given.base_url;
  const [provider] = FORM_PROVIDERS.find(([name]) => name === given.provider) ?? [];
  const auth = UPSTREAM_AUTHS.find((it) => it === given.auth);
  if (provider === undefined || auth === undefined) throw invalidRequest('choose a provider');
  if (provider === DEFAULT_PROVIDER && baseUrl !== '') {
    throw invalidRequest('a base URL needs a provider: choose one, or Other');
  }
  try {
    return upstreamFrom({
      provider,
      baseUrl: baseUrl === '' ? undefined : baseUrl,
      auth: provider === OTHER_PROVIDER ? auth : undefined,
    });
  } catch (error) {
    if (!(error instanceof UpstreamIncomplete)) throw error;
    throw invalidRequest(error.message);
  }
}

/** The form has the checkbox selected, until it is sent without. */
export const isKeyChecked = ({ form }: PageRequest) => !form.has('api_key') || form.get('check_key') === 'yes';

export type KeyChange = (fields: { api_key: string; check_key?: true }) => Promise<WireProjectChanged>;

/** Sends a change with the key of the form. @returns the end of the query of the next page. @throws {ApiError} 400 if the check failed: nothing was changed. */
export async function sendKey(request: PageRequest, send: KeyChange): Promise<{ id: string; check: string }> {
  const key = { api_key: request.form.get('api_key') ?? '' };
  if (!isKeyChecked(request)) return { id: (await send(key).catch(asFormError)).id, check: '' };
  const { id, key_check: result } = await send({ ...key, check_key: true }).catch(asFormError);
  return { id, check: result === undefined ? '' : `&check=${result}` };
}

/** Turns a failed check of a key into an error of the form. */
function asFormError(error: unknown): never {
  if (!(error instanceof ApiError)) throw error;
  const { code, message } = error;
  if (code === 'key_required') throw invalidRequest('this provider is on another host: enter its key', code);
  if (code === 'key_refused') throw invalidRequest(message, code);
  // The daemon names the field of the API.
  if (code === 'key_not_checked')
    throw invalidRequest(message.replace(/omit check_key$/, 'clear the checkbox below its field'), code);
  throw error;
}

// ---- routes

/** The daemon's provider can have another header, which only the command line and the API set: it stays. */
async function providerChange(request: PageRequest, id: string): Promise<ProjectPatch> {
  const given = providerForm(request, EMPTY_PROVIDER_FORM);
  const upstream = upstreamOf(given);
  const before = await request.client.project(id);
  const isDefault = upstream.upstream_base_url === null && before.upstream_base_url === null;
  return { ...(isDefault ? { upstream_base_url: null } : upstream), ...missingUsageOf(given) };
}

async function changeProvider(request: PageRequest): Promise<string> {
  const { id, changeClient: client } = request;
  const hasKey = (request.form.get('api_key') ?? '') !== '';
  const changes = await providerChange(request, id);
  const { check } = hasKey
    ? await sendKey(request, (key) => client.updateProject(id, { ...changes, ...key }))
    : { check: await client.updateProject(id, changes).then(() => '', asFormError) };
  return `projects/${id}?done=provider${check}`;
}

export const providerRoutes = formRoutes({
  section: 'projects',
  path: '/projects/:id/provider',
  permission: 'change projects',
  title: 'Change provider',
  verb: 'Change provider',
  show: async (request) => {
    const project = await request.client.project(request.id);
    return {
      above: { to: `projects/${project.id}`, name: project.name },
      hint: (
        <p className="hint">
          Now: <ProviderShown project={project} />. A stored key is only sent to the host that it was given for, so a
          provider on another host needs its key.
        </p>
      ),
      fields: (
        <>
          <ProviderFields given={providerForm(request, providerFormOf(project))} />
          <KeyFields
            isChecked={isKeyChecked(request)}
            isOptional
            hint="The API key of the new provider. Leave empty to keep the current key."
          />
        </>
      ),
    };
  },
  run: changeProvider,
});
