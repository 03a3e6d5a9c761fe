/** The filter line: a filter is applied after a pause in typing, or at once with Enter. Escape restores the previous filter. */
import type { TokenQuery, WireProject } from '../../daemon/api/contract.js';
import type { Effect } from './exchange.js';
import * as feeds from './feeds.js';
import { parseFilter, suggest, type Suggestion } from '../../console/query/filter.js';
import type { Filter, FilteredScreen, FilterKey } from '../../console/query/types.js';
import { keysOf } from '../../console/query/keys.js';
import { type Line, lineOf } from './line.js';
import { closed, filterOf } from './navigation.js';
import * as projects from './projects.js';
import { SAVED_SCREENS } from './saved.js';
import { searched, searchIn } from './secret-search.js';
import type { Prompt } from './layers.js';
import { andThen, knownNames, type State, type Transition, view, withLayer, loads } from './state.js';
import * as tokens from './tokens.js';
import * as top from './top.js';

const TYPING_PAUSE_MS = 250;

export const screenOf = (state: State): FilteredScreen | undefined => {
  const { screen } = view(state);
  return SAVED_SCREENS.find((one) => one === screen);
};

export function parsed(state: State, text: string): Filter<FilteredScreen> | undefined {
  const screen = screenOf(state);
  return screen && parseFilter(text, screen, knownNames(state));
}

/** Completions at the caret; null on a screen without a filter. */
export function suggestionsAt(state: State, { text, caret }: Line): Suggestion | null {
  const screen = screenOf(state);
  return screen ? suggest(text, caret, screen, knownNames(state)) : null;
}

/** The filter keys of this screen. */
export function filterKeys(state: State): readonly FilterKey[] {
  const screen = screenOf(state);
  return screen ? keysOf(screen, knownNames(state)) : [];
}

/** The filter was edited: it is applied after a pause in typing. */
export function changed(state: State, prompt: Prompt): Transition {
  const { text } = prompt.line;
  const problem = searchIn(text) ? 'enter finds its token' : (parsed(state, text)?.problems[0]?.message ?? null);
  const wake: Effect = { do: 'wake', name: 'filter', afterMs: TYPING_PAUSE_MS };
  return [withLayer(state, { ...prompt, problem }), wake];
}

/** Applies the filter after the pause, if it is complete. */
export function settled(state: State): Transition {
  const top = state.layers.at(-1);
  if (top?.kind !== 'prompt' || !parsed(state, top.line.text)?.isComplete) return [state];
  return applied(state, top.line.text.trim());
}

export function entered(state: State, prompt: Prompt): Transition {
  const search = searchIn(prompt.line.text);
  if (search) return andThen(cancelled(state, prompt), (next) => searched(next, search));
  const filter = parsed(state, prompt.line.text);
  if (!filter) return [closed(state)];
  const problem = filter.problems[0]?.message ?? (filter.isComplete ? null : 'The filter is incomplete');
  if (problem !== null) return [withLayer(state, { ...prompt, problem })];
  return applied(closed(state), prompt.line.text.trim());
}

export const cancelled = (state: State, { before }: Prompt): Transition => applied(closed(state), before);

/** Inserts the first completion. As in a shell, a space follows a value that is the only one, for the next term. */
export function completed(state: State, prompt: Prompt): Transition {
  const screen = screenOf(state);
  if (!screen) return [state];
  const { text, caret } = prompt.line;
  const { from, to, options } = suggest(text, caret, screen, knownNames(state));
  const [first] = options;
  if (!first) return [state];
  const isWholeTerm = options.length === 1 && to === text.length && !first.insert.endsWith(':');
  const before = text.slice(0, from) + first.insert + (isWholeTerm ? ' ' : '');
  return changed(state, { ...prompt, line: { ...lineOf(before + text.slice(to)), caret: before.length } });
}

/** Why the current filter is no longer valid, for example after its project was renamed; null: it is valid. */
export function whyFilterInvalid(state: State): string | null {
  const filter = filterOf(state) ?? '';
  if (filter === '' || !state.projects.all) return null;
  const { isComplete = true, problems = [] } = parsed(state, filter) ?? {};
  return isComplete ? null : `The filter is no longer valid: ${problems[0]?.message ?? filter}`;
}

/** The filter for one project: by name if the name can be written in a filter, otherwise by id. */
export function filterOfProject(state: State, { id, name }: Pick<WireProject, 'id' | 'name'>): string {
  const writings = [name, `"${name}"`].map((value) => `project:${value}`);
  const means = (text: string) => {
    const { query, isComplete } = parseFilter(text, 'tokens', knownNames(state));
    return isComplete && isOnly(query, id);
  };
  return writings.find(means) ?? `project:${id}`;
}

const isOnly = (query: TokenQuery, projectId: string) =>
  JSON.stringify(query) === JSON.stringify({ project_id: projectId } satisfies TokenQuery);

/** Applies a filter to the current list, unless it is already applied. */
export function applied(state: State, filter: string): Transition {
  if (filterOf(state) === filter) return [state];
  const shown = view(state);
  switch (shown.screen) {
    case 'tokens':
      return tokens.reloaded(state, { filter });
    case 'projects':
      return [projects.arranged(state, { filter })];
    case 'top':
      return askedTop(state, filter);
    case 'audit':
    case 'events':
      return feeds.filtered(state, shown.screen, filter);
    default:
      return [state];
  }
}

/** Words are applied at once; another project needs a request. */
function askedTop(state: State, filter: string): Transition {
  const next = top.asked(state, { filter });
  return [next, ...loads(top.dataRequests(next))];
}
