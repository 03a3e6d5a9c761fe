/** What a database knows of an audit file. */
import { existsSync } from 'node:fs';
import type { DatabaseAddress } from '../../config/database-url.js';
import { SettingsError } from '../../config/settings.js';
import { realClock } from '../process/clock.js';
import type { CommittedRecord } from '../core/ports.js';
import { type Anchor, endsOf } from '../store/audit-file/chain.js';
import { openDatabase } from '../store/open.js';
import { anchorsOf } from '../store/sql/anchors.js';
import { forgedPlace, lastRecord, recordsAfter } from '../store/sql/audit.js';
import type { Database } from '../store/sql/database.js';
import { VerificationError } from './verification-error.js';
import { EXIT } from '../api/vocabulary.js';

export interface AuditKnowledge {
  /** In the order of their lines. */
  anchors: Anchor[];
  /** The last lines of the files that were put aside and are kept; the first one may be that of the one before them. */
  ends: Anchor[];
  /** Null for a file that holds no records of changes. */
  records: {
    /** The place of the last one that was committed before the files are read; 0: there is none. */
    last: number;
    /** The place of a row that no daemon has written; null: there is none. */
    forged: number | null;
    after: (seq: number, limit: number) => Promise<CommittedRecord[]>;
  } | null;
  close(): Promise<void>;
}

/**
 * @param chain the absolute path of the file.
 * @returns null where there is no database to ask: that is for the operator to judge, and the answer says it.
 * @throws {VerificationError} when there is one, and it does not say.
 */
export async function knowledgeOf(
  address: DatabaseAddress,
  chain: string,
  isOfChanges: boolean,
): Promise<AuditKnowledge | null> {
  if (address.driver === 'sqlite' && !existsSync(address.path)) return null;
  const database = opened(address);
  try {
    const records = isOfChanges
      ? {
          last: await lastRecord(database),
          forged: await forgedPlace(database),
          after: (seq: number, limit: number) => recordsAfter(database, seq, limit),
        }
      : null;
    const [anchors, ends] = [await anchorsOf(database, chain), await anchorsOf(database, endsOf(chain))];
    return { anchors, ends, records, close: () => database.close() };
  } catch (error) {
    await database.close();
    const text = error instanceof Error ? error.message : String(error);
    // A database that was never used by a daemon knows nothing.
    if (address.driver === 'sqlite' && /no such table/.test(text)) return null;
    throw new VerificationError(EXIT.unavailable, `the database does not say how far the file reached: ${text}`, error);
  }
}

function opened(address: DatabaseAddress): Database {
  try {
    return openDatabase({ database: address }, realClock);
  } catch (error) {
    if (error instanceof SettingsError) throw new VerificationError(EXIT.configuration, error.message, error);
    throw error;
  }
}
