/** The form of a new operator, and the dialogs that deactivate and activate one. */
import { ROLE_TITLES } from '../../console/columns/access.js';
import { span } from '../../console/span.js';
import { integer } from '../../config/kinds.js';
import type { OperatorCreate, WireOperator, WireProject } from '../../daemon/api/contract.js';
import { extentOf } from '../../daemon/api/permissions.js';
import { type Ceilings, MAX_CAP, MAX_DURATION_HOURS, NO_POLICIES, ROLES } from '../../daemon/api/vocabulary.js';
import { confirm, where } from './changes.js';
import {
  choiceField,
  dialogOf,
  isOn,
  note,
  type Problem,
  shownFields,
  textField,
  toggleField,
  valueOf,
  warning,
} from './dialog.js';
import type { ChangeRequest } from './exchange.js';
import type { Dialog, Field, Label } from './layers.js';
import { policiesIn, policyFieldsIf } from './policy-forms.js';
import { daemonNow, type State, type Transition, withMessage } from './state.js';

/** Roles that issue tokens, and so have ceilings. */
const ISSUING = ROLES.filter((role) => extentOf(role, 'issue tokens') !== null);

/** Ceilings that are a number. */
const NUMBERS = {
  hours: { label: 'Most hours', hint: 'lifetime of a token; empty: any', max: MAX_DURATION_HOURS },
  requests: { label: 'Most requests', hint: 'request cap of a token; empty: any', max: MAX_CAP },
  active_tokens: { label: 'Active tokens', hint: 'at the same time; empty: any number', max: MAX_CAP },
} as const satisfies Partial<Record<keyof Ceilings, { label: Label; hint: string; max: number }>>;

export const newOperatorForm = (projects: readonly WireProject[]): Dialog =>
  dialogOf({
    purpose: { for: 'new-operator' },
    title: 'New operator',
    action: 'Create',
    fields: [
      textField('Name', { hint: 'shown in the audit log; it does not change', width: 30 }),
      choiceField(
        'Role',
        ROLES.map((value) => ({ value, label: ROLE_TITLES[value] })),
        'issuer',
      ),
      textField('Projects', { hint: 'empty: all', offers: projects.map(({ name }) => name), width: 40 }),
      textField('Expires in', { hint: 'empty: never; 90d', width: 10 }),
      {
        ...toggleField('Ceilings', false, 'the most that a token it issues may have'),
        onlyIf: { field: 'Role', among: ISSUING },
      },
      ...Object.values(NUMBERS).map(({ label, hint }): Field => ({
        ...textField(label, { hint, width: 12 }),
        onlyIf: { field: 'Ceilings', among: ['yes'] },
      })),
      ...policyFieldsIf('Ceilings', NO_POLICIES),
    ],
  });

/** The operator that the form describes, or what is wrong with it. @param name is checked. */
export function operatorCreate(state: State, dialog: Dialog, name: string): ChangeRequest | Problem {
  const projects = projectsIn(state, dialog);
  if (!Array.isArray(projects)) return projects;
  const given = valueOf(dialog, 'Expires in').trim();
  const lifeMs = given === '' ? null : (span.parse(given) ?? 0);
  if (lifeMs === 0) return { field: 'Expires in', words: `Expires in: ${span.accepts}` };
  const ceilings = ceilingsIn(dialog);
  if ('words' in ceilings) return ceilings;
  const role = ROLES.find((it) => it === valueOf(dialog, 'Role')) ?? 'viewer';
  const body: OperatorCreate = {
    name,
    role,
    ...(projects.length > 0 && { projects }),
    ...(lifeMs !== null && { expires_at: new Date(daemonNow(state) + lifeMs).toISOString() }),
    ...(Object.keys(ceilings).length > 0 && { ceilings }),
  };
  return { what: 'create-operator', body };
}

/** The IDs of the projects; none: all. */
function projectsIn({ projects: { all } }: State, dialog: Dialog): string[] | Problem {
  const names = valueOf(dialog, 'Projects')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const ids: string[] = [];
  for (const given of names) {
    const found = all?.find(({ id, name }) => name === given || id === given);
    if (!found) return { field: 'Projects', words: `There is no project ${JSON.stringify(given)}` };
    ids.push(found.id);
  }
  return [...new Set(ids)];
}

function ceilingsIn(dialog: Dialog): Ceilings | Problem {
  const isShown = shownFields(dialog).some(({ label }) => label === 'Ceilings');
  if (!isShown || !isOn(dialog, 'Ceilings')) return {};
  const ceilings: Ceilings = {};
  for (const [name, { label, max }] of Object.entries(NUMBERS)) {
    const given = valueOf(dialog, label).trim();
    if (given === '') continue;
    const kind = integer(1, max);
    const value = kind.parse(given);
    if (value === undefined) return { field: label, words: `${label}: ${kind.accepts}` };
    ceilings[name as keyof typeof NUMBERS] = value;
  }
  const policies = policiesIn(dialog);
  if ('words' in policies) return policies;
  const { allow, limits, budget } = policies;
  return { ...ceilings, ...allow, ...(limits && { limits }), ...(budget && { budget }) };
}

export function deactivateOperator(state: State, operator: WireOperator): Transition {
  if (!operator.is_active) return [withMessage(state, 'The operator is already inactive')];
  return confirm(state, {
    change: { what: 'deactivate-operator', operator, keepsTokens: false },
    title: `Deactivate operator ${operator.name} in ${where(state)}`,
    action: 'Deactivate',
    notes: [
      warning('Its secret and its sessions end at once.'),
      note('The tokens that it has issued are revoked with it, unless you keep them.'),
    ],
    fields: [toggleField('Keep tokens', false, 'the tokens that it has issued stay active')],
    typed: state.target.isProtected ? operator.name : null,
  });
}

export function activateOperator(state: State, operator: WireOperator): Transition {
  if (operator.is_active) return [withMessage(state, 'The operator is already active')];
  return confirm(state, {
    change: { what: 'activate-operator', operator },
    title: `Activate operator ${operator.name} in ${where(state)}`,
    action: 'Activate',
    notes: [note('Its secret works again. Tokens that were revoked stay revoked.')],
    typed: state.target.isProtected ? operator.name : null,
  });
}
