/** State of the terminal UI, as plain data. Screens render it; `update` and the key bindings compute the next one. */
import type {
  CachePurge,
  WireAuditRecord,
  WireCache,
  WireEvent,
  WireIncidents,
  WireOperator,
  WireProject,
  WireSelf,
  WireStatus,
  WireToken,
  WireTop,
  WireTopRow,
  WireTrust,
  WireUsageLine,
} from '../../daemon/api/contract.js';
import type {
  Reversal,
  ChangeRequest,
  ContextSummary,
  Effect,
  Failure,
  FileEntry,
  Target,
  DataRequest,
  TokenHistory,
} from './exchange.js';
import type { Feed } from './feed.js';
import type { Dialog, Layer } from './layers.js';
import type { Saved } from './saved.js';
import type { Window } from './window.js';
import type { TokenSortField, TopDimension, TopWindow } from '../../daemon/api/vocabulary.js';

/** The screens that a number key opens, in the order of the numbers. */
export const TABS = ['overview', 'tokens', 'projects', 'audit', 'cache', 'events', 'top'] as const;
export type Tab = (typeof TABS)[number];

/** Screens of one thing, which other screens open. */
export const DETAIL_SCREENS = ['token', 'project', 'operator', 'trust'] as const;
export type DetailScreen = (typeof DETAIL_SCREENS)[number];

/** Lists of who has access. They have no tab: few operators may see them, and these seldom need them. */
export const ACCESS_LISTS = ['operators', 'trusts'] as const;
export type AccessList = (typeof ACCESS_LISTS)[number];

export const SCREENS: readonly Screen[] = [...TABS, ...ACCESS_LISTS, ...DETAIL_SCREENS];

/** An entry of the navigation stack. The last one is shown. `saved` is the name of the saved view that was opened. */
export type View = { screen: Tab; saved?: string } | { screen: AccessList } | { screen: DetailScreen; id: string };
export type Screen = View['screen'];

/** Keys from the operator's keys file, by the names of the actions. An empty list: the action has no key. */
export type CustomKeys = ReadonlyMap<string, readonly string[]>;

/** The skins that can be chosen: the SGR parameters of each role, on this terminal. */
export interface Skins {
  current: string;
  all: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

export interface State {
  size: { columns: number; rows: number };
  look: Look;
  customKeys: CustomKeys;
  skins: Skins;
  /** Commands of the command line, the latest last. */
  commandHistory: readonly string[];
  /** Null until the command line or the list of contexts was opened. */
  contexts: readonly ContextSummary[] | null;
  /** The files of the folder that a command names; null until one does. */
  files: { folder: string; entries: readonly FileEntry[] } | null;
  /** What is stored for this context. */
  saved: Saved;
  /** Number of tokens of each saved view; null: the daemon refused the query. */
  viewCounts: ReadonlyMap<string, number | null>;
  /** By the clock of this machine. */
  nowMs: number;
  target: Target;
  connection: ConnectionState;
  /** Who is logged in; null until it is known. */
  self: WireSelf | null;
  /** When it was loaded. */
  selfMs: number | null;
  /** The context that is being connected to; null: none. */
  switchingTo: string | null;
  /** What ends with the terminal UI, such as `the demo`; null: nothing. */
  quitEnds: string | null;
  isPaused: boolean;
  /** Refresh interval. */
  refreshMs: number;
  views: readonly View[];
  /** Layers over the view, such as dialogs. The last one receives the keys. */
  layers: readonly Layer[];
  /** The last click that was not the second one of two. */
  lastClick: { row: number; atMs: number } | null;
  message: Message | null;
  undoHistory: UndoHistory;
  /** Changes that were sent and have no response yet. */
  pendingChanges: readonly PendingChange[];
  /** Progress of a bulk change, or of loading all tokens. */
  progress: { words: string; done: number; of: number } | null;
  overview: {
    status: WireStatus | null;
    /** Null until loaded; so is the next one. */
    incidents: WireIncidents | null;
    lastHour: WireTop | null;
    expiring: readonly WireToken[];
    /** Key of the selected row (overview.ts); null: none yet. */
    selected: string | null;
    /** Hourly, for the last 24 hours. */
    usage: readonly WireUsageLine[] | null;
    /** What projects have cost in the last days, by model. */
    costs: readonly WireUsageLine[] | null;
    /** Tokens whose budgets are nearly spent. */
    spenders: readonly WireToken[];
    /** When each of these was loaded. */
    loadedMs: { costs: number | null; spenders: number | null };
  };
  tokens: TokensState;
  token: TokenDetail | null;
  project: ProjectDetail | null;
  projects: ProjectsState;
  audit: Feed<WireAuditRecord>;
  /** The changes of the batch whose details are open in the audit log; null: none are loaded. */
  members: { batch: string; records: readonly WireAuditRecord[] } | null;
  events: Feed<WireEvent>;
  cache: CacheState;
  top: TopState;
  access: AccessState;
}

/** Operators and trusts. Null until loaded. */
export interface AccessState {
  operators: readonly WireOperator[] | null;
  trusts: readonly WireTrust[] | null;
  windows: { operators: Window<WireOperator>; trusts: Window<WireTrust> };
  /** First visible line of the details of one. */
  top: number;
}

/** How to render, given the abilities of the terminal. */
export interface Look {
  ascii: boolean;
  hasColor: boolean;
  /** No animations. */
  isStill: boolean;
}

/**
 * State of the connection to the daemon.
 *
 * - `connecting`: no response yet.
 * - `live`: all data on the screen is recent.
 * - `stale`: the daemon responds, but with errors (5xx, 429) for some requests; or three refreshes passed without a response.
 * - `offline`: the daemon is unreachable.
 * - `denied`: the management token was refused. Nothing is requested until the operator retries.
 */
export interface ConnectionState {
  is: 'connecting' | 'live' | 'stale' | 'offline' | 'denied';
  /** Time of the last successful response; null: none yet. */
  respondedMs: number | null;
  /** Time of the last refresh. */
  requestedMs: number | null;
  failure: Failure | null;
  /** Kinds of data whose last request failed. */
  failing: readonly DataRequest['of'][];
  /** Kinds of data without a successful response since they were requested: since when, and for how many refreshes. */
  unanswered: Readonly<Partial<Record<DataRequest['of'], { sinceMs: number; refreshes: number }>>>;
  /** Time of the next retry. */
  retryMs: number | null;
  /** Consecutive failures. */
  failures: number;
  /** How far the daemon's clock is ahead of the local clock; null until it is known. */
  skewMs: number | null;
}

/** `live`: usable tokens first, those that expire next on top; then all others. */
export const TOKEN_ORDERS = [
  'live',
  'created_at',
  'last_used_at',
  'request_count',
  'name',
  'expires_at',
  'spent',
] as const satisfies readonly TokenSortField[];
export type TokenOrder = (typeof TOKEN_ORDERS)[number];

export interface TokensState {
  window: Window<WireToken>;
  /** The filter that is applied, as typed. */
  filter: string;
  order: TokenOrder;
  isDescending: boolean;
  /** In the order of marking. */
  marks: ReadonlyMap<string, WireToken>;
  /** Number of tokens without a filter; null until it is known. */
  all: number | null;
  /** Row where `v` started a range; null: no range. */
  rangeFrom: number | null;
  /** Set while all tokens of the filter are being loaded to be marked. */
  collecting: 'marks' | 'inverse' | null;
  /** Earlier request count of each token, to compute its requests per minute. */
  rateBaselines: ReadonlyMap<string, { atMs: number; count: number }>;
}

export interface TokenDetail {
  token: WireToken | null;
  /** The daemon responded that the token does not exist. */
  isGone: boolean;
  /** Hourly, for the last 24 hours. */
  usage: readonly WireUsageLine[] | null;
  history: TokenHistory | null;
  /** Completion times of the token's requests in the last minute, by the daemon's clock. By the IDs of their events. */
  requests: ReadonlyMap<string, number>;
  /** Whether its events are streamed, so that no request is missing. */
  isFollowed: boolean;
  /** First visible line. */
  top: number;
}

/** What the detail of a project shows besides the project itself, which is in the list. */
export interface ProjectDetail {
  id: string;
  /** Hourly, for the last 24 hours. */
  usage: readonly WireUsageLine[] | null;
  /** Its latest changes and those of its tokens, newest first. */
  changes: readonly WireAuditRecord[] | null;
  /** Its tokens and models with the most requests in the last hour, and its requests in the last five minutes. */
  busiest: { token: WireTop | null; model: WireTop | null };
  now: WireTop | null;
  /** First visible line. */
  top: number;
}

/** The first is the default. Figures are sorted in descending order at first. */
export const PROJECT_ORDERS = ['name', 'requests_24h', 'errors_24h', 'last_used_at', 'created_at'] as const;
export type ProjectOrder = (typeof PROJECT_ORDERS)[number];

export interface ProjectsState {
  /** Null until loaded. */
  all: readonly WireProject[] | null;
  /** The projects that match the filter, sorted. */
  window: Window<WireProject>;
  filter: string;
  isDescending: boolean;
  order: ProjectOrder;
}

/** In the order of the columns. The daemon sorts by figures, and this screen also by names. */
export const TOP_ORDERS = [
  'name',
  'project',
  'requests',
  'errors',
  'tokens',
  'cost',
  'p50',
  'p95',
  'last_used',
] as const;
export type TopOrder = (typeof TOP_ORDERS)[number];

export interface TopItem extends WireTopRow {
  /** Of what the row stands for, so that the cursor stays on it. */
  id: string;
}

export interface TopState {
  by: TopDimension;
  /** How far back the figures reach. */
  period: TopWindow;
  /** The column that each kind of rows is sorted by. */
  orders: Readonly<Record<TopDimension, TopOrder>>;
  /** Figures begin with the largest, and names with A, unless the order is reversed. */
  isReversed: boolean;
  filter: string;
  /** The response to the current question; null until it is loaded. */
  response: WireTop | null;
  /** Enter was pressed before the rows were loaded: the first one opens when they are. */
  isOpening: boolean;
  /** The rows that match the filter, sorted. */
  window: Window<TopItem>;
}

export interface CacheState {
  cache: WireCache | null;
  /** Dry run of the purge in the dialog. */
  preview: { body: CachePurge; count: number | null; failure: Failure | null } | null;
}

export interface Message {
  words: string;
  tone: 'good' | 'plain' | 'bad';
  untilMs: number;
  /** Whether it reports the result of a change. Other messages are about the screen on which they appeared, and go with it. */
  isResult: boolean;
  /** Whether it asks to press the key again to quit. */
  asksToQuit?: boolean;
}

/** A change without a response yet, and what to restore when the daemon refuses it. */
export interface PendingChange {
  change: ChangeRequest;
  /** The form that the change was entered in. */
  form: Dialog | null;
  /** Set if the change is an undo or a redo. */
  reversal: Reversal | null;
  sentMs: number;
}

/** The changes that `u` and `U` make, each with the newest last. They belong to one daemon. */
export interface UndoHistory {
  undo: readonly Reversal[];
  /** Repeats what was undone. Emptied by any other change. */
  redo: readonly Reversal[];
}

/** The next state, and the effects to run. */
export type Transition = readonly [State, ...Effect[]];

/** Another transition after the first one. The effects of both are run. */
export function andThen([state, ...effects]: Transition, next: (state: State) => Transition): Transition {
  const [after, ...more] = next(state);
  return [after, ...effects, ...more];
}

export const loads = (requests: readonly DataRequest[]): Effect[] =>
  requests.map((request) => ({ do: 'load', request }));

export const view = (state: State): View => state.views.at(-1) ?? { screen: 'overview' };
export const layer = (state: State): Layer | undefined => state.layers.at(-1);

/** The names that a filter can contain. */
export const knownNames = ({ projects }: Pick<State, 'projects'>) => ({ projects: projects.all ?? [] });

/** Replaces the top layer, or removes it. */
export function withLayer(state: State, top: Layer | null): State {
  const others = state.layers.slice(0, -1);
  return { ...state, layers: top ? [...others, top] : others };
}

const MESSAGE_MS = 6_000;

export const withMessage = (state: State, words: string, tone: Message['tone'] = 'plain'): State => ({
  ...state,
  message: { words, tone, untilMs: state.nowMs + MESSAGE_MS, isResult: false },
});

export function withQuitQuestion(state: State, words: string): State {
  const next = withMessage(state, words);
  return { ...next, message: next.message && { ...next.message, asksToQuit: true } };
}

/** Reports the result of a change. It stays while the operator goes to another screen. */
export function withResult(state: State, words: string, tone: Message['tone']): State {
  const next = withMessage(state, words, tone);
  return { ...next, message: next.message && { ...next.message, isResult: true } };
}

/** The pending change of several tokens, if any. */
const pendingBulkChange = ({ pendingChanges }: State) =>
  pendingChanges.find(({ change }) => change.what === 'undo' || ('tokens' in change && change.tokens.length > 1));

export const BULK_WORDS: Readonly<Partial<Record<ChangeRequest['what'], string>>> = {
  revoke: 'Revoking',
  reactivate: 'Reactivating',
  'issue-again': 'Issuing',
  undo: 'Undoing',
};

/** Name of the bulk operation in progress; null: none. */
export function bulkActivity(state: State): string | null {
  if (state.tokens.collecting !== null) return 'Marking';
  const many = pendingBulkChange(state);
  if (!many) return null;
  if (many.change.what === 'undo') return many.reversal?.kind === 'redo' ? 'The redo' : 'The undo';
  return BULK_WORDS[many.change.what] ?? 'A change';
}

/** Whether Escape stops the bulk operation. The daemon completes an undo: half an undo would leave a state that the operator never chose. */
export const isStoppable = (state: State): boolean =>
  state.tokens.collecting !== null || pendingBulkChange(state)?.change.what !== 'undo';

/** Why no change can be sent now; null: changes can be sent. */
export function whyNoChange(state: State): string | null {
  const { target, connection, switchingTo } = state;
  if (target.isReadonly) return 'read-only: changes are disabled';
  if (switchingTo !== null) return `switching to ${switchingTo}: cannot send changes`;
  if (connection.is === 'connecting') return 'not connected yet: cannot send changes';
  if (connection.is === 'offline') return 'offline: cannot send changes';
  if (connection.is === 'denied') return 'access was refused: cannot send changes';
  return whyBusy(state);
}

/** Why another operation cannot start now; null: it can. */
export function whyBusy(state: State): string | null {
  const what = bulkActivity(state);
  if (what === null) return null;
  return isStoppable(state) ? `${what} is in progress; esc stops it` : `${what} is in progress and cannot be stopped`;
}

/** The current time by the daemon's clock, to compare with its timestamps. */
export const daemonNow = ({ nowMs, connection }: Pick<State, 'nowMs' | 'connection'>): number =>
  nowMs + (connection.skewMs ?? 0);
