import type { PageOf, PageRequest, ProjectFilter, StoredUpstream } from '../../core/ports.js';
import type { Project } from '../../core/token.js';
import type { SqlTransaction, Reader } from './database.js';
import { Conditions, pageOf } from './lists.js';
import { inProjects } from './scopes.js';
import type { SecretBox } from '../secrets.js';
import { PROJECT, type ProjectColumns, type SealedKeyColumns } from './tables.js';

/** Encryption context that binds an upstream key to its row. */
export const upstreamKeyContext = (projectId: string) => `project:${projectId}:api_key`;

export function projectById(on: Reader, id: string): Promise<Project | null> {
  return oneProject(on, id, '');
}

export async function storedUpstream(on: Reader, box: SecretBox, id: string): Promise<StoredUpstream | null> {
  const [row] = await on.select<ProjectColumns & SealedKeyColumns>(
    `SELECT ${PROJECT.list}, api_key, api_key_id FROM projects WHERE id = $id`,
    { id },
    'usual',
  );
  if (!row) return null;
  const { upstreamBaseUrl, upstreamAuth } = PROJECT.of(row);
  const upstreamKey = box.open({ text: row.api_key, keyId: row.api_key_id }, upstreamKeyContext(id));
  return { upstreamKey, upstreamBaseUrl, upstreamAuth };
}

/** Locks the project until the transaction ends. */
export function lockedProject(tx: SqlTransaction, id: string): Promise<Project | null> {
  return oneProject(tx, id, tx.dialect.forUpdate);
}

/** The same for the project of a token. */
export async function lockedProjectOf(tx: SqlTransaction, tokenId: string): Promise<void> {
  if (tx.dialect.forUpdate === '') return;
  const ofToken = '(SELECT t.project_id FROM tokens t WHERE t.id = $tokenId)';
  await tx.select(`SELECT id FROM projects WHERE id = ${ofToken} ${tx.dialect.forUpdate}`, { tokenId }, 'usual');
}

async function oneProject(on: Reader, id: string, lock: string): Promise<Project | null> {
  const [row] = await on.select<ProjectColumns>(
    `SELECT ${PROJECT.list} FROM projects WHERE id = $id ${lock}`,
    { id },
    'usual',
  );
  return row ? PROJECT.of(row) : null;
}

export function listProjects(on: Reader, filter: ProjectFilter, page: PageRequest): Promise<PageOf<Project>> {
  const where = new Conditions();
  if (filter.isActive !== undefined) where.and('is_active = $isActive', { isActive: filter.isActive });
  inProjects(where, 'id', filter.ids);
  return pageOf<ProjectColumns, Project>(on, {
    columns: PROJECT.list,
    from: 'projects',
    where,
    sortColumn: 'created_at',
    idColumn: 'id',
    descending: true,
    page,
    rowOf: PROJECT.of,
    positionOf: (row) => ({ value: row.created_at, id: row.id }),
  });
}
