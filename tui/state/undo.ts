/**
 * Undo and redo. Each change that the API can revert is remembered, up to ten. `u` reverts the newest, and `U` repeats what `u`
 * reverted. What was done long ago, or in part only, or would revoke tokens, is confirmed first.
 */
import { relativeTime } from '../../daemon/api/formats.js';
import { confirm, nameOf, send, titleOf, where } from './changes.js';
import { note } from './dialog.js';
import type { ChangeRequest, ChangeResult, Reversal } from './exchange.js';
import { type State, type Transition, type UndoHistory, withMessage } from './state.js';

const MAX_REVERSALS = 10;
/** A change that is older than this is confirmed first: the operator may have forgotten what `u` reverts. */
export const UNDO_AT_ONCE_MS = 30_000;

export const NOTHING_TO = { undo: 'Nothing to undo', redo: 'Nothing to redo' } as const;

/** What the key does now; undefined: nothing. */
export const nextReversal = ({ undoHistory }: State, kind: Reversal['kind']): Reversal | undefined =>
  undoHistory[kind].at(-1);

/** Sends the newest undo or redo, or asks first. */
export function revert(state: State, kind: Reversal['kind']): Transition {
  const reversal = nextReversal(state, kind);
  if (!reversal) return [withMessage(state, NOTHING_TO[kind])];
  const { change } = reversal;
  const questions = questionsOf(state, reversal);
  if (questions.length > 0) {
    return confirm(state, {
      change,
      title: `${kind === 'undo' ? 'Undo' : 'Redo'}: ${descriptionOf(change)} in ${where(state)}`,
      action: kind === 'undo' ? 'Undo' : 'Redo',
      notes: questions.map(note),
      typed: null,
      reason: kind,
      reversal,
    });
  }
  return sendReversal(state, reversal, kind);
}

/** Sends a change that was confirmed, or that needs no confirmation. While it has no response, `u` does not send it again. */
export function sendReversal(state: State, reversal: Reversal, reason: string | null): Transition {
  const [next, ...effects] = send(state, reversal.change, reason, { reversal });
  return effects.length > 0 ? [{ ...next, undoHistory: without(state.undoHistory, reversal) }, ...effects] : [next];
}

/** Why the operator is asked first. */
function questionsOf(state: State, { kind, change, madeMs, confirmation }: Reversal): string[] {
  const { nowMs } = state;
  return [
    ...(confirmation === null ? [] : [confirmation]),
    ...(nowMs - madeMs >= UNDO_AT_ONCE_MS
      ? [`The change was made ${relativeTime(new Date(madeMs).toISOString(), nowMs)}.`]
      : []),
    ...(kind === 'redo' && change.what === 'revoke' ? ['Clients of these tokens will get 401.'] : []),
  ];
}

/** What a change does, as an imperative: `Reactivate 5 tokens`. */
export function descriptionOf(change: ChangeRequest): string {
  switch (change.what) {
    case 'revoke':
    case 'reactivate':
      return `${change.what === 'revoke' ? 'Revoke' : 'Reactivate'} ${titleOf(change.tokens)}`;
    case 'update-project': {
      const { project, body } = change;
      if (body.name !== undefined) return `Rename ${nameOf(project)} to ${body.name}`;
      return `${body.is_active ? 'Activate' : 'Deactivate'} ${nameOf(project)}`;
    }
    default:
      return change.what;
  }
}

/**
 * The history after a change succeeded, at least in part.
 *
 * After an undo, `u` never repeats the original change: it completes the undo if a part is left, and goes on to the change before.
 */
export function historyAfter(
  { undoHistory: history, nowMs }: State,
  change: ChangeRequest,
  result: ChangeResult,
  reversal: Reversal | null,
): UndoHistory {
  const inverse = inverseOf(change, result);
  if (reversal === null) {
    const isWhole = result.failures.length === 0 && notTriedCount(change, result) === 0;
    const confirmation = isWhole ? null : 'Only the tokens that were changed are changed back.';
    const undo = inverse && added(history.undo, { kind: 'undo', change: inverse, madeMs: nowMs, confirmation });
    return { undo: undo ?? history.undo, redo: [] };
  }
  const { kind } = reversal;
  const opposite = kind === 'undo' ? 'redo' : 'undo';
  const rest = restOf(change, result);
  const confirmation = `This continues the ${kind}, which did not finish.`;
  return {
    ...history,
    [kind]: rest ? added(history[kind], { kind, change: rest, madeMs: nowMs, confirmation }) : history[kind],
    [opposite]: inverse
      ? added(history[opposite], { kind: opposite, change: inverse, madeMs: nowMs, confirmation: null })
      : history[opposite],
  };
}

/** The history after an undo or redo failed: it is available again. */
export const historyAfterFailure = ({ undoHistory }: State, reversal: Reversal | null): UndoHistory =>
  reversal === null ? undoHistory : { ...undoHistory, [reversal.kind]: added(undoHistory[reversal.kind], reversal) };

const added = (reversals: readonly Reversal[], one: Reversal) => [...reversals, one].slice(-MAX_REVERSALS);

const without = (history: UndoHistory, reversal: Reversal): UndoHistory => ({
  ...history,
  [reversal.kind]: history[reversal.kind].filter((it) => it !== reversal),
});

/** Number of tokens not tried because the operator stopped the change or the daemon became unreachable. */
export function notTriedCount(change: ChangeRequest, { done, failures }: ChangeResult): number {
  return 'tokens' in change ? change.tokens.length - done - failures.length : 0;
}

/** The tokens that were changed, or do not exist any more. */
export function settledIds({ doneIds, failures }: ChangeResult): ReadonlySet<string> {
  const gone = failures.filter(({ failure }) => failure.status === 404).map(({ of }) => of.id);
  return new Set([...doneIds, ...gone]);
}

/** The change for the tokens that were not changed and still exist; null: none are left. */
function restOf(change: ChangeRequest, result: ChangeResult): ChangeRequest | null {
  if (!('tokens' in change)) return null;
  const over = settledIds(result);
  const tokens = change.tokens.filter(({ id }) => !over.has(id));
  return tokens.length === 0 ? null : { ...change, tokens };
}

/** The inverse of a change; null if the API cannot revert it. */
function inverseOf(change: ChangeRequest, { doneIds }: ChangeResult): ChangeRequest | null {
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
