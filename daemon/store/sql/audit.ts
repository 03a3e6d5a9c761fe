import type { CommittedRecord } from '../../core/ports.js';
import type { Reader } from './database.js';
import { NAMED_RECORD, type NamedRecordColumns, namedRecordOf } from './names.js';

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
