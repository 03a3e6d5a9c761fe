/** Renders the current screen, between the tabs and the message line. */
import type { Area } from '../parts/list.js';
import type { Strip } from '../parts/strip.js';
import { type Screen, type State, view } from '../state/state.js';
import { auditScreen } from './audit.js';
import { cacheScreen } from './cache.js';
import { eventsScreen } from './events.js';
import { overviewScreen } from './overview.js';
import { projectScreen } from './project.js';
import { projectsScreen } from './projects.js';
import { tokenScreen } from './token.js';
import { tokensScreen } from './tokens.js';
import { topScreen } from './top.js';

const SCREENS: Record<Screen, (state: State, area: Area) => Strip[]> = {
  overview: overviewScreen,
  tokens: tokensScreen,
  token: tokenScreen,
  projects: projectsScreen,
  project: projectScreen,
  audit: auditScreen,
  cache: cacheScreen,
  events: eventsScreen,
  top: topScreen,
};

export const screen = (state: State, area: Area): Strip[] => SCREENS[view(state).screen](state, area);
