import type { Daemon } from '../../daemon/compose.js';
import { eventually } from './eventually.js';

/** Waits until no query runs: records are written and copied after the responses. @returns the number of statements so far. */
export async function databaseAtRest({ usage, auditFiles, stores }: Daemon): Promise<number> {
  await Promise.all([usage.flush(), auditFiles.useLog?.flush()]);
  let [statements, looks] = [-1, 0];
  await eventually('the database is at rest', () => {
    looks = stores.database.statements === statements ? looks + 1 : 0;
    ({ statements } = stores.database);
    return looks >= 5;
  });
  return statements;
}
