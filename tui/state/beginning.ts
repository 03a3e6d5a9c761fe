/** The state in which nothing is known yet. */
import { NOTHING_HEARD } from './connection.js';
import type { Place } from './exchange.js';
import { emptyFeed } from './feed.js';
import { NO_PROJECTS } from './projects.js';
import type { Look, State, Tab } from './state.js';
import { NO_TOKENS } from './tokens.js';

export interface Beginning {
  size: State['size'];
  look: Look;
  place: Place;
  nowMs: number;
  tab: Tab;
  refreshMs: number;
}

export const begin = ({ size, look, place, nowMs, tab, refreshMs }: Beginning): State => ({
  size,
  look,
  nowMs,
  place,
  connection: NOTHING_HEARD,
  goingTo: null,
  isPaused: false,
  refreshMs,
  views: [{ screen: tab }],
  layers: [],
  message: null,
  undo: null,
  underWay: [],
  lacking: [],
  progress: null,
  overview: { status: null, traffic: [], dying: [], usage: null },
  tokens: NO_TOKENS,
  token: null,
  projects: NO_PROJECTS,
  audit: emptyFeed(),
  events: emptyFeed(),
  cache: { cache: null, preview: null },
});

/** The same terminal, and nothing known of another daemon. A secret that nobody stored yet stays. */
export function beginning({ size, look, place, nowMs, refreshMs, views: [first], layers }: State): State {
  const next = begin({
    size,
    look,
    place,
    nowMs,
    refreshMs,
    tab: first && first.screen !== 'token' ? first.screen : 'tokens',
  });
  return { ...next, layers: layers.filter(({ kind }) => kind === 'reveal') };
}
