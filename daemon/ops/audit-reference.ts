import { existsSync } from 'node:fs';
import type { DatabaseAddress } from '../../config/database-url.js';
import { realClock } from '../process/clock.js';
import type { CommittedRecord } from '../core/ports.js';
import { type Anchor, rotatedEndsOf } from '../store/audit-file/anchors.js';
import { openDatabase } from '../store/databases.js';
import { anchorsOf } from '../store/sql/anchors.js';
import { forgedSeq, lastRecord, recordsAfter } from '../store/sql/audit-list.js';
import { EXIT } from '../api/vocabulary.js';
import { OperatorError, withValidSettings } from './operator-error.js';

/** What the database has recorded about an audit file, to compare the file with. */
export interface AuditReference {
  /** In the order of their lines. */
  anchors: Anchor[];
  /** The last lines of the rotated files that still exist. The first anchor may be that of the file before them. */
  ends: Anchor[];
  /** Null if the file does not contain records of changes. */
  records: {
    /** The number of the last record that was committed before the files are read; 0 if there is none. */
    last: number;
    /** The number of a row that no daemon has written; null if there is none. */
    forged: number | null;
    after: (seq: number, limit: number) => Promise<CommittedRecord[]>;
  } | null;
  close(): Promise<void>;
}

/**
 * @param chain the absolute path of the file.
 * @returns null if there is no database. The report says so, and the operator has to judge it.
 * @throws {OperatorError} if the database cannot be read.
 */
export async function auditReferenceOf(
  address: DatabaseAddress,
  chain: string,
  isOfChanges: boolean,
): Promise<AuditReference | null> {
  if (address.driver === 'sqlite' && !existsSync(address.path)) return null;
  const database = withValidSettings(() => openDatabase({ database: address }, realClock));
  try {
    const records = isOfChanges
      ? {
          last: await lastRecord(database),
          forged: await forgedSeq(database),
          after: (seq: number, limit: number) => recordsAfter(database, seq, limit),
        }
      : null;
    const [anchors, ends] = [await anchorsOf(database, chain), await anchorsOf(database, rotatedEndsOf(chain))];
    return { anchors, ends, records, close: () => database.close() };
  } catch (error) {
    await database.close();
    const text = error instanceof Error ? error.message : String(error);
    // No daemon has used this database yet.
    if (address.driver === 'sqlite' && /no such table/.test(text)) return null;
    throw new OperatorError(
      EXIT.unavailable,
      `cannot read from the database how far the audit file reached: ${text}`,
      error,
    );
  }
}
