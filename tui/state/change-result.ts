/** The result of a change: the message and the remaining marks. */
import { POLICY_FIELDS } from '../../console/columns/policy-fields.js';
import { TOKEN_TERMS } from '../../console/columns/tokens.js';
import { KEY_CHECK_SENTENCES } from '../../daemon/api/checked-key.js';
import { skippedSentences } from '../../daemon/api/undone.js';
import { counted, exact } from '../../daemon/api/formats.js';
import type { ProblemCode } from '../../daemon/api/schemas/problem.js';
import type { Ceilings } from '../../daemon/api/vocabulary.js';
import { isOfPolicies, nameOf, policyVerb } from './changes.js';
import { refused } from './dialog.js';
import type { ChangeRequest, ChangeResult, Failure, Named, UndoRequest } from './exchange.js';
import type { Label, Layer } from './layers.js';
import { layer, withLayer, withResult, type State, type PendingChange } from './state.js';
import { historyAfter, historyAfterFailure, notTriedCount, settledIds } from './undo.js';

/** Reports the result of a change, and remembers how to undo it. */
export function changed(before: State, change: ChangeRequest, outcome: ChangeResult): State {
  const { state, it } = withoutPending(before, change);
  const next: State = {
    ...state,
    layers: state.layers.filter((one) => !isAwaiting(one, change)),
    undoHistory: historyAfter(state, change, outcome, it?.reversal ?? null),
    tokens: changesTokens(change)
      ? { ...state.tokens, marks: remainingMarks(state, outcome), rangeFrom: null }
      : state.tokens,
  };
  const words = resultMessage(change, outcome);
  const [first, ...others] = outcome.failures;
  if (!first) {
    const isWhole = notTriedCount(change, outcome) === 0 && (outcome.skipped ?? []).length === 0;
    return withResult(next, words, isWhole ? 'good' : 'plain');
  }
  const why = `${nameOf(first.of)}: ${first.failure.message}${others.length > 0 ? `, and ${others.length} more` : ''}`;
  return withResult(next, `${words} ${isUnknown(first.failure) ? 'Result unknown' : 'Failed'}: ${why}`, 'bad');
}

/** Without a response the result is unknown. It is also unknown when the daemon lost its database during the change (5xx). */
const isUnknown = ({ kind, status, code }: Failure) =>
  kind === 'unreachable' || (status !== null && status >= 500 && code !== NOT_CHECKED);

const NOT_CHECKED: ProblemCode = 'key_not_checked';

/** What is wrong with a key that was checked, or is missing, by the code of the failure. */
const KEY_PROBLEMS = new Map<string, { field: Label; words: string }>(
  Object.entries({
    key_required: {
      field: "Provider's key",
      words: 'This provider is on another host: enter its key. Nothing was changed',
    },
    key_refused: { field: "Provider's key", words: 'The provider refused this key; nothing was stored' },
    key_not_checked: {
      field: 'Check',
      words:
        'Nothing was stored: the provider did not respond to the check. Try again, or store the key without a check',
    },
  } satisfies Partial<Record<ProblemCode, { field: Label; words: string }>>),
);

const BEYOND_CEILING: ProblemCode = 'beyond_ceiling';

/** Where a form has what a ceiling is for. */
const OF_CEILINGS: Partial<Record<string, Label>> = {
  hours: 'Expires in',
  requests: TOKEN_TERMS.max_requests.label,
  models: POLICY_FIELDS.models.label,
  routes: POLICY_FIELDS.routes.label,
  limits: POLICY_FIELDS.requests_per_minute.label,
  budget: POLICY_FIELDS.budget_usd.label,
} satisfies Partial<Record<keyof Ceilings, Label>>;

/** The field of the ceiling that the daemon names. */
const ceilingField = ({ code, message }: Failure): Label | null =>
  code === BEYOND_CEILING ? (OF_CEILINGS[/ceiling (\w+)/.exec(message)?.[1] ?? ''] ?? null) : null;

/** The change failed. Its form is shown again with the values that were entered. */
export function changeFailed(before: State, change: ChangeRequest, failure: Failure): State {
  const { state, it } = withoutPending(before, change);
  const next = { ...state, undoHistory: historyAfterFailure(state, it?.reversal ?? null) };
  const { field, words } = KEY_PROBLEMS.get(failure.code) ?? {
    field: failure.code === 'file_not_created' ? ('File' as const) : ceilingField(failure),
    words: `${failure.message}; ${isUnknown(failure) ? 'the result is unknown' : 'nothing was changed'}`,
  };
  const dialog = layer(next);
  if (dialog?.kind === 'dialog' && isAwaiting(dialog, change))
    return withLayer(next, refused({ ...dialog, awaited: null }, { field, words }));
  if (failure.kind === 'unreachable') return withResult(next, words, 'bad');
  if (!it?.form || next.layers.length > 0) return withResult(next, words, 'bad');
  return { ...next, layers: [refused(it.form, { field, words })] };
}

/** Whether the layer is the form of the change, which waits for the response. */
const isAwaiting = (one: Layer, change: ChangeRequest) => one.kind === 'dialog' && one.awaited === change;

const changesTokens = (change: ChangeRequest) => 'tokens' in change || change.what === 'undo';

/** Removes the change from the pending ones. */
function withoutPending(state: State, change: ChangeRequest): { state: State; it: PendingChange | undefined } {
  const it = state.pendingChanges.find((one) => one.change === change);
  const pendingChanges = state.pendingChanges.filter((one) => one !== it);
  const isOfMany = change.what === 'undo' || ('tokens' in change && change.tokens.length > 1);
  return { it, state: { ...state, pendingChanges, progress: isOfMany ? null : state.progress } };
}

/** Tokens that failed stay marked for another try; tokens that no longer exist do not. */
function remainingMarks({ tokens }: State, result: ChangeResult): State['tokens']['marks'] {
  const done = settledIds(result);
  return new Map([...tokens.marks].filter(([id]) => !done.has(id)));
}

const DONE: Record<ChangeRequest['what'], string> = {
  revoke: 'Revoked',
  reactivate: 'Reactivated',
  'create-token': 'Created',
  'update-token': 'Changed',
  'issue-again': 'Issued',
  'create-project': 'Created project',
  'update-project': 'Changed',
  'revoke-all': 'Revoked',
  purge: 'Purged',
  'create-operator': 'Created operator',
  'activate-operator': 'Activated operator',
  'deactivate-operator': 'Deactivated operator',
  undo: 'Undone',
};

/** `Reactivated 498 tokens. 2 were changed again since and stay as they are.` */
function undoMessage({ as, title }: UndoRequest, outcome: ChangeResult): string {
  const { done, doneIds, skipped = [] } = outcome;
  const left = skippedSentences(skipped);
  if (as === null && left.length > 0)
    left.unshift(`Undid ${exact(done)} of ${counted(done + skipped.length, 'change')}.`);
  else if (as === null) left.unshift(`Undone: ${title}.`);
  else if (done > 0)
    left.unshift(resultMessage('tokens' in as ? { ...as, tokens: among(as.tokens, doneIds) } : as, outcome));
  return left.join(' ');
}

const among = (tokens: readonly Named[], ids: readonly string[]) => tokens.filter(({ id }) => ids.includes(id));

function resultMessage(change: ChangeRequest, outcome: ChangeResult): string {
  const { done } = outcome;
  const word = DONE[change.what];
  switch (change.what) {
    case 'revoke':
    case 'reactivate': {
      const [only] = change.tokens;
      if (change.tokens.length === 1 && only && done === 1) return `${word} ${nameOf(only)}.`;
      const left = notTriedCount(change, outcome);
      return `${word} ${counted(done, 'token')}${left > 0 ? `; ${left.toLocaleString('en')} not changed` : ''}.`;
    }
    case 'issue-again': {
      const left = notTriedCount(change, outcome);
      return `${word} ${counted(done, 'token')} again${left > 0 ? `; ${left.toLocaleString('en')} not issued` : ''}.`;
    }
    case 'create-token':
      return `${word} ${outcome.created?.of.is === 'token' ? (outcome.created.of.token.name ?? 'a token') : 'a token'}.`;
    case 'update-token':
      return `${word} what ${nameOf(change.token)} ${policyVerb(change.body)}.`;
    case 'create-project':
      return `${word} ${change.name}.${checkMessage(outcome)}`;
    case 'update-project':
      return projectMessage(change, outcome);
    case 'revoke-all':
      return `${word} ${counted(done, 'token')} of ${nameOf(change.project)}.`;
    case 'purge':
      return `${word} ${counted(done, 'cached response')}.`;
    case 'create-operator':
      return `${word} ${change.body.name}.`;
    case 'activate-operator':
      return `${word} ${nameOf(change.operator)}.`;
    case 'deactivate-operator':
      return `${word} ${nameOf(change.operator)}. Revoked ${counted(outcome.revoked ?? 0, 'token')}.`;
    case 'undo':
      return undoMessage(change, outcome);
  }
}

const checkMessage = ({ keyCheck }: ChangeResult) => (keyCheck ? ` ${KEY_CHECK_SENTENCES[keyCheck]}` : '');

type ProjectUpdate = Extract<ChangeRequest, { what: 'update-project' }>;

function projectMessage({ project, body, key }: ProjectUpdate, outcome: ChangeResult): string {
  if (body.is_active !== undefined) return `${body.is_active ? 'Activated' : 'Deactivated'} ${nameOf(project)}.`;
  if (body.name !== undefined) return `Renamed ${nameOf(project)} to ${body.name}.`;
  if ('upstream_base_url' in body || 'upstream_auth' in body)
    return `Changed the provider of ${nameOf(project)}.${checkMessage(outcome)}`;
  if (body.missing_usage !== undefined)
    return `Changed the missing usage of ${nameOf(project)} to ${body.missing_usage}.`;
  if (isOfPolicies(body)) return `Changed what the tokens of ${nameOf(project)} ${policyVerb(body)}.`;
  return key ? `Changed the key of ${nameOf(project)}.${checkMessage(outcome)}` : `Changed ${nameOf(project)}.`;
}
