/** What other instances are to hear of: a row for each change, under the number of its record. */
import type { ChangeKind, CommittedChange } from '../../core/ports.js';
import type { Connection, Database } from './database.js';
import { insert } from './insert.js';

interface ChangeColumns {
  seq: number;
  kind: ChangeKind;
  project_id: string;
  token_id: string | null;
  changed_at: number;
}

export function insertChange(tx: Connection, change: CommittedChange): Promise<void> {
  return insert(tx, 'changes', {
    seq: change.seq,
    kind: change.kind,
    project_id: change.projectId ?? '', // No null is allowed there.
    token_id: change.tokenId,
    changed_at: change.timeMs,
  });
}

export async function changesAfter(ask: Database['ask'], seq: number, limit: number): Promise<CommittedChange[]> {
  const rows = await ask<ChangeColumns>(
    `SELECT seq, kind, project_id, token_id, changed_at FROM changes WHERE seq > $seq ORDER BY seq LIMIT ${limit}`,
    { seq },
  );
  return rows.map((row) => ({
    seq: row.seq,
    kind: row.kind,
    projectId: row.project_id || null,
    tokenId: row.token_id,
    timeMs: row.changed_at,
  }));
}

export async function forgetChangesBefore(database: Database, timeMs: number): Promise<void> {
  await database.transact((tx) => tx.execute('DELETE FROM changes WHERE changed_at < $timeMs', { timeMs }, 'long'));
}
