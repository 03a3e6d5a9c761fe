/** Tokens as they are in the table, and what lists must make of them: written a second time, in another language than the daemon's. */
import type { System } from '../system.js';

export interface Stored {
  id: string;
  projectId: string;
  name: string;
  isActive: boolean;
  isOfActiveProject: boolean;
  expiresAt: number;
  createdAt: number;
  lastUsedAt: number;
  requestCount: number;
  maxRequests: number;
}

export async function storedTokens(system: System): Promise<Stored[]> {
  const rows = await system.select<Record<string, string | number | boolean>>(
    `SELECT t.*, p.is_active AS project_is_active FROM tokens t JOIN projects p ON p.id = t.project_id`,
  );
  return rows.map((row) => ({
    id: String(row.id),
    projectId: String(row.project_id),
    name: String(row.name),
    isActive: Boolean(row.is_active),
    isOfActiveProject: Boolean(row.project_is_active),
    expiresAt: Number(row.expires_at),
    createdAt: Number(row.created_at),
    lastUsedAt: Number(row.last_used_at),
    requestCount: Number(row.request_count),
    maxRequests: Number(row.max_requests),
  }));
}

export const SORTS = {
  created_at: (token: Stored) => token.createdAt,
  expires_at: (token: Stored) => token.expiresAt,
  last_used_at: (token: Stored) => token.lastUsedAt,
  request_count: (token: Stored) => token.requestCount,
  name: (token: Stored) => token.name,
};
export type Sort = keyof typeof SORTS;

/** The IDs in the order of a sort; equal values by ID. Texts are ordered by their bytes. */
export function inOrder(tokens: readonly Stored[], sort: Sort, isDescending: boolean): string[] {
  const value = SORTS[sort];
  const compared = (a: Stored, b: Stored) => compare(value(a), value(b)) || compare(a.id, b.id);
  const sorted = [...tokens].sort((a, b) => (isDescending ? compared(b, a) : compared(a, b)));
  return sorted.map(({ id }) => id);
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
}

export function stateOf(token: Stored, nowMs: number): string {
  if (!token.isActive) return 'revoked';
  if (token.expiresAt <= nowMs) return 'expired';
  if (!token.isOfActiveProject) return 'project_inactive';
  return token.maxRequests > 0 && token.requestCount >= token.maxRequests ? 'rate_limited' : 'active';
}
