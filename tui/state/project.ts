/** The detail of one project: its requests per hour and its latest changes. */
import { projectCheckSentence } from '../../daemon/api/checked-key.js';
import type {
  TopQuery,
  WireAuditRecord,
  WireProject,
  WireProjectCheck,
  WireTop,
  WireUsageLine,
} from '../../daemon/api/contract.js';
import type { DataRequest, Named } from './exchange.js';
import { opened } from './navigation.js';
import { underCursor } from './projects.js';
import { detailColumns, recordRows } from './record-rows.js';
import { isLow, listRows } from './rows.js';
import { type ProjectDetail, type State, type Transition, view, withMessage, loads } from './state.js';
import { dayBefore } from './token.js';

/** Opens the detail. */
export function open(state: State, id: string): Transition {
  const next: State = {
    ...opened(state, { screen: 'project', id }),
    project: { id, usage: null, changes: null, busiest: { token: null, model: null }, now: null, top: 0 },
  };
  return [next, ...loads(dataRequests(next, id))];
}

export function dataRequests(state: State, id: string): DataRequest[] {
  return [
    { of: 'usage', query: { by: 'hour', project_id: id, since: dayBefore(state) } },
    { of: 'projectAudit', id },
    ...BUSIEST.map((by): DataRequest => ({ of: 'top', query: busiestQuery(by, id) })),
    { of: 'top', query: nowQuery(id) },
  ];
}

const BUSIEST = ['token', 'model'] as const;
type Busiest = (typeof BUSIEST)[number];
/** The most rows of each kind. */
const MAX_BUSIEST = 5;

const busiestQuery = (by: Busiest, id: string): TopQuery => ({
  by,
  window: '1h',
  sort: 'requests',
  project_id: id,
  limit: String(MAX_BUSIEST),
});
const nowQuery = (id: string): TopQuery => ({ by: 'project', window: '5m', project_id: id, limit: '1' });

/** @returns undefined if the response is not for this screen. */
export function topReceived(state: State, query: TopQuery, top: WireTop): State | undefined {
  const { project } = state;
  if (!project || query.project_id !== project.id) return undefined;
  const isSame = (own: TopQuery) => JSON.stringify(own) === JSON.stringify(query);
  if (isSame(nowQuery(project.id))) return withDetail(state, project.id, { now: top });
  const by = BUSIEST.find((one) => isSame(busiestQuery(one, project.id)));
  return by && withDetail(state, project.id, { busiest: { ...project.busiest, [by]: top } });
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

/** Asks the provider of the project whether it responds and accepts the key. */
export const checked = (state: State, { id, name }: WireProject): Transition => [
  withMessage(state, `Checking the provider of ${name}…`),
  { do: 'load', request: { of: 'projectCheck', project: { id, name } } },
];

export const checkReceived = (state: State, { name, id }: Named, check: WireProjectCheck): State =>
  withMessage(
    state,
    `${name ?? id}: ${projectCheckSentence(check)}`,
    check.result === 'accepted' ? 'good' : check.result === 'not_confirmed' ? 'plain' : 'bad',
  );

export const busiestRows = (state: Pick<State, 'size'>): number => (isLow(state) ? 3 : MAX_BUSIEST);

// Twelve facts, the chart with its title, titles and blank lines (one less on a low screen).
const OTHER_LINES = 23;
/** Lines of the screen above the changes. */
export const linesAboveChanges = (state: Pick<State, 'size'>): number =>
  OTHER_LINES - Number(isLow(state)) + busiestRows(state);

export function scrolled(state: State, by: number): State {
  const { project } = state;
  if (!project) return state;
  const rows = (project.changes ?? []).map((record) => recordRows(record, detailColumns(state), true));
  const lines =
    linesAboveChanges(state) +
    Math.max(
      1,
      rows.reduce((sum, one) => sum + one, 0),
    );
  // Without column titles there is room for one more line.
  const lastTop = Math.max(0, lines - (listRows(state) + 1));
  return withDetail(state, project.id, { top: Math.max(0, Math.min(lastTop, project.top + by)) });
}
