/** The Top screen: tokens, projects or models with their figures of the last minutes or hours. All rows are in memory and sorted here. */
import { parseFilter } from '../../console/query/filter.js';
import { topWords } from '../../console/query/top-terms.js';
import type { TopQuery, WireTop, WireTopRow } from '../../daemon/api/contract.js';
import { nanoOfCost } from '../../daemon/api/money.js';
import {
  MAX_TOP_ROWS,
  TOP_SORTS,
  TOP_WINDOWS,
  type TopDimension,
  type TopSort,
  type TopWindow,
} from '../../daemon/api/vocabulary.js';
import type { DataRequest } from './exchange.js';
import { listRows } from './rows.js';
import { knownNames, type State, TOP_ORDERS, type TopItem, type TopOrder, type TopState } from './state.js';
import { cursorRow, emptyWindow, move, moveTo, withAllRows } from './window.js';

export const NO_TOP: TopState = {
  by: 'token',
  period: '1h',
  orders: { token: 'errors', project: 'errors', model: 'tokens', model_total: 'tokens' },
  isReversed: false,
  filter: '',
  response: null,
  isOpening: false,
  window: emptyWindow('top'),
};

export const orderOf = ({ by, orders }: TopState): TopOrder => orders[by];
const isName = (order: TopOrder) => order === 'name' || order === 'project';
export const isDescending = (top: TopState) => isName(orderOf(top)) === top.isReversed;

const filterOf = (state: State) => parseFilter(state.top.filter, 'top', knownNames(state));

/** The order for the daemon, which decides which rows are sent if there are more than the maximum. */
export const sortField = (top: TopState): TopSort => TOP_SORTS.find((field) => field === orderOf(top)) ?? 'requests';

function queryOf(state: State): TopQuery | null {
  const { top } = state;
  const { query, isComplete } = filterOf(state);
  if (!isComplete) return null;
  return { by: top.by, window: top.period, sort: sortField(top), limit: String(MAX_TOP_ROWS), ...query };
}

export function dataRequests(state: State): DataRequest[] {
  const query = queryOf(state);
  return query === null ? [] : [{ of: 'top', query }];
}

/** A response to an earlier question changes nothing. */
export function loaded(state: State, query: TopQuery, response: WireTop): State {
  if (JSON.stringify(query) !== JSON.stringify(queryOf(state))) return state;
  return arranged({ ...state, top: { ...state.top, response } });
}

/** Filters and sorts the rows. The cursor stays on its row. */
function arranged(state: State): State {
  const { top } = state;
  if (!top.response) return state;
  const { matches } = filterOf(state);
  const items = top.response.rows.filter(matches).map((row): TopItem => ({ ...row, id: idOf(row) }));
  const order = orderOf(top);
  items.sort(
    top.isReversed ? (one, other) => compared(other, one, order) : (one, other) => compared(one, other, order),
  );
  return withWindow(state, withAllRows(top.window, items, listRows(state)));
}

const idOf = ({ token_id: token, project_id: project, model }: WireTopRow) =>
  [token ?? '', project ?? '', model ?? ''].join(' ');

/** The name of what a row stands for; null if it has none. */
export const nameOf = (row: WireTopRow, by: TopDimension): string | null =>
  by === 'token' ? (row.token_name ?? null) : by === 'project' ? (row.project_name ?? null) : (row.model ?? null);

const FIGURES: Record<Exclude<TopOrder, 'name' | 'project'>, (row: TopItem) => number> = {
  requests: ({ requests }) => requests,
  errors: ({ errors }) => errors,
  tokens: ({ prompt_tokens: prompt, completion_tokens: completion }) => prompt + completion,
  cost: nanoOfCost,
  p50: ({ p50_ms: ms }) => ms ?? -1,
  p95: ({ p95_ms: ms }) => ms ?? -1,
  last_used: ({ last_used_at: at }) => Date.parse(at) || 0,
};

/** Rows with equal figures are sorted by requests, and then by ID, so that they keep their places from refresh to refresh. */
function compared(one: TopItem, other: TopItem, order: TopOrder): number {
  const first =
    order === 'name' || order === 'project'
      ? textOf(one, order).localeCompare(textOf(other, order), 'en')
      : FIGURES[order](other) - FIGURES[order](one);
  return first || other.requests - one.requests || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0);
}

const textOf = (row: TopItem, order: 'name' | 'project') =>
  (order === 'project' ? row.project_name : (row.token_name ?? row.model ?? row.project_name)) ?? '';

/** Asks another question, beginning with the first row. Rows of the earlier question are not shown with the new titles. */
export function asked(state: State, change: Partial<Pick<TopState, 'by' | 'period' | 'filter'>>): State {
  const top = { ...state.top, ...change };
  const isOther = top.by !== state.top.by || top.period !== state.top.period;
  const before = queryOf(state);
  const next = { ...state, top: { ...top, window: emptyWindow<TopItem>('top') } };
  if (isOther || before?.project_id !== queryOf(next)?.project_id) {
    return { ...next, top: { ...next.top, response: null, isOpening: false } };
  }
  return arranged(next);
}

export const nextPeriod = ({ top: { period } }: State): TopWindow =>
  TOP_WINDOWS[(TOP_WINDOWS.indexOf(period) + 1) % TOP_WINDOWS.length] ?? '1h';

/** Sorts by another column, beginning with the first row. */
export function sorted(state: State, order: TopOrder, isReversed = false): State {
  const { top } = state;
  const next = { ...state, top: { ...top, orders: { ...top.orders, [top.by]: order }, isReversed } };
  return atFirst(arranged(next));
}

export function orderedByNext(state: State): State {
  const { top } = state;
  // The name of a project is its own column.
  const hasProject = top.by === 'token' || top.by === 'model';
  const all = TOP_ORDERS.filter((order) => order !== 'project' || hasProject);
  return sorted(state, all[(all.indexOf(orderOf(top)) + 1) % all.length] ?? 'errors');
}

export const reversed = (state: State): State => sorted(state, orderOf(state.top), !state.top.isReversed);

const orderNamed = (name: string): TopOrder | undefined => TOP_ORDERS.find((order) => order === name);

const withWindow = (state: State, window: TopState['window']): State => ({ ...state, top: { ...state.top, window } });

export const movedBy = (state: State, by: number): State =>
  withWindow(state, move(state.top.window, by, listRows(state)));

export const movedTo = (state: State, where: 'first' | 'last'): State =>
  withWindow(state, moveTo(state.top.window, where, listRows(state)));

export const atFirst = (state: State): State => movedTo(state, 'first');

export const underCursor = ({ top }: State): TopItem | undefined => cursorRow(top.window);

/** What a saved view stores beside the filter: `model 24h tokens`, reversed `model 24h -tokens`. */
export const settingsOf = (top: TopState): string =>
  `${top.by} ${top.period} ${top.isReversed ? '-' : ''}${orderOf(top)}`;

/** Shows what a saved view stored. */
export function opened(state: State, filter: string, settings: string): State {
  const { by, window, filter: rest } = topWords(settings);
  const order = orderNamed(rest.trim().replace(/^-/, ''));
  const next = asked(state, { by: by ?? 'token', period: window ?? '1h', filter });
  return order ? sorted(next, order, rest.trim().startsWith('-')) : next;
}
