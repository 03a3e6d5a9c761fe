/**
 * Undo and redo. The daemon undoes a change by the ID of its batch, and leaves what somebody else has changed since. Each change that can
 * be undone is remembered, up to ten. `u` undoes the newest, and `U` undoes the last undo. What was done long ago, or in part only, or
 * would revoke tokens, is confirmed first. In the audit log, `u` undoes the change under the cursor.
 */
import type { WireAuditRecord } from '../../daemon/api/contract.js';
import type { Policies, PolicyChanges } from '../../daemon/api/vocabulary.js';
import { actorShown, exact, relativeTime } from '../../daemon/api/formats.js';
import { confirm, isOfPolicies, nameOf, policyVerb, send, titleOf, where } from './changes.js';
import { note, warning } from './dialog.js';
import type { ChangeRequest, ChangeResult, Reversal, UndoRequest } from './exchange.js';
import { daemonNow, type State, type Transition, type UndoHistory, withMessage } from './state.js';

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
  const questions = questionsOf(state, reversal);
  const mayRevoke = kind === 'redo' || reversal.change.as?.what === 'revoke';
  return questions.length > 0
    ? asked(state, reversal, questions.map(note), mayRevoke)
    : sendReversal(state, reversal, kind);
}

/** @param mayRevoke whether Enter alone must not be enough. */
function asked(state: State, reversal: Reversal, notes: ReturnType<typeof note>[], mayRevoke: boolean): Transition {
  const { kind, change } = reversal;
  const action = kind === 'undo' ? 'Undo' : 'Redo';
  return confirm(state, {
    change,
    title: `${action}: ${descriptionOf(change)} in ${where(state)}`,
    action,
    notes,
    typed: null,
    reason: kind,
    reversal,
    focus: mayRevoke ? 'cancel' : 'action',
  });
}

/** The actions whose changes the daemon can undo. Others, such as a purge, cannot. */
const UNDOABLE = new Set<WireAuditRecord['action']>([
  'token.create',
  'token.update',
  'token.revoke',
  'token.reactivate',
  'project.create',
  'project.update',
]);
/** The undo of these revokes tokens. */
const MAKES_USABLE = new Set<WireAuditRecord['action']>(['token.create', 'token.reactivate']);

/** Why a record's change cannot be undone; null: it can, if nobody has changed the same since. */
export function whyNotUndoable({ batch, action, outcome }: WireAuditRecord): string | null {
  if (outcome !== 'success') return 'Nothing was changed, so there is nothing to undo';
  if (!UNDOABLE.has(action)) return `${action} cannot be undone`;
  return batch === null ? 'It was made without a batch ID, so it cannot be undone from here' : null;
}

/** Asks whether to undo what a record of the audit log shows, which may be a batch of anybody. */
export function revertRecord(state: State, record: WireAuditRecord): Transition {
  const { batch, action, count, time } = record;
  if (batch === null) return [state];
  const what = count !== null && count > 1 ? `${exact(count)} × ${action}` : action;
  const title = `${what} by ${actorShown(record)}, ${relativeTime(time, daemonNow(state))}`;
  const change: UndoRequest = { what: 'undo', batch, as: null, title };
  const reversal: Reversal = { kind: 'undo', change, madeMs: state.nowMs, confirmation: null };
  const mayRevoke = MAKES_USABLE.has(action);
  const notes = [
    ...(mayRevoke ? [warning('Clients of these tokens will get 401.')] : []),
    note('What was changed again since then stays as it is.'),
  ];
  return asked(state, reversal, notes, mayRevoke);
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
    ...(kind === 'redo' && change.as === null ? ['This makes the changes again.'] : []),
    ...(kind === 'redo' && change.as?.what === 'revoke' ? ['Clients of these tokens will get 401.'] : []),
  ];
}

/** What a change does, as an imperative: `Reactivate 5 tokens`. */
export function descriptionOf(change: ChangeRequest): string {
  switch (change.what) {
    case 'revoke':
    case 'reactivate':
      return `${change.what === 'revoke' ? 'Revoke' : 'Reactivate'} ${titleOf(change.tokens)}`;
    case 'update-token':
      return `Change what ${nameOf(change.token)} ${policyVerb(change.body)}`;
    case 'update-project': {
      const { project, body } = change;
      if (isOfPolicies(body)) return `Change what the tokens of ${nameOf(project)} ${policyVerb(body)}`;
      if (body.name !== undefined) return `Rename ${nameOf(project)} to ${body.name}`;
      return `${body.is_active ? 'Activate' : 'Deactivate'} ${nameOf(project)}`;
    }
    case 'undo':
      return change.as ? descriptionOf(change.as) : change.title;
    default:
      return change.what;
  }
}

/** The history after a change succeeded, at least in part. An undo is a batch, too: to redo is to undo it. */
export function historyAfter(
  { undoHistory: history, nowMs }: State,
  change: ChangeRequest,
  result: ChangeResult,
  reversal: Reversal | null,
): UndoHistory {
  const undo = undoOf(change, result);
  const remembered = (kind: Reversal['kind'], confirmation: string | null) =>
    undo ? added(history[kind], { kind, change: undo, madeMs: nowMs, confirmation }) : history[kind];
  if (reversal !== null) {
    const opposite = reversal.kind === 'undo' ? 'redo' : 'undo';
    return { ...history, [opposite]: remembered(opposite, null) };
  }
  const isWhole = result.failures.length === 0 && notTriedCount(change, result) === 0;
  return { undo: remembered('undo', isWhole ? null : 'Only the tokens that were changed are changed back.'), redo: [] };
}

/** The history after an undo or redo failed: it is available again. */
export const historyAfterFailure = ({ undoHistory }: State, reversal: Reversal | null): UndoHistory =>
  reversal === null ? undoHistory : { ...undoHistory, [reversal.kind]: added(undoHistory[reversal.kind], reversal) };

const added = (reversals: readonly Reversal[], one: Reversal) => [...reversals, one].slice(-MAX_REVERSALS);

const without = (history: UndoHistory, { kind, change: { batch } }: Reversal): UndoHistory => ({
  ...history,
  [kind]: history[kind].filter(({ change }) => change.batch !== batch),
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

/** The undo of a change; null if there is none. */
function undoOf(change: ChangeRequest, result: ChangeResult): UndoRequest | null {
  const { batch, done } = result;
  if (batch === undefined || done === 0) return null;
  if (change.what === 'undo' && change.as === null) return { what: 'undo', batch, as: null, title: change.title };
  const as = inverseOf(change.what === 'undo' && change.as ? change.as : change, result);
  return as && { what: 'undo', batch, as, title: '' };
}

/** What the undo amounts to; null if `u` does not undo such a change. */
function inverseOf(change: ChangeRequest, { doneIds }: ChangeResult): ChangeRequest | null {
  if (change.what === 'revoke' || change.what === 'reactivate') {
    const done = new Set(doneIds);
    const tokens = change.tokens.filter(({ id }) => done.has(id));
    return tokens.length === 0 ? null : { what: change.what === 'revoke' ? 'reactivate' : 'revoke', tokens };
  }
  if (change.what === 'update-token') {
    const { token, body } = change;
    return { ...change, token: { ...token, ...body }, body: policiesBefore(token, body) };
  }
  if (change.what !== 'update-project') return null;
  const { project, body } = change;
  const { allow, limits, budget } = project;
  if (isOfPolicies(body) && allow !== undefined && limits !== undefined && budget !== undefined)
    return { ...change, body: policiesBefore({ allow, limits, budget }, body) };
  if (body.is_active !== undefined) return { ...change, body: { is_active: !body.is_active } };
  if (body.name === undefined || project.name === null) return null;
  return { ...change, project: { id: project.id, name: body.name }, body: { name: project.name } };
}

/** Those of the policies that a change replaces. */
const policiesBefore = ({ allow, limits, budget }: Policies, body: PolicyChanges): Partial<Policies> => ({
  ...('allow' in body && { allow }),
  ...('limits' in body && { limits }),
  ...('budget' in body && { budget }),
});
