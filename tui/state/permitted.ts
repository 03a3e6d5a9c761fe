/**
 * What the caller may do. Screens, keys, commands, forms and requests are derived from it, so that the terminal UI offers nothing that the
 * daemon would refuse. The daemon decides: until the caller is known, everything is offered, and nothing is requested that not every
 * role may read.
 */
import type { Operations } from '../../daemon/api/operations.js';
import { isPermitted, type Permission } from '../../daemon/api/permissions.js';
import { ROLES } from '../../daemon/api/vocabulary.js';
import type { ChangeRequest, DataRequest, Stream } from './exchange.js';
import type { Purpose } from './layers.js';
import type { Screen, State } from './state.js';

/** The permissions of operations. Their declarations are not loaded; the compiler compares these with them. */
const OF_OPERATIONS = {
  readSelf: 'know the API',
  readStatus: 'read the status',
  readIncidents: 'read usage',
  readTop: 'read usage',
  readUsage: 'read usage',
  listTokens: 'read tokens',
  readToken: 'read tokens',
  lookUpToken: 'read tokens',
  createToken: 'issue tokens',
  revokeToken: 'revoke tokens',
  listProjects: 'read projects',
  createProject: 'create projects',
  updateProject: 'change projects',
  checkProject: 'change projects',
  revokeTokensOfProject: 'change tokens',
  listAudit: 'read the audit log',
  followAudit: 'read the audit log',
  listEvents: 'read events',
  streamEvents: 'read events',
  readCache: 'read the cache',
  purgeCache: 'purge the cache',
  undoBatch: 'undo changes',
  listOperators: 'manage access',
  createOperator: 'manage access',
  updateOperator: 'manage access',
  deactivateOperator: 'manage access',
  listTrusts: 'manage access',
} as const satisfies { readonly [Op in keyof Operations]?: Operations[Op]['permission'] };

/** Parts of operations that need more than the operation itself. */
const OF_PARTS = {
  /** Of `updateToken`: anything but a revocation. */
  changeToken: 'change tokens',
} as const satisfies Record<string, Permission>;

const PERMISSIONS = { ...OF_OPERATIONS, ...OF_PARTS };

/** What something in the terminal UI does in the management API. */
export type Deed = keyof typeof PERMISSIONS;
export const OPERATIONS = Object.keys(OF_OPERATIONS) as (keyof typeof OF_OPERATIONS)[];

type Caller = Pick<State, 'self'>;

export const may = ({ self }: Caller, deed: Deed): boolean => self === null || isPermitted(self, PERMISSIONS[deed]);

/** Whether the caller is not limited to some projects. */
export const seesAllProjects = ({ self }: Caller): boolean => self === null || self.projects === null;

/** Why it is not offered; null: it is. */
export const whyNotPermitted = (state: Caller, deed: Deed): string | null =>
  may(state, deed) ? null : `not permitted: the role ${state.self?.role ?? ''} may not ${PERMISSIONS[deed]}`;

/** What shows a screen. */
const OF_SCREENS: Record<Screen, Deed> = {
  overview: 'readTop',
  tokens: 'listTokens',
  token: 'readToken',
  projects: 'listProjects',
  project: 'listProjects',
  audit: 'listAudit',
  // Who may see some projects only has no figures there.
  cache: 'purgeCache',
  events: 'listEvents',
  top: 'readTop',
  operators: 'listOperators',
  operator: 'listOperators',
  trusts: 'listTrusts',
  trust: 'listTrusts',
};

export const deedOf = (screen: Screen): Deed => OF_SCREENS[screen];
export const mayShow = (state: Caller, screen: Screen): boolean => may(state, OF_SCREENS[screen]);

/** Null: not from the daemon. */
const OF_REQUESTS: Record<DataRequest['of'], Deed | null> = {
  self: 'readSelf',
  status: 'readStatus',
  incidents: 'readIncidents',
  lastHour: 'readTop',
  tokens: 'listTokens',
  expiring: 'listTokens',
  costs: 'readUsage',
  spenders: 'listTokens',
  token: 'readToken',
  tokensOfSecret: 'lookUpToken',
  allTokens: 'listTokens',
  projects: 'listProjects',
  models: 'readUsage',
  usage: 'readUsage',
  audit: 'listAudit',
  members: 'listAudit',
  events: 'listEvents',
  tokenAudit: 'listAudit',
  projectAudit: 'listAudit',
  top: 'readTop',
  projectCheck: 'checkProject',
  cache: 'readCache',
  purgeable: 'purgeCache',
  viewCount: 'listTokens',
  operators: 'listOperators',
  trusts: 'listTrusts',
  contexts: null,
  files: null,
};

export const deedOfRequest = ({ of }: Pick<DataRequest, 'of'>): Deed | null => OF_REQUESTS[of];

/** Whether the request is sent. While the caller is not known, only if every role may send it. */
export function mayAsk({ self }: Caller, request: Pick<DataRequest, 'of'>): boolean {
  const deed = deedOfRequest(request);
  if (deed === null) return true;
  const permission = PERMISSIONS[deed];
  return self === null
    ? ROLES.every((role) => isPermitted({ role, projects: [] }, permission))
    : isPermitted(self, permission);
}

const OF_STREAMS: Record<Stream['of'], DataRequest['of']> = { audit: 'audit', events: 'events', tokenEvents: 'events' };

export const mayFollow = (state: Caller, { of }: Stream): boolean => mayAsk(state, { of: OF_STREAMS[of] });

/** What sends each change. */
export const OF_CHANGES: Record<ChangeRequest['what'], Deed> = {
  revoke: 'revokeToken',
  reactivate: 'changeToken',
  'create-token': 'createToken',
  'update-token': 'changeToken',
  'issue-again': 'createToken',
  'create-project': 'createProject',
  'update-project': 'updateProject',
  'revoke-all': 'revokeTokensOfProject',
  purge: 'purgeCache',
  undo: 'undoBatch',
  'create-operator': 'createOperator',
  'activate-operator': 'updateOperator',
  'deactivate-operator': 'deactivateOperator',
};

/** What a form does; null for an export, which only reads. */
export function deedOfForm(purpose: Purpose): Deed | null {
  switch (purpose.for) {
    case 'change':
      return OF_CHANGES[purpose.change.what];
    case 'new-token':
      return 'createToken';
    case 'new-project':
      return 'createProject';
    case 'rename':
    case 'set-key':
    case 'set-provider':
    case 'restrict-project':
      return 'updateProject';
    case 'restrict-token':
      return 'changeToken';
    case 'purge':
      return 'purgeCache';
    case 'new-operator':
      return 'createOperator';
    case 'export':
      return null;
  }
}
