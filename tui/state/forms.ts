/** Forms: a new token, a project's name, a purge; and the changes that all forms send. */
import { integer } from '../../config/kinds.js';
import { ceilingsShown } from '../../console/columns/access.js';
import { termsThat, TOKEN_TERMS } from '../../console/columns/tokens.js';
import type { CachePurge, WireProject, WireToken } from '../../daemon/api/contract.js';
import { hoursOf, lifetime, LONGEST_RECOMMENDED_HOURS } from '../../console/span.js';
import { send } from './changes.js';
import * as exporting from './export.js';
import {
  choiceField,
  confirmationOf,
  dialogOf,
  isOn,
  note,
  type Problem,
  reasonField,
  refused,
  textField,
  valueOf,
  warning,
} from './dialog.js';
import type { ChangeRequest } from './exchange.js';
import {
  newPolicies,
  newPolicyFields,
  projectBudgetForm,
  restriction,
  restrictProjectForm,
  restrictTokenForm,
  tokenBudgetForm,
  withModelsLoading,
} from './policy-forms.js';
import { keyIn, missingUsageIn, newUpstream, providerChange, setProviderForm } from './provider-forms.js';
import { awaitsCheck, newProjectForm, setKeyForm } from './provider-forms.js';
import { lineOf } from './line.js';
import { above, closed } from './navigation.js';
import { ofContext } from './projects.js';
import type { Dialog, Field, Purpose } from './layers.js';
import { newOperatorForm, operatorCreate } from './operator-forms.js';
import { deedOfForm, seesAllProjects, whyNotPermitted } from './permitted.js';
import { andThen, layer, withMessage, type State, type Transition, whyNoChange, withLayer } from './state.js';
import { filterQuery } from './tokens.js';
import { sendReversal } from './undo.js';
import { exact } from '../../daemon/api/formats.js';
import { type Ceilings, MAX_NAME_LENGTH, MAX_REASON_LENGTH, policiesWithin } from '../../daemon/api/vocabulary.js';

/** @param projectId the project to preselect. */
export function newToken(state: State, projectId?: string): Transition {
  const active = (state.projects.all ?? []).filter(({ is_active }) => is_active);
  const [only] = active;
  if (!only) {
    const words = state.projects.all
      ? 'No active project; create one on the screen of projects'
      : 'The projects are not loaded yet';
    return [withMessage(state, words, 'bad')];
  }
  const likely = [projectId, filterQuery(state)?.project_id, ofContext(state)?.id];
  const chosen = likely.find((id) => active.some((project) => project.id === id)) ?? only.id;
  const meant = state.projects.all?.find(({ id }) => id === projectId);
  const isOther = meant !== undefined && meant.id !== chosen;
  const ceilings = state.self?.ceilings ?? {};
  const notes = [
    ...(isOther ? [warning(`Project ${meant.name} is inactive; another one is preselected.`)] : []),
    ...(state.self?.ceilings ? [note(`At most: ${ceilingsShown(ceilings)}.`)] : []),
  ];
  return form(
    state,
    dialogOf({
      purpose: { for: 'new-token' },
      title: 'New token',
      action: 'Create',
      notes,
      fields: [
        choiceField(
          'Project',
          active.map(({ id, name }) => ({ value: id, label: name })),
          chosen,
        ),
        ...termFields(false),
        textField('Expires in', { line: lineOf(lifetimeWithin(ceilings)), hint: '90m, 48h, 7d', width: 10 }),
        ...termFields(true).map((field) => capped(field, ceilings)),
        ...newPolicyFields('', policiesWithin(ceilings)),
      ],
    }),
  );
}

const termFields = (areNumbers: boolean) =>
  termsThat(areNumbers).map(({ label, hint }) => textField(label, { hint, width: areNumbers ? 12 : 40 }));

// ---- what a form begins with is within the ceilings of the caller. The daemon refuses what is above.

const DEFAULT_HOURS = 24;
const lifetimeWithin = ({ hours = DEFAULT_HOURS }: Ceilings) => `${Math.min(DEFAULT_HOURS, hours)}h`;

/** Without a cap a token would be above the ceiling. */
const capped = (field: Field, { requests }: Ceilings): Field =>
  requests === undefined || field.label !== TOKEN_TERMS.max_requests.label
    ? field
    : { ...field, line: lineOf(String(requests)), hint: `at most ${exact(requests)}` };

export const newOperator = (state: State): Transition => form(state, newOperatorForm(state.projects.all ?? []));

export const newProject = (state: State): Transition => form(state, newProjectForm());

export const rename = (state: State, project: WireProject): Transition =>
  form(
    state,
    dialogOf({
      purpose: { for: 'rename', project },
      title: `Rename project ${project.name}`,
      action: 'Rename',
      fields: [textField('Name', { line: lineOf(project.name), width: 40 }), reasonField()],
    }),
  );

export const setKey = (state: State, project: WireProject): Transition => form(state, setKeyForm(project));

export const setProvider = (state: State, project: WireProject): Transition => form(state, setProviderForm(project));

export const restrictToken = (state: State, token: WireToken): Transition => form(state, restrictTokenForm(token));

export const restrictProject = (state: State, project: WireProject): Transition =>
  form(state, restrictProjectForm(project));

export const budgetToken = (state: State, token: WireToken): Transition => form(state, tokenBudgetForm(token));

export const budgetProject = (state: State, project: WireProject): Transition =>
  form(state, projectBudgetForm(project));

const TYPED_TO_PURGE = 'purge';

/** Responses of other projects are removed too, unless only those of one are. */
const PURGEABLE = [
  { value: 'url', label: 'one URL' },
  { value: 'project', label: 'one project' },
  { value: 'all', label: 'everything' },
];

export const purge = (state: State): Transition =>
  form(
    state,
    dialogOf({
      purpose: { for: 'purge', typed: state.target.isProtected ? TYPED_TO_PURGE : null },
      title: 'Purge cached responses',
      action: 'Purge',
      fields: [
        choiceField(
          'What',
          PURGEABLE.filter(({ value }) => value === 'project' || seesAllProjects(state)),
        ),
        {
          ...choiceField('Method', [
            { value: 'GET', label: 'GET' },
            { value: 'POST', label: 'POST' },
          ]),
          onlyIf: { field: 'What', among: ['url'] },
        },
        textField('Path', {
          line: lineOf('/v1/'),
          hint: 'including the query',
          width: 40,
          onlyIf: { field: 'What', among: ['url'] },
        }),
        {
          ...choiceField(
            'Project',
            (state.projects.all ?? []).map(({ id, name }) => ({ value: id, label: name })),
          ),
          onlyIf: { field: 'What', among: ['project'] },
        },
        reasonField(),
        ...(state.target.isProtected ? [textField(confirmationOf(TYPED_TO_PURGE), { width: 30 })] : []),
      ],
    }),
  );

function form(state: State, dialog: Dialog): Transition {
  const deed = deedOfForm(dialog.purpose);
  const why = (deed && whyNotPermitted(state, deed)) ?? whyNoChange(state);
  if (why !== null) return [withMessage(state, why, 'bad')];
  return andThen(previewed(above(state, dialog)), withModelsLoading);
}

/** The purge described by the form, or what is wrong with the form. */
function purgeBody(dialog: Dialog): CachePurge | Problem {
  switch (valueOf(dialog, 'What')) {
    case 'all':
      return { all: true };
    case 'project': {
      const id = valueOf(dialog, 'Project');
      return id === '' ? { field: 'What', words: 'No projects yet' } : { project_id: id };
    }
    default: {
      const url = valueOf(dialog, 'Path').trim();
      const method = valueOf(dialog, 'Method') === 'POST' ? 'POST' : 'GET';
      return url.startsWith('/') ? { method, url } : { field: 'Path', words: 'The path must begin with /' };
    }
  }
}

const isProblem = (it: object): it is Problem => 'words' in it;

const PREVIEW_DELAY_MS = 250;

/**
 * The form was edited: after a pause in typing, a dry run counts the responses that the purge would remove; for another project its models
 * are offered.
 */
export function changed(state: State, dialog: Dialog): Transition {
  const next = withLayer(state, dialog);
  if (dialog.purpose.for !== 'purge' || isPreviewed(next, purgeBody(dialog))) return withModelsLoading(next);
  const untold = { ...next, cache: { ...next.cache, preview: null } };
  return [untold, { do: 'wake', name: 'filter', afterMs: PREVIEW_DELAY_MS }];
}

const isPreviewed = ({ cache: { preview } }: State, body: CachePurge | Problem) =>
  preview !== null && !isProblem(body) && JSON.stringify(preview.body) === JSON.stringify(body);

/** Requests a dry run of the purge in the form. */
export function previewed(state: State): Transition {
  const dialog = layer(state);
  if (dialog?.kind !== 'dialog' || dialog.purpose.for !== 'purge') return [state];
  const body = purgeBody(dialog);
  const preview = isProblem(body) ? null : { body, count: null, failure: null };
  const next = { ...state, cache: { ...state.cache, preview } };
  return isProblem(body) ? [next] : [next, { do: 'load', request: { of: 'purgeable', body } }];
}

/** Sends the change of the dialog, or shows what is wrong. */
export function submitted(state: State, dialog: Dialog): Transition {
  const { purpose } = dialog;
  if (purpose.for === 'export') return exporting.replaced(closed(state), purpose.list);
  const change = changeOf(state, dialog, purpose);
  if (isProblem(change)) return [withLayer(state, refused(dialog, change))];
  const reason = valueOf(dialog, 'Reason').trim();
  if (Array.from(reason).length > MAX_REASON_LENGTH) {
    const words = `A reason can have up to ${MAX_REASON_LENGTH} characters`;
    return [withLayer(state, refused(dialog, { field: 'Reason', words }))];
  }
  // If nothing can be sent now, the form stays open.
  const why = whyNoChange(state);
  if (why !== null) return [withLayer(state, refused(dialog, { field: null, words: why }))];
  const given = reason === '' ? null : reason;
  if (awaitsCheck(change)) {
    const [sent, ...effects] = send(state, change, given, { form: dialog });
    return [withLayer(sent, { ...dialog, awaited: change, problem: null }), ...effects];
  }
  const below = closed(state);
  if (purpose.for !== 'change' || change.what === 'issue-again') return send(below, change, given, { form: dialog });
  return purpose.reversal ? sendReversal(below, purpose.reversal, given) : send(below, change, given);
}

function changeOf(state: State, dialog: Dialog, purpose: Exclude<Purpose, { for: 'export' }>): ChangeRequest | Problem {
  switch (purpose.for) {
    case 'change':
      return confirmationProblem(dialog, purpose.typed) ?? completed(purpose.change, dialog);
    case 'new-token':
      return tokenCreate(dialog);
    case 'new-operator': {
      const name = nameIn(dialog);
      return isProblem(name) ? name : operatorCreate(state, dialog, name.name);
    }
    case 'new-project': {
      const name = nameIn(dialog);
      if (isProblem(name)) return name;
      const upstream = newUpstream(dialog);
      if (isProblem(upstream)) return upstream;
      const key = keyIn(dialog);
      if (isProblem(key)) return key;
      const policies = newPolicies(dialog);
      return isProblem(policies)
        ? policies
        : { what: 'create-project', ...name, upstream: { ...upstream, ...missingUsageIn(dialog) }, policies, ...key };
    }
    case 'rename': {
      const name = nameIn(dialog);
      return isProblem(name) ? name : { what: 'update-project', project: purpose.project, body: name };
    }
    case 'set-key': {
      const key = keyIn(dialog);
      return isProblem(key) ? key : { what: 'update-project', project: purpose.project, body: {}, ...key };
    }
    case 'set-provider':
      return providerChange(dialog, purpose.project);
    case 'restrict-token':
    case 'restrict-project':
      return restriction(dialog, purpose);
    case 'purge': {
      const body = purgeBody(dialog);
      if (isProblem(body)) return body;
      return confirmationProblem(dialog, purpose.typed) ?? { what: 'purge', body };
    }
  }
}

/** With what the dialog that confirms it asks for. */
function completed(change: ChangeRequest, dialog: Dialog): ChangeRequest | Problem {
  if (change.what === 'deactivate-operator') return { ...change, keepsTokens: isOn(dialog, 'Keep tokens') };
  if (change.what !== 'issue-again') return change;
  const path = valueOf(dialog, 'File').trim();
  return path === '' ? { field: 'File', words: 'Enter the path of a new file' } : { ...change, path };
}

/** @returns null if the confirmation word is correct, or not needed. */
function confirmationProblem(dialog: Dialog, word: string | null): Problem | null {
  if (word === null) return null;
  const field = confirmationOf(word);
  return valueOf(dialog, field).trim() === word.trim() ? null : { field, words: field };
}

function nameIn(dialog: Dialog): { name: string } | Problem {
  const name = valueOf(dialog, 'Name').trim();
  if (name === '') return { field: 'Name', words: 'Enter a name' };
  return isTooLong(name) ? TOO_LONG : { name };
}

const isTooLong = (name: string) => Array.from(name).length > MAX_NAME_LENGTH;
const TOO_LONG: Problem = { field: 'Name', words: `A name can have up to ${MAX_NAME_LENGTH} characters` };

function tokenCreate(dialog: Dialog): ChangeRequest | Problem {
  const duration = lifetime.parse(valueOf(dialog, 'Expires in').trim());
  if (!duration) return { field: 'Expires in', words: `Expires in: ${lifetime.accepts}` };
  const terms: Record<string, string | number> = {};
  for (const { field, label, max, isNumber } of [...termsThat(false), ...termsThat(true)]) {
    const given = valueOf(dialog, label).trim();
    if (given === '') continue;
    const kind = integer(0, max);
    const value = isNumber ? kind.parse(given) : Array.from(given).length <= max ? given : undefined;
    if (value === undefined)
      return {
        field: label,
        words: isNumber ? `${label}: ${kind.accepts}` : `A ${label.toLowerCase()} can have up to ${max} characters`,
      };
    terms[field] = value;
  }
  const policies = newPolicies(dialog);
  if (isProblem(policies)) return policies;
  return { what: 'create-token', body: { project_id: valueOf(dialog, 'Project'), ...terms, ...policies, ...duration } };
}

/** The warning about a lifetime longer than recommended; null: none. */
export function warningOf(dialog: Dialog): string | null {
  if (dialog.purpose.for !== 'new-token') return null;
  const hours = hoursOf(lifetime.parse(valueOf(dialog, 'Expires in').trim()));
  return hours > LONGEST_RECOMMENDED_HOURS
    ? `longer than the recommended ${LONGEST_RECOMMENDED_HOURS / 24} days`
    : null;
}
