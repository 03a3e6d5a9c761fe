/** Storage for the registry: projects, tokens, changes and audit records. */
import type {
  AuditActor,
  BudgetFilter,
  KeyCheck,
  MissingUsage,
  Policies,
  PolicyChanges,
  TokenSortField,
  UpstreamAuth,
} from '../../api/vocabulary.js';
import type { AccessChanges, AccessStore } from './access.js';
import type { TrustChanges, TrustStore } from './trusts.js';
import type { PageOf, PageRequest } from './common.js';
import type { AuditRecord, NamedRecord } from '../audit.js';
import type { PurseCounts } from '../budget/counts.js';
import type { Scope } from './common.js';
import type { Project, Revocation, Token, TokenState, UNUSED } from '../token.js';

export type ChangeKind =
  | 'project.created'
  | 'project.updated'
  | 'project.activated'
  | 'project.deactivated'
  | 'token.created'
  | 'token.updated'
  | 'token.revoked'
  | 'token.reactivated'
  | 'tokens.revoked'
  | 'cache.purged';

/** A management change, as other instances and the caches of this one need it. */
export interface Change {
  kind: ChangeKind;
  /** Null for a purge that is not limited to one project. */
  projectId: string | null;
  tokenId: string | null;
}

/** With its record number: changes are committed in the order of their numbers. */
export interface NumberedChange extends Change {
  seq: number;
}

/** With the time when it was recorded. */
export interface CommittedChange extends NumberedChange {
  timeMs: number;
}

export interface NewProject extends Project {
  upstreamKey: string;
}

/** Where and with which key the requests of a project are forwarded. */
export type StoredUpstream = Pick<NewProject, 'upstreamKey' | 'upstreamBaseUrl' | 'upstreamAuth'>;

/** A token to insert. */
export interface NewToken extends Omit<Token, keyof typeof UNUSED | keyof Revocation> {
  digest: string;
}

/** Changes to a project; undefined fields stay unchanged. */
export interface ProjectChanges extends PolicyChanges {
  name?: string | undefined;
  upstreamKey?: string | undefined;
  isActive?: boolean | undefined;
  upstreamBaseUrl?: string | null | undefined;
  upstreamAuth?: UpstreamAuth | undefined;
  missingUsage?: MissingUsage | undefined;
  /** Result of the check of the key, for the audit record; undefined if it was not checked. */
  keyCheck?: KeyCheck | undefined;
}

/** A token with the name of its project, and with the project's state, on which its own depends. */
export interface TokenRow {
  token: Token;
  projectName: string;
  projectIsActive: boolean;
}

export interface ProjectFilter {
  isActive?: boolean | undefined;
  /** Only these. */
  ids?: readonly string[] | undefined;
}

export type { TokenSortField };

export interface TokenSort {
  field: TokenSortField;
  descending: boolean;
}

/** These values, or all except these. */
export interface Selection<T> {
  among: readonly T[];
  isExcluded: boolean;
}

/** An absolute time, or one relative to the time of the query. */
export type Moment = { atMs: number } | { inMs: number };

/** Undefined conditions match all tokens; the others must all hold. */
export interface TokenFilter {
  projects?: Selection<string> | undefined;
  /** Only tokens that this actor has issued; null: the holder of the management token. */
  issuedBy?: AuditActor | null | undefined;
  states?: Selection<TokenState> | undefined;
  expiresAfter?: Moment | undefined;
  expiresBefore?: Moment | undefined;
  createdAfter?: Moment | undefined;
  createdBefore?: Moment | undefined;
  /** Tokens not used since this time, nor created. */
  idleSince?: Moment | undefined;
  /** Tokens with more errors than this in the last days. */
  errorsOver?: number | undefined;
  /** Tokens whose requests of the last days were for models with one of these parts in their names, case-insensitive. */
  models?: Selection<string> | undefined;
  /** Tokens that may use a model that one of these patterns matches, by their own list and that of their project. */
  allows?: Selection<string> | undefined;
  /** Whether they or their project have limits. */
  isLimited?: boolean | undefined;
  /** Capped tokens of which more than this percentage is used. */
  usedOverPercent?: number | undefined;
  /** Capped tokens of which less than this percentage is used. */
  usedUnderPercent?: number | undefined;
  /** Tokens that have a budget, or whose project has: any (`yes`), none (`no`), or one of this mode. */
  budget?: BudgetFilter | undefined;
  /** Tokens that have spent more or less than this in the current period of their budget. */
  spentOverNano?: number | undefined;
  spentUnderNano?: number | undefined;
  /** Tokens with a budget of which more or less than this percentage is left, in the unit with the smaller percentage. */
  leftOverPercent?: number | undefined;
  leftUnderPercent?: number | undefined;
  /** Part of the name, case-insensitive, or a prefix of the ID. */
  text?: string | undefined;
  /** Each matched like `text`, and required or excluded. */
  words?: readonly { text: string; isExcluded: boolean }[] | undefined;
}

/** Number of projects and tokens, by state. */
export interface Population {
  projects: { active: number; all: number };
  tokens: Record<TokenState, number>;
}

/** What a record of a change is about: a token with its project, or a project. Both are null for other changes, such as of the cache. */
export type ChangedSubject = Pick<AuditRecord, 'projectId' | 'tokenId'>;

/** What a batch has changed, with the number of its first record about it. */
export interface BatchMember extends ChangedSubject {
  seq: number;
}

/** An audit record, with the change for other instances if there is one. */
export interface RecordedChange {
  record: AuditRecord;
  change?: Change | undefined;
}

/** Transaction of one management change. It is committed as a whole or not at all. */
export interface ChangeTransaction {
  readonly access: AccessChanges;
  readonly trusts: TrustChanges;
  /** Reads the project and locks it until the end of the transaction: others cannot change it or issue tokens for it. */
  lockProject(id: string): Promise<Project | null>;
  insertProject(project: NewProject): Promise<void>;
  /** Writes the project's new state, and its upstream key unless undefined. */
  updateProject(project: Project, upstreamKey: string | undefined): Promise<void>;
  /** Locks the project of a token, which cannot be changed then, nor all its tokens be revoked. */
  lockProjectOf(tokenId: string): Promise<void>;
  /** Reads the token and locks it until the end of the transaction. */
  lockToken(id: string): Promise<TokenRow | null>;
  /** Reads and locks the purse of a token or project, which must be locked first. Undefined if it does not exist. */
  lockPurse(id: string): Promise<PurseCounts | null>;
  insertToken(token: NewToken): Promise<void>;
  revokeToken(id: string, revocation: Revocation): Promise<void>;
  reactivateToken(id: string): Promise<void>;
  restrictToken(id: string, policies: Policies, nowMs: number): Promise<void>;
  /** @returns the number of tokens that were active until now. */
  revokeTokensOf(projectId: string, revocation: Revocation): Promise<number>;
  /**
   * Records the price lists in force, by their SHA-256; '' for none.
   *
   * @returns whether they differ from the previous ones; false for the first ones.
   */
  notePrices(shipped: string, file: string): Promise<boolean>;
  /** As of the store, but with what was committed before this transaction locked its row. */
  recordsSince(subject: ChangedSubject, seq: number, limit: number): Promise<NumberedRecord[]>;
  /**
   * Writes an audit record under the next record number. Must come last in the transaction, with several records in order, because it
   * locks the numbering until the end.
   *
   * @param change the change for other instances; undefined for a refused one.
   * @returns the number of the record and of the change.
   */
  record(record: AuditRecord, change?: Change): Promise<number>;
  /** The same for many at once, in this order. @returns their numbers. */
  recordAll(entries: readonly RecordedChange[]): Promise<number[]>;
}

export interface AuditFilter {
  action?: AuditRecord['action'] | undefined;
  actor?: AuditRecord['actor'] | undefined;
  outcome?: AuditRecord['outcome'] | undefined;
  /** IDs; null: also records that do not belong to a project. Default: null. */
  among?: Scope['projects'] | undefined;
  projectId?: string | undefined;
  tokenId?: string | undefined;
  batch?: string | undefined;
  /** Whether the records of a batch are shown as one. */
  isGrouped?: boolean | undefined;
  /** Inclusive. */
  sinceMs?: number | undefined;
  /** Exclusive. */
  untilMs?: number | undefined;
  /** Words, each of which must be the prefix of a word in the record's searchable text. */
  text?: string | undefined;
}

/** An audit record with its number. Numbers increase in commit order, across all instances. */
export interface NumberedRecord extends AuditRecord {
  seq: number;
}

export interface CommittedRecord extends NumberedRecord, NamedRecord {}

/** Names by ID, null for a token without a name. IDs that do not exist are missing. */
export interface Names {
  tokens: ReadonlyMap<string, string | null>;
  projects: ReadonlyMap<string, string>;
}

/** Counts of a project. */
export interface ProjectFigures {
  tokenCount: number;
  /** Tokens that can be used now; 0 while the project is inactive. */
  activeTokenCount: number;
  /** Last use of any of its tokens; null if there was none. */
  lastUsedAtMs: number | null;
  /** In the current hour and the 23 hours before it. The last few seconds may be missing. */
  requests24h: number;
  /** Those of them that were refused, failed or cut off, by this proxy or by the provider. */
  errors24h: number;
}

export interface RecordStore {
  readonly access: AccessStore;
  readonly trusts: TrustStore;
  project(id: string): Promise<Project | null>;
  /** Read in one statement, so that a key is never combined with the base URL of another. */
  upstream(projectId: string): Promise<StoredUpstream | null>;
  projects(filter: ProjectFilter, page: PageRequest): Promise<PageOf<Project>>;
  /**
   * Figures of a page of projects, in a few queries. Those of many tokens or projects may be a few seconds old.
   *
   * @param issuedBy if given, the figures are those of the tokens that this actor has issued.
   */
  projectFigures(
    ids: readonly string[],
    nowMs: number,
    issuedBy?: Scope['issuedBy'],
  ): Promise<ReadonlyMap<string, ProjectFigures>>;
  token(id: string): Promise<TokenRow | null>;
  tokenByDigest(digest: string): Promise<TokenRow | null>;
  tokens(filter: TokenFilter, sort: TokenSort, page: PageRequest, nowMs: number): Promise<PageOf<TokenRow>>;
  /** What these tokens and projects have spent. */
  purses(ids: readonly string[]): Promise<ReadonlyMap<string, PurseCounts>>;
  /** What the tokens that this actor has issued have spent together, by project. Without leases. */
  pursesOfIssuer(issuedBy: AuditActor, nowMs: number): Promise<ReadonlyMap<string, PurseCounts>>;
  /** Takes a few hundred ms for a million tokens. @throws {StoreUnavailable} */
  population(nowMs: number, scope?: Scope): Promise<Population>;
  /** Newest first. The total is not counted: that would take longer than reading the page. */
  auditRecords(filter: AuditFilter, page: PageRequest): Promise<PageOf<NamedRecord>>;
  auditRecord(id: string): Promise<NamedRecord | null>;
  /** What a batch has changed, in the order of the first changes, after the record with the number `after`. @param among only of these projects. */
  batchMembers(batch: string, after: number, limit: number, among?: Scope['projects']): Promise<BatchMember[]>;
  /** Successful changes of a token (also as one of all tokens of its project) or of a project, from the number `seq` on. Oldest first. */
  recordsSince(subject: ChangedSubject, seq: number, limit: number): Promise<NumberedRecord[]>;
  /** The current names of many tokens and projects, in one query for each of the two. IDs may repeat. */
  names(tokenIds: Iterable<string>, projectIds: Iterable<string>): Promise<Names>;
  /** @throws {StoreConflict} when a unique value is in use. @throws {StoreUnavailable} when it was not committed, or the reply to COMMIT was lost. */
  change<T>(work: (tx: ChangeTransaction) => Promise<T>): Promise<T>;
  /**
   * Calls `listener` for each commit of this instance, in order, before the caller of `change` gets its result. It must neither wait
   * nor throw.
   */
  onCommitted(listener: (records: readonly CommittedRecord[], changes: readonly CommittedChange[]) => void): void;
  /** Records with numbers above `seq`, oldest first. */
  recordsAfter(seq: number, limit: number): Promise<CommittedRecord[]>;
  /** Number of the last record; 0 if there is none. */
  lastRecord(): Promise<number>;
  /** Refuses changes as long as `reason` returns a reason. */
  refuseChangesWhile(reason: () => string | null): void;
  /** For actions that are recorded only afterwards. @throws {StoreUnavailable} while changes are refused. */
  checkChangeable(): void;
}
