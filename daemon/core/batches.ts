/** Batches: the changes of one command or dialog. An undo touches only what the batch has changed, and nobody since. */
import { randomUUID } from 'node:crypto';
import { MAX_UNDONE, policiesOf, type UndoSkip } from '../api/vocabulary.js';
import type { AuditRecord, Caller } from './audit.js';
import { hasProject, isEverything, notPermitted } from './authority.js';
import { MASK } from './masking.js';
import type {
  BatchMember,
  ChangedSubject,
  ChangeTransaction,
  Clock,
  NumberedRecord,
  ProjectChanges,
  RecordStore,
  Scope,
} from './ports.js';
import { PROJECT_FIELDS } from './project-drafts.js';
import { orUnavailable, Refusal } from './refusal.js';
import type { Issuer, Registry, TokenChanges } from './registry.js';
import type { Project, Token } from './token.js';

/** One request works this long: front ends wait for 10 s. */
const MAX_UNDO_MS = 5_000;
/** Records that are read about one token or project. With more than this, it was changed since. */
const MAX_RECORDS = 100;

export interface SkippedChange extends ChangedSubject {
  reason: UndoSkip;
  message: string | null;
}

export interface BatchUndone {
  /** ID of the undo, which is a batch itself. */
  batch: string;
  undone: ChangedSubject[];
  skipped: SkippedChange[];
  /** To continue with; null if this is all. */
  next: number | null;
}

/** The values of fields, by their names in the audit log: what a batch left, and what was there before. */
type Fields = ReadonlyMap<string, readonly [left: unknown, before: unknown]>;

/** Why something is not changed back. Not a refusal, which would be recorded as a denied change. */
class Skipped extends Error {
  readonly reason: UndoSkip | 'undone';
  constructor(reason: UndoSkip | 'undone') {
    super(reason);
    this.reason = reason;
  }
}

/** What an undo may concern. */
export interface UndoScope {
  tokens: Scope;
  /** For changes of projects themselves; null: none may be undone. */
  projects: Scope | null;
  /** Whose ceilings tokens must be within. */
  by: Issuer;
}

export interface BatchesOptions {
  registry: Registry;
  store: Pick<RecordStore, 'batchMembers' | 'recordsSince'>;
  clock: Clock;
}

export class Batches {
  readonly #options: BatchesOptions;

  constructor(options: BatchesOptions) {
    this.#options = options;
  }

  /**
   * Each change back has its own transaction and record, like any change. What the batch has changed out of scope is skipped as `gone`,
   * without its ID. A batch with nothing in scope is not found.
   *
   * @param after `next` of the last call; 0 at first.
   * @param allow throws a refusal for a base URL that no project may have now.
   */
  async undo(
    batch: string,
    after: number,
    caller: Caller,
    scope: UndoScope,
    allow: (baseUrl: string) => void,
  ): Promise<BatchUndone> {
    const { store, clock } = this.#options;
    const undo = { ...caller, batch: caller.batch ?? randomUUID(), undoOf: batch };
    if (undo.batch === batch) throw new Refusal('invalid_request', 'an undo must not have the ID of the batch itself');
    const until = clock.monotonic() + MAX_UNDO_MS;
    const members = await orUnavailable(store.batchMembers(batch, after, MAX_UNDONE + 1));
    if (!(await this.#hasOneInScope(batch, after, members, scope))) {
      throw new Refusal('not_found', 'batch not found');
    }
    const result: BatchUndone = { batch: undo.batch, undone: [], skipped: [], next: null };
    let last = after;
    for (const [index, member] of members.entries()) {
      // At least one, or a caller that continues would never come further.
      const isLate = index > 0 && clock.monotonic() > until;
      if (index === MAX_UNDONE || isLate) return { ...result, next: last };
      const { tokenId, projectId } = member;
      if (isMemberInScope(member, scope)) {
        const skipped = await this.#undoOne(member, undo, scope, allow);
        if (skipped) result.skipped.push({ tokenId, projectId, ...skipped });
        else result.undone.push({ tokenId, projectId });
      } else {
        result.skipped.push({ tokenId: null, projectId: null, reason: 'gone', message: null });
      }
      last = member.seq;
    }
    return result;
  }

  /** @param next members after `after`, one more than are undone at once. */
  async #hasOneInScope(batch: string, after: number, next: readonly BatchMember[], scope: UndoScope): Promise<boolean> {
    if (next.some((member) => isMemberInScope(member, scope))) return true;
    if (scope.tokens.projects === null) return after > 0; // All are in scope, and there may be none after that.
    if (after === 0 && next.length <= MAX_UNDONE) return false;
    const [one] = await orUnavailable(this.#options.store.batchMembers(batch, 0, 1, scope.tokens.projects));
    return one !== undefined;
  }

  /** @returns why it was left as it is; null if it is undone. */
  async #undoOne(
    member: BatchMember,
    undo: Undo,
    scope: UndoScope,
    allow: (baseUrl: string) => void,
  ): Promise<Pick<SkippedChange, 'reason' | 'message'> | null> {
    try {
      await this.#changeBack(member, undo, scope, allow);
      return null;
    } catch (error) {
      if (error instanceof Skipped) return error.reason === 'undone' ? null : { reason: error.reason, message: null };
      if (!(error instanceof Refusal) || error.kind === 'unavailable') throw error;
      if (error.kind === 'not_found') return { reason: 'gone', message: null };
      return { reason: 'refused', message: error.message };
    }
  }

  async #changeBack(
    member: BatchMember,
    undo: Undo,
    scope: UndoScope,
    allow: (baseUrl: string) => void,
  ): Promise<void> {
    const { registry, store, clock } = this.#options;
    const { tokenId, projectId } = member;
    if (projectId === null) throw new Skipped('irreversible');
    const records = await orUnavailable(store.recordsSince(member, member.seq, MAX_RECORDS));
    const fields = fieldsToUndo(records, member, undo);
    /** Again, with what was committed meanwhile. */
    const expectSame = async (current: Readonly<Record<string, unknown>>, tx: ChangeTransaction) => {
      fieldsToUndo(await tx.recordsSince(member, member.seq, MAX_RECORDS), member, undo);
      for (const [name, [left]] of fields) if (!isSame(current[name], left)) throw new Skipped('changed_since');
    };
    if (tokenId !== null) {
      const changes = changesTo(fields, TOKEN_FIELDS);
      const expect = async (token: Token, tx: ChangeTransaction) => {
        await expectSame({ is_active: token.isActive, ...policiesOf(token) }, tx);
        if (changes.isActive && token.expiresAtMs <= clock.now()) throw new Skipped('expired');
      };
      await registry.updateToken(tokenId, changes, undo, scope.tokens, expect, scope.by);
    } else {
      if (scope.projects === null) throw notPermitted('you may not change projects');
      const baseUrl = fields.get('upstream_base_url')?.[1];
      const expect = async (project: Project, tx: ChangeTransaction) => {
        await expectSame(audited(project), tx);
        if (typeof baseUrl === 'string') allow(baseUrl);
      };
      await registry.updateProject(projectId, changesTo(fields, PROJECT_FIELDS), undo, scope.projects, expect);
    }
  }
}

const isMemberInScope = ({ projectId }: BatchMember, { tokens }: UndoScope): boolean =>
  projectId === null ? isEverything(tokens) : hasProject(tokens, projectId);

type Undo = Caller & { batch: string; undoOf: string };

/**
 * What to change back of one token or project.
 *
 * @param records its changes, from the first one of the batch on.
 * @throws {Skipped}
 */
function fieldsToUndo(
  records: readonly NumberedRecord[],
  { tokenId }: ChangedSubject,
  { batch, undoOf }: Undo,
): Fields {
  const fields = new Map<string, readonly [left: unknown, before: unknown]>();
  for (const record of records.filter((record) => record.batch === undoOf)) {
    const changed = changedFields(record);
    if (!changed) throw new Skipped('irreversible');
    for (const [name, [before, left]] of changed) fields.set(name, [left, fields.get(name)?.[1] ?? before]);
  }
  for (const [name, [left, before]] of fields) if (isSame(left, before)) fields.delete(name);
  const others = records.filter((record) => record.batch !== undoOf);
  const undos = others.filter((record) => record.undoOf === undoOf);
  if (undos.some((record) => record.batch === batch)) throw new Skipped('undone');
  if (fields.size === 0) throw new Skipped('unchanged');
  if (undos.length > 0) throw new Skipped('undone_before');
  const isTouched = (record: AuditRecord) => touchedFields(record, tokenId !== null).some((name) => fields.has(name));
  if (records.length === MAX_RECORDS || others.some(isTouched)) throw new Skipped('changed_since');
  if (Array.from(fields.values()).some(([, before]) => isMasked(before))) throw new Skipped('irreversible');
  return fields;
}

/** A value that looked like a secret is not in the record. */
const isMasked = (value: unknown) => JSON.stringify([value]).includes(MASK);

/** Policies are objects, whose members are always in the same order. */
const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

const CHANGES_OF_TOKENS: ReadonlySet<AuditRecord['action']> = new Set([
  'token.update',
  'token.revoke',
  'token.reactivate',
]);

/** The fields that a change has set, also if it could not be undone, or has set what they were. */
function touchedFields({ action, details }: AuditRecord, ofToken: boolean): string[] {
  if (action === 'token.revoke_all') return ofToken ? ['is_active'] : [];
  const isChange = ofToken ? CHANGES_OF_TOKENS.has(action) : action === 'project.update';
  return isChange ? Object.keys(details ?? {}) : [];
}

/** The fields that a change was about, with the values before and after. Null if it cannot be undone. */
function changedFields({ action, details }: AuditRecord): [string, [before: unknown, left: unknown]][] | null {
  switch (action) {
    case 'token.create':
    case 'project.create':
      return [['is_active', [false, true]]];
    case 'token.update':
    case 'token.revoke':
    case 'token.reactivate':
    case 'project.update': {
      const pairs = Object.entries(details ?? {}).filter(([, value]) => Array.isArray(value));
      const isKnown = pairs.length > 0 && pairs.every(([name]) => name in PROJECT_FIELDS); // Not so for a key.
      return isKnown ? (pairs as [string, [unknown, unknown]][]) : null;
    }
    default:
      return null;
  }
}

const audited = (project: Project): Record<string, unknown> =>
  Object.fromEntries(Object.entries(PROJECT_FIELDS).map(([name, field]) => [name, project[field]]));

const changesTo = <Changes extends ProjectChanges | TokenChanges>(
  fields: Fields,
  names: Readonly<Record<string, keyof Changes>>,
): Changes => Object.fromEntries(Array.from(fields, ([name, [, before]]) => [names[name], before] as const)) as Changes;

/** The fields that a change of a token may have, under their names in the audit log. */
const TOKEN_FIELDS = {
  is_active: 'isActive',
  allow: 'allow',
  limits: 'limits',
  budget: 'budget',
} as const satisfies Record<string, keyof TokenChanges>;
