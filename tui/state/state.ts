/** All that the terminal UI knows, as plain data. Screens show it, `reduce` and the commands of the keys make the next one of it. */
import type {
  CachePurge,
  TokenCreateTerms,
  WireAuditRecord,
  WireCache,
  WireEvent,
  WireProject,
  WireStatus,
  WireToken,
  WireUsageLine,
} from '../../daemon/api/contract.js';
import type { Change, ContextShown, Effect, Failure, Named, Place, Question, TokenHistory } from './exchange.js';
import type { Feed } from './feed.js';
import type { Hidden } from './hidden.js';
import type { Line } from './line.js';
import type { Window } from './window.js';
import type { TokenSortField } from '../../daemon/api/vocabulary.js';

/** Those with a number, in its order. */
export const TABS = ['overview', 'tokens', 'projects', 'audit', 'cache', 'events'] as const;
export type Tab = (typeof TABS)[number];

/** What is looked at; the last of the views is shown. */
export type View = { screen: Tab } | { screen: 'token'; id: string };
export type Screen = View['screen'];

export interface State {
  size: { columns: number; rows: number };
  look: Look;
  /** By our clock. */
  nowMs: number;
  place: Place;
  connection: Connection;
  /** The context whose daemon is to be looked at next, while the way there is being found. */
  goingTo: string | null;
  isPaused: boolean;
  /** So often what is shown is asked for anew. */
  refreshMs: number;
  views: readonly View[];
  /** What lies above the view; the last has the keys. */
  layers: readonly Layer[];
  message: Message | null;
  undo: Undo | null;
  /** Changes that were sent and not answered yet. */
  underWay: readonly UnderWay[];
  /** Fields that this release knows and the daemon does not say: it is older. */
  lacking: readonly string[];
  /** A change of many, or a question of many answers, that goes on. */
  progress: { words: string; done: number; of: number } | null;
  overview: {
    status: WireStatus | null;
    traffic: readonly Sample[];
    dying: readonly WireToken[];
    /** By the hour, the last day. */
    usage: readonly WireUsageLine[] | null;
  };
  tokens: TokensState;
  token: TokenState | null;
  projects: ProjectsState;
  audit: Feed<WireAuditRecord>;
  events: Feed<WireEvent>;
  cache: CacheState;
}

/** What the terminal can show. */
export interface Look {
  ascii: boolean;
  hasColor: boolean;
  /** Nothing moves that need not. */
  isStill: boolean;
}

/**
 * - `connecting`: nothing has been heard yet.
 * - `live`: all that is shown was answered lately.
 * - `stale`: the daemon answers, but not with what was asked for (5xx, 429); or three refreshes passed without an answer.
 * - `offline`: nobody answers.
 * - `denied`: the management token is not (any more) the right one; nothing more is asked until the operator says so.
 */
export interface Connection {
  is: 'connecting' | 'live' | 'stale' | 'offline' | 'denied';
  /** Of the last good answer; null: there was none. */
  answeredMs: number | null;
  /** When all that is shown was last asked for. */
  askedMs: number | null;
  failure: Failure | null;
  /** The questions that were refused or failed when they were last asked. */
  failing: readonly Question['of'][];
  /** The questions without a good answer so far: since when, and how many refreshes have asked for them. */
  unanswered: Readonly<Partial<Record<Question['of'], { sinceMs: number; refreshes: number }>>>;
  /** When it is tried again. */
  retryMs: number | null;
  /** How often in a row it failed. */
  failures: number;
  /** By how much the daemon's clock is ahead of ours; null until it is known. */
  skewMs: number | null;
}

export interface Sample {
  atMs: number;
  perSecond: number;
  errorsPerSecond: number;
}

/** `live`: those that can be used and expire next on top, the dead at the end. */
export const TOKEN_ORDERS = [
  'live',
  'created_at',
  'last_used_at',
  'request_count',
  'name',
] as const satisfies readonly TokenSortField[];
/** `expires_at` stands in for `live` where the daemon is too old to know that. */
export type TokenOrder = (typeof TOKEN_ORDERS)[number] | 'expires_at';

export interface TokensState {
  window: Window<WireToken>;
  /** The filter that holds, as it was typed. */
  filter: string;
  order: TokenOrder;
  isDescending: boolean;
  /** In the order in which they were marked. */
  marks: ReadonlyMap<string, WireToken>;
  /** How many there are without a filter; null until it is known. */
  all: number | null;
  /** Where `v` began to mark; null: it did not. */
  rangeFrom: number | null;
  /** Every token is being asked for, to be marked. */
  collecting: 'marks' | 'inverse' | null;
  /** What a token's count was when it was first seen, for its requests per minute. */
  counted: ReadonlyMap<string, { atMs: number; count: number }>;
}

export interface TokenState {
  token: WireToken | null;
  /** It is not there (any more). */
  isGone: boolean;
  /** By the hour, the last day. */
  usage: readonly WireUsageLine[] | null;
  history: TokenHistory | null;
  /** When each of its requests ended, the last minute only. */
  requestsMs: readonly number[];
  /** The first line to be seen. */
  top: number;
}

export interface ProjectsState {
  /** Null until they are known. */
  all: readonly WireProject[] | null;
  /** Those that the filter lets through, in their order. */
  window: Window<WireProject>;
  filter: string;
  isDescending: boolean;
  order: 'name' | 'created_at';
}

export interface CacheState {
  cache: WireCache | null;
  /** Of the purge that is being thought of. */
  preview: { body: CachePurge; count: number | null; failure: Failure | null } | null;
}

export interface Message {
  words: string;
  tone: 'good' | 'plain' | 'bad';
  untilMs: number;
}

/** A change on its way, and what is there again when the daemon refuses it. */
export interface UnderWay {
  change: Change;
  /** The form that it was filled in. */
  form: Dialog | null;
  /** The undo that it is; null: it is none. */
  undo: Undo | null;
  sentMs: number;
}

/** What takes back the last change. */
export interface Undo {
  change: Change;
  untilMs: number;
  /** What is asked before it is sent; null: nothing. */
  question: string | null;
}

export type Layer = Dialog | Reveal | Prompt | Palette | Help | ContextChoice;

/** A question in the middle of the screen: what it is about, fields, and buttons of which the first cancels. */
export interface Dialog {
  kind: 'dialog';
  purpose: Purpose;
  title: string;
  /** What it is about, a few lines; cells stand below each other. */
  items: readonly DialogItem[];
  /** How many more there are. */
  more: number;
  notes: readonly { words: string; isWarning: boolean }[];
  fields: readonly Field[];
  /** What the second button does. */
  action: string;
  /** Of the fields that are there first, then Cancel, then the action. */
  focus: number;
  /** The first line of its text to be seen, where there is no room for all of it and a button has the focus. */
  scrolled: number;
  problem: string | null;
}

export interface DialogItem {
  cells: readonly string[];
  isWarning: boolean;
}

/** A term of a token is called as the API calls it, but for those that have another label below. */
type TermLabel = Capitalize<Exclude<keyof TokenCreateTerms, 'project_id' | 'max_requests'>>;

/** What a field is called on the screen, and everywhere else: no two of a dialog have the same. */
export type Label =
  | TermLabel
  | 'Project'
  | 'Expires in'
  | 'Requests'
  | 'Reason'
  | "Provider's key"
  | 'What'
  | 'Method'
  | 'Path'
  | `Type ${string} to confirm`;

export interface Field {
  label: Label;
  line: Line;
  /** One of these, with left and right, or by typing a part of its label; none: any text. */
  choices?: readonly { value: string; label: string }[];
  /** What was typed to find a choice. Only those that hold it are gone through. */
  sought?: string;
  /** Shown as bullets. */
  isSecret?: boolean;
  hint?: string;
  /** In columns. */
  width?: number;
  /** It is there only while another field has this value. */
  onlyIf?: { field: Label; value: string };
}

export type Purpose =
  | {
      for: 'change';
      change: Change;
      /** What is to be typed before. */
      typed: string | null;
      /** Whether it takes back the last change. */
      isUndo: boolean;
    }
  | { for: 'new-token' }
  | { for: 'new-project' }
  | { for: 'rename'; project: Named }
  | { for: 'set-key'; project: Named }
  | { for: 'purge'; typed: string | null };

/** The secret of a new token, once. */
export interface Reveal {
  kind: 'reveal';
  token: WireToken;
  secret: Hidden;
  isShown: boolean;
  /** Whether it was shown, copied or written, so that it can have been stored. */
  isTaken: boolean;
  /** Where it is being written to; null: nowhere. */
  path: Line | null;
  isWriting: boolean;
  /** What became of it. */
  said: string | null;
  problem: string | null;
}

/** A line at the bottom; so far only the filter of a list. */
export interface Prompt {
  kind: 'prompt';
  line: Line;
  /** What held before, for Escape. */
  before: string;
  problem: string | null;
}

export interface Palette {
  kind: 'palette';
  line: Line;
  selected: number;
}

export interface Help {
  kind: 'help';
  selected: number;
}

export interface ContextChoice {
  kind: 'contexts';
  all: readonly ContextShown[] | null;
  /** Keys that were pressed before the list was there; they act once it is. */
  early: readonly string[];
  selected: number;
  failure: Failure | null;
}

/** The next state, and what is to be done for it. */
export type Step = readonly [State, ...Effect[]];

export const view = (state: State): View => state.views.at(-1) ?? { screen: 'overview' };
export const layer = (state: State): Layer | undefined => state.layers.at(-1);

/** What lies on top is replaced, or taken away. */
export function withLayer(state: State, top: Layer | null): State {
  const others = state.layers.slice(0, -1);
  return { ...state, layers: top ? [...others, top] : others };
}

const MESSAGE_MS = 6_000;

export const saying = (state: State, words: string, tone: Message['tone'] = 'plain'): State => ({
  ...state,
  message: { words, tone, untilMs: state.nowMs + MESSAGE_MS },
});

/** A change of many that is on its way; undefined: there is none. */
const ofMany = ({ underWay }: State) => underWay.find(({ change }) => 'tokens' in change && change.tokens.length > 1);

/** What goes on that is of many; null: nothing. */
export function goingOn(state: State): string | null {
  if (state.tokens.collecting !== null) return 'Marking';
  const many = ofMany(state);
  if (!many) return null;
  if (many.undo !== null) return 'The undo';
  return many.change.what === 'revoke' ? 'Revoking' : 'Reactivating';
}

/** Whether Escape stops what goes on. An undo is not stopped: half of it would leave what nobody asked for. */
export const isStoppable = (state: State): boolean =>
  state.tokens.collecting !== null || (ofMany(state)?.undo ?? null) === null;

/** Why nothing can be changed now; null when it can. */
export function whyNoChange(state: State): string | null {
  const { place, connection, goingTo } = state;
  if (place.isReadonly) return 'read-only: nothing is changed from here';
  if (goingTo !== null) return `on the way to ${goingTo}, not sent`;
  if (connection.is === 'connecting') return 'not connected yet, not sent';
  if (connection.is === 'offline') return 'offline, not sent';
  if (connection.is === 'denied') return 'the management token was refused, not sent';
  return whyBusy(state);
}

/** What goes on, said to somebody who wants to begin something else; null: nothing. */
export function whyBusy(state: State): string | null {
  const what = goingOn(state);
  if (what === null) return null;
  return isStoppable(state) ? `${what} goes on; esc stops it` : `${what} goes on, and is not stopped`;
}

/** Now, by the daemon's clock: what its timestamps are to be held against. */
export const daemonNow = ({ nowMs, connection }: Pick<State, 'nowMs' | 'connection'>): number =>
  nowMs + (connection.skewMs ?? 0);
