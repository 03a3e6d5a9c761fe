/** The provider of a project and its key: their fields, and the forms of a new project, another provider and another key. */
import type { WireProject } from '../../daemon/api/contract.js';
import {
  authTitle,
  DEFAULT_PROVIDER,
  FORM_PROVIDERS,
  type FormProvider,
  formProviderOf,
  missingUsageTitle,
  OTHER_PROVIDER,
  type ProjectUpstream,
  providerTitle,
  upstreamFrom,
  UpstreamIncomplete,
  WITH_BASE_URL,
} from '../../daemon/api/providers.js';
import { MISSING_USAGES, type MissingUsage, UPSTREAM_AUTHS } from '../../daemon/api/vocabulary.js';
import {
  choiceField,
  dialogOf,
  isOn,
  note,
  type Problem,
  reasonField,
  textField,
  toggleField,
  valueOf,
} from './dialog.js';
import type { ChangeRequest, NewKey } from './exchange.js';
import type { Dialog, Field } from './layers.js';
import { lineOf } from './line.js';
import { newPolicyFields } from './policy-forms.js';
import { Secret } from './secret.js';
import { type State, type Transition, withLayer } from './state.js';

/** @param before the project's provider; undefined for a new project. */
function providerFields(before?: ProjectUpstream): Field[] {
  const chosen = before ? formProviderOf(before) : DEFAULT_PROVIDER;
  const baseUrl = WITH_BASE_URL.includes(chosen) ? (before?.upstream_base_url ?? '') : '';
  const providers = FORM_PROVIDERS.map(([value, label]) => ({ value, label }));
  const headers = UPSTREAM_AUTHS.map((value) => ({ value, label: authTitle(value) }));
  return [
    choiceField('Provider', providers, chosen),
    textField('Base URL', {
      line: lineOf(baseUrl),
      hint: 'https://…',
      width: 40,
      onlyIf: { field: 'Provider', among: WITH_BASE_URL },
    }),
    {
      ...choiceField('Key sent as', headers, before?.upstream_auth),
      onlyIf: { field: 'Provider', among: [OTHER_PROVIDER] },
    },
  ];
}

/** @param before the project; undefined for a new one. */
const missingUsageField = (before?: WireProject): Field =>
  choiceField(
    'Missing usage',
    MISSING_USAGES.map((value) => ({ value, label: missingUsageTitle(value) })),
    before?.missing_usage,
  );

export const setProviderForm = (project: WireProject): Dialog =>
  dialogOf({
    purpose: { for: 'set-provider', project },
    title: `Change the provider of project ${project.name}`,
    action: 'Change',
    notes: [
      note(
        `Now: ${whereNow(project)}. A stored key is only sent to the host that it was given for: a provider on another host needs its key.`,
      ),
    ],
    fields: [
      ...providerFields(project),
      missingUsageField(project),
      keyField('empty: keep the key, on the same host'),
      reasonField(),
      checkField(),
    ],
  });

const whereNow = (project: WireProject) =>
  project.upstream_base_url === null
    ? 'the default of the daemon'
    : `${providerTitle(project)}, ${project.upstream_base_url}`;

/** The provider that the form describes, or what is missing. */
export function newUpstream(dialog: Dialog): Partial<ProjectUpstream> | Problem {
  const provider = valueOf(dialog, 'Provider') as FormProvider;
  const baseUrl = valueOf(dialog, 'Base URL').trim();
  const auth = UPSTREAM_AUTHS.find((it) => it === valueOf(dialog, 'Key sent as'));
  if (provider === DEFAULT_PROVIDER) return {};
  try {
    return upstreamFrom({
      provider,
      baseUrl: WITH_BASE_URL.includes(provider) && baseUrl !== '' ? baseUrl : undefined,
      auth: provider === OTHER_PROVIDER ? auth : undefined,
    });
  } catch (error) {
    if (!(error instanceof UpstreamIncomplete)) throw error;
    return { field: 'Base URL', words: error.message };
  }
}

/** What the form says of the usage that chat streams do not report, if it differs. */
export function missingUsageIn(dialog: Dialog, before: MissingUsage = 'off'): { missing_usage?: MissingUsage } {
  const chosen = MISSING_USAGES.find((it) => it === valueOf(dialog, 'Missing usage'));
  return chosen === undefined || chosen === before ? {} : { missing_usage: chosen };
}

/** The change of a project's provider that the form describes. The daemon refuses another host without its key. */
export function providerChange(dialog: Dialog, project: WireProject): ChangeRequest | Problem {
  const given = newUpstream(dialog);
  if ('words' in given) return given;
  const isDefault = valueOf(dialog, 'Provider') === DEFAULT_PROVIDER;
  // The daemon's provider can have another header, which only the command line sets.
  const after = isDefault && project.upstream_base_url !== null ? upstreamFrom({ provider: DEFAULT_PROVIDER }) : given;
  const body = {
    ...(after.upstream_base_url !== undefined &&
      after.upstream_base_url !== project.upstream_base_url && { upstream_base_url: after.upstream_base_url }),
    ...(after.upstream_auth !== undefined &&
      after.upstream_auth !== project.upstream_auth && { upstream_auth: after.upstream_auth }),
    ...missingUsageIn(dialog, project.missing_usage),
  };
  if (Object.keys(body).length === 0)
    return { field: 'Provider', words: 'This is the provider of the project already' };
  if (valueOf(dialog, "Provider's key").trim() === '') return { what: 'update-project', project, body };
  const key = keyIn(dialog);
  return 'words' in key ? key : { what: 'update-project', project, body, ...key };
}

/** The key becomes part of a header line. */
const KEY = /^[\x21-\x7e]{1,512}$/;

const keyField = (hint = 'never shown again') => textField("Provider's key", { isSecret: true, hint, width: 40 });

/** On, unless the operator turns it off. */
const checkField = () => toggleField('Check', true, 'with the provider, before the key is stored');

export function keyIn(dialog: Dialog): { key: NewKey } | Problem {
  const key = valueOf(dialog, "Provider's key").trim();
  if (key === '') return { field: "Provider's key", words: "Enter the provider's key" };
  return KEY.test(key)
    ? { key: { secret: new Secret(key), isToCheck: isOn(dialog, 'Check') } }
    : { field: "Provider's key", words: 'A key must be 1 to 512 visible ASCII characters without spaces' };
}

export const newProjectForm = (): Dialog =>
  dialogOf({
    purpose: { for: 'new-project' },
    title: 'New project',
    action: 'Create',
    fields: [
      textField('Name', { width: 40 }),
      ...providerFields(),
      missingUsageField(),
      keyField(),
      checkField(),
      ...newPolicyFields(' of all its tokens together'),
    ],
  });

export const setKeyForm = (project: WireProject): Dialog =>
  dialogOf({
    purpose: { for: 'set-key', project },
    title: `Change the key of project ${project.name}`,
    action: 'Set key',
    notes: [
      note(
        `${endOf(project)}Requests in flight keep the old one. The project's cached responses are removed. This cannot be undone.`,
      ),
    ],
    fields: [keyField(), reasonField(), checkField()],
  });

/** The hint of a short key is empty. */
const endOf = ({ api_key_hint: hint }: WireProject) => (hint === '' ? '' : `The current key ends in …${hint}. `);

/** Whether the form of the change stays open until the provider has responded to the check of the key. */
export const awaitsCheck = (change: ChangeRequest): boolean => 'key' in change && change.key.isToCheck;

/** Stops the check. The form stays open, with what was entered. */
export function checkCancelled(state: State, dialog: Dialog): Transition {
  const { awaited } = dialog;
  const pendingChanges = state.pendingChanges.filter(({ change }) => change !== awaited);
  // The daemon may have received the provider's response just before.
  const problem = 'Cancelled. Nothing was stored, unless the provider had just accepted the key';
  return [withLayer({ ...state, pendingChanges }, { ...dialog, awaited: null, problem }), { do: 'stop' }];
}
