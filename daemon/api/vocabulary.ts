/**
 * The enumerations, limits and patterns of the management API, defined once for the schemas (daemon/api/schemas), the core, the stores,
 * the CLI, the terminal UI and the Admin UI. The types of the core are derived from these lists, so a value that is added here but not
 * handled elsewhere does not compile.
 *
 * This file imports nothing, so every module may import it without a startup cost.
 */

/** Headers in which a provider receives the project's API key. `bearer` is `Authorization: Bearer`. */
export const UPSTREAM_AUTHS = ['bearer', 'x-api-key', 'api-key', 'x-goog-api-key'] as const;
export type UpstreamAuth = (typeof UPSTREAM_AUTHS)[number];

/** What happens with a streamed chat completion that does not ask for its usage. */
export const MISSING_USAGES = ['off', 'bound', 'refuse', 'inject'] as const;
export type MissingUsage = (typeof MISSING_USAGES)[number];

/** Sets of routes that a list may name in place of patterns: see daemon/core/policy/routes.ts. */
export const ROUTE_PRESETS = ['inference', 'read', 'contained', 'all'] as const;
export type RoutePreset = (typeof ROUTE_PRESETS)[number];
/** Maximum number of entries in a list of routes or models, and of characters in an entry. */
export const MAX_ALLOWED = 100;
export const MAX_ALLOWED_LENGTH = 200;
/** Patterns of an entry, as parts of regular expressions that work in every engine. Without commas, because lists are written with them. */
export const ROUTE_PATTERN = `(?:${ROUTE_PRESETS.join('|')}|(?:[*]|[A-Z]{1,20}) [*/][\\x21-\\x2b\\x2d-\\x7e]*)`;
export const MODEL_NAME_PATTERN = '[\\x21-\\x2b\\x2d-\\x7e]+';

/** What a token, or each token of a project, may ask for. A list that is absent allows everything. */
export interface Allow {
  /** Presets, and patterns such as `POST /v1/chat/*`. */
  routes?: string[] | undefined;
  /** Patterns such as `claude-*`. */
  models?: string[] | undefined;
}

/** How fast a token, or all tokens of a project together, may ask. What is absent is not limited. */
export interface Limits {
  requests_per_minute?: number | undefined;
  tokens_per_minute?: number | undefined;
  concurrent?: number | undefined;
}

/** When a budget resets: never, or at the start of each UTC day or month. */
export const BUDGET_PERIODS = ['none', 'day', 'month'] as const;
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number];

/** What happens at the limit: `hard` reserves the most that each request can cost, `soft` an estimate, and `shadow` only reports. */
export const BUDGET_MODES = ['hard', 'soft', 'shadow'] as const;
export type BudgetMode = (typeof BUDGET_MODES)[number];
export const DEFAULT_BUDGET_PERIOD: BudgetPeriod = 'none';
export const DEFAULT_BUDGET_MODE: BudgetMode = 'soft';
/** Values of the filter of tokens by budget. */
export const BUDGET_FILTERS = ['yes', 'no', ...BUDGET_MODES] as const;
export type BudgetFilter = (typeof BUDGET_FILTERS)[number];
/** Maximum of the model tokens of a budget. */
export const MAX_BUDGET_TOKENS = 1_000_000_000_000;

/** What a token, or all tokens of a project together, may spend. It has at least one of `usd` and `tokens`. */
export interface Budget {
  /** A decimal number, in the form of `usdOf` (money.ts). */
  usd?: string | undefined;
  /** Model tokens, of prompts and completions together. */
  tokens?: number | undefined;
  period: BudgetPeriod;
  mode: BudgetMode;
}

/** What restricts a token or a project; null: nothing does. */
export interface Policies {
  allow: Allow | null;
  limits: Limits | null;
  budget: Budget | null;
}
/** What is undefined stays as it is. */
export type PolicyChanges = { [Name in keyof Policies]?: Policies[Name] | undefined };
export const NO_POLICIES: Policies = { allow: null, limits: null, budget: null };
export const POLICY_NAMES = Object.keys(NO_POLICIES) as (keyof Policies)[];
export const policiesOf = ({ allow, limits, budget }: Policies): Policies => ({ allow, limits, budget });

/** The most that ceilings allow. */
export const policiesWithin = ({ routes, models, limits, budget }: Ceilings): Policies => ({
  allow: (routes ?? models) === undefined ? null : { ...(routes && { routes }), ...(models && { models }) },
  limits: limits ?? null,
  budget: budget ?? null,
});

/** Results of the check of a provider's key before it is stored. */
export const KEY_CHECKS = ['accepted', 'not_confirmed'] as const;
export type KeyCheck = (typeof KEY_CHECKS)[number];

/** Results of the check of a project's provider. `provider_error`: it responded with 5xx. */
export const PROJECT_CHECKS = [...KEY_CHECKS, 'key_refused', 'provider_error', 'unreachable'] as const;
export type ProjectCheckResult = (typeof PROJECT_CHECKS)[number];

/** The states of a token. daemon/core/token.ts determines the state. */
export const TOKEN_STATES = ['active', 'expired', 'revoked', 'rate_limited', 'project_inactive'] as const;
export type TokenState = (typeof TOKEN_STATES)[number];

/** `live` lists active tokens first, the next to expire on top; then all other tokens, the last expired on top. */
export const TOKEN_SORT_FIELDS = [
  'created_at',
  'expires_at',
  'last_used_at',
  'request_count',
  'name',
  'spent',
  'live',
] as const;
export type TokenSortField = (typeof TOKEN_SORT_FIELDS)[number];
/** A leading `-` sorts in descending order. */
export type TokenSortOrder = TokenSortField | `-${TokenSortField}`;
export const TOKEN_SORT_ORDERS: readonly TokenSortOrder[] = TOKEN_SORT_FIELDS.flatMap(
  (field) => [field, `-${field}`] as const,
);

/** Roles of operators and of people, from those that may do least. permissions.ts says what each may do. */
export const ROLES = ['viewer', 'auditor', 'issuer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** The most that a token issued by an operator or a person may have. What is absent has no ceiling. */
export interface Ceilings {
  /** Lifetime. */
  hours?: number | undefined;
  /** Request cap. */
  requests?: number | undefined;
  /** Number of tokens of the issuer that are active at the same time. */
  active_tokens?: number | undefined;
  routes?: string[] | undefined;
  models?: string[] | undefined;
  limits?: Limits | undefined;
  budget?: Budget | undefined;
}

/** Actions that are recorded in the audit log, whether they succeed or not. */
export const AUDIT_ACTIONS = [
  'token.create',
  'token.use',
  'token.update',
  'token.revoke',
  'token.reactivate',
  'token.revoke_all',
  'project.create',
  'project.update',
  'project.delete_refused',
  'cache.purge',
  'migrations.up',
  'prices.change',
  'management.denied',
  'admin.login',
  'admin.logout',
  'cli.login',
  'cli.logout',
  'operator.create',
  'operator.update',
  'operator.deactivate',
  'trust.create',
  'trust.update',
  'trust.delete',
  'token.exchange',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** The front ends that identify themselves in `X-Llmp-Actor`. */
export const FRONT_ENDS = ['cli', 'tui', 'admin'] as const;
export type FrontEnd = (typeof FRONT_ENDS)[number];

/** Actors in audit records. `management` is any API client that does not send `X-Llmp-Actor`. */
export const AUDIT_ACTORS = ['management', 'admin', 'cli', 'tui', 'token', 'system'] as const;
/** With whose name or ID: `operator:ana`, `person:login.example.com#248289761001` (see `daemon/oidc/log-ins.ts`), `trust:` and its ID. */
export const NAMED_ACTORS = ['operator', 'person', 'trust'] as const;
export type AuditActor = (typeof AUDIT_ACTORS)[number] | `${(typeof NAMED_ACTORS)[number]}:${string}`;
/** Patterns of an actor who is named, and of any actor, as parts of regular expressions that work in every engine. The columns have room for this length. */
export const MAX_NAMED_ACTOR_LENGTH = 590;
export const NAMED_ACTOR_PATTERN = `(?:${NAMED_ACTORS.join('|')}):[^\\x00-\\x1f\\x7f]{1,${MAX_NAMED_ACTOR_LENGTH}}`;
export const ACTOR_PATTERN = `(?:${AUDIT_ACTORS.join('|')}|${NAMED_ACTOR_PATTERN})`;
/** Selects tokens that the holder of the management token has issued: their `issued_by` is null. */
export const BY_MANAGEMENT_TOKEN = 'management-token';

/** Who did something: who is verified, or else whom the front end names, or else the front end. */
export const doerOf = ({ actor, user }: { actor: string; user: string | null }): string =>
  NAMED_ACTORS.some((kind) => actor.startsWith(`${kind}:`)) ? actor : (user ?? actor);

/** Outcomes in audit records. */
export const AUDIT_OUTCOMES = ['success', 'denied', 'error'] as const;
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** Why an undo of a batch leaves something as it is. */
export const UNDO_SKIPS = [
  'changed_since',
  'undone_before',
  'unchanged',
  'expired',
  'gone',
  'irreversible',
  'refused',
] as const;
export type UndoSkip = (typeof UNDO_SKIPS)[number];
/** How many tokens and projects one request undoes at most. */
export const MAX_UNDONE = 1000;

/** Event kind of a completed request. */
export const REQUEST_EVENT_KIND = 'request.completed';
/** Event kinds of changes. */
export const CHANGE_EVENT_KINDS = [
  'token.created',
  'token.changed',
  'token.revoked',
  'token.reactivated',
  'project.changed',
  'cache.purged',
] as const;
export type ChangeEventKind = (typeof CHANGE_EVENT_KINDS)[number];
/** Event kinds of budgets: a threshold is reached; a shadow budget would have refused a request. */
export const BUDGET_EVENT_KINDS = ['budget.threshold', 'budget.would_refuse'] as const;
export type BudgetEventKind = (typeof BUDGET_EVENT_KINDS)[number];
/** Of a token or of its project. */
export const BUDGET_OWNERS = ['token', 'project'] as const;
export type BudgetOwner = (typeof BUDGET_OWNERS)[number];
export const BUDGET_UNITS = ['usd', 'tokens'] as const;
export type BudgetUnit = (typeof BUDGET_UNITS)[number];
/** Percentages of a budget that are reported once in a period. */
export const BUDGET_THRESHOLDS = [80, 100] as const;
export type BudgetThreshold = (typeof BUDGET_THRESHOLDS)[number];
export const EVENT_KINDS = [REQUEST_EVENT_KIND, ...CHANGE_EVENT_KINDS, ...BUDGET_EVENT_KINDS] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/**
 * How a request ended. `refused`: llmp refused the request without forwarding it. `upstream_refused`: the upstream responded with 4xx,
 * for example for an unknown model or its rate limit. `upstream_error`: the upstream responded with 5xx or not at all. `provider_error`:
 * the upstream reported an error within a response that had begun well.
 */
export const REQUEST_OUTCOMES = [
  'ok',
  'refused',
  'upstream_refused',
  'upstream_error',
  'provider_error',
  'client_closed',
  'timeout',
  'truncated',
  'revoked',
  'drained',
] as const;
export type RequestOutcome = (typeof REQUEST_OUTCOMES)[number];

/**
 * What makes a request a failure: llmp refused it, the provider refused it, it failed, or a revocation cut it off after it had begun.
 * Each failure has exactly one of these kinds, and their sum are the failures (`errors` on the wire). All other requests are ok, those
 * too whose client left early: so `requests` = ok + failures in every figure.
 */
export const FAILURE_KINDS = ['refused', 'upstream_refused', 'failed', 'cut'] as const;
export type FailureKind = (typeof FAILURE_KINDS)[number];

/** `revoked` before a request has begun is a refusal: see daemon/core/failure-kind.ts. */
export const KINDS_OF_OUTCOMES: Readonly<Record<RequestOutcome, FailureKind | null>> = {
  ok: null,
  client_closed: null,
  refused: 'refused',
  upstream_refused: 'upstream_refused',
  upstream_error: 'failed',
  provider_error: 'failed',
  timeout: 'failed',
  truncated: 'failed',
  drained: 'failed',
  revoked: 'cut',
};
export const FAILED_OUTCOMES = REQUEST_OUTCOMES.filter((outcome) => KINDS_OF_OUTCOMES[outcome] !== null);
/** All failures, as a filter of events by outcome. */
export const ALL_FAILURES = `!${REQUEST_OUTCOMES.filter((outcome) => KINDS_OF_OUTCOMES[outcome] === null).join(',')}`;

/** Dimensions by which a usage report can be grouped. */
export const USAGE_DIMENSIONS = ['token', 'project', 'model', 'hour', 'day'] as const;
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number];

/** Where a price comes from: `PRICES_FILE`, or the list of the build. */
export const PRICE_SOURCES = ['file', 'shipped'] as const;
export type PriceSource = (typeof PRICE_SOURCES)[number];

/** Dimensions of `GET /manage/top`; `model` has a row for each pair of model and project, `model_total` one for all projects. */
export const TOP_DIMENSIONS = ['token', 'project', 'model', 'model_total'] as const;
export type TopDimension = (typeof TOP_DIMENSIONS)[number];
/** Its periods, up to now. */
export const TOP_WINDOWS = ['5m', '1h', '24h'] as const;
export type TopWindow = (typeof TOP_WINDOWS)[number];
/** Its orders, all descending. */
export const TOP_SORTS = ['errors', 'requests', 'tokens', 'cost', 'p50', 'p95', 'last_used'] as const;
export type TopSort = (typeof TOP_SORTS)[number];
export const DEFAULT_TOP_ROWS = 50;
export const MAX_TOP_ROWS = 200;

/** What can be wrong now, the most urgent first. */
export const INCIDENT_KINDS = [
  'key_refused',
  'failing_project',
  'failing_token',
  'unknown_tokens',
  'slow_provider',
] as const;
export type IncidentKind = (typeof INCIDENT_KINDS)[number];

/** Storage of the response cache. */
export const CACHE_BACKENDS = ['memory', 'redis', 'off'] as const;
export type CacheBackend = (typeof CACHE_BACKENDS)[number];

/** Where events are published. */
export const EVENT_BUS_KINDS = ['redis-streams', 'in-memory', 'off'] as const;
export type EventBusKind = (typeof EVENT_BUS_KINDS)[number];

/** Health of a component that an instance depends on. */
export const COMPONENT_STATES = ['ok', 'failing', 'off'] as const;
export type ComponentState = (typeof COMPONENT_STATES)[number];

/** Maximum request cap of a token. A cap of 0 means no cap. */
export const MAX_CAP = 2_147_483_647;
/** Maximum of each of a token's or project's limits. */
export const MAX_LIMIT = MAX_CAP;
/** Maximum lifetime of a token. */
export const MAX_DURATION_HOURS = 8760;
/** Default lifetime of a token. */
export const DEFAULT_DURATION_HOURS = 24;
/** Maximum and default number of entries on a page of a list. */
export const MAX_PAGE_SIZE = 1000;
export const DEFAULT_PAGE_SIZE = 100;
/** Maximum length of the name of a project or token, in characters. */
export const MAX_NAME_LENGTH = 100;
/**
 * The form in which a name is stored, and in which it is compared: composed (NFC), because a file name or a keyboard may give the same
 * text decomposed; and without white space and zero-width characters at its ends, which databases compare in different ways.
 */
export function plainName(text: string): string {
  const composed = text.normalize('NFC');
  let [from, to] = [0, composed.length];
  while (from < to && isBlank(composed.charCodeAt(from))) from += 1;
  while (from < to && isBlank(composed.charCodeAt(to - 1))) to -= 1;
  return composed.slice(from, to);
}

export const isSameName = (stored: string | null, given: string): boolean =>
  stored !== null && plainName(stored) === plainName(given);

const isBlank = (code: number): boolean =>
  (code >= 0x200b && code <= 0x200d) || code === 0x2060 || String.fromCharCode(code).trim() === '';

/**
 * Finds what must not be in a query or a name, because addresses are logged and stored: the secret of a token, an operator or a session, or a
 * large part of one, and provider's keys in the usual forms. What is shown of a secret (`sk-wt-4esc…Jgwc`) is none. Also used by the script of the Admin UI.
 */
export const SECRET_PATTERN =
  /sk-(?:wt|op|ss)-[0-9a-z]{5,}|(?<![0-9a-z])(?:sk-(?!(?:wt|op|ss)-)[\w-]{16,}|AIza[\w-]{30,}|(?:gsk_|xai-|hf_|pplx-|r8_|csk-|fw_|nvapi-)[0-9a-z]{24,})/i;
export const holdsSecret = (text: string): boolean => SECRET_PATTERN.test(text);

/** Maximum length of the user that a front end reports, in characters. */
export const MAX_USER_LENGTH = 100;
/** Maximum length of the reason in an audit record, in characters. */
export const MAX_REASON_LENGTH = 200;

/** ID of a project, token, audit record or session: a UUID. IDs are stored in lower case and accepted in any letter case. */
export const UUID_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** The fewest characters of an ID prefix that identifies a resource. */
export const MIN_ID_PREFIX = 6;
/** Pattern of such a prefix. */
export const ID_PREFIX_PATTERN = new RegExp(`^[0-9a-f][0-9a-f-]{${MIN_ID_PREFIX - 1},35}$`, 'i');
/** The message with which the daemon refuses a path that it does not have, or how it begins. */
export const NO_SUCH_PATH = 'no such path';

/** 1 to 20 statuses or status classes, such as `429` or `4xx,5xx`. */
export const STATUS_LIST_PATTERN = /^[1-5](?:xx|[0-9]{2})(?:,[1-5](?:xx|[0-9]{2})){0,19}$/;

/** Pattern of a model name or a part of one, and of the `code` of an error, as parts of regular expressions that work in every engine. */
export const MODEL_PART_PATTERN = '[^,!\\s\\x00-\\x1f\\x7f-\\x9f]{1,200}';
export const ERROR_CODE_PATTERN = '[a-z][a-z_]{0,63}';
/** Pattern of how long a request took: `500ms`, `2s`, `1m`. */
export const TOOK_PATTERN = '[0-9]{1,6}(?:ms|s|m)';
const TOOK = new RegExp(`^${TOOK_PATTERN}$`);

/** Milliseconds of `500ms`, `2s` or `1m`; undefined for other text. */
export function tookMs(text: string): number | undefined {
  if (!TOOK.test(text)) return undefined;
  return text.endsWith('ms') ? Number(text.slice(0, -2)) : spanMs(text);
}

/** Milliseconds per unit of a duration such as `30m`. `m` means minutes. */
export const MS_PER_UNIT = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
/** Pattern of a duration, as part of a regular expression that works in every engine. */
export const SPAN_PATTERN = '[0-9]{1,6}[smhdw]';
const SPAN = new RegExp(`^-?${SPAN_PATTERN}$`);

/** Milliseconds of a duration such as `30m` or `-2h`; undefined for other text. */
export function spanMs(text: string): number | undefined {
  if (!SPAN.test(text)) return undefined;
  return Number(text.slice(0, -1)) * MS_PER_UNIT[text.slice(-1) as keyof typeof MS_PER_UNIT];
}

/**
 * Exit codes of processes and commands of llmp. The daemon and the dispatcher use codes of sysexits.h; after a signal the code is 128
 * plus the signal number. console/failure.ts describes each code.
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
