/**
 * The words, limits and patterns of the management API. Each stands here once: the schemas (daemon/api/schemas), the core, the stores,
 * the CLI, the terminal UI and the Admin UI derive theirs from it. Types of the core follow from these lists, so a word that is
 * added here and forgotten elsewhere does not compile.
 *
 * This file imports nothing, so everybody may import it, and it costs a start nothing.
 */

/** The states of a token, as lists show them. daemon/core/token.ts decides which of them holds. */
export const TOKEN_STATES = ['active', 'expired', 'revoked', 'rate_limited', 'project_inactive'] as const;
export type TokenState = (typeof TOKEN_STATES)[number];

/** `live`: first the active tokens, those that expire next on top; then all others, those that expired last on top. */
export const TOKEN_SORT_FIELDS = ['created_at', 'expires_at', 'last_used_at', 'request_count', 'name', 'live'] as const;
export type TokenSortField = (typeof TOKEN_SORT_FIELDS)[number];
/** With `-` in front, the greatest or latest comes first. */
export type TokenSortOrder = TokenSortField | `-${TokenSortField}`;
export const TOKEN_SORT_ORDERS: readonly TokenSortOrder[] = TOKEN_SORT_FIELDS.flatMap(
  (field) => [field, `-${field}`] as const,
);

/** What an audit record says was done, or tried. */
export const AUDIT_ACTIONS = [
  'token.create',
  'token.use',
  'token.revoke',
  'token.reactivate',
  'token.revoke_all',
  'project.create',
  'project.update',
  'project.delete_refused',
  'cache.purge',
  'migrations.up',
  'management.denied',
  'admin.login',
  'admin.logout',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** The front ends that name themselves in `X-Llmp-Actor`. */
export const FRONT_ENDS = ['cli', 'tui', 'admin'] as const;
export type FrontEnd = (typeof FRONT_ENDS)[number];

/** Who an audit record says did it. `management` is any client of the API that does not name itself. */
export const AUDIT_ACTORS = ['management', 'admin', 'cli', 'tui', 'token', 'system'] as const;
export type AuditActor = (typeof AUDIT_ACTORS)[number];

/** How an audit record says it ended. */
export const AUDIT_OUTCOMES = ['success', 'denied', 'error'] as const;
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** The kind of the event that says that a request is over. */
export const REQUEST_EVENT_KIND = 'request.completed';
/** The kinds of events that changes are published as. */
export const CHANGE_EVENT_KINDS = [
  'token.created',
  'token.revoked',
  'token.reactivated',
  'project.changed',
  'cache.purged',
] as const;
export type ChangeEventKind = (typeof CHANGE_EVENT_KINDS)[number];
export const EVENT_KINDS = [REQUEST_EVENT_KIND, ...CHANGE_EVENT_KINDS] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/**
 * How a request ended. `refused` is a word of ours, and the upstream was not asked; `upstream_refused` is its own 4xx, such as a
 * model that it does not know or a rate limit, and `upstream_error` its 5xx, or that no answer could be had of it.
 */
export const REQUEST_OUTCOMES = [
  'ok',
  'refused',
  'upstream_refused',
  'upstream_error',
  'client_closed',
  'timeout',
  'truncated',
  'revoked',
  'drained',
] as const;
export type RequestOutcome = (typeof REQUEST_OUTCOMES)[number];

/** What a usage report can have a line for each of. */
export const USAGE_DIMENSIONS = ['token', 'project', 'model', 'hour', 'day'] as const;
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number];

/** Where the response cache is kept. */
export const CACHE_BACKENDS = ['memory', 'redis', 'off'] as const;
export type CacheBackend = (typeof CACHE_BACKENDS)[number];

/** Where events are published. */
export const EVENT_BUS_KINDS = ['redis-streams', 'in-memory', 'off'] as const;
export type EventBusKind = (typeof EVENT_BUS_KINDS)[number];

/** Whether something that an instance depends on works. */
export const PART_STATES = ['ok', 'failing', 'off'] as const;
export type PartState = (typeof PART_STATES)[number];

/** The greatest cap of a token: how many requests it can be limited to. 0 means that there is no cap. */
export const MAX_CAP = 2_147_483_647;
/** The longest that a token can be valid. */
export const MAX_DURATION_HOURS = 8760;
/** How long it is valid where nobody says otherwise. */
export const DEFAULT_DURATION_HOURS = 24;
/** How many entries a page of a list has at most, and where nobody says otherwise. */
export const MAX_PAGE_SIZE = 1000;
export const DEFAULT_PAGE_SIZE = 100;
/** The longest name of a project or a token, in characters. */
export const MAX_NAME_LENGTH = 100;
/** The longest reason that an audit record keeps, in characters. */
export const MAX_REASON_LENGTH = 200;

/** An id of a project, a token, a record or a session: a UUID. They are stored in lower case and read in any. */
export const WHOLE_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** The fewest characters that stand for the id that begins with them, and the pattern of such a beginning. */
export const SHORTEST_ID_PREFIX = 6;
export const BEGINNING_OF_ID = /^[0-9a-f][0-9a-f-]{5,35}$/i;
/** One to 20 statuses or classes of them, such as `429` or `4xx,5xx`. */
export const STATUS_LIST = /^[1-5](?:xx|[0-9]{2})(?:,[1-5](?:xx|[0-9]{2})){0,19}$/;

/** Milliseconds in each unit of a span such as `30m`. `m` is a minute. */
export const MS_PER_UNIT = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** What a span may look like, as part of a regular expression that any engine can read. */
export const SPAN_PATTERN = '[0-9]{1,6}[smhd]';

/**
 * How processes and commands of llmp end. What the daemon and the dispatcher use are numbers of sysexits.h, and what a signal ends
 * is 128 and the number of the signal. cli/console/failure.ts says what each means.
 */
export const EXIT = {
  done: 0,
  refused: 1,
  usage: 2,
  managementToken: 3,
  notFound: 4,
  conflict: 5,
  unreachable: 6,
  tooMany: 7,
  serverError: 8,
  checkFailed: 9,
  unavailable: 69,
  crash: 70,
  permission: 77,
  configuration: 78,
  notExecutable: 126,
  noSuchCommand: 127,
  hangUp: 129,
  interrupted: 130,
  closedPipe: 141,
  terminated: 143,
} as const;
