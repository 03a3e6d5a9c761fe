/** What batches have changed, and what was changed since, for undoing them. */
import type { BatchMember, ChangedSubject, NumberedRecord, Scope } from '../../core/ports.js';
import type { Reader } from './database.js';
import { Conditions } from './lists.js';
import { inProjects } from './scopes.js';
import { RECORD, type RecordColumns } from './tables.js';

export async function batchMembers(
  on: Reader,
  batch: string,
  after: number,
  limit: number,
  among: Scope['projects'],
): Promise<BatchMember[]> {
  const where = inProjects(new Conditions(), 'a.project_id', among)
    .and('a.batch = $batch', { batch })
    .and("a.outcome = 'success'");
  const rows = await on.select<{ token_id: string | null; project_id: string | null; first_seq: number }>(
    `SELECT a.token_id, a.project_id, MIN(a.seq) AS first_seq FROM audit a ${on.dialect.indexHint('audit_batch')}
     ${where.sql} GROUP BY a.token_id, a.project_id
     HAVING MIN(a.seq) > $after ORDER BY MIN(a.seq) LIMIT ${Math.trunc(limit)}`,
    { ...where.bind, after },
  );
  return rows.map((row) => ({ tokenId: row.token_id, projectId: row.project_id, seq: row.first_seq }));
}

export async function recordsSince(
  on: Reader,
  { tokenId, projectId }: ChangedSubject,
  seq: number,
  limit: number,
): Promise<NumberedRecord[]> {
  const selected = (index: string, condition: string) =>
    `SELECT ${RECORD.list} FROM audit a ${on.dialect.indexHint(index)}
     WHERE ${condition} AND a.seq >= $seq AND a.outcome = 'success'`;
  const ofProject = 'a.project_id = $projectId AND a.token_id IS NULL';
  const rows = await on.select<RecordColumns>(
    `${
      tokenId === null
        ? selected('audit_of_projects', ofProject)
        : `${selected('audit_token', 'a.token_id = $tokenId')}
           UNION ALL ${selected('audit_of_projects', `${ofProject} AND a.action = 'token.revoke_all'`)}`
    } ORDER BY seq LIMIT ${Math.trunc(limit)}`,
    { projectId, seq, ...(tokenId !== null && { tokenId }) },
  );
  return rows.map(RECORD.of);
}
