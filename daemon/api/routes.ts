/**
 * Where each operation of the management API stands, without its shapes. The client is made from this list, and loads no schemas;
 * operations.ts, where the shapes are, takes methods and paths from here. The compiler holds the two against each other.
 */

export interface Route {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** As OpenAPI writes it; the only variable part is `{id}`. */
  path: `/manage/${string}`;
  /** What a success is, if not one JSON value: a page of a list, or server-sent events. */
  gives?: 'page' | 'stream';
  /** With another method than GET: the client sends it without asking whether it may change something. */
  changesNothing?: true;
  /** What the client calls it, if not by its own name. */
  call?: string;
}

export const ROUTES = {
  createProject: { method: 'POST', path: '/manage/projects' },
  listProjects: { method: 'GET', path: '/manage/projects', gives: 'page', call: 'projects' },
  readProject: { method: 'GET', path: '/manage/projects/{id}', call: 'project' },
  updateProject: { method: 'PATCH', path: '/manage/projects/{id}' },
  deleteProject: { method: 'DELETE', path: '/manage/projects/{id}' },
  revokeTokensOfProject: { method: 'POST', path: '/manage/projects/{id}/tokens/revoke', call: 'revokeTokensOf' },
  createToken: { method: 'POST', path: '/manage/tokens' },
  listTokens: { method: 'GET', path: '/manage/tokens', gives: 'page', call: 'tokens' },
  lookUpToken: { method: 'POST', path: '/manage/tokens/lookup', changesNothing: true },
  readToken: { method: 'GET', path: '/manage/tokens/{id}', call: 'token' },
  updateToken: { method: 'PATCH', path: '/manage/tokens/{id}' },
  revokeToken: { method: 'DELETE', path: '/manage/tokens/{id}' },
  readUsage: { method: 'GET', path: '/manage/usage', call: 'usage' },
  listAudit: { method: 'GET', path: '/manage/audit', gives: 'page', call: 'auditRecords' },
  followAudit: { method: 'GET', path: '/manage/audit/stream', gives: 'stream', call: 'auditStream' },
  readAuditRecord: { method: 'GET', path: '/manage/audit/{id}', call: 'auditRecord' },
  streamEvents: { method: 'GET', path: '/manage/events/stream', gives: 'stream', call: 'events' },
  readCache: { method: 'GET', path: '/manage/cache', call: 'cache' },
  purgeCache: { method: 'POST', path: '/manage/cache/purge' },
  readStatus: { method: 'GET', path: '/manage/status', call: 'status' },
  readMigrations: { method: 'GET', path: '/manage/migrations', call: 'migrations' },
  migrateUp: { method: 'POST', path: '/manage/migrations/up' },
  logIn: { method: 'POST', path: '/manage/sessions', changesNothing: true },
  readSession: { method: 'GET', path: '/manage/sessions/{id}', call: 'session' },
  logOut: { method: 'DELETE', path: '/manage/sessions/{id}', changesNothing: true },
  describeApi: { method: 'GET', path: '/manage/openapi.json' },
} as const satisfies Record<string, Route>;

export type Routes = typeof ROUTES;
