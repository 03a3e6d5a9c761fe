/**
 * Projects and tokens for tests, complete whatever fields they will have: a new column is added here and nowhere else in the tests. A test
 * names the fields that it is about. All other fields are those of a project or token that was just created: active, without a name or a
 * cap, and never used.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { WireProject, WireToken, WireTop, WireTopRow } from '../../daemon/api/contract.js';
import type { KnownToken, NewProject, NewToken, UsageRow } from '../../daemon/core/ports.js';
import type { RegistryOptions } from '../../daemon/core/registry.js';
import { FAILURE_KINDS, NO_POLICIES } from '../../daemon/api/vocabulary.js';
import { tokenExample } from '../../daemon/api/schemas.js';
import { firstIdOf, TIME_BOUNDS_MS } from '../../daemon/core/usage.js';
import { DEFAULT_TERMS, NOT_REVOKED, type Project, type Token, UNUSED } from '../../daemon/core/token.js';

const CREATED_MS = Date.UTC(2030, 0, 1, 12);
const DAY_MS = 86_400_000;
const OBFUSCATED = 'sk-wt-abcd…wxyz';
const PROJECT_ID = '77ab10f3-2222-4222-8222-222222222222';
const TOKEN_ID = '3fa91c2e-1111-4111-8111-111111111111';

/** Options of a registry whose caches need no upkeep. */
export const REGISTRY_OPTIONS: RegistryOptions = {
  defaultOrigin: 'https://api.openai.com',
  onUpstreamChanged: () => undefined,
};

/** A project as the core sees it. */
export function aProject(fields: Partial<Project> = {}): Project {
  return {
    id: PROJECT_ID,
    name: 'web',
    isActive: true,
    apiKeyHint: '1234',
    upstreamBaseUrl: null,
    upstreamAuth: 'bearer',
    missingUsage: 'off',
    ...NO_POLICIES,
    createdAtMs: CREATED_MS,
    updatedAtMs: fields.createdAtMs ?? CREATED_MS,
    deactivatedAtMs: null,
    ...fields,
  };
}

/** Usage of one request in an hour, without a minute, and with an ID of its own. */
export const aUsageRow = (hourMs: number, fields: Partial<UsageRow> = {}): UsageRow => ({
  id: firstIdOf(hourMs) + randomUUID().slice(14),
  hourMs,
  minuteMs: null,
  cause: '',
  tokenId: TOKEN_ID,
  projectId: PROJECT_ID,
  outcome: 'ok',
  code: '',
  model: 'gpt',
  requests: 1,
  hits: 0,
  promptTokens: 0,
  completionTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costNano: 0,
  unpriced: 0,
  upstreamRefused: 0,
  cut: 0,
  withTokens: 0,
  times: TIME_BOUNDS_MS.map(() => 0),
  ...fields,
});

/** A project to be inserted, with its upstream key. */
export const aNewProject = (fields: Partial<NewProject> = {}): NewProject => ({
  ...aProject(fields),
  upstreamKey: fields.upstreamKey ?? 'sk-upstream-1234',
});

type IssuedToken = Omit<NewToken, 'digest'>;

function anIssuedToken(fields: Partial<IssuedToken>): IssuedToken {
  const { createdAtMs = CREATED_MS } = fields;
  return {
    id: TOKEN_ID,
    ...DEFAULT_TERMS,
    ...NO_POLICIES,
    projectId: PROJECT_ID,
    isActive: true,
    expiresAtMs: createdAtMs + DAY_MS,
    createdAtMs,
    issuedBy: null,
    issuedByName: null,
    obfuscated: OBFUSCATED,
    ...fields,
  };
}

/** A token as the core sees it, valid for a day. */
export const aToken = (fields: Partial<Token> = {}): Token => ({
  ...UNUSED,
  ...NOT_REVOKED,
  ...anIssuedToken(fields),
  ...fields,
});

/** A token to be inserted. Its digest is made from its ID by default. */
export function aNewToken(fields: Partial<NewToken> = {}): NewToken {
  const token = anIssuedToken(fields);
  return { ...token, digest: fields.digest ?? createHash('sha256').update(token.id).digest('hex') };
}

/** The database's answer for a token that never expires. Tokens with different digests have different IDs and upstream keys. */
export const aKnownToken = (digest: string): KnownToken => ({
  token: aToken({ id: createHash('md5').update(digest).digest('hex'), expiresAtMs: Infinity }),
  reserved: 0,
  projectName: 'web',
  projectIsActive: true,
  upstreamKey: `upstream-${digest.slice(0, 4)}`,
  upstreamBaseUrl: null,
  upstreamAuth: 'bearer',
  missingUsage: 'off',
  projectPolicies: NO_POLICIES,
  projectCreatedAtMs: 0,
  changeSeq: 0,
});

const timestamp = (ms: number) => new Date(ms).toISOString();

const nothingSpent = (since: string): WireToken['spent'] => ({
  usd: '0.00',
  tokens: 0,
  reserved_usd: '0.00',
  unpriced_requests: 0,
  since,
});

/** A project as the management API shows it. */
export function aWireProject(fields: Partial<WireProject> = {}): WireProject {
  const created_at = fields.created_at ?? timestamp(CREATED_MS);
  return {
    id: PROJECT_ID,
    name: 'web',
    is_active: true,
    api_key_hint: '1234',
    upstream_base_url: null,
    upstream_auth: 'bearer',
    missing_usage: 'off',
    ...NO_POLICIES,
    created_at,
    updated_at: created_at,
    deactivated_at: null,
    token_count: 3,
    active_token_count: 2,
    last_used_at: null,
    requests_24h: 0,
    errors_24h: 0,
    spent: nothingSpent(created_at),
    ...fields,
  };
}

/** A token as the management API shows it, valid for a day. A token that is not active is revoked, unless `state` is given. */
export function aWireToken(fields: Partial<WireToken> = {}): WireToken {
  const created_at = fields.created_at ?? timestamp(CREATED_MS);
  return {
    ...tokenExample,
    id: TOKEN_ID,
    project_id: PROJECT_ID,
    project_name: 'web',
    name: null,
    is_active: true,
    state: fields.is_active === false ? 'revoked' : 'active',
    expires_at: timestamp(Date.parse(created_at) + DAY_MS),
    max_requests: 0,
    request_count: 0,
    cache_hit_count: 0,
    created_at,
    spent: nothingSpent(created_at),
    last_used_at: null,
    issued_by: null,
    issued_by_name: null,
    obfuscated: OBFUSCATED,
    ...NO_POLICIES,
    ...fields,
  };
}

/** A row of a list of the busiest tokens: one request a minute ago, without errors. */
export const aTopRow = (fields: Partial<WireTopRow> = {}): WireTopRow => ({
  ...NO_FIGURES,
  requests: 1,
  token_id: TOKEN_ID,
  token_name: 'ci',
  project_id: PROJECT_ID,
  project_name: 'web',
  last_used_at: new Date(CREATED_MS - 60_000).toISOString(),
  history: [...Array<number>(19).fill(0), fields.requests ?? 1],
  error_history: [...Array<number>(19).fill(0), fields.errors ?? 0],
  ...fields,
});

const NO_FIGURES = {
  requests: 0,
  cache_hits: 0,
  errors: 0,
  refused: 0,
  upstream_refused: 0,
  failed: 0,
  cut: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cost_usd: '0.00',
  unpriced_requests: 0,
  p50_ms: null,
  p95_ms: null,
};

/** A list of the busiest tokens of the last hour, complete. */
export const aTop = (fields: Partial<WireTop> = {}): WireTop => ({
  by: 'token',
  window: '1h',
  sort: 'errors',
  from: new Date(CREATED_MS - 3_600_000).toISOString(),
  to: new Date(CREATED_MS).toISOString(),
  step_seconds: 180,
  row_count: fields.rows?.length ?? 0,
  total: {
    ...NO_FIGURES,
    history: fields.rows?.[0]?.history ?? [],
    error_history: fields.rows?.[0]?.error_history ?? [],
    ...Object.fromEntries(
      (['requests', 'errors', ...FAILURE_KINDS] as const).map((count) => [
        count,
        fields.rows?.reduce((sum, row) => sum + row[count], 0) ?? 0,
      ]),
    ),
  },
  rows: [],
  ...fields,
});
