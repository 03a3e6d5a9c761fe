/** What became of a change: what is said, what is marked no longer, and what takes it back. */
import { counted, nameOf } from './changing.js';
import { refused } from './dialog.js';
import type { Change, Failure, Outcome } from './exchange.js';
import { saying, type State, type UnderWay, type Undo } from './state.js';

const UNDO_MS = 30_000;

/** Says what became of a change, and remembers how to take it back. */
export function changed(before: State, change: Change, outcome: Outcome): State {
  const { state, it } = arrived(before, change);
  const next: State = {
    ...state,
    undo: undoOf(state, change, outcome, (it?.undo ?? null) !== null),
    tokens: isOfTokens(change)
      ? { ...state.tokens, marks: withoutDone(state, outcome), rangeFrom: null }
      : state.tokens,
  };
  const words = doneWords(change, outcome);
  const [first, ...others] = outcome.failures;
  if (!first) return saying(next, words, leftOf(change, outcome) > 0 ? 'plain' : 'good');
  const why = `${nameOf(first.of)}: ${first.failure.message}${others.length > 0 ? `, and ${others.length} more` : ''}`;
  return saying(next, `${words} ${isUnknown(first.failure) ? 'Not known whether done' : 'Not done'}: ${why}`, 'bad');
}

/** Who got no answer cannot know whether the change was made; and a daemon that lost its database while it made it does not know either. */
const isUnknown = ({ kind, status }: Failure) => kind === 'unreachable' || (status !== null && status >= 500);

/** It was not made; what was filled in for it is there again. */
export function notChanged(before: State, change: Change, failure: Failure): State {
  const { state, it } = arrived(before, change);
  const next = { ...state, undo: state.undo ?? it?.undo ?? null };
  const words = `${failure.message}; ${isUnknown(failure) ? 'whether it was done is not known' : 'nothing was changed'}`;
  if (failure.kind === 'unreachable') return saying(next, words, 'bad');
  if (!it?.form || next.layers.length > 0) return saying(next, words, 'bad');
  return { ...next, layers: [refused(it.form, { field: null, words })] };
}

/**
 * What `u` does next. After a change it takes back what was made; where not all was made it asks before. After an undo it is never
 * the opposite, which would make the change once more: it is the rest of the undo, where there is one.
 */
function undoOf({ nowMs }: State, change: Change, outcome: Outcome, wasUndo: boolean): Undo | null {
  const untilMs = nowMs + UNDO_MS;
  if (!wasUndo) {
    const undone = inverseOf(change, outcome);
    const isWhole = leftOf(change, outcome) === 0 && outcome.failures.length === 0;
    const question = isWhole ? null : 'Only what was changed is changed back; the others stay as they are.';
    return undone && { change: undone, untilMs, question };
  }
  const rest = restOf(change, outcome);
  return rest && { change: rest, untilMs, question: 'This goes on with the undo, which was not finished.' };
}

/** The tokens of a change that were not changed and are still there; null: there are none. */
function restOf(change: Change, { doneIds, failures }: Outcome): Change | null {
  if (!('tokens' in change)) return null;
  const gone = failures.filter(({ failure }) => failure.status === 404).map(({ of }) => of.id);
  const over = new Set([...doneIds, ...gone]);
  const tokens = change.tokens.filter(({ id }) => !over.has(id));
  return tokens.length === 0 ? null : { ...change, tokens };
}

const isOfTokens = (change: Change) => change.what === 'revoke' || change.what === 'reactivate';

/** A change is not on its way any more. */
function arrived(state: State, change: Change): { state: State; it: UnderWay | undefined } {
  const it = state.underWay.find((one) => one.change === change);
  const underWay = state.underWay.filter((one) => one !== it);
  const isOfMany = 'tokens' in change && change.tokens.length > 1;
  return { it, state: { ...state, underWay, progress: isOfMany ? null : state.progress } };
}

/** Who failed stays marked, to be tried again; who is not there any more does not. */
function withoutDone({ tokens }: State, { doneIds, failures }: Outcome): State['tokens']['marks'] {
  const gone = failures.filter(({ failure }) => failure.status === 404).map(({ of }) => of.id);
  const done = new Set([...doneIds, ...gone]);
  return new Map([...tokens.marks].filter(([id]) => !done.has(id)));
}

/** How many were not even tried: it was stopped, or the daemon went away. */
function leftOf(change: Change, { done, failures }: Outcome): number {
  return 'tokens' in change ? change.tokens.length - done - failures.length : 0;
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

function doneWords(change: Change, outcome: Outcome): string {
  const { done } = outcome;
  const word = DONE[change.what];
  switch (change.what) {
    case 'revoke':
    case 'reactivate': {
      const [only] = change.tokens;
      if (change.tokens.length === 1 && only && done === 1) return `${word} ${nameOf(only)}.`;
      const left = leftOf(change, outcome);
      return `${word} ${counted(done, 'token')}${left > 0 ? `; ${left.toLocaleString('en')} left as they were` : ''}.`;
    }
    case 'create-token':
      return `${word} ${change.body.name ?? 'a token'}.`;
    case 'create-project':
      return `${word} ${change.name}.`;
    case 'update-project':
      return updatedWords(change);
    case 'revoke-all':
      return `${word} ${counted(done, 'token')} of ${nameOf(change.project)}.`;
    case 'purge':
      return `${word} ${counted(done, 'answer')}.`;
  }
}

type ProjectUpdate = Extract<Change, { what: 'update-project' }>;

function updatedWords({ project, body, key }: ProjectUpdate): string {
  if (body.is_active !== undefined) return `${body.is_active ? 'Activated' : 'Deactivated'} ${nameOf(project)}.`;
  if (body.name !== undefined) return `Renamed ${nameOf(project)} to ${body.name}.`;
  return key ? `Set the key of ${nameOf(project)}.` : `Changed ${nameOf(project)}.`;
}

/** Only what the API can really take back. */
function inverseOf(change: Change, { doneIds }: Outcome): Change | null {
  if (change.what === 'revoke' || change.what === 'reactivate') {
    const done = new Set(doneIds);
    const tokens = change.tokens.filter(({ id }) => done.has(id));
    return tokens.length === 0 ? null : { what: change.what === 'revoke' ? 'reactivate' : 'revoke', tokens };
  }
  if (change.what !== 'update-project') return null;
  const { project, body } = change;
  if (body.is_active !== undefined) return { ...change, body: { is_active: !body.is_active } };
  if (body.name === undefined || project.name === null) return null;
  return { ...change, project: { id: project.id, name: body.name }, body: { name: project.name } };
}
