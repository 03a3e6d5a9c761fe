/**
 * Compatibility with older daemons, whose responses lack fields that later releases added. Missing fields get a value that means "not
 * reported": NaN for a number, `—` for a text, null where it is allowed, an empty list. So callers need not check every field.
 */
import type { Completions } from './client.js';
import type {
  WireAuditRecord,
  WireCache,
  WireEvent,
  WireProject,
  WireRequestEvent,
  WireStatus,
  WireToken,
  WireUsageLine,
} from './contract.js';
import { NOT_REPORTED } from './formats.js';
import { REQUEST_EVENT_KIND, TOKEN_STATES } from './vocabulary.js';

// For enumerations; it is not one of their values.
const UNKNOWN_VALUE = NOT_REPORTED as never;

const UNKNOWN_PROJECT_COUNTS: NonNullable<WireStatus['projects']> = { active: NaN, all: NaN };
const UNKNOWN_TOKEN_COUNTS = Object.fromEntries(TOKEN_STATES.map((state) => [state, NaN])) as NonNullable<
  WireStatus['tokens']
>;

export const UNKNOWN_STATUS: WireStatus = {
  status: UNKNOWN_VALUE,
  missing: [],
  degraded: [],
  version: NOT_REPORTED,
  instance: NOT_REPORTED,
  started_at: NOT_REPORTED,
  uptime_s: NaN,
  database: { driver: NOT_REPORTED, status: UNKNOWN_VALUE, schema: NOT_REPORTED, pending_migrations: [] },
  redis: UNKNOWN_VALUE,
  event_bus: { kind: UNKNOWN_VALUE, status: UNKNOWN_VALUE, buffered: NaN, published: NaN, dropped: NaN, lag: null },
  audit: { status: UNKNOWN_VALUE, records: NaN, failures: NaN },
  projects: null,
  tokens: null,
  counted_at: null,
  requests: { in_flight: NaN, per_second: NaN, errors_per_second: NaN },
  cache: { backend: UNKNOWN_VALUE, hit_ratio: NaN },
  upstream: { p50_ms: NaN, p95_ms: NaN },
  workers: [],
};

/** The fields are in the order in which the command line and the terminal UI show them. New ones come last: scripts read the others by position. */
export const UNKNOWN_TOKEN: WireToken = {
  id: NOT_REPORTED,
  name: null,
  project_id: NOT_REPORTED,
  state: UNKNOWN_VALUE,
  is_active: true,
  expires_at: NOT_REPORTED,
  request_count: NaN,
  max_requests: NaN,
  cache_hit_count: NaN,
  created_at: NOT_REPORTED,
  last_used_at: NOT_REPORTED,
  obfuscated: NOT_REPORTED,
  project_name: NOT_REPORTED,
  revoked_at: null,
  revoked_by: null,
  revoke_reason: null,
};

const UNKNOWN_PROJECT: WireProject = {
  id: NOT_REPORTED,
  name: NOT_REPORTED,
  is_active: true,
  api_key_hint: NOT_REPORTED,
  // An older daemon knows nothing else.
  upstream_base_url: null,
  upstream_auth: 'bearer',
  missing_usage: 'off',
  created_at: NOT_REPORTED,
  updated_at: NOT_REPORTED,
  deactivated_at: null,
  token_count: NaN,
  active_token_count: NaN,
  last_used_at: NOT_REPORTED,
  requests_24h: NaN,
  errors_24h: NaN,
};

type UsageNames = Pick<WireUsageLine, 'token_name' | 'project_name'>;
const UNKNOWN_USAGE: Omit<WireUsageLine, keyof UsageNames | 'token_id' | 'project_id' | 'model' | 'hour' | 'day'> = {
  requests: NaN,
  hits: NaN,
  refused: NaN,
  errors: NaN,
  upstream_refused: NaN,
  upstream_errors: NaN,
  cut: NaN,
  prompt_tokens: NaN,
  completion_tokens: NaN,
  cache_read_tokens: NaN,
  cache_write_tokens: NaN,
};

/** A line has the names of its dimensions only. */
const unknownNamesOf = ({ token_id, project_id }: WireUsageLine): UsageNames => ({
  ...(token_id !== undefined && { token_name: null }),
  ...(project_id !== undefined && { project_name: null }),
});

const UNKNOWN_RECORD: WireAuditRecord = {
  id: NOT_REPORTED,
  time: NOT_REPORTED,
  action: UNKNOWN_VALUE,
  actor: UNKNOWN_VALUE,
  user: null,
  outcome: UNKNOWN_VALUE,
  project_id: null,
  token_id: null,
  project_name: null,
  token_name: null,
  obfuscated: null,
  request_id: null,
  client_ip: null,
  reason: null,
  count: null,
  details: null,
};

const UNKNOWN_CACHE: WireCache = { backend: UNKNOWN_VALUE, entries: NaN, bytes: NaN, hits: NaN, misses: NaN };

const UNKNOWN_REQUEST: WireRequestEvent = {
  schema: 1,
  kind: REQUEST_EVENT_KIND,
  id: NOT_REPORTED,
  time: NOT_REPORTED,
  instance: NOT_REPORTED,
  project_id: null,
  token_id: null,
  project_name: null,
  token_name: null,
  request_id: NOT_REPORTED,
  method: NOT_REPORTED,
  path: NOT_REPORTED,
  status: NaN,
  code: null,
  error: null,
  upstream_request_id: null,
  outcome: UNKNOWN_VALUE,
  cache: UNKNOWN_VALUE,
  duration_ms: NaN,
  upstream_ms: NaN,
  first_byte_ms: NaN,
  bytes_in: NaN,
  bytes_out: NaN,
  streamed: false,
  model: null,
  usage: {
    prompt_tokens: null,
    completion_tokens: null,
    total_tokens: null,
    source: 'missing',
    cache_read_tokens: null,
    cache_write_tokens: null,
  },
  request_body: null,
  response_body: null,
};

const UNKNOWN_CHANGE = {
  schema: 1,
  kind: UNKNOWN_VALUE,
  id: NOT_REPORTED,
  time: NOT_REPORTED,
  instance: NOT_REPORTED,
  project_id: null,
  token_id: null,
  project_name: null,
  token_name: null,
  request_id: null,
  actor: NOT_REPORTED,
  user: null,
  count: null,
};

/** Called with the name of each missing field. */
type OnMissing = (field: string) => void;

/** Adds the fields of `defaults` that the response lacks. Existing fields do not change, including those that `defaults` does not have. */
function withDefaults<T>(defaults: T, response: unknown, onMissing: OnMissing): T {
  if (response === undefined) return defaults;
  if (!isObject(defaults) || !isObject(response)) return response as T;
  const all: Record<string, unknown> = { ...response };
  for (const [name, value] of Object.entries(defaults)) {
    if (!(name in response)) onMissing(name);
    all[name] = withDefaults(value, response[name], onMissing);
  }
  return all as T;
}

const isObject = (it: unknown): it is Record<string, unknown> =>
  typeof it === 'object' && it !== null && !Array.isArray(it);

const ignored: OnMissing = () => undefined;

export function completeStatus(response: WireStatus, onMissing: OnMissing = ignored): WireStatus {
  const { tokens, projects, ...status } = withDefaults(UNKNOWN_STATUS, response, onMissing);
  // Null if they could not be counted.
  return {
    ...status,
    tokens: tokens && withDefaults(UNKNOWN_TOKEN_COUNTS, tokens, onMissing),
    projects: projects && withDefaults(UNKNOWN_PROJECT_COUNTS, projects, onMissing),
  };
}

export const completeToken = (response: WireToken, onMissing: OnMissing = ignored): WireToken =>
  withDefaults(UNKNOWN_TOKEN, response, onMissing);
export const completeProject = (response: WireProject, onMissing: OnMissing = ignored): WireProject =>
  withDefaults(UNKNOWN_PROJECT, response, onMissing);
export const completeUsageLine = (response: WireUsageLine, onMissing: OnMissing = ignored): WireUsageLine =>
  withDefaults<WireUsageLine>({ ...UNKNOWN_USAGE, ...unknownNamesOf(response) }, response, onMissing);
export const completeRecord = (response: WireAuditRecord, onMissing: OnMissing = ignored): WireAuditRecord =>
  withDefaults(UNKNOWN_RECORD, response, onMissing);
export const completeCache = (response: WireCache, onMissing: OnMissing = ignored): WireCache =>
  withDefaults(UNKNOWN_CACHE, response, onMissing);
export const completeEvent = (response: WireEvent, onMissing: OnMissing = ignored): WireEvent =>
  withDefaults<WireEvent>(
    response.kind === REQUEST_EVENT_KIND ? UNKNOWN_REQUEST : (UNKNOWN_CHANGE as WireEvent),
    response,
    onMissing,
  );

/** The completion of each operation whose response lacks fields in older releases, for `ClientOptions.completions`. */
export const COMPLETIONS: Completions = {
  readStatus: (it: WireStatus) => completeStatus(it),
  listTokens: (it: WireToken) => completeToken(it),
  readToken: (it: WireToken) => completeToken(it),
  listProjects: (it: WireProject) => completeProject(it),
  readProject: (it: WireProject) => completeProject(it),
  readUsage: (it: WireUsageLine) => completeUsageLine(it),
  listAudit: (it: WireAuditRecord) => completeRecord(it),
  readAuditRecord: (it: WireAuditRecord) => completeRecord(it),
  listEvents: (it: WireEvent) => completeEvent(it),
  streamEvents: (it: WireEvent) => completeEvent(it),
  readCache: (it: WireCache) => completeCache(it),
};
