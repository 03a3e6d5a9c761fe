import type { PageOf, PageRequest, ProjectFilter } from '../../core/ports.js';
import type { Project } from '../../core/token.js';
import type { SqlTransaction, Reader } from './database.js';
import { Conditions, pageOf } from './lists.js';
import { PROJECT, type ProjectColumns } from './tables.js';

/** Encryption context that binds an upstream key to its row. */
export const upstreamKeyContext = (projectId: string) => `project:${projectId}:api_key`;

export function projectById(on: Reader, id: string): Promise<Project | null> {
  return oneProject(on, id, '');
}

/** Locks the project until the transaction ends. */
export function lockedProject(tx: SqlTransaction, id: string): Promise<Project | null> {
  return oneProject(tx, id, tx.dialect.forUpdate);
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
