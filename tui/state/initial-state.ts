/** The state before any data is loaded. */
import { NOT_CONNECTED } from './connection.js';
import type { Target } from './exchange.js';
import { emptyFeed } from './feed.js';
import { NO_PROJECTS } from './projects.js';
import { NOTHING_SAVED, type Saved } from './saved.js';
import type { CustomKeys, Look, Skins, State, Tab } from './state.js';
import { NO_TOKENS } from './tokens.js';
import { NO_TOP } from './top.js';

export interface InitialStateOptions {
  size: State['size'];
  look: Look;
  target: Target;
  nowMs: number;
  tab: Tab;
  refreshMs: number;
  customKeys?: CustomKeys;
  skins?: Skins;
  commandHistory?: readonly string[];
  saved?: Saved;
  quitEnds?: string | null;
  /** What is wrong with the operator's settings. */
  problems?: readonly string[];
}

export const initialState = ({
  size,
  look,
  target,
  nowMs,
  tab,
  refreshMs,
  customKeys = new Map(),
  skins = { current: 'default', all: new Map() },
  commandHistory = [],
  saved = NOTHING_SAVED,
  quitEnds = null,
  problems = [],
}: InitialStateOptions): State => ({
  size,
  look,
  customKeys,
  skins,
  commandHistory,
  contexts: null,
  saved,
  viewCounts: new Map(),
  nowMs,
  target,
  connection: NOT_CONNECTED,
  switchingTo: null,
  quitEnds,
  isPaused: false,
  refreshMs,
  views: [{ screen: tab }],
  layers: problems.length === 0 ? [] : [{ kind: 'notice', title: 'Your settings', sentences: problems, scrolled: 0 }],
  lastClick: null,
  message: null,
  undoHistory: { undo: [], redo: [] },
  pendingChanges: [],
  progress: null,
  overview: { status: null, traffic: [], expiring: [], selected: null, usage: null },
  tokens: NO_TOKENS,
  token: null,
  project: null,
  projects: NO_PROJECTS,
  audit: emptyFeed(),
  events: emptyFeed(),
  cache: { cache: null, preview: null },
  top: NO_TOP,
});

/** Resets the state for another daemon. The dialog of a secret that was not stored yet stays open. */
export function resetForDaemon(before: State): State {
  const {
    views: [first],
    layers,
  } = before;
  const next = initialState({
    ...before,
    tab: first && !('id' in first) ? first.screen : 'tokens',
  });
  return { ...next, layers: layers.filter(({ kind }) => kind === 'reveal') };
}
