/**
 * Comparison of the change log file with the database: up to which record they agree. They diverge when the database is restored
 * from a backup, when a replica takes over that lacks the last records, or when someone has forged the end of the file. From there
 * on, the database assigns sequence numbers to other records than the file has under them.
 */
import type { CommittedRecord, RecordStore } from '../../core/ports.js';
import type { Anchor } from './chain.js';
import { areFieldsOf } from './fields.js';
import { isMarker } from './marker.js';
import { rotationsOf } from './rotations.js';
import { linesFromEnd } from './tail.js';

const BATCH_SIZE = 500;
// No failover loses more than this. Earlier lines are assumed to be equal.
const MAX_BYTES = 256 * 1024 * 1024;

interface Line {
  line: number;
  seq: number;
  id: string;
  /** The line without its link. */
  fields: string;
}

export interface AgreementOptions {
  path: string;
  store: Pick<RecordStore, 'recordsAfter' | 'lastRecord'>;
  /** Lines up to this anchor are proved to be the original ones. Null: no line is proved. */
  anchor: Anchor | null;
}

/**
 * @param seq the sequence number of the last record in the file.
 * @returns the sequence number of the last record that both have: `seq` or an earlier one.
 */
export async function lastCommonSeq(seq: number, { path, store, anchor }: AgreementOptions): Promise<number> {
  let agreed = Math.min(seq, await store.lastRecord());
  for await (const lines of batchesFromEnd(path)) {
    const records = await recordsOf(lines, store);
    for (const line of lines) {
      const record = records.get(line.seq);
      const isProved = anchor !== null && line.line <= anchor.line;
      const isSame = record?.id === line.id && (isProved || areFieldsOf(record, line.fields));
      if (!isSame) agreed = Math.min(agreed, line.seq - 1);
      // Earlier lines were compared when they were written.
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
  const records = Number.isFinite(first) ? await store.recordsAfter(first - 1, BATCH_SIZE) : [];
  return new Map(records.map((record) => [record.seq, record]));
}

/**
 * Record lines of the file and of the rotated files before it, the last one first. Skips lines that a marker declares not to be in
 * the database.
 */
async function* batchesFromEnd(path: string): AsyncGenerator<Line[]> {
  let least = Infinity;
  let bytesLeft = MAX_BYTES;
  let lines: Line[] = [];
  for (const file of [path, ...(await rotationsOf(path)).reverse()]) {
    try {
      for await (const { bytes } of linesFromEnd(file)) {
        const found = lineOf(bytes);
        if (found === null) continue;
        if (typeof found === 'number') least = Math.min(least, found);
        else if (found.seq <= least) lines.push(found);
        bytesLeft -= bytes.length;
        if (lines.length < BATCH_SIZE && bytesLeft > 0) continue;
        yield lines;
        lines = [];
        if (bytesLeft <= 0) return;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EIO') throw error;
      // A folder or a pipe with such a name, or a file that was just compressed, is skipped.
    }
  }
  yield lines;
}

const LINK = /^\{"line":\d+,"prev":"[0-9a-f]{64}",/;

/** @returns for a marker the sequence number after which the copy continued; null for a line without a record. */
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
