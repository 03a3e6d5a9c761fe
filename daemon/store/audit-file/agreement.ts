/**
 * How far the file of changes and the database agree. They part when the database is put back to an earlier day, when a replica takes over
 * that lacks the last records, or when somebody has forged the end of the file: what the database numbers from there on is not what the
 * file has under these numbers.
 */
import type { CommittedRecord, RecordStore } from '../../core/ports.js';
import type { Anchor } from './chain.js';
import { fieldsOfRecord } from './fields.js';
import { isMarker } from './marker.js';
import { rotationsOf } from './rotations.js';
import { linesFromEnd } from './tail.js';

const AT_A_TIME = 500;
// No failover takes back more than that. What lies before is taken to be the same.
const MOST_BYTES = 256 * 1024 * 1024;

interface Line {
  line: number;
  seq: number;
  id: string;
  /** What stands behind its link. */
  fields: string;
}

export interface AgreementOptions {
  path: string;
  store: Pick<RecordStore, 'recordsAfter' | 'lastRecord'>;
  /** Lines up to this one are proved to be those that were written; null: none are. */
  anchor: Anchor | null;
}

/**
 * @param seq the place of the last record in the file.
 * @returns the place of the last record up to which both hold the same: `seq` itself, or an earlier one.
 */
export async function agreedPlace(seq: number, { path, store, anchor }: AgreementOptions): Promise<number> {
  let agreed = Math.min(seq, await store.lastRecord());
  for await (const lines of batchesFromEnd(path)) {
    const records = await recordsOf(lines, store);
    for (const line of lines) {
      const record = records.get(line.seq);
      const isProved = anchor !== null && line.line <= anchor.line;
      const isSame = record?.id === line.id && (isProved || fieldsOfRecord(record) === line.fields);
      if (!isSame) agreed = Math.min(agreed, line.seq - 1);
      // What is before it was compared when it was written.
      else if (isProved || !anchor) return agreed;
    }
  }
  return agreed;
}

async function recordsOf(
  lines: readonly Line[],
  store: AgreementOptions['store'],
): Promise<Map<number, CommittedRecord>> {
  const first = lines.reduce((least, { seq }) => Math.min(least, seq), Infinity);
  const records = Number.isFinite(first) ? await store.recordsAfter(first - 1, AT_A_TIME) : [];
  return new Map(records.map((record) => [record.seq, record]));
}

/** The lines of records in the file and in those before it, the last one first. Without those that a marker says are not the database's. */
async function* batchesFromEnd(path: string): AsyncGenerator<Line[]> {
  let least = Infinity;
  let bytesLeft = MOST_BYTES;
  let lines: Line[] = [];
  for (const file of [path, ...(await rotationsOf(path)).reverse()]) {
    try {
      for await (const { bytes } of linesFromEnd(file)) {
        const found = lineOf(bytes);
        if (found === null) continue;
        if (typeof found === 'number') least = Math.min(least, found);
        else if (found.seq <= least) lines.push(found);
        bytesLeft -= bytes.length;
        if (lines.length < AT_A_TIME && bytesLeft > 0) continue;
        yield lines;
        lines = [];
        if (bytesLeft <= 0) return;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EIO') throw error;
      // A folder or a pipe under such a name, or a file that was just compressed, says nothing.
    }
  }
  yield lines;
}

const LINK = /^\{"line":\d+,"prev":"[0-9a-f]{64}",/;

/** @returns of a marker the place where the copy went on; null for a line without a record. */
function lineOf(bytes: Buffer): Line | number | null {
  try {
    const text = bytes.toString();
    const parsed = JSON.parse(text) as Record<string, unknown>;
    const { line, seq, id } = parsed;
    if (!Number.isSafeInteger(line) || !Number.isSafeInteger(seq)) return null;
    if (isMarker(parsed)) return seq as number;
    return { line: line as number, seq: seq as number, id: String(id), fields: text.replace(LINK, '') };
  } catch {
    return null;
  }
}
