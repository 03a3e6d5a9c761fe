/** Moving up and down in the current view. */
import * as access from './access.js';
import * as feeds from './feeds.js';
import { feedRows, listRows } from './rows.js';
import { type State, type Transition, view } from './state.js';
import * as overview from './overview.js';
import * as project from './project.js';
import * as token from './token.js';
import * as tokens from './tokens.js';
import * as top from './top.js';
import * as windows from './window.js';

export function movedBy(state: State, by: number): Transition {
  const shown = view(state);
  switch (shown.screen) {
    case 'tokens':
      return tokens.movedBy(state, by);
    case 'projects':
      return [withProjects(state, windows.move(state.projects.window, by, listRows(state)))];
    case 'top':
      return [top.movedBy(state, by)];
    case 'audit':
    case 'events':
      return feeds.movedBy(state, shown.screen, by);
    case 'token':
      return [token.scrolled(state, by)];
    case 'overview':
      return [overview.movedBy(state, by)];
    case 'project':
      return [project.scrolled(state, by)];
    case 'operators':
    case 'trusts':
      return [access.movedBy(state, shown.screen, by)];
    case 'operator':
    case 'trust':
      return [access.scrolled(state, by)];
    default:
      return [state];
  }
}

export function movedTo(state: State, where: 'first' | 'last'): Transition {
  const { screen } = view(state);
  switch (screen) {
    case 'tokens':
      return tokens.movedTo(state, where);
    case 'projects':
      return [withProjects(state, windows.moveTo(state.projects.window, where, listRows(state)))];
    case 'top':
      return [top.movedTo(state, where)];
    case 'operators':
    case 'trusts':
      return [access.movedTo(state, screen, where)];
    default:
      return movedBy(state, where === 'first' ? -Number.MAX_SAFE_INTEGER : Number.MAX_SAFE_INTEGER);
  }
}

/** Rows to move for one page: two rows stay visible. */
export const page = (state: State) => Math.max(1, rowsSeen(state) - 2);

function rowsSeen(state: State): number {
  const { screen } = view(state);
  return screen === 'audit' || screen === 'events' ? feedRows(state, state[screen]) : listRows(state);
}

const withProjects = (state: State, window: State['projects']['window']): State => ({
  ...state,
  projects: { ...state.projects, window },
});
