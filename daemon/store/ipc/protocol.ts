/** What the primary and its workers say to each other. */
import type {
  CacheSelection,
  CacheSize,
  HeldClaim,
  LimitClaim,
  LimitDecision,
  LimitedScope,
  Limits,
  LimitState,
  Notification,
  RateDecision,
  RateWindow,
} from '../../core/ports.js';
import type { BudgetEvent } from '../../core/events.js';
import type { Figures } from './figures.js';
import type { RecordBatch } from './records.js';

/** Settings as text: their values have classes, which do not survive the way to another process. */
export type Texts = Readonly<Record<string, string>>;

/** What a worker needs to begin. */
export interface Briefing {
  /** The texts of all settings by name, with the worker's share of the limits of this machine. */
  texts: Texts;
  instanceId: string;
  /** ID of the primary, by which requests that loop back to any of the workers are recognised. */
  daemonId: string;
  /** The text of `PRICES_FILE`; null: none. */
  prices: string | null;
  isLogInJournal: boolean;
  /** The resources that other workers may have cached (resource-filter.ts). */
  cached: Uint8Array;
  health: PrimaryHealth;
}

/** What a worker has to apply. */
export type Reloading = Pick<Briefing, 'texts' | 'prices'>;

/** What health checks say of the parts that only the primary has. */
export interface PrimaryHealth {
  degraded: readonly string[];
  /** Null if events are not published. */
  isBusFailing: boolean | null;
  /** Whether the database was reached, and has the schema of this build. */
  isDatabaseReady: boolean;
  pendingMigrations: readonly string[];
  limits: LimitState;
}

/** A piece of a connection to the primary. */
export interface TunnelPiece {
  id: number;
  /** Null: no more bytes follow in this direction. */
  bytes: Uint8Array | null;
}

/** The ends of a client's connection, as `net.Socket` has them. */
export interface ClientEnds {
  remoteAddress?: string | undefined;
  localAddress?: string | undefined;
}

/** Accepted by a worker. */
export type OfWorker = {
  begin: { argument: Briefing; result: undefined };
  /** `isOwn`: a change of this daemon, which purges the caches of workers by `purge`. */
  notify: { argument: { notification: Notification; isOwn: boolean }; result: undefined };
  /** Replies when all earlier messages have been applied. */
  confirm: { argument: null; result: undefined };
  /** Hands over the records of completed requests. */
  report: { argument: null; result: Figures };
  /** The same, and writes all counts to the database. */
  settle: { argument: null; result: Figures };
  purge: { argument: CacheSelection; result: number };
  count: { argument: CacheSelection; result: number };
  size: { argument: null; result: CacheSize };
  invalidate: { argument: ResourceOfProject; result: undefined };
  health: { argument: PrimaryHealth; result: undefined };
  /** Another worker may cache a resource from now on. */
  announced: { argument: number; result: undefined };
  reload: { argument: Reloading; result: undefined };
  stop: { argument: null; result: undefined };
  tunnel: { argument: TunnelPiece; result: undefined };
  tunnelClosed: { argument: number; result: undefined };
};

export interface ResourceOfProject {
  projectId: string;
  resource: string;
}

/** Accepted by the primary. */
export type OfPrimary = {
  /** The worker accepts connections at this address. */
  listening: { argument: string | null; result: undefined };
  notify: { argument: Notification; result: undefined };
  /** Records of completed requests. */
  ended: { argument: RecordBatch; result: undefined };
  /** An event of a budget, to be published. */
  budget: { argument: BudgetEvent; result: undefined };
  take: { argument: { key: string; window: RateWindow }; result: RateDecision };
  enterLimits: { argument: LimitClaim; result: LimitDecision };
  settleLimits: { argument: { claim: HeldClaim; tokens: number }; result: undefined };
  leaveLimits: { argument: HeldClaim; result: undefined };
  cancelLimits: { argument: HeldClaim; result: undefined };
  limitsLeft: { argument: readonly LimitedScope[]; result: Limits[] };
  invalidate: { argument: ResourceOfProject; result: undefined };
  /** The worker may cache a resource from now on. Replies when all others know. */
  announce: { argument: number; result: undefined };
  open: { argument: { id: number; ends: ClientEnds }; result: undefined };
  tunnel: { argument: TunnelPiece; result: undefined };
  tunnelClosed: { argument: number; result: undefined };
};
