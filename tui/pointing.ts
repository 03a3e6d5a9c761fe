/** The mouse: the wheel moves, a click selects a row or opens a tab, and a second click opens the row. */
import { tabAt } from './chrome/tab-layout.js';
import { shown } from './keys/views.js';
import { keyScopeOf, performed } from './keys/press.js';
import { indexOf, visibleItems } from './state/feed.js';
import type { MouseAction } from './state/exchange.js';
import { movedBy } from './state/moving.js';
import { feedRows, isTooSmall, LINES_ABOVE_AREA, listRows } from './state/rows.js';
import { layer, type State, type Transition, view } from './state/state.js';
import { lengthOf } from './state/window.js';

/** Rows per step of the wheel. */
const WHEEL_ROWS = 3;
/** Top edge and column titles of a list. */
const LINES_ABOVE_ROWS = 2;
/** A second click within this time opens what the first one selected, even if the list has moved. */
const DOUBLE_CLICK_MS = 500;

/** What moves the selection in a layer. */
const DOWN_AND_UP: Partial<Record<ReturnType<typeof keyScopeOf>, readonly [down: string, up: string]>> = {
  help: ['choices.down', 'choices.up'],
  contexts: ['choices.down', 'choices.up'],
  command: ['command.next', 'command.up'],
  columns: ['columns.down', 'columns.up'],
  notice: ['notice.down', 'notice.up'],
  dialog: ['dialog.scroll', 'dialog.scroll-back'],
};

export function mouse(state: State, { what, column, row }: MouseAction): Transition {
  if (isTooSmall(state)) return [state];
  if (what === 'click') return clicked(state, column, row);
  const isDown = what === 'wheeldown';
  if (!layer(state)) return movedBy(state, isDown ? WHEEL_ROWS : -WHEEL_ROWS);
  const action = DOWN_AND_UP[keyScopeOf(state)]?.[isDown ? 0 : 1];
  return action === undefined ? [state] : performed(state, action);
}

function clicked(state: State, column: number, row: number): Transition {
  // A click must not press a button of a dialog, or close what hides it.
  if (layer(state)) return [state];
  const isSecond = state.lastClick?.row === row && state.nowMs - state.lastClick.atMs < DOUBLE_CLICK_MS;
  const next: State = { ...state, lastClick: isSecond ? null : { row, atMs: state.nowMs } };
  if (row === TABS_ROW) {
    const tab = tabAt(state, column);
    if (tab === undefined) return [next];
    return typeof tab === 'string' ? performed(next, `global.${tab}`) : shown(next, tab);
  }
  const by = rowsToMove(state, row - LINES_ABOVE_AREA - LINES_ABOVE_ROWS);
  if (by === undefined) return [next];
  return by === 0 || isSecond ? performed(next, OPENS[view(state).screen] ?? '') : movedBy(next, by);
}

const TABS_ROW = 1;

/** What opens the row under the cursor. */
const OPENS: Partial<Record<string, string>> = {
  tokens: 'tokens.detail',
  projects: 'projects.its-tokens',
  audit: 'logs.detail',
  events: 'logs.detail',
  top: 'top.open',
};

/** How far a row of the list is from the cursor; undefined: there is no row. */
function rowsToMove(state: State, at: number): number | undefined {
  const { screen } = view(state);
  if (screen === 'tokens' || screen === 'projects' || screen === 'top') {
    const { window } = state[screen];
    const index = window.top + at;
    return at >= 0 && at < listRows(state) && index < lengthOf(window) ? index - window.cursorIndex : undefined;
  }
  if (screen === 'audit') return rowsInFeed(state, state.audit, at);
  return screen === 'events' ? rowsInFeed(state, state.events, at) : undefined;
}

function rowsInFeed(state: State, feed: State['audit'] | State['events'], at: number): number | undefined {
  const rows = feedRows(state, feed);
  // Both kinds of feeds have the same shape, which the compiler cannot use for a union.
  const { items, from } = visibleItems(feed as State['audit'], rows);
  return at >= 0 && at < items.length ? from + at - indexOf(feed as State['audit']) : undefined;
}
