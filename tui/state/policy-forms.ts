/** What a token or a project may use, and how fast: the fields in forms, and the forms that change it. */
import { atLimitShown } from '../../console/columns/policies.js';
import {
  budgetFields,
  policiesOf,
  policyChanges,
  type PolicyField,
  policyField,
  policyFields,
  type PolicyProblem,
  type PolicyTexts,
  policyTexts,
} from '../../console/columns/policy-fields.js';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { NO_POLICIES, type Policies } from '../../daemon/api/vocabulary.js';
import { nameOf } from './changes.js';
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
import type { ChangeRequest } from './exchange.js';
import type { Dialog, Field, Label } from './layers.js';
import { lineOf } from './line.js';
import { layer, loads, type State, type Transition, withLayer } from './state.js';

function fieldsOf(policies: Policies, fields: readonly PolicyField[] = policyFields): Field[] {
  const texts = policyTexts(policies);
  return fields.map((field) => {
    const { label, hint, choices, kind } = policyField(field);
    if (choices) return { ...choiceField(label, choices, texts[field]), hint };
    return textField(label, { line: lineOf(texts[field]), hint, width: kind.isList ? 40 : 14 });
  });
}

/** The fields, which are shown while a toggle is on. */
export const policyFieldsIf = (toggle: Label, policies: Policies): Field[] =>
  fieldsOf(policies).map((field): Field => ({ ...field, onlyIf: { field: toggle, among: ['yes'] } }));

/**
 * The fields in the form of a new token or project. They are shown on request, so that the form stays short.
 *
 * @param policies to begin with.
 */
export const newPolicyFields = (ofWhat = '', policies: Policies = NO_POLICIES): Field[] => [
  toggleField(
    'Restrict',
    (policies.allow ?? policies.limits ?? policies.budget) !== null,
    `models, routes, rates and budget${ofWhat}`,
  ),
  ...policyFieldsIf('Restrict', policies),
];

/** The texts of the fields that the form has. */
const textsIn = (dialog: Dialog): Partial<PolicyTexts> =>
  Object.fromEntries(
    policyFields.flatMap((field) => {
      const { label } = policyField(field);
      return dialog.fields.some((it) => it.label === label) ? [[field, valueOf(dialog, label)]] : [];
    }),
  );

/** The policies of a new token or project; nothing for those that it does not have. */
export function newPolicies(dialog: Dialog): Partial<Policies> | Problem {
  if (!isOn(dialog, 'Restrict')) return {};
  const given = policiesIn(dialog);
  if ('words' in given) return given;
  const { allow, limits, budget } = given;
  return { ...(allow && { allow }), ...(limits && { limits }), ...(budget && { budget }) };
}

/** The policies in the fields of the form, whether they are shown or not. */
export function policiesIn(dialog: Dialog): Policies | Problem {
  const given = policiesOf({ ...policyTexts(NO_POLICIES), ...textsIn(dialog) });
  return 'words' in given ? problemOf(given) : given;
}

const problemOf = ({ field, words }: PolicyProblem): Problem => ({ field: policyField(field).label, words });

const HOLDS = note('It holds from the next request on. Requests in flight go on.');

const restrictForm = (purpose: Dialog['purpose'], of: WireToken | WireProject, whose: string): Dialog =>
  dialogOf({
    purpose,
    title: `What ${whose} may use`,
    action: 'Change',
    notes: [HOLDS],
    fields: [...fieldsOf(of), reasonField()],
  });

const budgetForm = (purpose: Dialog['purpose'], of: WireToken | WireProject, whose: string): Dialog =>
  dialogOf({
    purpose,
    title: `What ${whose} may spend`,
    action: 'Change',
    notes: [HOLDS],
    fields: [...fieldsOf(of, budgetFields), reasonField()],
  });

const ofToken = (token: WireToken) => `token ${nameOf(token)}`;
const ofProject = (project: WireProject) => `all tokens of ${project.name} together`;

export const restrictTokenForm = (token: WireToken): Dialog =>
  restrictForm({ for: 'restrict-token', token }, token, ofToken(token));
export const restrictProjectForm = (project: WireProject): Dialog =>
  restrictForm({ for: 'restrict-project', project }, project, ofProject(project));
export const tokenBudgetForm = (token: WireToken): Dialog =>
  budgetForm({ for: 'restrict-token', token }, token, ofToken(token));
export const projectBudgetForm = (project: WireProject): Dialog =>
  budgetForm({ for: 'restrict-project', project }, project, ofProject(project));

/** What shows and hides the fields. */
const TOGGLES: readonly Label[] = ['Restrict', 'Ceilings'];

/** What happens at the limit of the budget in the form; null without one. */
export function atLimit(dialog: Dialog): string | null {
  if (TOGGLES.some((label) => dialog.fields.some((field) => field.label === label) && !isOn(dialog, label)))
    return null;
  const policies = policiesIn(dialog);
  return 'words' in policies || policies.budget === null ? null : atLimitShown(policies.budget);
}

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

const MODELS = policyField('models').label;

/** The project whose models a form offers; null: it has no field for models. */
function projectOf(dialog: Dialog): string | null {
  const { purpose } = dialog;
  if (!dialog.fields.some(({ label }) => label === MODELS)) return null;
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
