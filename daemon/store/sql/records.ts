import type { AuditActor } from '../../api/vocabulary.js';
import type { AuditRecord } from '../../core/audit.js';
import { EVERYTHING, isEverything } from '../../core/authority.js';
import {
  type AuditFilter,
  type Change,
  type ChangedSubject,
  type ChangeTransaction,
  type CommittedChange,
  type CommittedRecord,
  type NewProject,
  type NewToken,
  type PageRequest,
  type ProjectFilter,
  type RecordedChange,
  type RecordStore,
  type Scope,
  StoreUnavailable,
  type TokenFilter,
  type TokenSort,
} from '../../core/ports.js';
import { NOT_REVOKED, type Policies, type Project, type Revocation } from '../../core/token.js';
import type { SecretBox } from '../secrets.js';
import { SqlAccess, SqlAccessChanges } from './access.js';
import { lastRecord, recordsAfter } from './audit-list.js';
import { auditRecordById, listAuditRecords } from './audit-list.js';
import { insertWords } from './audit-words.js';
import { batchMembers, recordsSince } from './batches.js';
import type { SqlTransaction, Database } from './database.js';
import { namesById, namesIn, namesOf, type NameColumns } from './names.js';
import { population, populationWithin } from './population.js';
import {
  listProjects,
  lockedProject,
  lockedProjectOf,
  upstreamKeyContext,
  projectById,
  storedUpstream,
} from './projects.js';
import { figuresOfIssuer, type FiguresOfPages, projectFigures } from './project-figures.js';
import { lockedCounts } from './purse-leases.js';
import { insertPurse, limitPurse, pursesOf, pursesOfIssuer } from './purses.js';
import { AUDIT, CHANGES, PROJECTS, TOKENS } from './tables.js';
import { listTokens } from './token-list.js';
import { modelsKeyOf } from './token-policies.js';
import { lockedToken, tokenByDigest, tokenById } from './tokens.js';
import { SqlTrustChanges, SqlTrusts } from './trusts.js';
import type { ListTotals } from './lists.js';

export class SqlRecords implements RecordStore {
  readonly access: SqlAccess;
  readonly trusts: SqlTrusts;
  readonly #database: Database;
  readonly #box: SecretBox;
  readonly #totals: ListTotals | null;
  readonly #figures: FiguresOfPages | null;
  readonly #afterChange: (() => Promise<void>) | undefined;
  readonly #listeners: Parameters<RecordStore['onCommitted']>[0][] = [];
  #whyNoChanges: () => string | null = () => null;

  constructor(
    database: Database,
    box: SecretBox,
    totals: ListTotals | null = null,
    figures: FiguresOfPages | null = null,
    afterChange?: () => Promise<void>,
  ) {
    this.access = new SqlAccess(database);
    this.trusts = new SqlTrusts(database);
    this.#database = database;
    this.#box = box;
    this.#totals = totals;
    this.#figures = figures;
    this.#afterChange = afterChange;
  }

  project(id: string) {
    return projectById(this.#database, id);
  }
  upstream(projectId: string) {
    return storedUpstream(this.#database, this.#box, projectId);
  }
  projects(filter: ProjectFilter, page: PageRequest) {
    return listProjects(this.#database, filter, page);
  }
  projectFigures(ids: readonly string[], nowMs: number, issuedBy: Scope['issuedBy'] = null) {
    if (issuedBy !== null) return figuresOfIssuer(this.#database, issuedBy, nowMs);
    const read = () => projectFigures(this.#database, ids, nowMs);
    return this.#figures?.current(ids.join(), read) ?? read();
  }
  token(id: string) {
    return tokenById(this.#database, id);
  }
  tokenByDigest(digest: string) {
    return tokenByDigest(this.#database, digest);
  }
  tokens(filter: TokenFilter, sort: TokenSort, page: PageRequest, nowMs: number) {
    return listTokens(this.#database, filter, sort, page, nowMs, this.#totals);
  }
  purses(ids: readonly string[]) {
    return pursesOf(this.#database, ids);
  }
  pursesOfIssuer(issuedBy: AuditActor, nowMs: number) {
    return pursesOfIssuer(this.#database, issuedBy, nowMs);
  }
  population(nowMs: number, scope: Scope = EVERYTHING) {
    return isEverything(scope) ? population(this.#database, nowMs) : populationWithin(this.#database, nowMs, scope);
  }
  auditRecords(filter: AuditFilter, page: PageRequest) {
    return listAuditRecords(this.#database, filter, page);
  }
  auditRecord(id: string) {
    return auditRecordById(this.#database, id);
  }
  batchMembers(batch: string, after: number, limit: number, among: Scope['projects'] = null) {
    return batchMembers(this.#database, batch, after, limit, among);
  }
  recordsSince(subject: ChangedSubject, seq: number, limit: number) {
    return recordsSince(this.#database, subject, seq, limit);
  }

  names(tokenIds: Iterable<string>, projectIds: Iterable<string>) {
    return namesById(this.#database, tokenIds, projectIds);
  }

  refuseChangesWhile(why: () => string | null): void {
    this.#whyNoChanges = why;
  }

  checkChangeable(): void {
    const why = this.#whyNoChanges();
    if (why !== null) throw new StoreUnavailable(why);
  }

  async change<T>(work: (tx: ChangeTransaction) => Promise<T>): Promise<T> {
    this.checkChangeable();
    const { value, change } = await this.#database.transact(async (tx) => {
      const change = new SqlChangeTransaction(tx, this.#box);
      return { value: await work(change), change };
    });
    const { records, changes } = change;
    if (records.length > 0) for (const listener of this.#listeners) listener(records, changes);
    if (changes.length > 0) await this.#afterChange?.();
    return value;
  }

  onCommitted(listener: Parameters<RecordStore['onCommitted']>[0]): void {
    this.#listeners.push(listener);
  }

  recordsAfter(seq: number, limit: number) {
    return recordsAfter(this.#database, seq, limit);
  }

  lastRecord() {
    return lastRecord(this.#database);
  }
}

class SqlChangeTransaction implements ChangeTransaction {
  readonly access: SqlAccessChanges;
  readonly trusts: SqlTrustChanges;
  readonly #tx: SqlTransaction;
  readonly #box: SecretBox;
  readonly records: CommittedRecord[] = [];
  readonly changes: CommittedChange[] = [];

  constructor(tx: SqlTransaction, box: SecretBox) {
    this.access = new SqlAccessChanges(tx);
    this.trusts = new SqlTrustChanges(tx);
    this.#tx = tx;
    this.#box = box;
  }

  lockProject(id: string) {
    return lockedProject(this.#tx, id);
  }

  async notePrices(shipped: string, file: string): Promise<boolean> {
    const lists = { shipped, file };
    const first = "UPDATE prices_in_force SET shipped = $shipped, file = $file WHERE id = 1 AND shipped = ''";
    if ((await this.#tx.execute(first, lists)) > 0) return false;
    const others =
      'UPDATE prices_in_force SET shipped = $shipped, file = $file WHERE id = 1 AND (shipped <> $shipped OR file <> $file)';
    return (await this.#tx.execute(others, lists)) > 0;
  }

  async insertProject(project: NewProject): Promise<void> {
    const { upstreamKey, ...shown } = project;
    await PROJECTS.insert(this.#tx, {
      ...shown,
      ...this.#sealed(project.id, upstreamKey),
      modelsKey: modelsKeyOf(project.allow),
    });
    await insertPurse(this.#tx, project);
  }

  async updateProject(project: Project, upstreamKey: string | undefined): Promise<void> {
    const { id, ...written } = project;
    const sealed = upstreamKey === undefined ? {} : this.#sealed(id, upstreamKey);
    await PROJECTS.update(this.#tx, { id }, { ...written, ...sealed, modelsKey: modelsKeyOf(project.allow) });
    await limitPurse(this.#tx, id, project.budget, project.updatedAtMs);
  }

  #sealed(projectId: string, upstreamKey: string) {
    const { text, keyId } = this.#box.seal(upstreamKey, upstreamKeyContext(projectId));
    return { sealedKey: text, sealedWith: keyId };
  }

  async lockProjectOf(tokenId: string): Promise<void> {
    await lockedProjectOf(this.#tx, tokenId);
  }

  lockToken(id: string) {
    return lockedToken(this.#tx, id);
  }

  lockPurse(id: string) {
    return lockedCounts(this.#tx, id);
  }

  async insertToken(token: NewToken): Promise<void> {
    await TOKENS.insert(this.#tx, {
      ...token,
      nameFolded: (token.name ?? '').toLowerCase(),
      modelsKey: modelsKeyOf(token.allow),
    });
    await insertPurse(this.#tx, token);
  }

  async revokeToken(id: string, revocation: Revocation): Promise<void> {
    await TOKENS.update(this.#tx, { id }, { isActive: false, ...revocation });
  }

  async reactivateToken(id: string): Promise<void> {
    await TOKENS.update(this.#tx, { id }, { isActive: true, ...NOT_REVOKED });
  }

  async restrictToken(id: string, { allow, limits, budget }: Policies, nowMs: number): Promise<void> {
    await TOKENS.update(this.#tx, { id }, { allow, limits, budget, modelsKey: modelsKeyOf(allow) });
    await limitPurse(this.#tx, id, budget, nowMs);
  }

  revokeTokensOf(projectId: string, revocation: Revocation): Promise<number> {
    return TOKENS.update(this.#tx, { projectId, isActive: true }, { isActive: false, ...revocation }, 'long');
  }

  recordsSince(subject: ChangedSubject, seq: number, limit: number) {
    return recordsSince(this.#tx, subject, seq, limit);
  }

  async record(record: AuditRecord, change?: Change): Promise<number> {
    // The row is locked until COMMIT: the numbers have no gaps and follow the order of commits.
    const { tokenId, projectId } = record;
    const columns = `seq, ${namesOf('$tokenId', '$projectId')}`;
    const next = 'UPDATE change_seq SET seq = seq + 1 WHERE id = 1';
    const { supportsReturning } = this.#tx.dialect;
    if (!supportsReturning) await this.#tx.execute(next);
    const [assigned] = await this.#tx.select<NameColumns & { seq: number }>(
      supportsReturning ? `${next} RETURNING ${columns}` : `SELECT ${columns} FROM change_seq WHERE id = 1`,
      { tokenId, projectId },
    );
    if (!assigned) throw noSequence();
    const { seq } = assigned;
    await AUDIT.insert(this.#tx, { ...record, seq });
    const named = { ...record, ...namesIn(assigned), seq };
    await insertWords(this.#tx, [named]);
    this.records.push(named);
    if (!change) return seq;
    const committed = { ...change, seq, timeMs: record.timeMs };
    await CHANGES.insert(this.#tx, committed);
    this.changes.push(committed);
    return seq;
  }

  async recordAll(entries: readonly RecordedChange[]): Promise<number[]> {
    const [only] = entries;
    if (only && entries.length === 1) return [await this.record(only.record, only.change)];
    const seqs: number[] = [];
    for (let from = 0; from < entries.length; from += MAX_RECORDED) {
      seqs.push(...(await this.#recordSome(entries.slice(from, from + MAX_RECORDED))));
    }
    return seqs;
  }

  async #recordSome(entries: readonly RecordedChange[]): Promise<number[]> {
    const count = entries.length;
    await this.#tx.execute('UPDATE change_seq SET seq = seq + $count WHERE id = 1', { count });
    const [last] = await this.#tx.select<{ seq: number }>('SELECT seq FROM change_seq WHERE id = 1');
    if (!last) throw noSequence();
    // One after the other: they share a connection.
    const { tokens } = await namesById(this.#tx, idsIn(entries, 'tokenId'), []);
    const { projects } = await namesById(this.#tx, [], idsIn(entries, 'projectId'));
    const named = entries.map(({ record }, i) => ({
      ...record,
      seq: last.seq - count + 1 + i,
      tokenName: tokens.get(record.tokenId ?? '') ?? null,
      projectName: projects.get(record.projectId ?? '') ?? null,
    }));
    const changes = entries.flatMap(({ record, change }, i) =>
      change ? [{ ...change, seq: last.seq - count + 1 + i, timeMs: record.timeMs }] : [],
    );
    await AUDIT.insertMany(this.#tx, named);
    await insertWords(this.#tx, named);
    await CHANGES.insertMany(this.#tx, changes);
    this.records.push(...named);
    this.changes.push(...changes);
    return named.map(({ seq }) => seq);
  }
}

/** Records in one statement. */
const MAX_RECORDED = 500;

const idsIn = (entries: readonly RecordedChange[], of: 'tokenId' | 'projectId'): string[] =>
  entries.flatMap(({ record }) => record[of] ?? []);

const noSequence = () =>
  new StoreUnavailable('the database has no sequence number for the next audit record: the table change_seq is empty');
