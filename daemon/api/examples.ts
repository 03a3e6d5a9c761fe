/**
 * Examples for the OpenAPI description: a body or a query that is accepted as it stands, and an answer as it comes.
 * The tests send each of them, and hold each answer against its schema.
 */
import type * as z from 'zod';
import type { Operations } from './operations.js';

type BodyOf<Op> = Op extends { body: infer Body extends z.ZodType } ? z.input<Body> : never;
type AnswerOf<Op> = Op extends { list: infer Item extends z.ZodType }
  ? z.input<Item>[]
  : Op extends { answer: infer Answer extends z.ZodType }
    ? z.input<Answer>
    : never;
type QueryOf<Op> = Op extends { query: infer Query extends z.ZodType }
  ? Partial<Record<keyof z.input<Query>, string | number | boolean>>
  : never;

export interface Example<Body = unknown, Answer = unknown, Query = Record<string, unknown>> {
  /** Values for some of the query names. */
  query?: Query;
  /** Each under a short name that says what it does. */
  bodies?: Record<string, Body>;
  answer?: Answer;
}

/** The project, token and session of all examples. */
export const EXAMPLE_IDS = {
  project: '6f1c9a52-5f0e-4c7b-9f43-2a9d1c3b7e10',
  token: '0b8e7c1d-3a52-4f6b-8d1e-9c4f2a6b5d70',
  session: '3d2a1f60-7b4c-4e8a-9c5d-1e0f6a7b8c90',
  record: 'c5e4d3b2-1a09-4f8e-8d7c-6b5a49382716',
} as const;
const { project: PROJECT, token: TOKEN, session: SESSION, record: RECORD } = EXAMPLE_IDS;

const project = {
  id: PROJECT,
  name: 'Checkout',
  is_active: true,
  api_key_hint: '4f2a',
  created_at: '2030-01-31T12:00:00.000Z',
  updated_at: '2030-01-31T12:00:00.000Z',
  deactivated_at: null,
};
const token = {
  id: TOKEN,
  project_id: PROJECT,
  name: 'nightly tests',
  is_active: true,
  state: 'active' as const,
  expires_at: '2030-02-07T12:00:00.000Z',
  max_requests: 1000,
  request_count: 42,
  cache_hit_count: 7,
  created_at: '2030-01-31T12:00:00.000Z',
  last_used_at: '2030-01-31T12:34:56.789Z',
  obfuscated: 'sk-wt-…3kQ9',
};
const session = { id: SESSION, begun_at: '2030-01-31T12:00:00.000Z', ended_at: null };
const migrations = {
  current: '0001-initial',
  pending: [],
  applied: [{ name: '0001-initial', applied_at: '2030-01-31T11:59:00.000Z' }],
};
const record = {
  id: RECORD,
  time: '2030-01-31T12:00:00.000Z',
  action: 'token.revoke' as const,
  actor: 'cli' as const,
  outcome: 'success' as const,
  project_id: PROJECT,
  token_id: TOKEN,
  obfuscated: 'sk-wt-…3kQ9',
  request_id: 'f2b1c0d9-8e7a-4b6c-9d5e-4f3a2b1c0d9e',
  client_ip: '192.0.2.10',
  reason: 'the laptop was lost',
  count: null,
  details: null,
};

export const examples: {
  [Name in keyof Operations]?: Example<BodyOf<Operations[Name]>, AnswerOf<Operations[Name]>, QueryOf<Operations[Name]>>;
} = {
  createProject: {
    bodies: { 'a project': { name: 'Checkout', api_key: 'sk-proj-example-key-of-the-provider-4f2a' } },
    answer: project,
  },
  listProjects: { query: { is_active: true }, answer: [project] },
  readProject: { answer: project },
  updateProject: {
    bodies: { rename: { name: 'Checkout and billing' }, deactivate: { is_active: false } },
    answer: { ...project, name: 'Checkout and billing', updated_at: '2030-01-31T13:00:00.000Z' },
  },
  revokeTokensOfProject: { answer: { message: '3 tokens revoked', revoked_count: 3 } },
  createToken: {
    bodies: {
      'for a week, 1000 requests': {
        project_id: PROJECT,
        duration_hours: 168,
        max_requests: 1000,
        name: 'nightly tests',
      },
      'for 15 minutes': { project_id: PROJECT, duration_minutes: 15 },
    },
    answer: {
      ...token,
      request_count: 0,
      cache_hit_count: 0,
      last_used_at: null,
      token: 'sk-wt-EXAMPLE-the-secret-is-shown-here-only-3kQ9',
    },
  },
  listTokens: {
    query: { limit: 50, project_id: PROJECT, state: 'active,rate_limited', expires_before: '2h', sort: 'expires_at' },
    answer: [token],
  },
  lookUpToken: { bodies: { 'a secret': { token: 'sk-wt-EXAMPLE-the-secret-is-shown-here-only-3kQ9' } }, answer: token },
  readToken: { answer: token },
  updateToken: { bodies: { revoke: { is_active: false }, reactivate: { is_active: true } }, answer: token },
  revokeToken: { answer: { message: 'token revoked' } },
  readUsage: {
    query: { by: 'project,model', since: '2030-01-24T00:00:00+01:00', until: '2030-01-31T00:00:00+01:00' },
    answer: [
      {
        project_id: PROJECT,
        model: 'gpt-4o-mini',
        requests: 120,
        hits: 30,
        refused: 2,
        errors: 1,
        prompt_tokens: 45120,
        upstream_refused: 2,
        upstream_errors: 1,
        cut: 0,
        completion_tokens: 9876,
      },
    ],
  },
  listAudit: { query: { action: 'token.revoke', since: '24h', q: 'laptop' }, answer: [record] },
  readAuditRecord: { answer: record },
  streamEvents: { query: { status: '429,5xx' } },
  readCache: { answer: { backend: 'memory', entries: 12, bytes: 48213, hits: 310, misses: 95 } },
  purgeCache: {
    bodies: {
      'one request line': { method: 'GET', url: '/v1/models' },
      'a project': { project_id: PROJECT },
      everything: { all: true },
      'count only': { all: true, dry_run: true },
    },
    answer: { message: '2 answers purged', purged_count: 2 },
  },
  readMigrations: { answer: migrations },
  migrateUp: { answer: migrations },
  logIn: { bodies: { 'what was typed': { token: 'what the user typed' } }, answer: session },
  readSession: { answer: session },
  logOut: { answer: { ...session, ended_at: '2030-01-31T18:00:00.000Z' } },
};
