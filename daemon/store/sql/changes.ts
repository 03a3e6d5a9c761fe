/** Changes that other instances must learn about: one row per change, under the sequence number of its audit record. */
import type { CommittedChange } from '../../core/ports.js';
import type { Database } from './database.js';
import { CHANGE, type ChangeColumns } from './tables.js';

export async function changesAfter(
  ask: Database['prioritySelect'],
  seq: number,
  limit: number,
): Promise<CommittedChange[]> {
  const rows = await ask<ChangeColumns>(
    `SELECT ${CHANGE.list} FROM changes WHERE seq > $seq ORDER BY seq LIMIT ${limit}`,
    { seq },
  );
  return rows.map(CHANGE.of);
}

export async function forgetChangesBefore(database: Database, timeMs: number): Promise<void> {
  await database.transact((tx) => tx.execute('DELETE FROM changes WHERE changed_at < $timeMs', { timeMs }, 'long'));
}
