/** The state before any data is loaded. */
import { NO_ACCESS } from './access.js';
import { NOT_CONNECTED } from './connection.js';
import { emptyFeed } from './feed.js';
import { NO_PROJECTS } from './projects.js';
import { NOTHING_SAVED } from './saved.js';
import { type State, type Tab, TABS } from './state.js';
import { NO_TOKENS } from './tokens.js';
import { NO_TOP } from './top.js';

/** What belongs to one daemon. */
const NO_DATA = {
  contexts: null,
  saved: NOTHING_SAVED,
  viewCounts: new Map(),
  connection: NOT_CONNECTED,
  self: null,
  selfMs: null,
  switchingTo: null,
  isPaused: false,
  lastClick: null,
  message: null,
  undoHistory: { undo: [], redo: [] },
  pendingChanges: [],
  progress: null,
  overview: {
    status: null,
    incidents: null,
    lastHour: null,
    expiring: [],
    selected: null,
    usage: null,
    costs: null,
    spenders: [],
    loadedMs: { costs: null, spenders: null },
  },
  tokens: NO_TOKENS,
  token: null,
  project: null,
  projects: NO_PROJECTS,
  audit: emptyFeed(),
  members: null,
  events: emptyFeed(),
  cache: { cache: null, preview: null },
  top: NO_TOP,
  access: NO_ACCESS,
} satisfies Partial<State>;

export type InitialStateOptions = Pick<State, 'size' | 'look' | 'target' | 'nowMs' | 'refreshMs'> &
  Partial<Pick<State, 'customKeys' | 'skins' | 'commandHistory' | 'saved' | 'quitEnds'>> & {
    tab: Tab;
    /** What is wrong with the operator's settings. */
    problems?: readonly string[];
  };

export const initialState = ({ tab, problems = [], ...given }: InitialStateOptions): State => ({
  customKeys: new Map(),
  skins: { current: 'default', all: new Map() },
  commandHistory: [],
  files: null,
  quitEnds: null,
  ...NO_DATA,
  ...given,
  views: [{ screen: tab }],
  layers: problems.length === 0 ? [] : [{ kind: 'notice', title: 'Your settings', sentences: problems, scrolled: 0 }],
});

/** Resets the state for another daemon. The dialog of a secret that was not stored yet stays open. */
export function resetForDaemon(before: State): State {
  const [first] = before.views;
  return {
    ...before,
    ...NO_DATA,
    views: [{ screen: TABS.find((tab) => tab === first?.screen) ?? 'tokens' }],
    layers: before.layers.filter(({ kind }) => kind === 'reveal'),
  };
}
