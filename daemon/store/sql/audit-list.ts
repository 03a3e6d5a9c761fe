/**
 * Lists audit records, newest first: records of changes, and uses of tokens, where each usage row (one hour of a token with one
 * result and one model) is shown as one record. Both are paged by keyset, each in its own order, and merged.
 *
 * A position is a time and an ID: `c` and the sequence number of a change, or `u` and the ID of a usage row. Uses come before
 * changes of the same time.
 *
 * In a grouped list, the last record of a batch that matches the filter stands for all of them.
 */
import type { NamedRecord } from '../../core/audit.js';
import type { AuditFilter, CommittedRecord, PageOf, PageRequest, Position } from '../../core/ports.js';
import { HAS_ROWID, rowidsOf, usesWordIndex, wordConditions } from './audit-words.js';
import { listUses, type PositionedRecord, useById } from './audit-uses.js';
import type { Bind, Reader } from './database.js';
import { Conditions } from './lists.js';
import { firstOfEach, inProjects } from './scopes.js';
import { NAMED_RECORD, type NamedRecordColumns, namedRecordOf } from './names.js';

export async function listAuditRecords(
  on: Reader,
  given: AuditFilter,
  { limit, after }: PageRequest,
): Promise<PageOf<NamedRecord>> {
  const filter = narrowed(given);
  if (!filter) return { rows: [], next: null, total: null };
  const most = limit + 1;
  const listed = filter.isGrouped ? listBatches : listChanges;
  const [{ found: changes, end }, uses] = await Promise.all([
    filter.action === 'token.use' ? NOTHING : listed(on, filter, most, after),
    listUses(on, filter, most, after),
  ]);
  const isRead = ({ position }: PositionedRecord) => end === null || compared(position, end) <= 0;
  const placed = [...changes, ...uses.filter(isRead)].sort(newestFirst);
  const shown = placed.slice(0, limit);
  const next = placed.length > limit ? (shown.at(-1)?.position ?? null) : end;
  return { rows: shown.map(({ record }) => record), next, total: null };
}

/** A filter that names a project of several, or the only one. @returns null if it matches nothing. */
function narrowed(filter: AuditFilter): AuditFilter | null {
  const { among, projectId } = filter;
  if (!among) return filter;
  if (projectId !== undefined) return among.includes(projectId) ? filter : null;
  const [only] = among;
  return only === undefined ? null : among.length === 1 ? { ...filter, projectId: only } : filter;
}

/** Changes up to a position, after which there may be more; null: those that were asked for, or all. */
interface Changes {
  found: PositionedRecord[];
  end: Position | null;
}

const NOTHING: Changes = { found: [], end: null };

export async function auditRecordById(on: Reader, id: string): Promise<NamedRecord | null> {
  const [row] = await on.select<NamedRecordColumns>(`SELECT ${NAMED_RECORD} FROM audit a WHERE a.id = $id`, { id });
  return row ? namedRecordOf(row) : useById(on, id);
}

function newestFirst({ position: a }: PositionedRecord, { position: b }: PositionedRecord): number {
  return compared(a, b);
}

/** Negative if `a` is listed before `b`. */
function compared(a: Position, b: Position): number {
  return Number(b.value) - Number(a.value) || (a.id === b.id ? 0 : a.id < b.id ? 1 : -1);
}

const DIGITS = 16; // Digits of the largest number, so that IDs sort like numbers.

async function listChanges(on: Reader, filter: AuditFilter, most: number, after: Position | null): Promise<Changes> {
  const position = after && positionBind(after);
  const isSearched = on.dialect.name === 'sqlite' && usesWordIndex(filter);
  const rows = await (isSearched ? searchChanges(on, filter, most, position) : scanChanges(on, filter, most, position));
  const found = rows.map((row) => ({
    record: namedRecordOf(row),
    position: positionOf(row),
  }));
  return { found, end: null };
}

const positionOf = ({ recorded_at: value, seq }: { recorded_at: number; seq: number }): Position => ({
  value,
  id: `c${String(seq).padStart(DIGITS, '0')}`,
});

const MEMBERS_PER_READ = 1_000;
/** A page of few batches with very many members ends early. */
const MAX_READS = 20;

/** Leaves out the records of a batch that is listed before. Those that follow one another are passed without reading them. */
async function listBatches(on: Reader, filter: AuditFilter, most: number, after: Position | null): Promise<Changes> {
  const found: PositionedRecord[] = [];
  const seen = new Set<string>();
  const wanted = filter.batch === undefined ? most : 1;
  let end = after;
  for (let reads = 0; reads < MAX_READS; reads += 1) {
    const limit = reads === 0 ? most : Math.max(most, MEMBERS_PER_READ);
    const { found: members } = await listChanges(on, filter, limit, end);
    for (const member of members) {
      const { batch } = member.record;
      if (batch !== null && seen.has(batch)) continue;
      if (batch !== null) seen.add(batch);
      if (batch !== null && after !== null && (await isOnEarlierPage(on, { ...filter, batch }, after))) continue;
      found.push(member);
      if (found.length === wanted) return { found: await summed(on, found, filter), end: null };
    }
    const last = members.at(-1);
    if (!last || members.length < limit) return { found: await summed(on, found, filter), end: null };
    end = await afterRun(on, last);
  }
  return { found: await summed(on, found, filter), end };
}

/** The position of the last record of a batch if, from this record on, no others are among its records; otherwise of this record. */
async function afterRun(on: Reader, { record: { batch }, position }: PositionedRecord): Promise<Position> {
  if (batch === null) return position;
  const [oldest] = await on.select<{ recorded_at: number; seq: number }>(
    `SELECT a.recorded_at, a.seq FROM audit a ${on.dialect.indexHint('audit_batch')} WHERE a.batch = $batch
     ORDER BY a.recorded_at, a.seq LIMIT 1`,
    { batch },
  );
  if (!oldest) return position;
  const bind = { ...positionBind(position), firstMs: oldest.recorded_at, firstSeq: oldest.seq };
  const rest = `${IS_AFTER} AND a.recorded_at >= $firstMs AND (a.recorded_at > $firstMs OR a.seq >= $firstSeq)`;
  const [counts] = await on.select<{ own: number; found: number }>(
    `SELECT
       (SELECT COUNT(*) FROM audit a ${on.dialect.indexHint('audit_batch')} WHERE a.batch = $batch AND ${rest}) AS own,
       (SELECT COUNT(*) FROM audit a ${on.dialect.indexHint('audit_place')} WHERE ${rest}) AS found`,
    { ...bind, batch },
  );
  return counts?.own === counts?.found ? positionOf(oldest) : position;
}

async function isOnEarlierPage(on: Reader, ofBatch: AuditFilter, after: Position): Promise<boolean> {
  const {
    found: [newest],
  } = await listChanges(on, ofBatch, 1, null);
  return newest !== undefined && compared(newest.position, after) <= 0;
}

/** Turns the records of batches into what all records of the batch have in common, with their number. */
async function summed(
  on: Reader,
  found: readonly PositionedRecord[],
  { among }: AuditFilter,
): Promise<PositionedRecord[]> {
  const ids = found.flatMap(({ record }) => (record.batch === null ? [] : record.id));
  if (ids.length === 0) return [...found];
  const visible = inProjects(new Conditions(), 'o.project_id', among).and('o.batch = a.batch');
  const hasOther = (column: string) =>
    `CASE WHEN EXISTS (SELECT o.id FROM audit o ${visible.sql} AND o.${column} <> a.${column}) THEN 1 ELSE 0 END`;
  const rows = await on.select<{ id: string; records: number; more_tokens: number; more_projects: number }>(
    `SELECT a.id, (SELECT COUNT(*) FROM audit o ${visible.sql}) AS records,
       ${hasOther('token_id')} AS more_tokens, ${hasOther('project_id')} AS more_projects
     FROM ${on.dialect.rowsIn('audit a', 'a.id', '$ids')}`,
    { ...visible.bind, ids: JSON.stringify(ids) },
  );
  const sums = new Map(rows.map((row) => [row.id, row]));
  return found.map((one) => {
    const { records, more_tokens, more_projects } = sums.get(one.record.id) ?? NO_OTHERS;
    if (records === 1) return one;
    const record = {
      ...one.record,
      ...(more_tokens === 1 && { tokenId: null, tokenName: null, obfuscated: null }),
      ...(more_projects === 1 && { projectId: null, projectName: null }),
      requestId: null,
      count: records,
      details: null,
    };
    return { ...one, record };
  });
}

const NO_OTHERS = { records: 1, more_tokens: 0, more_projects: 0 };

const IS_AFTER = 'a.recorded_at <= $atMs AND (a.recorded_at < $atMs OR a.seq < $seq)';

/** Bind values for the changes after a position: those of its time with a lower number, and all earlier ones. */
function positionBind({ value, id }: Position): { atMs: number; seq: number } {
  const isChange = /^c\d{1,16}$/.test(id);
  // All changes of the same time follow a use, so the bound is the next millisecond.
  return isChange ? { atMs: Number(value), seq: Number(id.slice(1)) } : { atMs: Number(value) + 1, seq: 0 };
}

function searchChanges(
  on: Reader,
  filter: AuditFilter,
  most: number,
  position: Bind | null,
): Promise<NamedRecordColumns[]> {
  const { sql, bind } = rowidsOf(filter, position !== null);
  return on.select<NamedRecordColumns>(
    `SELECT ${NAMED_RECORD} FROM (${sql} LIMIT ${most}) p CROSS JOIN audit a ON ${HAS_ROWID}
     ORDER BY a.recorded_at DESC, a.seq DESC`,
    { ...bind, ...position },
  );
}

function scanChanges(
  on: Reader,
  filter: AuditFilter,
  most: number,
  position: Bind | null,
): Promise<NamedRecordColumns[]> {
  const { among, projectId, tokenId, batch, sinceMs, untilMs, action, actor, outcome, text } = filter;
  const where = new Conditions();
  if (tokenId !== undefined) where.and('a.token_id = $tokenId', { tokenId });
  if (batch !== undefined) where.and('a.batch = $batch', { batch });
  if (projectId !== undefined) where.and('a.project_id = $projectId', { projectId });
  if (sinceMs !== undefined) where.and('a.recorded_at >= $sinceMs', { sinceMs });
  if (untilMs !== undefined) where.and('a.recorded_at < $untilMs', { untilMs });
  if (action !== undefined) where.and('a.action = $action', { action });
  if (actor !== undefined) where.and('a.actor = $actor', { actor });
  if (outcome !== undefined) where.and('a.outcome = $outcome', { outcome });
  for (const [condition, bind] of wordConditions(text ?? '')) where.and(condition, bind);
  if (position) where.and(IS_AFTER, position);
  const isOfSeveral = among && (projectId ?? tokenId ?? batch) === undefined;
  if (!isOfSeveral) inProjects(where, 'a.project_id', among);
  const index = isOfSeveral ? 'audit_project' : indexFor(filter);
  const order = `ORDER BY a.recorded_at DESC, a.seq DESC LIMIT ${most}`;
  const from = `FROM audit a ${on.dialect.indexHint(index)}`;
  if (!isOfSeveral) {
    return on.select<NamedRecordColumns>(`SELECT ${NAMED_RECORD} ${from} ${where.sql} ${order}`, where.bind);
  }
  const { sql: first, bind } = firstOfEach(
    among,
    'a.project_id',
    where,
    (conditions) => `SELECT a.id, a.recorded_at, a.seq ${from} ${conditions} ${order}`,
  );
  return on.select<NamedRecordColumns>(
    `SELECT ${NAMED_RECORD} FROM audit a WHERE a.id IN (SELECT a.id FROM (SELECT a.id FROM (${first}) a ${order}) a)
     ORDER BY a.recorded_at DESC, a.seq DESC`,
    bind,
  );
}

function indexFor({ batch, tokenId, projectId }: AuditFilter): string {
  if (batch !== undefined) return 'audit_batch';
  if (tokenId !== undefined) return 'audit_token';
  return projectId !== undefined ? 'audit_project' : 'audit_place';
}

// Sequence numbers are assigned from change_seq. A row with a higher number was inserted by someone else, and must not hide later
// records.
const IS_ASSIGNED = 'a.seq <= (SELECT c.seq FROM change_seq c WHERE c.id = 1)';

export async function recordsAfter(on: Reader, seq: number, limit: number): Promise<CommittedRecord[]> {
  const rows = await on.select<NamedRecordColumns>(
    `SELECT ${NAMED_RECORD} FROM audit a WHERE a.seq > $seq AND ${IS_ASSIGNED} ORDER BY a.seq LIMIT ${Math.trunc(limit)}`,
    { seq },
  );
  return rows.map(namedRecordOf);
}

export async function lastRecord(on: Reader): Promise<number> {
  const [row] = await on.select<{ seq: number | null }>(`SELECT MAX(a.seq) AS seq FROM audit a WHERE ${IS_ASSIGNED}`);
  return row?.seq ?? 0;
}

/** Sequence number of the first row beyond all assigned numbers; null if there is none. */
export async function forgedSeq(on: Reader): Promise<number | null> {
  const [row] = await on.select<{ seq: number | null }>(
    `SELECT MIN(a.seq) AS seq FROM audit a WHERE NOT (${IS_ASSIGNED})`,
  );
  return row?.seq ?? null;
}
