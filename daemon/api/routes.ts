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
}

export const ROUTES = {
  createProject: { method: 'POST', path: '/manage/projects' },
  listProjects: { method: 'GET', path: '/manage/projects', returns: 'page' },
  readProject: { method: 'GET', path: '/manage/projects/{id}' },
  updateProject: { method: 'PATCH', path: '/manage/projects/{id}' },
  deleteProject: { method: 'DELETE', path: '/manage/projects/{id}' },
  revokeTokensOfProject: {
    method: 'POST',
    path: '/manage/projects/{id}/tokens/revoke',
  },
  checkProject: { method: 'POST', path: '/manage/projects/{id}/check', isReadOnly: true },
  createToken: { method: 'POST', path: '/manage/tokens' },
  listTokens: { method: 'GET', path: '/manage/tokens', returns: 'page' },
  lookUpToken: { method: 'POST', path: '/manage/tokens/lookup', isReadOnly: true },
  readToken: { method: 'GET', path: '/manage/tokens/{id}' },
  updateToken: { method: 'PATCH', path: '/manage/tokens/{id}' },
  revokeToken: { method: 'DELETE', path: '/manage/tokens/{id}' },
  readUsage: { method: 'GET', path: '/manage/usage' },
  readTop: { method: 'GET', path: '/manage/top' },
  listPrices: { method: 'GET', path: '/manage/prices' },
  checkPrices: { method: 'GET', path: '/manage/prices/check' },
  explainPrice: { method: 'GET', path: '/manage/prices/explain' },
  listAudit: { method: 'GET', path: '/manage/audit', returns: 'page' },
  followAudit: { method: 'GET', path: '/manage/audit/stream', returns: 'stream' },
  readAuditRecord: { method: 'GET', path: '/manage/audit/{id}' },
  undoBatch: { method: 'POST', path: '/manage/batches/{id}/undo' },
  listEvents: { method: 'GET', path: '/manage/events', returns: 'page' },
  streamEvents: { method: 'GET', path: '/manage/events/stream', returns: 'stream' },
  readCache: { method: 'GET', path: '/manage/cache' },
  purgeCache: { method: 'POST', path: '/manage/cache/purge' },
  readIncidents: { method: 'GET', path: '/manage/incidents' },
  readStatus: { method: 'GET', path: '/manage/status' },
  readMigrations: { method: 'GET', path: '/manage/migrations' },
  migrateUp: { method: 'POST', path: '/manage/migrations/up' },
  logIn: { method: 'POST', path: '/manage/sessions', isReadOnly: true },
  readSession: { method: 'GET', path: '/manage/sessions/{id}' },
  logOut: { method: 'DELETE', path: '/manage/sessions/{id}', isReadOnly: true },
  readSelf: { method: 'GET', path: '/manage/self' },
  createOperator: { method: 'POST', path: '/manage/operators' },
  listOperators: { method: 'GET', path: '/manage/operators', returns: 'page' },
  readOperator: { method: 'GET', path: '/manage/operators/{id}' },
  updateOperator: { method: 'PATCH', path: '/manage/operators/{id}' },
  deactivateOperator: { method: 'DELETE', path: '/manage/operators/{id}' },
  createTrust: { method: 'POST', path: '/manage/trusts' },
  listTrusts: { method: 'GET', path: '/manage/trusts', returns: 'page' },
  readTrust: { method: 'GET', path: '/manage/trusts/{id}' },
  updateTrust: { method: 'PATCH', path: '/manage/trusts/{id}' },
  deleteTrust: { method: 'DELETE', path: '/manage/trusts/{id}' },
  readLogin: { method: 'GET', path: '/manage/login' },
  beginWebLogin: { method: 'POST', path: '/manage/login/web', isReadOnly: true },
  finishWebLogin: { method: 'POST', path: '/manage/login/web/finish', isReadOnly: true },
  beginDeviceLogin: { method: 'POST', path: '/manage/login/device', isReadOnly: true },
  finishDeviceLogin: { method: 'POST', path: '/manage/login/device/finish', isReadOnly: true },
  describeApi: { method: 'GET', path: '/manage/openapi.json' },
} as const satisfies Record<string, Route>;

export type Routes = typeof ROUTES;
