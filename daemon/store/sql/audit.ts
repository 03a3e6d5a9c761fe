import type { AuditRecord } from '../../core/audit.js';
import type { CommittedRecord } from '../../core/ports.js';
import type { Bind, Reader } from './database.js';

export interface AuditRow {
  seq: number;
  id: string;
  recorded_at: number;
  action: string;
  actor: string;
  outcome: string;
  project_id: string | null;
  token_id: string | null;
  obfuscated: string | null;
  request_id: string | null;
  client_ip: string | null;
  reason: string | null;
  count: number | null;
  details: string | null;
}

export const AUDIT_COLUMNS =
  'a.seq, a.id, a.recorded_at, a.action, a.actor, a.outcome, a.project_id, a.token_id, a.obfuscated, a.request_id, a.client_ip, a.reason, a.count, a.details';

export const auditColumns = (record: CommittedRecord): Bind => ({
  seq: record.seq,
  id: record.id,
  recorded_at: record.timeMs,
  action: record.action,
  actor: record.actor,
  outcome: record.outcome,
  project_id: record.projectId,
  token_id: record.tokenId,
  obfuscated: record.obfuscated,
  request_id: record.requestId,
  client_ip: record.clientIp,
  reason: record.reason,
  count: record.count,
  details: record.details && JSON.stringify(record.details),
});

export function recordOf(row: AuditRow): CommittedRecord {
  return {
    seq: row.seq,
    id: row.id,
    timeMs: row.recorded_at,
    action: row.action as AuditRecord['action'],
    actor: row.actor as AuditRecord['actor'],
    outcome: row.outcome as AuditRecord['outcome'],
    projectId: row.project_id,
    tokenId: row.token_id,
    obfuscated: row.obfuscated,
    requestId: row.request_id,
    clientIp: row.client_ip,
    reason: row.reason,
    count: row.count,
    details: row.details === null ? null : (JSON.parse(row.details) as Record<string, unknown>),
  };
}

// Numbers are given out by change_seq. A row beyond it was put there by somebody else, and must not hide those that are still to come.
const GIVEN_OUT = 'a.seq <= (SELECT c.seq FROM change_seq c WHERE c.id = 1)';

export async function recordsAfter(on: Reader, seq: number, limit: number): Promise<CommittedRecord[]> {
  const rows = await on.select<AuditRow>(
    `SELECT ${AUDIT_COLUMNS} FROM audit a WHERE a.seq > $seq AND ${GIVEN_OUT} ORDER BY a.seq LIMIT ${Math.trunc(limit)}`,
    { seq },
  );
  return rows.map(recordOf);
}

export async function lastRecord(on: Reader): Promise<number> {
  const [row] = await on.select<{ seq: number | null }>(`SELECT MAX(a.seq) AS seq FROM audit a WHERE ${GIVEN_OUT}`);
  return row?.seq ?? 0;
}

/** The place of the first row beyond all numbers that were given out; null where there is none. */
export async function forgedPlace(on: Reader): Promise<number | null> {
  const [row] = await on.select<{ seq: number | null }>(
    `SELECT MIN(a.seq) AS seq FROM audit a WHERE NOT (${GIVEN_OUT})`,
  );
  return row?.seq ?? null;
}
