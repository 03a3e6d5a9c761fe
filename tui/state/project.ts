/** The detail of one project: its requests per hour and its latest changes. */
import type { WireAuditRecord, WireProject, WireUsageLine } from '../../daemon/api/contract.js';
import type { DataRequest, Effect } from './exchange.js';
import { opened } from './navigation.js';
import { underCursor } from './projects.js';
import { listRows } from './rows.js';
import { type ProjectDetail, type State, type Transition, view } from './state.js';
import { dayBefore } from './token.js';

/** Opens the detail. */
export function open(state: State, id: string): Transition {
  const next: State = {
    ...opened(state, { screen: 'project', id }),
    project: { id, usage: null, changes: null, top: 0 },
  };
  return [next, ...dataRequests(next, id).map((request): Effect => ({ do: 'load', request }))];
}

export function dataRequests(state: State, id: string): DataRequest[] {
  return [
    { of: 'usage', query: { by: 'hour', project_id: id, since: dayBefore(state) } },
    { of: 'projectAudit', id },
  ];
}

const withDetail = (state: State, id: string | undefined, change: Partial<ProjectDetail>): State =>
  state.project && state.project.id === id ? { ...state, project: { ...state.project, ...change } } : state;

export const usageReceived = (state: State, id: string | undefined, usage: readonly WireUsageLine[]): State =>
  withDetail(state, id, { usage });
export const changesReceived = (state: State, id: string, changes: readonly WireAuditRecord[]): State =>
  withDetail(state, id, { changes });

/** The project of the detail, or else the one under the cursor of the list. */
export function target(state: State): WireProject | undefined {
  const shown = view(state);
  if (shown.screen !== 'project') return underCursor(state);
  return state.projects.all?.find(({ id }) => id === shown.id);
}

/** Lines of the screen above the changes. */
export const LINES_ABOVE_CHANGES = 14;

export function scrolled(state: State, by: number): State {
  const { project } = state;
  if (!project) return state;
  const lines = LINES_ABOVE_CHANGES + Math.max(1, project.changes?.length ?? 0);
  // Without column titles there is room for one more line.
  const lastTop = Math.max(0, lines - (listRows(state) + 1));
  return withDetail(state, project.id, { top: Math.max(0, Math.min(lastTop, project.top + by)) });
}
