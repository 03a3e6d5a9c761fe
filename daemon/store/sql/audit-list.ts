/**
 * Lists audit records, newest first: records of changes, and uses of tokens, where each usage row (one hour of a token with one
 * result and one model) is shown as one record. Both are paged by keyset, each in its own order, and merged.
 *
 * A position is a time and an ID: `c` and the sequence number of a change, or `u` and the ID of a usage row. Uses come before
 * changes of the same time.
 */
import type { NamedRecord } from '../../core/audit.js';
import type { AuditFilter, CommittedRecord, PageOf, PageRequest, Position } from '../../core/ports.js';
import { HAS_ROWID, rowidsOf, usesWordIndex, wordConditions } from './audit-words.js';
import { listUses, type PositionedRecord, useById } from './audit-uses.js';
import type { Bind, Reader } from './database.js';
import { Conditions } from './lists.js';
import { NAMED_RECORD, type NamedRecordColumns, namedRecordOf } from './names.js';

export async function listAuditRecords(
  on: Reader,
  filter: AuditFilter,
  { limit, after }: PageRequest,
): Promise<PageOf<NamedRecord>> {
  const most = limit + 1;
  const [changes, uses] = await Promise.all([
    filter.action === 'token.use' ? [] : listChanges(on, filter, most, after),
    listUses(on, filter, most, after),
  ]);
  const placed = [...changes, ...uses].sort(newestFirst);
  const shown = placed.slice(0, limit);
  const next = placed.length > limit ? (shown.at(-1)?.position ?? null) : null;
  return { rows: shown.map(({ record }) => record), next, total: null };
}

export async function auditRecordById(on: Reader, id: string): Promise<NamedRecord | null> {
  const [row] = await on.select<NamedRecordColumns>(`SELECT ${NAMED_RECORD} FROM audit a WHERE a.id = $id`, { id });
  return row ? namedRecordOf(row) : useById(on, id);
}

function newestFirst({ position: a }: PositionedRecord, { position: b }: PositionedRecord): number {
  return Number(b.value) - Number(a.value) || (a.id < b.id ? 1 : -1);
}

const DIGITS = 16; // Digits of the largest number, so that IDs sort like numbers.

async function listChanges(
  on: Reader,
  filter: AuditFilter,
  most: number,
  after: Position | null,
): Promise<PositionedRecord[]> {
  const position = after && positionBind(after);
  const isSearched = on.dialect.name === 'sqlite' && usesWordIndex(filter);
  const rows = await (isSearched ? searchChanges(on, filter, most, position) : scanChanges(on, filter, most, position));
  return rows.map((row) => ({
    record: namedRecordOf(row),
    position: { value: row.recorded_at, id: `c${String(row.seq).padStart(DIGITS, '0')}` },
  }));
}

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
  const { projectId, tokenId, sinceMs, untilMs, action, actor, outcome, text } = filter;
  const where = new Conditions();
  if (tokenId !== undefined) where.and('a.token_id = $tokenId', { tokenId });
  if (projectId !== undefined) where.and('a.project_id = $projectId', { projectId });
  if (sinceMs !== undefined) where.and('a.recorded_at >= $sinceMs', { sinceMs });
  if (untilMs !== undefined) where.and('a.recorded_at < $untilMs', { untilMs });
  if (action !== undefined) where.and('a.action = $action', { action });
  if (actor !== undefined) where.and('a.actor = $actor', { actor });
  if (outcome !== undefined) where.and('a.outcome = $outcome', { outcome });
  for (const [condition, bind] of wordConditions(text ?? '')) where.and(condition, bind);
  if (position) where.and('a.recorded_at <= $atMs AND (a.recorded_at < $atMs OR a.seq < $seq)', position);
  const index = tokenId !== undefined ? 'audit_token' : projectId !== undefined ? 'audit_project' : 'audit_place';
  return on.select<NamedRecordColumns>(
    `SELECT ${NAMED_RECORD} FROM audit a ${on.dialect.indexHint(index)} ${where.sql}
     ORDER BY a.recorded_at DESC, a.seq DESC LIMIT ${most}`,
    where.bind,
  );
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
