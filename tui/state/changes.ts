/** Changes of tokens and projects, and the dialogs that confirm them. */
import { visible } from '../../console/escape.js';
import { shortId } from '../../console/columns/cell-text.js';
import { allowShown, budgetShown, limitsShown } from '../../console/columns/policies.js';
import { fileNameAt } from '../../console/table-format.js';
import { spanShown } from '../../console/span.js';
import { counted, exact, relativeTime } from '../../daemon/api/formats.js';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import type { PolicyChanges } from '../../daemon/api/vocabulary.js';
import { confirmationOf, dialogOf, note, reasonField, textField, warning } from './dialog.js';
import type { ChangeRequest, Named, Reversal } from './exchange.js';
import type { Dialog, DialogItem, Field } from './layers.js';
import { lineOf } from './line.js';
import { above } from './navigation.js';
import { OF_CHANGES, whyNotPermitted } from './permitted.js';
import { daemonNow, withMessage, type State, type Transition, type PendingChange, whyNoChange } from './state.js';

/** From this number of tokens on, the operator must type a confirmation. */
const TYPED_FROM = 25;
const ITEMS_SHOWN = 6;
/** A token used within this time is considered to be in use. */
const IN_USE_MS = 60_000;

export const nameOf = ({ id, name }: Named) => name ?? shortId(id);
/** The daemon that a dialog is about. */
export const where = ({ target }: State) => target.context ?? target.server;

/** Revokes tokens after confirmation. Tokens that are already revoked are skipped. */
export function revoke(state: State, tokens: readonly WireToken[]): Transition {
  const meant = tokens.filter(({ is_active }) => is_active);
  if (meant.length === 0)
    return [
      withMessage(state, tokens.length === 1 ? 'The token is already revoked' : 'The tokens are already revoked'),
    ];
  const change: ChangeRequest = { what: 'revoke', tokens: meant };
  const others = tokens.length - meant.length;
  const inUse = meant.filter((token) => isInUse(token, daemonNow(state))).length;
  const notes = [
    ...(inUse > 0
      ? [
          warning(
            `${counted(inUse, 'token')} ${inUse === 1 ? 'is' : 'are'} in use right now; ${inUse === 1 ? 'its' : 'their'} clients will get 401.`,
          ),
        ]
      : []),
    ...(others > 0 ? [note(`${others} of the marked tokens ${others === 1 ? 'is' : 'are'} already revoked.`)] : []),
  ];
  return confirm(state, {
    change,
    title: `Revoke ${titleOf(meant)} in ${where(state)}`,
    action: meant.length === 1 ? 'Revoke' : `Revoke ${meant.length.toLocaleString('en')}`,
    tokens: meant,
    notes,
  });
}

/**
 * Reactivates tokens: a single one immediately, because it can be undone, several after confirmation.
 *
 * @param otherKey the key that issues a token again, which a message names for a token that is not revoked.
 */
export function reactivate(state: State, tokens: readonly WireToken[], otherKey: string): Transition {
  const meant = tokens.filter(({ is_active }) => !is_active);
  const [only] = tokens;
  if (meant.length === 0) {
    return [
      withMessage(
        state,
        tokens.length === 1 && only ? whyNotReactivated(only, otherKey) : 'None of the marked tokens is revoked',
      ),
    ];
  }
  const change: ChangeRequest = { what: 'reactivate', tokens: meant };
  if (tokens.length === 1 && !state.target.isProtected) return send(state, change, null);
  const expired = meant.filter(({ expires_at }) => Date.parse(expires_at) <= daemonNow(state)).length;
  const others = tokens.length - meant.length;
  return confirm(state, {
    change,
    title: `Reactivate ${titleOf(meant)} in ${where(state)}`,
    action: meant.length === 1 ? 'Reactivate' : `Reactivate ${meant.length.toLocaleString('en')}`,
    tokens: meant,
    notes: [
      ...(expired > 0 ? [note(`${counted(expired, 'token')} remain${expired === 1 ? 's' : ''} expired.`)] : []),
      ...(others > 0 ? [note(`${others} of the marked tokens ${others === 1 ? 'is' : 'are'} not revoked.`)] : []),
    ],
  });
}

function whyNotReactivated({ state }: WireToken, otherKey: string): string {
  if (state === 'expired') return `Expired, not revoked; press ${otherKey} to issue it again`;
  if (state === 'rate_limited') return `Used up, not revoked; press ${otherKey} to issue it again`;
  if (state === 'project_inactive') return 'Not revoked, but its project is inactive';
  return 'The token is not revoked';
}

export function projectActive(state: State, project: WireProject, isActive: boolean): Transition {
  if (project.is_active === isActive)
    return [withMessage(state, `The project is already ${isActive ? 'active' : 'inactive'}`)];
  const change: ChangeRequest = { what: 'update-project', project, body: { is_active: isActive } };
  if (isActive && !state.target.isProtected) return send(state, change, null);
  return confirm(state, {
    change,
    title: `${isActive ? 'Activate' : 'Deactivate'} project ${project.name} in ${where(state)}`,
    action: isActive ? 'Activate' : 'Deactivate',
    notes: isActive ? [] : [warning('Its tokens do not change, but their clients will get 403 immediately.')],
    typed: state.target.isProtected ? project.name : null,
  });
}

export function revokeAll(state: State, project: WireProject): Transition {
  return confirm(state, {
    change: { what: 'revoke-all', project },
    title: `Revoke all tokens of ${project.name} in ${where(state)}`,
    action: 'Revoke all',
    notes: [warning('This revokes every token of the project, including expired ones. Their clients will get 401.')],
    typed: project.name,
  });
}

/** Sends a change, unless changes cannot be sent now. */
export function send(
  state: State,
  change: ChangeRequest,
  reason: string | null,
  { form = null, reversal = null }: Partial<PendingChange> = {},
): Transition {
  const why = whyNotPermitted(state, OF_CHANGES[change.what]) ?? whyNoChange(state);
  if (why !== null) return [withMessage(state, why, 'bad')];
  const pendingChanges = [...state.pendingChanges, { change, form, reversal, sentMs: state.nowMs }];
  return [
    { ...state, message: null, pendingChanges },
    { do: 'change', change, reason },
  ];
}

interface Confirmation {
  change: ChangeRequest;
  title: string;
  action: string;
  tokens?: readonly WireToken[];
  notes: Dialog['notes'];
  typed?: string | null;
  /** Before the reason. */
  fields?: readonly Field[];
  /** Initial value of the reason. */
  reason?: string;
  /** Set if the change is an undo or a redo. */
  reversal?: Reversal;
  /** The button that has the focus. Default: cancel. */
  focus?: 'cancel' | 'action';
}

/** Opens the dialog that confirms a change, unless changes cannot be sent now. */
export function confirm(state: State, asked: Confirmation): Transition {
  const { change, title, action, tokens = [], notes, typed, fields: own = [] } = asked;
  const { reason = '', reversal = null, focus = 'cancel' } = asked;
  const why = whyNotPermitted(state, OF_CHANGES[change.what]) ?? whyNoChange(state);
  if (why !== null) return [withMessage(state, why, 'bad')];
  const needsTyping = tokens.length >= TYPED_FROM || state.target.isProtected;
  const word = typed !== undefined ? typed : needsTyping ? wordToType(state, tokens) : null;
  const fields = [
    ...own,
    reasonField(reason),
    ...(word === null ? [] : [textField(confirmationOf(word), { width: 30 })]),
  ];
  const dialog = dialogOf(
    {
      purpose: { for: 'change', change, typed: word, reversal },
      title,
      action,
      items: tokens.slice(0, ITEMS_SHOWN).map((token) => itemOf(state, token)),
      more: Math.max(0, tokens.length - ITEMS_SHOWN),
      notes,
      fields,
    },
    focus,
  );
  return [above(state, dialog)];
}

/** The project's name if all tokens belong to one project, otherwise the number of tokens. */
function wordToType(state: State, tokens: readonly WireToken[]): string {
  const ids = [...new Set(tokens.map(({ project_id }) => project_id))];
  const project = ids.length === 1 ? state.projects.all?.find(({ id }) => id === ids[0]) : undefined;
  // A name that cannot be typed as shown is of no use.
  return project && visible(project.name) === project.name ? project.name : String(tokens.length);
}

export const isOfPolicies = (body: PolicyChanges): boolean => 'allow' in body || 'limits' in body || 'budget' in body;

/** What a change of policies is about: what a token or project `may use`, or `may spend`. */
export const policyVerb = (body: PolicyChanges): string => {
  const isUse = 'allow' in body || 'limits' in body;
  if (!('budget' in body)) return 'may use';
  return isUse ? 'may use and spend' : 'may spend';
};

/** The name of a single token, or the number of tokens. */
export const titleOf = (tokens: readonly Named[]) => {
  const [only] = tokens;
  return tokens.length === 1 && only ? nameOf(only) : counted(tokens.length, 'token');
};

const isInUse = ({ last_used_at }: WireToken, nowMs: number) =>
  last_used_at !== null && nowMs - Date.parse(last_used_at) < IN_USE_MS;

function itemOf(state: State, token: WireToken): DialogItem {
  const used =
    token.last_used_at === null ? 'never used' : `last used ${relativeTime(token.last_used_at, daemonNow(state))}`;
  const rate = perMinute(state, token);
  return {
    cells: [shortId(token.id), token.name ?? '', used, rate === null ? '' : `${rate} req/min`],
    isWarning: isInUse(token, daemonNow(state)),
  };
}

/** Requests per minute since the token's earlier count; null if that is less than 5 seconds old. */
function perMinute({ tokens, nowMs }: State, { id, request_count }: WireToken): number | null {
  const before = tokens.rateBaselines.get(id);
  const ageMs = before ? nowMs - before.atMs : 0;
  if (!before || ageMs < 5_000) return null;
  return Math.round(((request_count - before.count) * 60_000) / ageMs);
}

/** Issues a new token with the project, name, cap and lifetime of another one, in any state. Opens the dialog that confirms it, with the focus on its button: a new token takes nothing away. */
export function issueAgain(state: State, token: WireToken): Transition {
  const { id, project_name: project, max_requests: cap, name } = token;
  const lifetime = spanShown(Date.parse(token.expires_at) - Date.parse(token.created_at));
  const requests = cap === 0 ? 'unlimited requests' : `up to ${exact(cap)} requests`;
  return confirm(state, {
    change: { what: 'create-token', body: { like: id } },
    title: `Issue ${nameOf(token)} again in ${where(state)}`,
    action: 'Issue',
    notes: [
      note(
        `A new token ${name === null ? 'without a name' : `named ${name}`} for ${project}: ${lifetime}, ${requests}.`,
      ),
      ...((token.allow ?? token.limits ?? token.budget) === null
        ? []
        : [
            note(
              `It may use ${allowShown(token.allow)}; limits: ${limitsShown(token.limits)}; budget: ${budgetShown(token.budget)}.`,
            ),
          ]),
      ...(token.state === 'active' ? [note('The existing token stays active.')] : []),
    ],
    typed: null,
    focus: 'action',
  });
}

/** Issues tokens that are like these, after confirmation. Those of inactive projects are skipped. */
export function issueAllAgain(state: State, tokens: readonly WireToken[]): Transition {
  const meant = tokens.filter((token) => whyNotAgain(state, token) === null);
  const [first] = tokens;
  if (meant.length === 0) return [withMessage(state, (first && whyNotAgain(state, first)) ?? 'No token here', 'bad')];
  const active = meant.filter((token) => token.state === 'active').length;
  const others = tokens.length - meant.length;
  return confirm(state, {
    change: { what: 'issue-again', tokens: meant, path: '' },
    title: `Issue ${titleOf(meant)} again in ${where(state)}`,
    action: `Issue ${exact(meant.length)}`,
    tokens: meant,
    fields: [textField('File', { line: lineOf(fileNameAt('secrets', state.nowMs)), width: 40 })],
    notes: [
      note(
        'New tokens with the same projects, names, caps, lifetimes, models, routes, limits and budgets. Their secrets go to a new file, as CSV or JSON.',
      ),
      ...(active > 0 ? [note(`${counted(active, 'existing token')} ${active === 1 ? 'stays' : 'stay'} active.`)] : []),
      ...(others > 0 ? [warning(`${counted(others, 'token')} of inactive projects cannot be issued again.`)] : []),
    ],
    focus: 'action',
  });
}

/** Why no token can be issued for the project of this one; null: one can. */
export function whyNotAgain(
  { projects }: State,
  { state, project_id: id, project_name: name }: WireToken,
): string | null {
  const project = projects.all?.find((it) => it.id === id);
  const isInactive = project ? !project.is_active : state === 'project_inactive';
  return isInactive ? `Project ${project?.name ?? name} is inactive; activate it to issue tokens` : null;
}
