/** Changes: what is asked before one is sent. */
import { visible } from '../../console/escape.js';
import { relativeTime, shortId } from '../../console/views.js';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { confirmationOf, dialogOf, textField } from './dialog.js';
import { lineOf } from './line.js';
import type { Change, Named } from './exchange.js';
import {
  daemonNow,
  type Dialog,
  type DialogItem,
  saying,
  type State,
  type Step,
  type UnderWay,
  whyNoChange,
} from './state.js';

/** From so many on the operator types what they are about to do. */
export const TYPED_FROM = 25;
const ITEMS_SHOWN = 6;
/** Who used a token so lately is likely to be using it now. */
const IN_USE_MS = 60_000;

export const nameOf = ({ id, name }: Named) => name ?? shortId(id);
export const counted = (count: number, noun: string) =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
const where = ({ place }: State) => place.context ?? place.server;

/** Takes tokens out of use, after a question. Those that are revoked already are not asked about. */
export function revoke(state: State, tokens: readonly WireToken[]): Step {
  const meant = tokens.filter(({ is_active }) => is_active);
  if (meant.length === 0)
    return [saying(state, tokens.length === 1 ? 'It is revoked already' : 'They are revoked already')];
  const change: Change = { what: 'revoke', tokens: meant };
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
    ...(others > 0 ? [note(`${others} of those marked ${others === 1 ? 'is' : 'are'} revoked already.`)] : []),
  ];
  return asking(state, {
    change,
    title: `Revoke ${titleOf(meant)} in ${where(state)}`,
    action: meant.length === 1 ? 'Revoke' : `Revoke ${meant.length.toLocaleString('en')}`,
    tokens: meant,
    notes,
  });
}

/** Brings tokens back: one at once, for it can be undone, several after a question. */
export function reactivate(state: State, tokens: readonly WireToken[]): Step {
  const meant = tokens.filter(({ is_active }) => !is_active);
  const [only] = tokens;
  if (meant.length === 0) {
    return [saying(state, tokens.length === 1 && only ? whyNotReactivated(only) : 'None of them is revoked')];
  }
  const change: Change = { what: 'reactivate', tokens: meant };
  if (tokens.length === 1 && !state.place.isProtected) return sent(state, change, null);
  const expired = meant.filter(({ expires_at }) => Date.parse(expires_at) <= daemonNow(state)).length;
  const others = tokens.length - meant.length;
  return asking(state, {
    change,
    title: `Reactivate ${titleOf(meant)} in ${where(state)}`,
    action: meant.length === 1 ? 'Reactivate' : `Reactivate ${meant.length.toLocaleString('en')}`,
    tokens: meant,
    notes: [
      ...(expired > 0
        ? [note(`${counted(expired, 'token')} stay${expired === 1 ? 's' : ''} expired all the same.`)]
        : []),
      ...(others > 0 ? [note(`${others} of those marked ${others === 1 ? 'is' : 'are'} not revoked.`)] : []),
    ],
  });
}

const note = (words: string) => ({ words, isWarning: false });
const warning = (words: string) => ({ words, isWarning: true });

function whyNotReactivated({ state }: WireToken): string {
  if (state === 'expired') return 'It is not revoked but expired; n issues a new one';
  if (state === 'rate_limited') return 'It is not revoked but used up; n issues a new one';
  if (state === 'project_inactive') return 'It is not revoked, but its project is inactive';
  return 'It is not revoked';
}

/** Takes back the last change, as long as that is offered: at once where all of it was made, otherwise after a question. */
export function undo(state: State): Step {
  const { undo: last } = state;
  if (!last || !isUndoable(state)) return [saying(state, NOTHING_TO_UNDO)];
  if (last.question !== null) {
    const { change, question } = last;
    const title = `${change.what === 'revoke' ? 'Revoke' : 'Reactivate'} ${'tokens' in change ? titleOf(change.tokens) : ''}`;
    return asking(state, {
      change,
      title: `Undo: ${title} in ${where(state)}`,
      action: 'Undo',
      notes: [note(question)],
      typed: null,
      reason: 'undo',
      isUndo: true,
    });
  }
  const [next, ...effects] = sent(state, last.change, 'undo', { undo: last });
  return effects.length > 0 ? [{ ...next, undo: null }, ...effects] : [next];
}

export const NOTHING_TO_UNDO = 'There is nothing to undo';
/** Its time may be over though nothing has woken since, such as after ^Z. */
export const isUndoable = ({ undo, nowMs }: State) => undo !== null && undo.untilMs > nowMs;

export function projectActive(state: State, project: WireProject, isActive: boolean): Step {
  if (project.is_active === isActive) return [saying(state, `It is ${isActive ? 'active' : 'inactive'} already`)];
  const change: Change = { what: 'update-project', project, body: { is_active: isActive } };
  if (isActive && !state.place.isProtected) return sent(state, change, null);
  return asking(state, {
    change,
    title: `${isActive ? 'Activate' : 'Deactivate'} project ${project.name} in ${where(state)}`,
    action: isActive ? 'Activate' : 'Deactivate',
    notes: isActive ? [] : [warning('Its tokens stay as they are, but their clients will get 403 at once.')],
    typed: state.place.isProtected ? project.name : null,
  });
}

export function revokeAll(state: State, project: WireProject): Step {
  return asking(state, {
    change: { what: 'revoke-all', project },
    title: `Revoke all tokens of ${project.name} in ${where(state)}`,
    action: 'Revoke all',
    notes: [
      warning('Every token of this project that is not revoked yet, expired ones too; their clients will get 401.'),
    ],
    typed: project.name,
  });
}

/** Sends it, if anything can be sent now. */
export function sent(
  state: State,
  change: Change,
  reason: string | null,
  { form = null, undo = null }: Partial<UnderWay> = {},
): Step {
  const why = whyNoChange(state);
  if (why !== null) return [saying(state, why, 'bad')];
  const underWay = [...state.underWay, { change, form, undo, sentMs: state.nowMs }];
  return [
    { ...state, message: null, underWay },
    { do: 'change', change, reason },
  ];
}

interface Asking {
  change: Change;
  title: string;
  action: string;
  tokens?: readonly WireToken[];
  notes: Dialog['notes'];
  typed?: string | null;
  /** Filled in already. */
  reason?: string;
  /** It takes back the last change. */
  isUndo?: boolean;
}

function asking(state: State, asked: Asking): Step {
  const { change, title, action, tokens = [], notes, typed, reason = '', isUndo = false } = asked;
  const why = whyNoChange(state);
  if (why !== null) return [saying(state, why, 'bad')];
  const isMuch = tokens.length >= TYPED_FROM || state.place.isProtected;
  const word = typed !== undefined ? typed : isMuch ? wordToType(state, tokens) : null;
  const fields = [
    textField('Reason', { line: lineOf(reason), hint: 'goes into the audit record', width: 40 }),
    ...(word === null ? [] : [textField(confirmationOf(word), { width: 30 })]),
  ];
  const dialog = dialogOf(
    {
      purpose: { for: 'change', change, typed: word, isUndo },
      title,
      action,
      items: tokens.slice(0, ITEMS_SHOWN).map((token) => itemOf(state, token)),
      more: Math.max(0, tokens.length - ITEMS_SHOWN),
      notes,
      fields,
    },
    'cancel',
  );
  return [{ ...state, layers: [...state.layers, dialog] }];
}

/** The project's name, where all are of one; otherwise how many they are. */
function wordToType(state: State, tokens: readonly WireToken[]): string {
  const ids = [...new Set(tokens.map(({ project_id }) => project_id))];
  const project = ids.length === 1 ? state.projects.all?.find(({ id }) => id === ids[0]) : undefined;
  // One that cannot be typed as it is shown is no help.
  return project && visible(project.name) === project.name ? project.name : String(tokens.length);
}

const titleOf = (tokens: readonly Named[]) => {
  const [only] = tokens;
  return tokens.length === 1 && only ? nameOf(only) : counted(tokens.length, 'token');
};

const isInUse = ({ last_used_at }: WireToken, nowMs: number) =>
  last_used_at !== null && nowMs - Date.parse(last_used_at) < IN_USE_MS;

function itemOf(state: State, token: WireToken): DialogItem {
  const used =
    token.last_used_at === null
      ? 'never used'
      : `last used ${relativeTime(token.last_used_at, { now: daemonNow(state) })}`;
  const rate = perMinute(state, token);
  return {
    cells: [shortId(token.id), token.name ?? '', used, rate === null ? '' : `${rate} req/min`],
    isWarning: isInUse(token, daemonNow(state)),
  };
}

/** How often it was used in a minute, by what its count was when it was first looked at; null when that is too lately. */
export function perMinute({ tokens, nowMs }: State, { id, request_count }: WireToken): number | null {
  const before = tokens.counted.get(id);
  const ageMs = before ? nowMs - before.atMs : 0;
  if (!before || ageMs < 5_000 || Number.isNaN(request_count)) return null;
  return Math.round(((request_count - before.count) * 60_000) / ageMs);
}
