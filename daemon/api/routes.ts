/**
 * Method and path of each operation of the management API, without schemas, so that the client does not have to load those.
 * operations.ts adds the schemas; the compiler checks that the two match.
 */

export interface Route {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** In OpenAPI notation; the only parameter is `{id}`. */
  path: `/manage/${string}`;
  /** Type of a success: a page of a list or server-sent events (default: one JSON value). */
  returns?: 'page' | 'stream';
  /** For methods other than GET: makes no change, so the client sends it without calling `beforeChange`. */
  isReadOnly?: true;
  /** Method name of the client (default: the name of the operation). */
  clientMethod?: string;
}

export const ROUTES = {
  createProject: { method: 'POST', path: '/manage/projects' },
  listProjects: { method: 'GET', path: '/manage/projects', returns: 'page', clientMethod: 'projects' },
  readProject: { method: 'GET', path: '/manage/projects/{id}', clientMethod: 'project' },
  updateProject: { method: 'PATCH', path: '/manage/projects/{id}' },
  deleteProject: { method: 'DELETE', path: '/manage/projects/{id}' },
  revokeTokensOfProject: {
    method: 'POST',
    path: '/manage/projects/{id}/tokens/revoke',
    clientMethod: 'revokeTokensOf',
  },
  checkProject: { method: 'POST', path: '/manage/projects/{id}/check', isReadOnly: true },
  createToken: { method: 'POST', path: '/manage/tokens' },
  listTokens: { method: 'GET', path: '/manage/tokens', returns: 'page', clientMethod: 'tokens' },
  lookUpToken: { method: 'POST', path: '/manage/tokens/lookup', isReadOnly: true },
  readToken: { method: 'GET', path: '/manage/tokens/{id}', clientMethod: 'token' },
  updateToken: { method: 'PATCH', path: '/manage/tokens/{id}' },
  revokeToken: { method: 'DELETE', path: '/manage/tokens/{id}' },
  readUsage: { method: 'GET', path: '/manage/usage', clientMethod: 'usage' },
  readTop: { method: 'GET', path: '/manage/top', clientMethod: 'top' },
  listAudit: { method: 'GET', path: '/manage/audit', returns: 'page', clientMethod: 'auditRecords' },
  followAudit: { method: 'GET', path: '/manage/audit/stream', returns: 'stream', clientMethod: 'auditStream' },
  readAuditRecord: { method: 'GET', path: '/manage/audit/{id}', clientMethod: 'auditRecord' },
  listEvents: { method: 'GET', path: '/manage/events', returns: 'page', clientMethod: 'storedEvents' },
  streamEvents: { method: 'GET', path: '/manage/events/stream', returns: 'stream', clientMethod: 'events' },
  readCache: { method: 'GET', path: '/manage/cache', clientMethod: 'cache' },
  purgeCache: { method: 'POST', path: '/manage/cache/purge' },
  readStatus: { method: 'GET', path: '/manage/status', clientMethod: 'status' },
  readMigrations: { method: 'GET', path: '/manage/migrations', clientMethod: 'migrations' },
  migrateUp: { method: 'POST', path: '/manage/migrations/up' },
  logIn: { method: 'POST', path: '/manage/sessions', isReadOnly: true },
  readSession: { method: 'GET', path: '/manage/sessions/{id}', clientMethod: 'session' },
  logOut: { method: 'DELETE', path: '/manage/sessions/{id}', isReadOnly: true },
  describeApi: { method: 'GET', path: '/manage/openapi.json' },
} as const satisfies Record<string, Route>;

export type Routes = typeof ROUTES;
