/** The list of projects. All are in memory, so sorting and filtering happen here. */
import type { WireProject } from '../../daemon/api/contract.js';
import { parseFilter } from '../../console/query/filter.js';
import { listRows } from './rows.js';
import { PROJECT_ORDERS, type ProjectOrder, type ProjectsState, type State } from './state.js';
import { cursorRow, emptyWindow, move, withAllRows } from './window.js';

export const NO_PROJECTS: ProjectsState = {
  all: null,
  window: emptyWindow('projects'),
  filter: '',
  isDescending: false,
  order: 'name',
};

/** Adjusts the list to another height. */
export const fitted = (state: State): State => ({
  ...state,
  projects: { ...state.projects, window: move(state.projects.window, 0, listRows(state)) },
});

/** Applies another filter or order. The cursor stays on its project. */
export function arranged(state: State, change: Partial<ProjectsState>): State {
  const projects = { ...state.projects, ...change };
  const { all, filter, order, isDescending } = projects;
  if (!all) return { ...state, projects };
  const { matches } = parseFilter(filter, 'projects', { projects: all });
  const items = all.filter(matches).sort(byOrder(order));
  if (isDescending) items.reverse();
  return { ...state, projects: { ...projects, window: withAllRows(projects.window, items, listRows(state)) } };
}

const byOrder = (order: ProjectOrder) => (one: WireProject, other: WireProject) =>
  order === 'name'
    ? one.name.localeCompare(other.name, 'en')
    : sortValue(one, order) - sortValue(other, order) || other.name.localeCompare(one.name, 'en');

/** A time in ms. What is unused or not reported comes first. */
function sortValue(project: WireProject, order: Exclude<ProjectOrder, 'name'>): number {
  const value = project[order];
  return (typeof value === 'number' ? value : Date.parse(value ?? '')) || 0;
}

/** Sorts by the next column: names and times of creation in ascending order, figures and last use in descending order. */
export function ordered(state: State): State {
  const at = PROJECT_ORDERS.indexOf(state.projects.order);
  const order = PROJECT_ORDERS[(at + 1) % PROJECT_ORDERS.length] ?? 'name';
  return arranged(state, { order, isDescending: order !== 'name' && order !== 'created_at' });
}

export const underCursor = ({ projects }: State): WireProject | undefined => cursorRow(projects.window);

/** The name of a project. */
export const projectName = ({ projects: { all } }: State, id: string): string | undefined =>
  all?.find((project) => project.id === id)?.name;

/** The default project of the context. */
export function ofContext({ target, projects: { all } }: State): WireProject | undefined {
  return all?.find(({ id, name }) => id === target.project || name === target.project);
}
