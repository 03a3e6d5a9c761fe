/** What the registry asks of the database: projects, tokens and records of changes. */
import type { TokenSortField } from '../../api/vocabulary.js';
import type { AuditRecord } from '../audit.js';
import type { Project, Token, TokenState, UNUSED } from '../token.js';

export type ChangeKind =
  | 'project.created'
  | 'project.updated'
  | 'project.activated'
  | 'project.deactivated'
  | 'token.created'
  | 'token.revoked'
  | 'token.reactivated'
  | 'tokens.revoked'
  | 'cache.purged';

/** What other instances, and the parts of this one that remember things, must hear about. */
export interface Change {
  kind: ChangeKind;
  /** Null for a purge of more than a project's answers. */
  projectId: string | null;
  tokenId: string | null;
}

/** With its place among all records: changes are committed in the order of their numbers. */
export interface NumberedChange extends Change {
  seq: number;
}

/** And with the time when it was recorded. */
export interface CommittedChange extends NumberedChange {
  timeMs: number;
}

export interface NewProject extends Project {
  upstreamKey: string;
}

/** A token to be kept. It has not been used yet. */
export interface NewToken extends Omit<Token, keyof typeof UNUSED> {
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
  /** How many there are on all pages, or were a moment ago where they are very many; null where they are not counted. */
  total: number | null;
}

export interface ProjectFilter {
  isActive?: boolean | undefined;
}

export type { TokenSortField };

export interface TokenSort {
  field: TokenSortField;
  descending: boolean;
}

/** Some values, or all others. */
export interface Selection<T> {
  among: readonly T[];
  isExcluded: boolean;
}

/** A moment, or the one that is so far off whenever it is asked for. */
export type Moment = { atMs: number } | { inMs: number };

/** What is undefined lets all through; the rest must hold together. */
export interface TokenFilter {
  projects?: Selection<string> | undefined;
  states?: Selection<TokenState> | undefined;
  expiresAfter?: Moment | undefined;
  expiresBefore?: Moment | undefined;
  /** Capped tokens of which more than this percentage is used. */
  usedOverPercent?: number | undefined;
  /** Capped tokens of which less than this percentage is used. */
  usedUnderPercent?: number | undefined;
  /** A part of the name in any case, or the beginning of the id. */
  text?: string | undefined;
  /** Each like `text`, and wanted or not. */
  words?: readonly { text: string; isExcluded: boolean }[] | undefined;
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
   * @returns the number of the record, which is that of the change as well.
   */
  record(record: AuditRecord, change?: Change): Promise<number>;
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
  /** @throws {StoreConflict} when a unique value is taken. @throws {StoreUnavailable} when it was not made, or no answer to COMMIT says whether it was. */
  change<T>(work: (tx: ChangeTransaction) => Promise<T>): Promise<T>;
  /**
   * Has `listener` told of what was committed here, in order, before whoever made the change hears of it. It must neither wait nor
   * throw.
   */
  onCommitted(listener: (records: readonly CommittedRecord[], changes: readonly CommittedChange[]) => void): void;
  /** The records that follow a place, the oldest first. */
  recordsAfter(seq: number, limit: number): Promise<CommittedRecord[]>;
  /** The place of the last record; 0 where there is none. */
  lastRecord(): Promise<number>;
  /** From now on no change is made while `why` gives a reason. */
  refuseChangesWhile(why: () => string | null): void;
  /** For what is done elsewhere before it is recorded. @throws {StoreUnavailable} while no change is made. */
  checkChangeable(): void;
}
