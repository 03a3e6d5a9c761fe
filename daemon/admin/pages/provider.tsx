/** The provider of a project: how pages show it, the fields of forms, and the page that changes it. */
import type { WireProject } from '../../api/contract.js';
import {
  authTitle,
  DEFAULT_PROVIDER,
  FORM_PROVIDERS,
  formProviderOf,
  missingUsageTitle,
  providerTitle,
  WITH_BASE_URL,
} from '../../api/providers.js';
import { MISSING_USAGES, UPSTREAM_AUTHS } from '../../api/vocabulary.js';
import { Heading } from './document.js';
import { FormButtons, InputField, KeyFields, ReasonField, SelectField } from './fields.js';
import { Name } from './formats.js';
import { ChangeForm, Link } from './frame.js';
import { ErrorNotice } from './parts.js';

/** Values of the form, by field name. */
export interface ProviderFormValues {
  provider: string;
  base_url: string;
  auth: string;
  missing_usage: string;
}

export const EMPTY_PROVIDER_FORM: ProviderFormValues = {
  provider: DEFAULT_PROVIDER,
  base_url: '',
  auth: 'bearer',
  missing_usage: 'off',
};

/** The form for the current provider of a project. */
export function providerFormOf(project: WireProject): ProviderFormValues {
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

export interface ChangeProviderProps {
  project: WireProject;
  given: ProviderFormValues;
  reason: string;
  /** Whether the checkbox for the check of the key is selected. */
  isKeyChecked: boolean;
  refused: string | null;
}

export function changeProviderPage({ project, given, reason, isKeyChecked, refused }: ChangeProviderProps) {
  const to = `projects/${project.id}`;
  return (
    <div className="narrow">
      <Heading title="Change provider" path={<Link to={to}>{<Name>{project.name}</Name>}</Link>} />
      <ErrorNotice why={refused} />
      <p className="hint">
        Now: <ProviderShown project={project} />. A stored key is only sent to the host that it was given for, so a
        provider on another host needs its key.
      </p>
      <ChangeForm to={`${to}/provider`}>
        <ProviderFields given={given} />
        <KeyFields
          isChecked={isKeyChecked}
          isOptional
          hint="The API key of the new provider. Leave empty to keep the current key."
        />
        <ReasonField reason={reason} />
        <FormButtons cancel={to} verb="Change provider" />
      </ChangeForm>
    </div>
  );
}
