/** What a token or a project may use, and how fast: the fields in forms, and the forms that change it. */
import {
  isListField,
  POLICY_FIELDS,
  policiesOf,
  policyChanges,
  type PolicyField,
  policyFields,
  type PolicyProblem,
  type PolicyTexts,
  policyTexts,
} from '../../console/columns/policy-fields.js';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { NO_POLICIES, type Policies } from '../../daemon/api/vocabulary.js';
import { nameOf } from './changes.js';
import { dialogOf, isOn, note, type Problem, reasonField, textField, toggleField, valueOf } from './dialog.js';
import type { ChangeRequest } from './exchange.js';
import type { Dialog, Field } from './layers.js';
import { lineOf } from './line.js';
import { layer, loads, type State, type Transition, withLayer } from './state.js';

const fieldsOf = (policies: Policies): Field[] => {
  const texts = policyTexts(policies);
  return policyFields.map((field) => {
    const { label, hint } = POLICY_FIELDS[field];
    return textField(label, { line: lineOf(texts[field]), hint, width: isListField(field) ? 40 : 12 });
  });
};

/** The fields in the form of a new token or project. They are shown on request, so that the form stays short. */
export const newPolicyFields = (ofWhat = ''): Field[] => [
  toggleField('Restrict', false, `models, routes and rates${ofWhat}`),
  ...fieldsOf(NO_POLICIES).map((field): Field => ({ ...field, onlyIf: { field: 'Restrict', among: ['yes'] } })),
];

const textsIn = (dialog: Dialog): PolicyTexts =>
  Object.fromEntries(policyFields.map((field) => [field, valueOf(dialog, POLICY_FIELDS[field].label)])) as Record<
    PolicyField,
    string
  >;

/** The policies of a new token or project; nothing for those that it does not have. */
export function newPolicies(dialog: Dialog): Partial<Policies> | Problem {
  if (!isOn(dialog, 'Restrict')) return {};
  const given = policiesOf(textsIn(dialog));
  if ('words' in given) return problemOf(given);
  const { allow, limits } = given;
  return { ...(allow && { allow }), ...(limits && { limits }) };
}

const problemOf = ({ field, words }: PolicyProblem): Problem => ({ field: POLICY_FIELDS[field].label, words });

const restrictForm = (purpose: Dialog['purpose'], of: WireToken | WireProject, whose: string): Dialog =>
  dialogOf({
    purpose,
    title: `What ${whose} may use`,
    action: 'Change',
    notes: [note('It holds from the next request on. Requests in flight go on.')],
    fields: [...fieldsOf(of), reasonField()],
  });

export const restrictTokenForm = (token: WireToken): Dialog =>
  restrictForm({ for: 'restrict-token', token }, token, `token ${nameOf(token)}`);

export const restrictProjectForm = (project: WireProject): Dialog =>
  restrictForm({ for: 'restrict-project', project }, project, `all tokens of ${project.name} together`);

/** The change that the form describes, or what is wrong with it. */
export function restriction(
  dialog: Dialog,
  purpose: Extract<Dialog['purpose'], { for: 'restrict-token' | 'restrict-project' }>,
): ChangeRequest | Problem {
  const of = purpose.for === 'restrict-token' ? purpose.token : purpose.project;
  const body = policyChanges(of, textsIn(dialog));
  if ('words' in body) return problemOf(body);
  if (Object.keys(body).length === 0) return { field: null, words: 'Nothing is changed' };
  return purpose.for === 'restrict-token'
    ? { what: 'update-token', token: purpose.token, body }
    : { what: 'update-project', project: purpose.project, body };
}

// ---- the models that the project has used, which the field offers

const MODELS = POLICY_FIELDS.models.label;

/** The project whose models a form offers; null: it has no field for models. */
function projectOf(dialog: Dialog): string | null {
  const { purpose } = dialog;
  if (purpose.for === 'restrict-token') return purpose.token.project_id;
  if (purpose.for === 'restrict-project') return purpose.project.id;
  return purpose.for === 'new-token' ? valueOf(dialog, 'Project') : null;
}

/** Loads the models that the form on top offers, unless it has those of its project. */
export function withModelsLoading(state: State): Transition {
  const dialog = layer(state);
  if (dialog?.kind !== 'dialog') return [state];
  const project = projectOf(dialog);
  if (project === null || project === dialog.modelsOf) return [state];
  const next = withLayer(state, { ...withOffers(dialog, []), modelsOf: project });
  return [next, ...loads([{ of: 'models', project }])];
}

/** The models of a project were loaded. */
export function modelsReceived(state: State, project: string, models: readonly string[]): State {
  const dialog = layer(state);
  return dialog?.kind === 'dialog' && dialog.modelsOf === project
    ? withLayer(state, withOffers(dialog, models))
    : state;
}

const withOffers = (dialog: Dialog, offers: readonly string[]): Dialog => ({
  ...dialog,
  fields: dialog.fields.map((field) => (field.label === MODELS ? { ...field, offers } : field)),
});
