import type { PageOf, PageRequest, ProjectFilter } from '../../core/ports.js';
import type { Project } from '../../core/token.js';
import type { Connection, Reader } from './database.js';
import { Conditions, pageOf } from './lists.js';
import { PROJECT, type ProjectColumns } from './tables.js';

/** What binds a sealed upstream key to its row. */
export const placeOfKey = (projectId: string) => `project:${projectId}:api_key`;

export function projectById(on: Reader, id: string): Promise<Project | null> {
  return oneProject(on, id, '');
}

/** Nobody else changes it until the transaction is over. */
export function lockedProject(tx: Connection, id: string): Promise<Project | null> {
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
