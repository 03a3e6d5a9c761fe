/** IDs in paths and bodies of the management API. */
import { UUID_PATTERN } from '../../api/vocabulary.js';
import { Refusal } from '../../core/refusal.js';
import type { OperationRequest } from './endpoints.js';

export const isId = (text: unknown): text is string => typeof text === 'string' && UUID_PATTERN.test(text);

type Resource = 'project' | 'token' | 'record' | 'batch' | 'session' | 'operator' | 'trust';

export const notFound = (what: Resource) => new Refusal('not_found', `${what} not found`);

/** The ID in a path, in lower case as stored; null if it cannot be an ID. */
export function idIn(path: unknown): string | null {
  const id = typeof path === 'string' ? path.toLowerCase() : null;
  return isId(id) ? id : null;
}

/** A malformed ID is not found without a database query. */
export function idOf({ id: path }: Pick<OperationRequest, 'id'>, what: Resource): string {
  const id = idIn(path);
  if (id === null) throw notFound(what);
  return id;
}
