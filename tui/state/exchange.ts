/**
 * Effects and actions, as plain data: the reducer returns effects, tui/effects runs them, and their results come back as actions.
 */
import type { Page } from '../../daemon/api/client.js';
import type {
  AuditQuery,
  AuditStreamQuery,
  CachePurge,
  EventQuery,
  EventStreamQuery,
  OperatorCreate,
  ProjectPatch,
  TokenCreate,
  TokenQuery,
  TopQuery,
  UsageQuery,
  WireAuditRecord,
  WireBatchUndone,
  WireCache,
  WireEvent,
  WireIncidents,
  WireOperator,
  WireProject,
  WireProjectChanged,
  WireProjectCheck,
  WireSelf,
  WireStatus,
  WireToken,
  WireTop,
  WireTrust,
  WireUsageLine,
} from '../../daemon/api/contract.js';
import type { ShownProject, ShownToken } from '../../daemon/api/if-shown.js';
import type { ProjectUpstream } from '../../daemon/api/providers.js';
import type { Policies } from '../../daemon/api/vocabulary.js';
import type { TokenHistory } from '../../daemon/api/audit-history.js';
import type { ExportedList } from './exported-list.js';
import type { Saved, SavedChange } from './saved.js';
import type { Secret, SecretSearch } from './secret.js';
import type { PageRequest } from './window.js';

/** Kinds of data requests by name: parameters and resulting data. */
interface Requests {
  /** Who calls, and what that allows. */
  self: { params: object; data: WireSelf };
  status: { params: object; data: WireStatus };
  incidents: { params: object; data: WireIncidents };
  /** The traffic of all instances in the last hour, and the tokens with the most failures, for the overview. */
  lastHour: { params: { query: TopQuery }; data: WireTop };
  tokens: { params: { query: TokenQuery; page: PageRequest }; data: Page<WireToken> };
  /** The first few tokens of a query, for the overview. */
  expiring: { params: { query: TokenQuery }; data: Page<WireToken> };
  /** What projects have cost in the last days, by model; and the tokens whose budgets are nearly spent. */
  costs: { params: { query: UsageQuery }; data: readonly WireUsageLine[] };
  spenders: { params: { query: TokenQuery }; data: Page<WireToken> };
  token: { params: { id: string }; data: WireToken };
  /** The tokens of a secret: one or none; or of what is shown of one. */
  tokensOfSecret: { params: { by: SecretSearch }; data: readonly WireToken[] };
  /** All tokens of a query, to mark them or to invert their marks. */
  allTokens: { params: { query: TokenQuery; as: 'marks' | 'inverse' }; data: readonly WireToken[] };
  /** All projects: there are never many. */
  projects: { params: object; data: readonly WireProject[] };
  /** The models that a project has used lately, those with the most requests first. */
  models: { params: { project: string }; data: readonly string[] };
  usage: { params: { query: UsageQuery }; data: readonly WireUsageLine[] };
  audit: { params: { query: AuditQuery }; data: Page<WireAuditRecord> };
  /** The first changes of a batch, the latest first. */
  members: { params: { batch: string }; data: Page<WireAuditRecord> };
  events: { params: { query: EventQuery }; data: Page<WireEvent> };
  /** The changes of one token, and its latest use. */
  tokenAudit: { params: { id: string }; data: TokenHistory };
  /** The latest changes of a project and its tokens, newest first. */
  projectAudit: { params: { id: string }; data: readonly WireAuditRecord[] };
  cache: { params: object; data: WireCache };
  /** All operators, and all trusts: there are never many. */
  operators: { params: object; data: readonly WireOperator[] };
  trusts: { params: object; data: readonly WireTrust[] };
  top: { params: { query: TopQuery }; data: WireTop };
  /** One request to the provider, with the project's key. */
  projectCheck: { params: { project: Named }; data: WireProjectCheck };
  /** How many cached responses a purge would remove. */
  purgeable: { params: { body: CachePurge }; data: number };
  /** The files of a folder, for completion. */
  files: { params: { folder: string }; data: readonly FileEntry[] };
  /** The total of the query of a saved view. */
  viewCount: { params: { name: string; query: TokenQuery }; data: number | null };
  contexts: { params: object; data: readonly ContextSummary[] };
}

export type { TokenHistory };

export type DataRequest = { [K in keyof Requests]: { of: K } & Requests[K]['params'] }[keyof Requests];
export type DataResponse = {
  [K in keyof Requests]: { request: { of: K } & Requests[K]['params']; data: Requests[K]['data'] };
}[keyof Requests];
/** The data of one kind of request. */
export type DataOf<K extends keyof Requests> = Requests[K]['data'];

export interface FileEntry {
  name: string;
  isFolder: boolean;
}

export interface ContextSummary {
  name: string;
  server: string;
  isCurrent: boolean;
  isProtected: boolean;
  isReadonly: boolean;
  color: string | null;
}

/** A change to request from the daemon. For several tokens there is one HTTP request per token, a few at a time. */
export type ChangeRequest =
  | { what: 'revoke' | 'reactivate'; tokens: readonly (Named & Partial<ShownToken>)[] }
  | { what: 'create-token'; body: TokenCreate }
  | { what: 'update-token'; token: Named & ShownToken; body: Partial<Policies> }
  /** Issues tokens that are like these. Their secrets go to a new file. */
  | { what: 'issue-again'; tokens: readonly Named[]; path: string }
  | {
      what: 'create-project';
      name: string;
      upstream?: Partial<ProjectUpstream & Pick<WireProject, 'missing_usage'>>;
      policies?: Partial<Policies>;
      key: NewKey;
    }
  | {
      what: 'update-project';
      project: Named & Partial<ShownProject & Policies>;
      body: Omit<ProjectPatch, 'api_key' | 'check_key'>;
      key?: NewKey;
    }
  | { what: 'revoke-all'; project: Named }
  | { what: 'purge'; body: CachePurge }
  | { what: 'create-operator'; body: OperatorCreate }
  | { what: 'activate-operator'; operator: Named }
  | { what: 'deactivate-operator'; operator: Named; keepsTokens: boolean }
  | UndoRequest;

/** The daemon changes back what a batch has changed, and nobody since. */
export interface UndoRequest {
  what: 'undo';
  batch: string;
  /** What this amounts to, for messages; null: `title` says what is undone. */
  as: ChangeRequest | null;
  title: string;
}

/** A provider's key to store. */
export interface NewKey {
  secret: Secret;
  /** Whether the daemon checks it with the provider first. */
  isToCheck: boolean;
}

/** A change that reverts an earlier one. */
export interface Reversal {
  kind: 'undo' | 'redo';
  change: UndoRequest;
  /** When the earlier change was made. */
  madeMs: number;
  /** Text of the dialog that must be confirmed first; null: a dialog opens only if the change is long ago. */
  confirmation: string | null;
}

/** An object with its id and name. */
export interface Named {
  id: string;
  /** Null: it has no name. */
  name: string | null;
}

/** What has a secret that is shown once. */
export type Created = { is: 'token'; token: WireToken } | { is: 'operator'; operator: WireOperator };

export interface ChangeResult {
  /** Number of changed objects. */
  done: number;
  /** Number of tokens that were revoked with what was changed. */
  revoked?: number;
  /** Ids of the changed tokens; empty for other changes. */
  doneIds: readonly string[];
  failures: readonly { of: Named; failure: Failure }[];
  /** The ID that the changes have in common, by which they can be undone. */
  batch?: string;
  /** What an undo has left as it is. */
  skipped?: WireBatchUndone['skipped'];
  created?: { of: Created; secret: Secret };
  /** Where the secrets of several new tokens are. */
  path?: string;
  project?: WireProject;
  /** For a key that was to be checked: the result. */
  keyCheck?: WireProjectChanged['key_check'] | undefined;
}

/** Why a request failed. */
export interface Failure {
  kind: 'unreachable' | 'refused';
  /** Status of the response; null without a response. */
  status: number | null;
  code: string;
  message: string;
  retryAfterMs: number | null;
}

/** A stream to follow. Each kind is followed at most once. */
export type Stream =
  | { of: 'audit'; query: AuditStreamQuery }
  | { of: 'events'; query: EventStreamQuery }
  /** Events of one token, for its detail. They begin with the stored ones `since` then. */
  | { of: 'tokenEvents'; id: string; since: string };

export type Streamed = { of: 'audit'; item: WireAuditRecord } | { of: 'events' | 'tokenEvents'; item: WireEvent };

/** The daemon that the terminal UI is connected to, and the settings of its context. */
export interface Target {
  /** Its address, for display. */
  server: string;
  context: string | null;
  color: string | null;
  isProtected: boolean;
  isReadonly: boolean;
  /** Default project of new tokens, by name or id. */
  project: string | null;
}

/** Timers. `refresh`: request the data on the screen again. `second`: update the times. `filter`: apply what was typed. */
export type Wake = 'refresh' | 'second' | 'filter';

export type Effect =
  | { do: 'load'; request: DataRequest }
  | { do: 'change'; change: ChangeRequest; reason: string | null }
  /** Stops a bulk operation. */
  | { do: 'stop' }
  /** Follows exactly these streams. Those already open stay open. */
  | { do: 'follow'; streams: readonly Stream[] }
  /** Starts a timer. A second one of the same name replaces the first. */
  | { do: 'wake'; name: Wake; afterMs: number }
  | { do: 'copy'; text: string | Secret; what: string }
  /** Writes the secret to a new file with mode 0600. */
  | { do: 'write'; secret: Secret; path: string }
  /** Writes a list to a file. */
  | { do: 'export'; list: ExportedList }
  /** Adds a command to the stored history. */
  | { do: 'remember'; line: string }
  /** Stores a change of the saved views. */
  | { do: 'save'; change: SavedChange }
  | { do: 'connect'; context: string }
  | { do: 'suspend' }
  | { do: 'repaint' }
  | { do: 'quit'; code: number };

/** A click, or a step of the wheel, at a place of the screen. */
export interface MouseAction {
  what: 'click' | 'wheelup' | 'wheeldown';
  /** From 0. */
  column: number;
  row: number;
}

export type Action =
  | { on: 'began' }
  | { on: 'key'; key: string }
  | { on: 'paste'; text: string }
  | ({ on: 'mouse' } & MouseAction)
  | { on: 'resized'; columns: number; rows: number }
  | { on: 'woke'; name: Wake }
  | ({ on: 'loaded' } & DataResponse)
  | { on: 'failed'; request: DataRequest; failure: Failure }
  /** Progress of a bulk change, or of loading all tokens. */
  | { on: 'progress'; words: string; done: number; of: number }
  | { on: 'changed'; change: ChangeRequest; outcome: ChangeResult }
  | { on: 'refused'; change: ChangeRequest; failure: Failure }
  | { on: 'streamed'; streamed: readonly Streamed[] }
  | { on: 'stream'; of: Stream['of']; is: 'open' | 'lost'; failure: Failure | null }
  /** The daemon responded. `skewMs` is how far its clock is ahead; null if the response had no date. */
  | { on: 'heard'; skewMs: number | null }
  | { on: 'connected'; target: Target; saved?: Saved }
  | { on: 'notConnected'; context: string; failure: Failure }
  /** What is stored now, with the changes of other terminal UIs. */
  | { on: 'saved'; saved: Saved }
  | { on: 'notSaved'; failure: Failure }
  | { on: 'copied'; what: string; to: 'tmux' | 'terminal' }
  /** The text is too long for a terminal. */
  | { on: 'notCopied'; what: string }
  | { on: 'exported'; list: ExportedList; count: number; isCut: boolean }
  /** `why` is null if there is such a file already. */
  | { on: 'notExported'; list: ExportedList; why: string | null }
  | { on: 'written'; path: string }
  | { on: 'notWritten'; path: string; why: string };

/** An action with its time, because the reducer has no clock. */
export type TimedAction = Action & { atMs: number };
