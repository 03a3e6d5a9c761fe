/** The list of projects: all of them are known, so that order and filter are made here. */
import type { WireProject } from '../../daemon/api/contract.js';
import { parseFilter } from './filter.js';
import { listRows } from './rows.js';
import type { ProjectsState, State } from './state.js';
import { aged, asked, cursorRow, emptyWindow, move, needed, received } from './window.js';

export const NO_PROJECTS: ProjectsState = {
  all: null,
  window: emptyWindow('projects', false),
  filter: '',
  isDescending: false,
  order: 'name',
};

export function answered(state: State, all: readonly WireProject[]): State {
  return arranged(state, { all });
}

/** In a window of another height. */
export const fitted = (state: State): State => ({
  ...state,
  projects: { ...state.projects, window: move(state.projects.window, 0, listRows(state)) },
});

/** With another filter or order, and the cursor on the project that it was on. */
export function arranged(state: State, change: Partial<ProjectsState>): State {
  const projects = { ...state.projects, ...change };
  const { all, filter, order, isDescending } = projects;
  if (!all) return { ...state, projects };
  const { matches } = parseFilter(filter, 'projects', { projects: all });
  const items = all.filter(matches).sort(byOrder(order));
  if (isDescending) items.reverse();
  const rows = listRows(state);
  // All of them are one page.
  const window = aged(projects.window);
  const [page] = needed(window, rows);
  if (!page) return { ...state, projects };
  const answer = { items, next: null, total: items.length };
  return { ...state, projects: { ...projects, window: received(asked(window, [page]), page, answer, rows) } };
}

const byOrder = (order: ProjectsState['order']) => (one: WireProject, other: WireProject) =>
  order === 'name'
    ? one.name.localeCompare(other.name, 'en')
    : Date.parse(one.created_at) - Date.parse(other.created_at);

export const ordered = (state: State): State =>
  arranged(state, { order: state.projects.order === 'name' ? 'created_at' : 'name' });

export const underCursor = ({ projects }: State): WireProject | undefined => cursorRow(projects.window);

/** A project as people call it. */
export const projectName = ({ projects: { all } }: State, id: string): string | undefined =>
  all?.find((project) => project.id === id)?.name;

/** The project that the context names, by its name or id. */
export function ofContext({ place, projects: { all } }: State): WireProject | undefined {
  return all?.find(({ id, name }) => id === place.project || name === place.project);
}
