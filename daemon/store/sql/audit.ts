import type { CommittedRecord } from '../../core/ports.js';
import type { Reader } from './database.js';
import { RECORD, type RecordColumns } from './tables.js';

// Numbers are given out by change_seq. A row beyond it was put there by somebody else, and must not hide those that are still to come.
const GIVEN_OUT = 'a.seq <= (SELECT c.seq FROM change_seq c WHERE c.id = 1)';

export async function recordsAfter(on: Reader, seq: number, limit: number): Promise<CommittedRecord[]> {
  const rows = await on.select<RecordColumns>(
    `SELECT ${RECORD.list} FROM audit a WHERE a.seq > $seq AND ${GIVEN_OUT} ORDER BY a.seq LIMIT ${Math.trunc(limit)}`,
    { seq },
  );
  return rows.map(RECORD.of);
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
