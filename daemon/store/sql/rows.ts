/** Rows as the database gives them, and what they become. Drivers differ in how they give booleans; numbers are numbers (numbers.ts). */
import type { Project, Token } from '../../core/token.js';

type Flag = boolean | number;

export interface ProjectRow {
  id: string;
  name: string;
  is_active: Flag;
  api_key_hint: string;
  created_at: number;
  updated_at: number;
  deactivated_at: number | null;
}

export const PROJECT_COLUMNS = 'id, name, is_active, api_key_hint, created_at, updated_at, deactivated_at';

export function projectOf(row: ProjectRow): Project {
  return {
    id: row.id,
    name: row.name,
    isActive: Boolean(row.is_active),
    apiKeyHint: row.api_key_hint,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    deactivatedAtMs: row.deactivated_at,
  };
}

export interface TokenColumns {
  id: string;
  project_id: string;
  name: string;
  is_active: Flag;
  expires_at: number;
  max_requests: number;
  request_count: number;
  cache_hit_count: number;
  created_at: number;
  last_used_at: number;
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
    expiresAtMs: row.expires_at,
    maxRequests: row.max_requests,
    requestCount: row.request_count,
    cacheHitCount: row.cache_hit_count,
    createdAtMs: row.created_at,
    lastUsedAtMs: row.last_used_at || null,
    obfuscated: row.obfuscated,
  };
}
