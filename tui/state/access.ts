/** Operators and trusts: their lists, and the details of one. All are in memory. */
import type { WireOperator, WireTrust } from '../../daemon/api/contract.js';
import { detailColumns } from './record-rows.js';
import { listRows } from './rows.js';
import { type AccessList, type AccessState, type Screen, type State, view } from './state.js';
import { cursorRow, emptyWindow, move, moveTo, type Window, withAllRows } from './window.js';

export const NO_ACCESS: AccessState = {
  operators: null,
  trusts: null,
  windows: { operators: emptyWindow('operators'), trusts: emptyWindow('trusts') },
  top: 0,
};

const withWindow = (state: State, list: AccessList, window: AccessState['windows'][AccessList]): State => ({
  ...state,
  access: { ...state.access, windows: { ...state.access.windows, [list]: window } },
});

export function received<L extends AccessList>(state: State, list: L, all: NonNullable<AccessState[L]>): State {
  const rows: readonly (WireOperator | WireTrust)[] = all;
  const next = { ...state, access: { ...state.access, [list]: all } };
  return withWindow(next, list, withAllRows(windowOf(next, list), rows, listRows(state)) as AccessState['windows'][L]);
}

/** Both kinds of rows have an ID, and nothing else is needed of them here. */
const windowOf = ({ access }: State, list: AccessList) => access.windows[list] as Window<WireOperator | WireTrust>;

export const movedBy = (state: State, list: AccessList, by: number): State =>
  withWindow(state, list, move(windowOf(state, list), by, listRows(state)) as Window<WireOperator>);

export const movedTo = (state: State, list: AccessList, where: 'first' | 'last'): State =>
  withWindow(state, list, moveTo(windowOf(state, list), where, listRows(state)) as Window<WireOperator>);

/** The screen of one item of each list. */
export const DETAILS = { operators: 'operator', trusts: 'trust' } as const satisfies Record<AccessList, Screen>;

/** The item of the details, or else the one under the cursor of the list. */
function chosen<L extends AccessList>(state: State, list: L): NonNullable<AccessState[L]>[number] | undefined {
  const shown = view(state);
  if (shown.screen === list) return cursorRow(windowOf(state, list));
  const all: readonly (WireOperator | WireTrust)[] | null = state.access[list];
  return shown.screen === DETAILS[list] ? all?.find(({ id }) => id === shown.id) : undefined;
}

export const operator = (state: State): WireOperator | undefined => chosen(state, 'operators');
export const trust = (state: State): WireTrust | undefined => chosen(state, 'trusts');

/** Facts of one line. */
const FACT_LINES = 16;

/** Scrolls the details. The limit is an estimate: how long texts are wrapped is known on the screen only. */
export function scrolled(state: State, by: number): State {
  const shown = operator(state) ?? trust(state) ?? {};
  const lines = FACT_LINES + Math.ceil(JSON.stringify(shown).length / detailColumns(state));
  const lastTop = Math.max(0, lines - (listRows(state) + 1));
  const top = Math.max(0, Math.min(lastTop, state.access.top + by));
  return { ...state, access: { ...state.access, top } };
}
