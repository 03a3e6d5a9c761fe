/** Changes: what is asked before one is sent, what is said when it is made, and what takes it back. */
import { relativeTime, shortId } from '../../cli/views.js';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { dialogOf, textField } from './dialog.js';
import type { Change, Failure, Named, Outcome } from './exchange.js';
import { type Dialog, type DialogItem, saying, type State, type Step, whyNoChange } from './state.js';

const UNDO_MS = 30_000;
/** From so many on the operator types what they are about to do. */
export const TYPED_FROM = 25;
const ITEMS_SHOWN = 6;
/** Who used a token so lately is likely to be using it now. */
const IN_USE_MS = 60_000;

export const nameOf = ({ id, name }: Named) => name ?? shortId(id);
const counted = (count: number, noun: string) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
const where = ({ place }: State) => place.context ?? place.server;

/** Takes tokens out of use, after a question. Those that are revoked already are not asked about. */
export function revoke(state: State, tokens: readonly WireToken[]): Step {
  const meant = tokens.filter(({ is_active }) => is_active);
  if (meant.length === 0)
    return [saying(state, tokens.length === 1 ? 'It is revoked already' : 'They are revoked already')];
  const change: Change = { what: 'revoke', tokens: meant };
  const inUse = meant.filter((token) => isInUse(token, state.nowMs)).length;
  const notes = [
    ...(inUse > 0
      ? [
          {
            words: `${counted(inUse, 'token')} ${inUse === 1 ? 'is' : 'are'} in use right now; ${inUse === 1 ? 'its' : 'their'} clients will get 401.`,
            isWarning: true,
          },
        ]
      : []),
    ...(meant.length < tokens.length
      ? [{ words: `${tokens.length - meant.length} of those marked are revoked already.`, isWarning: false }]
      : []),
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
  if (meant.length === 0) return [saying(state, tokens.length === 1 ? 'It is not revoked' : 'None of them is revoked')];
  const change: Change = { what: 'reactivate', tokens: meant };
  if (meant.length === 1 && !state.place.isProtected) return sent(state, change, null);
  const expired = meant.filter(({ expires_at }) => Date.parse(expires_at) <= state.nowMs).length;
  return asking(state, {
    change,
    title: `Reactivate ${titleOf(meant)} in ${where(state)}`,
    action: meant.length === 1 ? 'Reactivate' : `Reactivate ${meant.length.toLocaleString('en')}`,
    tokens: meant,
    notes:
      expired > 0
        ? [
            {
              words: `${counted(expired, 'token')} stay${expired === 1 ? 's' : ''} expired all the same.`,
              isWarning: false,
            },
          ]
        : [],
  });
}

/** Takes back the last change, as long as that is offered. */
export function undo(state: State): Step {
  const { undo: last } = state;
  if (!last) return [saying(state, 'There is nothing to undo')];
  return sent({ ...state, undo: null }, last.change, 'undo');
}

export function projectActive(state: State, project: WireProject, isActive: boolean): Step {
  if (project.is_active === isActive) return [saying(state, `It is ${isActive ? 'active' : 'inactive'} already`)];
  const change: Change = { what: 'update-project', project, body: { is_active: isActive } };
  if (isActive && !state.place.isProtected) return sent(state, change, null);
  return asking(state, {
    change,
    title: `${isActive ? 'Activate' : 'Deactivate'} project ${project.name} in ${where(state)}`,
    action: isActive ? 'Activate' : 'Deactivate',
    notes: isActive
      ? []
      : [{ words: 'Its tokens stay as they are, but their clients will get 403 at once.', isWarning: true }],
    typed: state.place.isProtected ? project.name : null,
  });
}

export function revokeAll(state: State, project: WireProject): Step {
  return asking(state, {
    change: { what: 'revoke-all', project },
    title: `Revoke all tokens of ${project.name} in ${where(state)}`,
    action: 'Revoke all',
    notes: [
      {
        words: 'Every token of this project that is not revoked yet, expired ones too; their clients will get 401.',
        isWarning: true,
      },
    ],
    typed: project.name,
  });
}

/** Sends it, if anything can be sent now. */
export function sent(state: State, change: Change, reason: string | null): Step {
  const why = whyNoChange(state);
  if (why !== null) return [saying(state, why, 'bad')];
  return [
    { ...state, message: null },
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
}

function asking(state: State, { change, title, action, tokens = [], notes, typed }: Asking): Step {
  const why = whyNoChange(state);
  if (why !== null) return [saying(state, why, 'bad')];
  const isMuch = tokens.length >= TYPED_FROM || state.place.isProtected;
  const word = typed !== undefined ? typed : isMuch ? wordToType(state, tokens) : null;
  const fields = [
    textField('reason', 'Reason', { hint: 'goes into the audit record', width: 40 }),
    ...(word === null ? [] : [textField('typed', `Type ${word} to confirm`, { width: 30 })]),
  ];
  const dialog = dialogOf(
    {
      purpose: { for: 'change', change, typed: word },
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
  return project?.name ?? String(tokens.length);
}

const titleOf = (tokens: readonly Named[]) => {
  const [only] = tokens;
  return tokens.length === 1 && only ? nameOf(only) : counted(tokens.length, 'token');
};

const isInUse = ({ last_used_at }: WireToken, nowMs: number) =>
  last_used_at !== null && nowMs - Date.parse(last_used_at) < IN_USE_MS;

function itemOf(state: State, token: WireToken): DialogItem {
  const used =
    token.last_used_at === null ? 'never used' : `last used ${relativeTime(token.last_used_at, { now: state.nowMs })}`;
  const rate = perMinute(state, token);
  return {
    cells: [shortId(token.id), token.name ?? '', used, rate === null ? '' : `${rate} req/min`],
    isWarning: isInUse(token, state.nowMs),
  };
}

/** How often it was used in a minute, by what its count was when it was first looked at; null when that is too lately. */
export function perMinute({ tokens, nowMs }: State, { id, request_count }: WireToken): number | null {
  const before = tokens.counted.get(id);
  const ageMs = before ? nowMs - before.atMs : 0;
  if (!before || ageMs < 5_000) return null;
  return Math.round(((request_count - before.count) * 60_000) / ageMs);
}

const DONE: Record<Change['what'], string> = {
  revoke: 'Revoked',
  reactivate: 'Reactivated',
  'create-token': 'Created',
  'create-project': 'Created project',
  'update-project': 'Changed',
  'revoke-all': 'Revoked',
  purge: 'Purged',
};

/** Says what became of a change, and remembers how to take it back. */
export function changed(state: State, change: Change, outcome: Outcome): State {
  const undone = inverseOf(change, outcome);
  const next: State = {
    ...state,
    progress: null,
    undo: undone ? { change: undone, untilMs: state.nowMs + UNDO_MS } : null,
    tokens: isOfTokens(change)
      ? { ...state.tokens, marks: withoutDone(state, outcome), rangeFrom: null }
      : state.tokens,
  };
  const [first, ...others] = outcome.failures;
  if (!first) return saying(next, doneWords(change, outcome), 'good');
  const why = `${nameOf(first.of)}: ${first.failure.message}${others.length > 0 ? `, and ${others.length} more` : ''}`;
  return saying(next, `${doneWords(change, outcome)} Not done: ${why}`, 'bad');
}

export const notChanged = (state: State, change: Change, failure: Failure): State =>
  saying({ ...state, progress: null }, `${failure.message}; nothing was changed`, 'bad');

const isOfTokens = (change: Change) => change.what === 'revoke' || change.what === 'reactivate';

function withoutDone({ tokens }: State, { doneIds }: Outcome): State['tokens']['marks'] {
  const done = new Set(doneIds);
  return new Map([...tokens.marks].filter(([id]) => !done.has(id)));
}

function doneWords(change: Change, { done }: Outcome): string {
  const word = DONE[change.what];
  switch (change.what) {
    case 'revoke':
    case 'reactivate': {
      const [only] = change.tokens;
      return change.tokens.length === 1 && only && done === 1
        ? `${word} ${nameOf(only)}.`
        : `${word} ${counted(done, 'token')}.`;
    }
    case 'create-token':
      return `${word} ${change.body.name ?? 'a token'}.`;
    case 'create-project':
      return `${word} ${change.name}.`;
    case 'update-project':
      return change.body.is_active === undefined
        ? `${word} ${nameOf(change.project)}.`
        : `${change.body.is_active ? 'Activated' : 'Deactivated'} ${nameOf(change.project)}.`;
    case 'revoke-all':
      return `${word} ${counted(done, 'token')} of ${nameOf(change.project)}.`;
    case 'purge':
      return `${word} ${counted(done, 'answer')}.`;
  }
}

/** Only what the API can really take back. */
function inverseOf(change: Change, { doneIds }: Outcome): Change | null {
  if (change.what === 'revoke' || change.what === 'reactivate') {
    const done = new Set(doneIds);
    const tokens = change.tokens.filter(({ id }) => done.has(id));
    return tokens.length === 0 ? null : { what: change.what === 'revoke' ? 'reactivate' : 'revoke', tokens };
  }
  if (change.what === 'update-project' && change.body.is_active !== undefined) {
    return { ...change, body: { is_active: !change.body.is_active } };
  }
  return null;
}
