/** Rows as the database gives them, and what they become. Drivers differ in how they give booleans and 64-bit numbers. */
import type { Project, Token } from '../../core/token.js';

type Flag = boolean | number;
type Count = number | string;

export interface ProjectRow {
  id: string;
  name: string;
  is_active: Flag;
  api_key_hint: string;
  created_at: Count;
  updated_at: Count;
  deactivated_at: Count | null;
}

export const PROJECT_COLUMNS = 'id, name, is_active, api_key_hint, created_at, updated_at, deactivated_at';

export function projectOf(row: ProjectRow): Project {
  return {
    id: row.id,
    name: row.name,
    isActive: Boolean(row.is_active),
    apiKeyHint: row.api_key_hint,
    createdAtMs: Number(row.created_at),
    updatedAtMs: Number(row.updated_at),
    deactivatedAtMs: row.deactivated_at === null ? null : Number(row.deactivated_at),
  };
}

export interface TokenColumns {
  id: string;
  project_id: string;
  name: string;
  is_active: Flag;
  expires_at: Count;
  max_requests: Count;
  request_count: Count;
  cache_hit_count: Count;
  created_at: Count;
  last_used_at: Count;
  obfuscated: string;
}

/** Of `tokens t`. */
export const TOKEN_COLUMNS =
  't.id, t.project_id, t.name, t.is_active, t.expires_at, t.max_requests, t.request_count, t.cache_hit_count, t.created_at, t.last_used_at, t.obfuscated';

export function tokenOf(row: TokenColumns): Token {
  return {
    id: row.id,
    projectId: row.project_id,
    name: row.name || null,
    isActive: Boolean(row.is_active),
    expiresAtMs: Number(row.expires_at),
    maxRequests: Number(row.max_requests),
    requestCount: Number(row.request_count),
    cacheHitCount: Number(row.cache_hit_count),
    createdAtMs: Number(row.created_at),
    lastUsedAtMs: Number(row.last_used_at) || null,
    obfuscated: row.obfuscated,
  };
}
