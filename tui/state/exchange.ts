/**
 * What the terminal UI asks of the world and hears from it, as data. Effects go out of the reducer, actions come in; what is
 * between them is in tui/effects.
 */
import type { Page } from '../../daemon/api/client.js';
import type {
  AuditQuery,
  AuditStreamQuery,
  CachePurge,
  EventQuery,
  ProjectPatch,
  TokenCreate,
  TokenQuery,
  UsageQuery,
  WireAuditRecord,
  WireCache,
  WireEvent,
  WireProject,
  WireStatus,
  WireToken,
  WireUsageLine,
} from '../../daemon/api/contract.js';
import type { TokenHistory } from '../../daemon/api/token-history.js';
import type { Hidden } from './hidden.js';
import type { PageWanted } from './window.js';

/** Each question by its name: what it asks, and what the answer is. */
interface Asked {
  status: { asks: object; answer: WireStatus };
  tokens: { asks: { query: TokenQuery; page: PageWanted }; answer: Page<WireToken> };
  /** The first few by a query, for where no list is shown. */
  dying: { asks: { query: TokenQuery }; answer: Page<WireToken> };
  token: { asks: { id: string }; answer: WireToken };
  /** Every token of a query, however many: to mark them, or those that are not. */
  everyToken: { asks: { query: TokenQuery; as: 'marks' | 'inverse' }; answer: readonly WireToken[] };
  /** All of them: there are never many. */
  projects: { asks: object; answer: readonly WireProject[] };
  usage: { asks: { query: UsageQuery }; answer: readonly WireUsageLine[] };
  audit: { asks: { query: AuditQuery }; answer: Page<WireAuditRecord> };
  /** What was changed of one token, and its latest use. */
  tokenAudit: { asks: { id: string }; answer: TokenHistory };
  cache: { asks: object; answer: WireCache };
  /** How many answers a purge would remove. */
  purgeable: { asks: { body: CachePurge }; answer: number };
  contexts: { asks: object; answer: readonly ContextShown[] };
}

export type { TokenHistory };

export type Question = { [K in keyof Asked]: { of: K } & Asked[K]['asks'] }[keyof Asked];
export type Answered = {
  [K in keyof Asked]: { question: { of: K } & Asked[K]['asks']; answer: Asked[K]['answer'] };
}[keyof Asked];
/** What of one question by its name. */
export type AnswerOf<K extends keyof Asked> = Asked[K]['answer'];

export interface ContextShown {
  name: string;
  server: string;
  isCurrent: boolean;
  isProtected: boolean;
  isReadonly: boolean;
  color: string | null;
}

/** A change for the daemon to make; those of several tokens go one by one, a few at a time. */
export type Change =
  | { what: 'revoke' | 'reactivate'; tokens: readonly Named[] }
  | { what: 'create-token'; body: TokenCreate }
  | { what: 'create-project'; name: string; key: Hidden }
  | { what: 'update-project'; project: Named; body: Omit<ProjectPatch, 'api_key'>; key?: Hidden }
  | { what: 'revoke-all'; project: Named }
  | { what: 'purge'; body: CachePurge };

/** Something by its id and what people call it. */
export interface Named {
  id: string;
  /** Null: it has no name. */
  name: string | null;
}

export interface Outcome {
  /** How many were changed. */
  done: number;
  /** Of those, the ones by their ids; empty where the change is not of tokens. */
  doneIds: readonly string[];
  failures: readonly { of: Named; failure: Failure }[];
  created?: { token: WireToken; secret: Hidden };
  project?: WireProject;
}

/** Why there is no answer. */
export interface Failure {
  kind: 'unreachable' | 'refused';
  /** Of the answer; null without one. */
  status: number | null;
  code: string;
  message: string;
  retryAfterMs: number | null;
}

/** Streams that are followed, each at most once. */
export type Stream =
  | { of: 'audit'; query: AuditStreamQuery }
  | { of: 'events'; query: EventQuery }
  /** Of one token, for its detail. */
  | { of: 'tokenEvents'; id: string };

export type Streamed = { of: 'audit'; item: WireAuditRecord } | { of: 'events' | 'tokenEvents'; item: WireEvent };

/** Where the terminal UI looks at. */
export interface Place {
  /** As it is shown. */
  server: string;
  context: string | null;
  color: string | null;
  isProtected: boolean;
  isReadonly: boolean;
  /** The project of new tokens, by its name or id. */
  project: string | null;
}

/** - `refresh`: what is shown is asked for anew. - `second`: the clock goes on. - `filter`: what is being typed holds. */
export type Wake = 'refresh' | 'second' | 'filter';

export type Effect =
  | { do: 'ask'; question: Question }
  | { do: 'change'; change: Change; reason: string | null }
  /** Ends a change of many where it is. */
  | { do: 'stop' }
  /** These and no others; what is followed already goes on. */
  | { do: 'follow'; streams: readonly Stream[] }
  /** Comes back as an action of that name, once; a second for the same takes the place of the first. */
  | { do: 'wake'; name: Wake; afterMs: number }
  | { do: 'copy'; text: string | Hidden; what: string }
  /** Into a new file, mode 0600. */
  | { do: 'write'; secret: Hidden; path: string }
  | { do: 'connect'; context: string }
  | { do: 'suspend' }
  | { do: 'repaint' }
  | { do: 'quit'; code: number };

export type Action =
  | { on: 'began' }
  | { on: 'key'; key: string }
  | { on: 'paste'; text: string }
  | { on: 'resized'; columns: number; rows: number }
  | { on: 'woke'; name: Wake }
  | ({ on: 'answered' } & Answered)
  | { on: 'failed'; question: Question; failure: Failure }
  /** How far a change of many has come, or a question that takes many answers. */
  | { on: 'progress'; words: string; done: number; of: number }
  | { on: 'changed'; change: Change; outcome: Outcome }
  | { on: 'refused'; change: Change; failure: Failure }
  | { on: 'streamed'; streamed: readonly Streamed[] }
  | { on: 'stream'; of: Stream['of']; is: 'open' | 'lost'; failure: Failure | null }
  /** Something answered: when, by our clock, and how late the daemon's clock is; null where it did not say. */
  | { on: 'heard'; skewMs: number | null }
  | { on: 'connected'; place: Place }
  | { on: 'notConnected'; context: string; failure: Failure }
  | { on: 'copied'; what: string }
  /** It is too long for a terminal. */
  | { on: 'notCopied'; what: string }
  | { on: 'written'; path: string }
  | { on: 'notWritten'; path: string; why: string };

/** An action at a moment: the reducer has no clock of its own. */
export type Timed = Action & { atMs: number };
