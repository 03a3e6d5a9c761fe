/**
 * Audit records newest first: those of changes, and what tokens were used for, of which each row (an hour of a token with one
 * result and one model) is shown as one record. Both are read by keyset, each in its own order, and merged.
 *
 * A position is a time and an id: `c` with the number of a change's place, or `u` with the id of a row of usage. At the same
 * time uses come first.
 */
import type { AuditRecord } from '../../core/audit.js';
import type { AuditFilter, PageOf, PageRequest, Position } from '../../core/ports.js';
import { isByWords, placesOf, STANDS_AT, wordConditions } from './audit-words.js';
import { listUses, type Placed, useById } from './audit-uses.js';
import type { Bind, Reader } from './database.js';
import { Conditions } from './lists.js';
import { RECORD, type RecordColumns } from './tables.js';

export async function listAuditRecords(
  on: Reader,
  filter: AuditFilter,
  { limit, after }: PageRequest,
): Promise<PageOf<AuditRecord>> {
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

export async function auditRecordById(on: Reader, id: string): Promise<AuditRecord | null> {
  const [row] = await on.select<RecordColumns>(`SELECT ${RECORD.list} FROM audit a WHERE a.id = $id`, { id });
  return row ? RECORD.of(row) : useById(on, id);
}

function newestFirst({ position: a }: Placed, { position: b }: Placed): number {
  return Number(b.value) - Number(a.value) || (a.id < b.id ? 1 : -1);
}

const DIGITS = 16; // Of the largest number there can be, so that the order of ids is that of numbers.

async function listChanges(on: Reader, filter: AuditFilter, most: number, after: Position | null): Promise<Placed[]> {
  const behind = after && bindOf(after);
  const isSearched = on.dialect.name === 'sqlite' && isByWords(filter);
  const rows = await (isSearched ? found(on, filter, most, behind) : inOrder(on, filter, most, behind));
  return rows.map((row) => ({
    record: RECORD.of(row),
    position: { value: row.recorded_at, id: `c${String(row.seq).padStart(DIGITS, '0')}` },
  }));
}

/** Changes behind a position: below this number at its time. */
function bindOf({ value, id }: Position): { atMs: number; seq: number } {
  const isChange = /^c\d{1,16}$/.test(id);
  // Behind a use come all changes of that time, which is to say: those before the next millisecond.
  return isChange ? { atMs: Number(value), seq: Number(id.slice(1)) } : { atMs: Number(value) + 1, seq: 0 };
}

function found(on: Reader, filter: AuditFilter, most: number, behind: Bind | null): Promise<RecordColumns[]> {
  const { sql, bind } = placesOf(filter, behind !== null);
  return on.select<RecordColumns>(
    `SELECT ${RECORD.list} FROM (${sql} LIMIT ${most}) p CROSS JOIN audit a ON ${STANDS_AT}
     ORDER BY a.recorded_at DESC, a.seq DESC`,
    { ...bind, ...behind },
  );
}

function inOrder(on: Reader, filter: AuditFilter, most: number, behind: Bind | null): Promise<RecordColumns[]> {
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
  if (behind) where.and('a.recorded_at <= $atMs AND (a.recorded_at < $atMs OR a.seq < $seq)', behind);
  const index = tokenId !== undefined ? 'audit_token' : projectId !== undefined ? 'audit_project' : 'audit_place';
  return on.select<RecordColumns>(
    `SELECT ${RECORD.list} FROM audit a ${on.dialect.by(index)} ${where.sql}
     ORDER BY a.recorded_at DESC, a.seq DESC LIMIT ${most}`,
    where.bind,
  );
}
