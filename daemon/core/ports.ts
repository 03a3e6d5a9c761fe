/** What the core asks of the outside. Each port is implemented in daemon/store, daemon/log.ts or daemon/compose.ts. */
import type { AuditRecord } from './audit.js';
import type { Happening, Outcome } from './events.js';
import type { Project, Token, TokenState } from './token.js';

export interface Clock {
  /** Wall time in ms since the epoch: expiry and time stamps. */
  now(): number;
  /** ms on a clock that never jumps: ages, windows, waits. */
  monotonic(): number;
  /** Runs `action` once after `ms`, unless the returned function is called before. Does not keep the process alive. */
  after(ms: number, action: () => void): () => void;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type Log = Record<LogLevel, (message: string, fields?: object) => void>;

/** The database cannot be reached, is full, locked or not migrated. Carries no bind values. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable';
}

/** A value that must be unique is taken. */
export class StoreConflict extends Error {
  override name = 'StoreConflict';
}

// ---- admission -----------------------------------------------------------------------------------------------

/** A token with all that admitting a request takes. */
export interface KnownToken {
  token: Token;
  /** Units of the cap that are used or leased, over all instances. Meaningless when unlimited. */
  reserved: number;
  projectIsActive: boolean;
  upstreamKey: string;
}

export interface TokenLookup {
  /** @throws {StoreUnavailable} */
  byDigest(digest: string): Promise<KnownToken | null>;
}

/** One token's part of a tick. */
export interface TickRow {
  tokenId: string;
  /** Uses drawn since the last tick. Where `leased`, they come out of this instance's lease. */
  uses: number;
  hits: number;
  lastUsedAtMs: number;
  leased: boolean;
  /** Units wanted into the lease; fewer may be granted. */
  take: number;
  /** Unspent units that leave the lease. */
  giveBack: number;
}

export interface Tick {
  instanceId: string;
  /** 1, 2, 3 …: the transaction advances the instance's stored number from `seq - 1`, and so happens once or not at all. */
  seq: number;
  nowMs: number;
  rows: readonly TickRow[];
}

/** What a take brought: the units granted, and how many the database still has to give after it. */
export interface TakeReport {
  granted: number;
  left: number;
}

/** Counts and leases, as architecture.md's "Exact caps by leases" and "Settle" describe them. */
export interface Ledger {
  /** Makes the instance known with `seq` 0. Where no other instance can be alive, what the dead ones held is counted as used. */
  enrol(instanceId: string, nowMs: number): Promise<void>;
  /** Commits a tick. After an error its outcome is unknown until `lastSeq` is read. */
  commit(tick: Tick): Promise<Map<string, TakeReport>>;
  /** The `seq` of the last tick that was committed. */
  lastSeq(instanceId: string): Promise<number>;
  /** Ends the instance: what it still holds counts as used. */
  retire(instanceId: string): Promise<void>;
}

// ---- the registry --------------------------------------------------------------------------------------------

export type ChangeKind =
  | 'project.created'
  | 'project.updated'
  | 'project.activated'
  | 'project.deactivated'
  | 'token.created'
  | 'token.revoked'
  | 'token.reactivated'
  | 'tokens.revoked';

/** What other instances, and the parts of this one that remember things, must hear about. */
export interface Change {
  kind: ChangeKind;
  projectId: string;
  tokenId: string | null;
}

export interface NewProject extends Project {
  upstreamKey: string;
}

export interface NewToken extends Token {
  digest: string;
}

/** What may change of a project; what is undefined stays. */
export interface ProjectChanges {
  name?: string | undefined;
  upstreamKey?: string | undefined;
  isActive?: boolean | undefined;
}

/** A token with what its state depends on beside itself. */
export interface TokenRow {
  token: Token;
  projectIsActive: boolean;
}

/** A position in a sorted list: the sort value and the id of the last row shown. */
export interface Position {
  value: string | number;
  id: string;
}

export interface PageRequest {
  limit: number;
  after: Position | null;
}

export interface PageOf<T> {
  rows: T[];
  /** Null on the last page. */
  next: Position | null;
  /** How many there are on all pages; null where they are not counted. */
  total: number | null;
}

export interface ProjectFilter {
  isActive?: boolean | undefined;
}

export type TokenSortField = 'createdAt' | 'expiresAt' | 'lastUsedAt' | 'requestCount' | 'name';

export interface TokenSort {
  field: TokenSortField;
  descending: boolean;
}

export interface TokenFilter {
  projectId?: string | undefined;
  state?: TokenState | undefined;
  expiresAfterMs?: number | undefined;
  expiresBeforeMs?: number | undefined;
  /** Capped tokens of which more than this percentage is used. */
  usedOverPercent?: number | undefined;
  /** A part of the name in any case, or the beginning of the id. */
  text?: string | undefined;
}

/** How many there are. */
export interface Population {
  projects: { active: number; all: number };
  tokens: Record<TokenState, number>;
}

/** One management change. Everything done through it is committed together or not at all. */
export interface ChangeTransaction {
  /** Reads the project and keeps others from changing it, or issuing tokens for it, until the end. */
  lockProject(id: string): Promise<Project | null>;
  insertProject(project: NewProject): Promise<void>;
  /** Writes the project as it is to be, and its upstream key if that changes. */
  updateProject(project: Project, upstreamKey: string | undefined): Promise<void>;
  token(id: string): Promise<TokenRow | null>;
  insertToken(token: NewToken): Promise<void>;
  setTokenActive(id: string, isActive: boolean): Promise<void>;
  /** @returns how many tokens were active and are not any more. */
  revokeTokensOf(projectId: string): Promise<number>;
  /**
   * Keeps a record, under the number of its place among all. Must come last, several of them in their order: the number belongs to
   * this transaction until it ends.
   *
   * @param change what others must hear of it; nothing of what was refused.
   */
  record(record: AuditRecord, change?: Change): Promise<void>;
}

export interface AuditFilter {
  action?: AuditRecord['action'] | undefined;
  actor?: AuditRecord['actor'] | undefined;
  outcome?: AuditRecord['outcome'] | undefined;
  projectId?: string | undefined;
  tokenId?: string | undefined;
  /** From this time on. */
  sinceMs?: number | undefined;
  /** Before this time. */
  untilMs?: number | undefined;
  /** Words, each of which begins a word of what is said of the record. */
  text?: string | undefined;
}

/** An audit record with its place: the numbers rise in the order of commits, over all instances. */
export interface CommittedRecord extends AuditRecord {
  seq: number;
}

export interface RecordStore {
  project(id: string): Promise<Project | null>;
  projects(filter: ProjectFilter, page: PageRequest): Promise<PageOf<Project>>;
  token(id: string): Promise<TokenRow | null>;
  tokenByDigest(digest: string): Promise<TokenRow | null>;
  tokens(filter: TokenFilter, sort: TokenSort, page: PageRequest, nowMs: number): Promise<PageOf<TokenRow>>;
  /** Takes some hundred ms for a million tokens. @throws {StoreUnavailable} */
  population(nowMs: number): Promise<Population>;
  /** Newest first. They are not counted: that would take longer than the page. */
  auditRecords(filter: AuditFilter, page: PageRequest): Promise<PageOf<AuditRecord>>;
  auditRecord(id: string): Promise<AuditRecord | null>;
  /** @throws {StoreConflict} when a unique value is taken. @throws {StoreUnavailable} when nothing was changed. */
  change<T>(work: (tx: ChangeTransaction) => Promise<T>): Promise<T>;
  /** Has `listener` told of records that were committed here, in their order. It must neither wait nor throw. */
  onCommitted(listener: (records: readonly CommittedRecord[]) => void): void;
  /** The records that follow a place, the oldest first. */
  recordsAfter(seq: number, limit: number): Promise<CommittedRecord[]>;
  /** The place of the last record; 0 where there is none. */
  lastRecord(): Promise<number>;
  /** From now on no change is made while `why` gives a reason. */
  refuseChangesWhile(why: () => string | null): void;
  /** For what is done elsewhere before it is recorded. @throws {StoreUnavailable} while no change is made. */
  checkChangeable(): void;
}

// ---- usage ---------------------------------------------------------------------------------------------------

/** What requests came to that one row or one line of a report stands for. */
export interface UsageCounts {
  requests: number;
  /** Answered from the cache. */
  hits: number;
  /** As far as the provider counted them. */
  promptTokens: number;
  completionTokens: number;
}

/** An hour of one token with one result and one model. '' where there is none, or none is known. */
export interface UsageRow extends UsageCounts {
  /** Made of all that tells it from other rows; begins with the hour, so that the order of ids is one of time. */
  id: string;
  /** When the hour begins, in ms since the epoch. */
  hourMs: number;
  tokenId: string;
  projectId: string;
  outcome: Outcome;
  code: string;
  model: string;
  /** How many of the requests the provider gave token counts for. */
  withTokens: number;
}

export interface UsageFlush {
  instanceId: string;
  /** 1, 2, 3 …: the transaction advances the instance's stored number from `seq - 1`, and so happens once or not at all. */
  seq: number;
  nowMs: number;
  rows: readonly UsageRow[];
}

export const USAGE_DIMENSIONS = ['token', 'project', 'model', 'hour', 'day'] as const;
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number];

export interface UsageQuery {
  by: ReadonlySet<UsageDimension>;
  /** Beginnings of hours: from the one until before the other. */
  sinceMs: number;
  untilMs: number;
  projectId?: string | undefined;
  tokenId?: string | undefined;
}

/** What was asked for by is there, '' for none; the rest is not. */
export interface UsageLine extends UsageCounts {
  tokenId?: string;
  projectId?: string;
  model?: string;
  hourMs?: number;
  dayMs?: number;
  refused: number;
  errors: number;
}

export interface UsageStore {
  /** Adds rows to those that are there. After an error its outcome is unknown until `lastFlush` is read. */
  add(flush: UsageFlush): Promise<void>;
  /** The `seq` of the instance's last flush that was committed; 0 before the first. */
  lastFlush(instanceId: string): Promise<number>;
  /** Adds up. @returns in no order, and one more than `most` lines where there are more. */
  report(query: UsageQuery, most: number): Promise<UsageLine[]>;
  /** Removes some of what lies before that day. @returns whether there may be more of it. */
  forgetBefore(dayMs: number): Promise<boolean>;
}

// ---- the response cache --------------------------------------------------------------------------------------

/** Where an answer has its place. The three parts together are its key; none holds a line break. */
export interface CachePlace {
  projectId: string;
  /** Method and target, such as `GET /v1/models?limit=1`: what a write or a purge names. */
  resource: string;
  /** What tells it from the other answers of the resource. */
  variant: string;
}

/** An upstream's answer, whole, and as far as it may be kept. */
export interface KeptAnswer {
  kind: 'answer';
  status: number;
  /** Names and values in turn. */
  headers: readonly string[];
  body: Buffer;
  /** How old it may have been when it arrived. */
  ageMs: number;
  /** Not for clients that did not opt in: it states no lifetime, and what they poll must not freeze. */
  isForOptedIn: boolean;
}

/** In the place of an answer: which header fields of the request the answers differ by. They stand at places of their own. */
export interface KeptVary {
  kind: 'vary';
  /** In lower case. */
  names: readonly string[];
}

export interface Kept {
  content: KeptAnswer | KeptVary;
  /** So long from when it was kept it may be used without asking the upstream. */
  freshMs: number;
  /** And so long it is kept at all: to be asked about, not to be used as it is. */
  keepMs: number;
}

export interface Found {
  content: KeptAnswer | KeptVary;
  /** Since it was kept. */
  heldMs: number;
  freshMs: number;
}

/** Permission to keep the answer to one request. It ends when its resource is removed, so that nothing older is kept behind that. */
export interface Fill {
  /** Keeps all of these or none. @returns whether it did; the cache being away is no error. */
  keep(entries: readonly { place: CachePlace; kept: Kept }[]): boolean | Promise<boolean>;
  /** Nothing will be kept. */
  drop(): void;
}

export interface LookUp {
  found: Found | null;
  /** Begun if it was wanted and nothing fresh was found. */
  fill: Fill | null;
}

export interface LookUpOptions {
  /** Whether what is kept is of interest; otherwise nothing is found. */
  reads: boolean;
  /** Whether the answer, should the upstream be asked, may be kept. */
  fills: boolean;
}

/** What a purge removes: the answers of a resource in every project, all of a project, or all. */
export type CacheSelection =
  { kind: 'resource'; resource: string } | { kind: 'project'; projectId: string } | { kind: 'all' };

export interface CacheSize {
  entries: number;
  bytes: number;
}

/**
 * Answers of upstreams. A cache that is away finds nothing and keeps nothing: no request fails for it.
 * What is shared by several instances works in the same way for all of them together.
 */
export interface CacheStore {
  readonly backend: 'memory' | 'redis';
  /** At once where it can. Whoever begins a fill asks the upstream only then. */
  lookUp(place: CachePlace, options: LookUpOptions): LookUp | Promise<LookUp>;
  /** Removes a project's answers of a resource, behind the change of it. Look-ups made here from now on find none; nobody waits. */
  invalidate(projectId: string, resource: string): void;
  /**
   * Removes answers, and ends the fills of what is selected.
   *
   * @returns how many answers there were.
   * @throws {StoreUnavailable} when that cannot be said, or not done.
   */
  purge(selection: CacheSelection): Promise<number>;
  /** What `purge` would remove. @throws {StoreUnavailable} */
  count(selection: CacheSelection): Promise<number>;
  /** @throws {StoreUnavailable} */
  size(): Promise<CacheSize>;
}

// ---- rate limits ---------------------------------------------------------------------------------------------

export interface RateWindow {
  limit: number;
  windowMs: number;
}

/** What a window says to one more request. */
export interface RateTaken {
  isWithin: boolean;
  /** Until the window ends. */
  resetMs: number;
}

/** Fixed windows: one begins with the first request of a key and ends `windowMs` later. */
export interface RateWindows {
  /** Counts a request. @throws {StoreUnavailable} or rejects with it, when a shared count cannot be had. */
  take(key: string, window: RateWindow): RateTaken | Promise<RateTaken>;
}

// ---- events --------------------------------------------------------------------------------------------------

/** An event as whoever follows them gets it. */
export interface PublishedEvent {
  /** Its place: two numbers, such as `1735689600000-0`, that rise. */
  place: string;
  /** In one line. */
  json: string;
  /** What it can be chosen by. */
  readonly facts: EventFacts;
}

export interface EventFacts {
  kind: string;
  projectId: string | null;
  tokenId: string | null;
  /** Null for what is no request. */
  status: number | null;
}

/** Since this instance started, unless stated. */
export interface EventCounts {
  /** Taken by the bus. */
  published: number;
  /** Lost here: there was no room, or no time at the end. */
  dropped: number;
  /** Tries to send a batch that did not succeed. */
  failed: number;
  /** Waiting now. */
  buffered: number;
  /** Published by all instances and not yet read by a dispatcher; null where nobody reads, or that is not known. */
  lag: number | null;
  /** Removed from the stream before a dispatcher had read them, as far as this instance saw. */
  trimmedUnread: number;
}

export interface EventBus {
  readonly backend: 'memory' | 'redis';
  /** Whether events can be published now. */
  readonly isFailing: boolean;
  readonly counts: EventCounts;
  /** Never waits, never throws. */
  publish(happening: Happening): void;
  /**
   * Events as they come, of all instances that share the bus, until `signal` is aborted.
   *
   * @param after the place of the last one that is known: begins behind it, or with the oldest that is kept. Null: with the next.
   */
  follow(after: string | null, signal: AbortSignal): AsyncIterable<readonly PublishedEvent[]>;
  /** Gives what waits a moment to go out. */
  close(): Promise<void>;
}
