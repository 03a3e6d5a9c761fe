/** The filter line: what is typed holds after a moment, or at once with enter; escape brings back what held before. */
import type { TokenQuery, WireProject } from '../../daemon/api/contract.js';
import type { Effect } from './exchange.js';
import * as feeds from './feeds.js';
import { parseFilter, suggest, type Suggestion } from './filter.js';
import type { Filter, FilteredScreen } from './filter-reading.js';
import { type Key, keysOf } from './filter-screens.js';
import { type Line, lineOf } from './line.js';
import { closed, filterOf } from './navigation.js';
import * as projects from './projects.js';
import { type Prompt, type State, type Step, view, withLayer } from './state.js';
import * as tokens from './tokens.js';

const AFTER_MS = 250;

const known = (state: State) => ({ projects: state.projects.all ?? [] });

export const screenOf = (state: State): FilteredScreen | undefined => {
  const { screen } = view(state);
  return screen === 'tokens' || screen === 'projects' || screen === 'audit' || screen === 'events' ? screen : undefined;
};

export function parsed(state: State, text: string): Filter<FilteredScreen> | undefined {
  const screen = screenOf(state);
  return screen && parseFilter(text, screen, known(state));
}

/** What may stand where the caret is; null where there is no filter. */
export function suggested(state: State, { text, caret }: Line): Suggestion | null {
  const screen = screenOf(state);
  return screen ? suggest(text, caret, screen, known(state)) : null;
}

/** The keys that the filter of this screen has. */
export function filterKeys(state: State): readonly Key[] {
  const screen = screenOf(state);
  return screen ? keysOf(screen, known(state)) : [];
}

/** Something was typed: it holds in a moment. */
export function changed(state: State, prompt: Prompt): Step {
  const problem = parsed(state, prompt.line.text)?.problems[0]?.message ?? null;
  const wake: Effect = { do: 'wake', name: 'filter', afterMs: AFTER_MS };
  return [withLayer(state, { ...prompt, problem }), wake];
}

/** The moment is over. */
export function settled(state: State): Step {
  const top = state.layers.at(-1);
  if (top?.kind !== 'prompt' || !parsed(state, top.line.text)?.isComplete) return [state];
  return applied(state, top.line.text.trim());
}

export function entered(state: State, prompt: Prompt): Step {
  const filter = parsed(state, prompt.line.text);
  if (!filter) return [closed(state)];
  const problem = filter.problems[0]?.message ?? (filter.isComplete ? null : 'It is not complete');
  if (problem !== null) return [withLayer(state, { ...prompt, problem })];
  return applied(closed(state), prompt.line.text.trim());
}

export const givenUp = (state: State, { before }: Prompt): Step => applied(closed(state), before);

/** The first of what may stand there. */
export function completed(state: State, prompt: Prompt): Step {
  const screen = screenOf(state);
  if (!screen) return [state];
  const { text, caret } = prompt.line;
  const { from, to, options } = suggest(text, caret, screen, known(state));
  const [first] = options;
  if (!first) return [state];
  const before = text.slice(0, from) + first.insert;
  return changed(state, { ...prompt, line: { ...lineOf(before + text.slice(to)), caret: before.length } });
}

/** Why the filter of the list that is looked at does not hold any more, such as after its project was renamed; null: it does. */
export function filterGone(state: State): string | null {
  const filter = filterOf(state) ?? '';
  if (filter === '' || !state.projects.all) return null;
  const { isComplete = true, problems = [] } = parsed(state, filter) ?? {};
  return isComplete ? null : `The filter does not hold any more: ${problems[0]?.message ?? filter}`;
}

/** What lets through only what is of a project: its name where that can be written, otherwise its id. */
export function filterOfProject(state: State, { id, name }: WireProject): string {
  const writings = [name, `"${name}"`].map((value) => `project:${value}`);
  const means = (text: string) => {
    const { query, isComplete } = parseFilter(text, 'tokens', known(state));
    return isComplete && isOnly(query, id);
  };
  return writings.find(means) ?? `project:${id}`;
}

const isOnly = (query: TokenQuery, projectId: string) =>
  JSON.stringify(query) === JSON.stringify({ project_id: projectId } satisfies TokenQuery);

/** Sets the filter of the list that is looked at, unless it holds already. */
export function applied(state: State, filter: string): Step {
  if (filterOf(state) === filter) return [state];
  switch (view(state).screen) {
    case 'tokens':
      return tokens.anew(state, { filter });
    case 'projects':
      return [projects.arranged(state, { filter })];
    case 'audit':
      return feeds.filtered(state, 'audit', filter);
    case 'events':
      return feeds.filtered(state, 'events', filter);
    default:
      return [state];
  }
}
