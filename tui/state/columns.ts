/** The columns of lists: which there are, which are shown, and how the operator chooses them. */
import type { FilteredScreen } from '../../console/query/types.js';
import { screenOf } from './filtering.js';
import { above, closed } from './navigation.js';
import { MAX_COLUMNS, type SavedChange, withSavedChange } from './saved.js';
import { shownView } from './saved-views.js';
import type { ColumnChoice } from './layers.js';
import { layer, type State, type Transition, withLayer, withMessage } from './state.js';

interface ColumnInfo {
  id: string;
  what: string;
  /** It is only shown when the operator chooses it. */
  isOptional?: true;
}

const TOKEN_COLUMNS = [
  { id: 'id', what: 'beginning of the ID' },
  { id: 'name', what: 'name' },
  { id: 'project', what: 'name of its project' },
  { id: 'state', what: 'state' },
  { id: 'expires', what: 'time until it expires' },
  { id: 'requests', what: 'forwarded requests, and the cap' },
  { id: 'hit_ratio', what: 'share of responses from the cache' },
  { id: 'last_used', what: 'time since the last request' },
  { id: 'created', what: 'time since it was issued' },
  { id: 'secret', what: 'obfuscated secret' },
  { id: 'hits', what: 'responses from the cache', isOptional: true },
  { id: 'used', what: 'used part of the cap', isOptional: true },
  { id: 'expiry', what: 'date and time of the expiry', isOptional: true },
  { id: 'issued', what: 'date and time when it was issued', isOptional: true },
  { id: 'revoked', what: 'time since it was revoked', isOptional: true },
  { id: 'revoked_by', what: 'who revoked it', isOptional: true },
  { id: 'reason', what: 'why it was revoked', isOptional: true },
] as const satisfies readonly ColumnInfo[];

const PROJECT_COLUMNS = [
  { id: 'id', what: 'beginning of the ID' },
  { id: 'name', what: 'name' },
  { id: 'state', what: 'active or inactive' },
  { id: 'tokens', what: 'active tokens, and all tokens' },
  { id: 'requests', what: 'requests in the last 24 hours' },
  { id: 'errors', what: 'failed and refused requests in the last 24 hours' },
  { id: 'last_used', what: 'time since the last request' },
  { id: 'provider', what: 'provider' },
  { id: 'key', what: "end of the provider's key" },
  { id: 'created', what: 'time since it was created' },
  { id: 'changed', what: 'time since the last change' },
  { id: 'deactivated', what: 'time since it was deactivated' },
] as const satisfies readonly ColumnInfo[];

const AUDIT_COLUMNS = [
  { id: 'time', what: 'time' },
  { id: 'action', what: 'what was done' },
  { id: 'outcome', what: 'whether it was done' },
  { id: 'actor', what: 'who did it' },
  { id: 'target', what: 'the token or project that it concerns' },
  { id: 'from', what: "the caller's address" },
  { id: 'reason', what: 'the reason that was given' },
  { id: 'project', what: 'name of the project', isOptional: true },
  { id: 'request', what: 'ID of the request', isOptional: true },
] as const satisfies readonly ColumnInfo[];

const EVENT_COLUMNS = [
  { id: 'time', what: 'time of completion' },
  { id: 'status', what: 'status of the response' },
  { id: 'refuser', what: 'who refused the request: llmp or the provider' },
  { id: 'code', what: 'code of a refusal' },
  { id: 'request', what: 'method and path, or the kind of change' },
  { id: 'token', what: 'name of the token' },
  { id: 'project', what: 'name of the project' },
  { id: 'model', what: 'model' },
  { id: 'model_tokens', what: 'model tokens in the prompt and in the response' },
  { id: 'duration', what: 'duration' },
  { id: 'cache', what: 'whether the response came from the cache' },
  { id: 'outcome', what: 'how the request ended', isOptional: true },
  { id: 'first_byte', what: 'time to the first byte of the response', isOptional: true },
  { id: 'upstream', what: 'time that the provider took', isOptional: true },
  { id: 'bytes', what: 'size of the response', isOptional: true },
  { id: 'instance', what: 'the instance that forwarded it', isOptional: true },
  { id: 'request_id', what: 'ID of the request', isOptional: true },
] as const satisfies readonly ColumnInfo[];

const TOP_COLUMNS = [
  { id: 'name', what: 'token, project or model' },
  { id: 'project', what: 'name of the project' },
  { id: 'requests', what: 'completed requests' },
  { id: 'errors', what: 'requests that were refused, failed or ended by a revocation' },
  { id: 'kinds', what: 'errors by who caused them' },
  { id: 'model_tokens', what: 'model tokens in prompts and responses' },
  { id: 'median', what: 'median time until the response of the provider started' },
  { id: 'percentile', what: '95th percentile of that time' },
  { id: 'last_use', what: 'time since the last request' },
  { id: 'trend', what: 'requests over time; a part with errors has the color of errors' },
  { id: 'id', what: 'beginning of the ID of the token or project', isOptional: true },
  { id: 'hits', what: 'responses from the cache', isOptional: true },
  { id: 'prompt', what: 'model tokens in prompts', isOptional: true },
  { id: 'completion', what: 'model tokens in responses', isOptional: true },
] as const satisfies readonly ColumnInfo[];

export const COLUMNS = {
  tokens: TOKEN_COLUMNS,
  projects: PROJECT_COLUMNS,
  audit: AUDIT_COLUMNS,
  events: EVENT_COLUMNS,
  top: TOP_COLUMNS,
} as const satisfies Record<FilteredScreen, readonly ColumnInfo[]>;

/** A screen whose columns can be chosen. */
export type ColumnScreen = keyof typeof COLUMNS;
export type ColumnId<S extends ColumnScreen> = (typeof COLUMNS)[S][number]['id'];

export const columnInfo = (screen: FilteredScreen): readonly ColumnInfo[] => COLUMNS[screen];

const defaultIds = (screen: FilteredScreen): string[] =>
  columnInfo(screen).flatMap(({ id, isOptional }) => (isOptional ? [] : [id]));

/** The chosen columns of a list, in their order: while they are being chosen, of the view, or of the context. Null: the default ones. */
export function chosenColumns(state: State, screen: FilteredScreen): readonly string[] | null {
  const top = layer(state);
  if (top?.kind === 'columns' && top.screen === screen) return idsOf(top);
  const view = shownView(state);
  return (view?.screen === screen ? view.columns : null) ?? state.saved.columns[screen] ?? null;
}

const idsOf = ({ entries }: ColumnChoice) => entries.flatMap(({ id, isShown }) => (isShown ? [id] : []));

export function openChoice(state: State): Transition {
  const screen = screenOf(state);
  if (screen === undefined) return [state];
  return [above(state, choiceOf(screen, chosenColumns(state, screen) ?? defaultIds(screen)))];
}

/** The shown columns first, in their order. */
function choiceOf(screen: FilteredScreen, ids: readonly string[]): ColumnChoice {
  const all = columnInfo(screen).map(({ id }) => id);
  const shown = ids.filter((id) => all.includes(id));
  const hidden = all.filter((id) => !shown.includes(id));
  const entries = [...shown.map((id) => ({ id, isShown: true })), ...hidden.map((id) => ({ id, isShown: false }))];
  return { kind: 'columns', screen, entries, selected: 0, notice: null };
}

export const selectedBy =
  (by: number) =>
  (choice: ColumnChoice): ColumnChoice => ({
    ...choice,
    selected: Math.max(0, Math.min(choice.entries.length - 1, choice.selected + by)),
    notice: null,
  });

export function toggled(choice: ColumnChoice): ColumnChoice {
  const entries = choice.entries.map((entry, at) =>
    at === choice.selected ? { ...entry, isShown: !entry.isShown } : entry,
  );
  const shown = entries.filter(({ isShown }) => isShown).length;
  if (shown === 0) return { ...choice, notice: 'A list needs at least one column' };
  return shown > MAX_COLUMNS
    ? { ...choice, notice: `Up to ${MAX_COLUMNS} columns` }
    : { ...choice, entries, notice: null };
}

/** Moves the selected column towards the beginning or the end. */
export const movedBy =
  (by: 1 | -1) =>
  (choice: ColumnChoice): ColumnChoice => {
    const { entries, selected } = choice;
    const [entry, other] = [entries[selected], entries[selected + by]];
    if (!entry || !other) return { ...choice, notice: `This is the ${by === 1 ? 'last' : 'first'} column` };
    const next = entries.toSpliced(selected, 1, other).toSpliced(selected + by, 1, entry);
    return { ...choice, entries: next, selected: selected + by, notice: null };
  };

export const reset = ({ screen }: ColumnChoice): ColumnChoice => ({
  ...choiceOf(screen, defaultIds(screen)),
  notice: 'These are the default columns',
});

export const onChoice =
  (change: (choice: ColumnChoice) => ColumnChoice) =>
  (state: State): Transition => {
    const top = layer(state);
    return top?.kind === 'columns' ? [withLayer(state, change(top))] : [state];
  };

/** Stores the choice: with the saved view that is shown, or else for this list of the context. */
export function applied(state: State): Transition {
  const top = layer(state);
  if (top?.kind !== 'columns') return [state];
  const { screen } = top;
  const below = closed(state);
  const ids = idsOf(top);
  const columns = ids.join() === defaultIds(screen).join() ? null : ids;
  if (JSON.stringify(columns) === JSON.stringify(chosenColumns(below, screen))) return [below];
  const view = shownView(below);
  const change: SavedChange =
    view?.screen === screen ? { what: 'view', view: { ...view, columns } } : { what: 'columns', screen, columns };
  const next = { ...below, saved: withSavedChange(below.saved, change) };
  const words =
    change.what === 'view' ? `Saved the columns of the view ${change.view.name}` : `Saved the columns of ${screen}`;
  return [withMessage(next, words, 'good'), { do: 'save', change }];
}
