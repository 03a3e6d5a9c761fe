/** What is between the tabs and the message line: the screen that is looked at, and what lies above it. */
import type { Area } from '../parts/list.js';
import type { Strip } from '../parts/strip.js';
import { type Screen, type State, view } from '../state/state.js';
import { projectsScreen } from './projects.js';
import { tokensScreen } from './tokens.js';

type Drawn = (state: State, area: Area) => Strip[];

const SCREENS: Partial<Record<Screen, Drawn>> = {
  tokens: tokensScreen,
  projects: projectsScreen,
};

export const screen: Drawn = (state, area) => SCREENS[view(state).screen]?.(state, area) ?? [];
