/**
 * Answers of an older daemon, which lack what later releases added. What is missing is filled in with what stands for "not said":
 * NaN for a number, `—` for a text, null where that is allowed, nothing in a list. So nobody has to ask at every field.
 */
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
import { REQUEST_EVENT_KIND, TOKEN_STATES } from './vocabulary.js';

export const NOT_SAID = '—';
// Of a few words that the schema names; this is none of them.
const NO_WORD = NOT_SAID as never;

const PROJECTS: NonNullable<WireStatus['projects']> = { active: NaN, all: NaN };
const TOKENS = Object.fromEntries(TOKEN_STATES.map((state) => [state, NaN])) as NonNullable<WireStatus['tokens']>;

export const NO_STATUS: WireStatus = {
  status: NO_WORD,
  missing: [],
  degraded: [],
  version: NOT_SAID,
  instance: NOT_SAID,
  started_at: NOT_SAID,
  uptime_s: NaN,
  database: { driver: NOT_SAID, status: NO_WORD, schema: NOT_SAID, pending_migrations: [] },
  redis: NO_WORD,
  event_bus: { kind: NO_WORD, status: NO_WORD, buffered: NaN, published: NaN, dropped: NaN, lag: null },
  audit: { status: NO_WORD, records: NaN, failures: NaN },
  projects: null,
  tokens: null,
  counted_at: null,
  requests: { in_flight: NaN, per_second: NaN, errors_per_second: NaN },
  cache: { backend: NO_WORD, hit_ratio: NaN },
  upstream: { p50_ms: NaN, p95_ms: NaN },
};

/** Each field of a token, in the order in which the command line and the terminal UI show them. */
export const NO_TOKEN: WireToken = {
  id: NOT_SAID,
  name: null,
  project_id: NOT_SAID,
  state: NO_WORD,
  is_active: true,
  expires_at: NOT_SAID,
  request_count: NaN,
  max_requests: NaN,
  cache_hit_count: NaN,
  created_at: NOT_SAID,
  last_used_at: NOT_SAID,
  obfuscated: NOT_SAID,
};

const NO_PROJECT: WireProject = {
  id: NOT_SAID,
  name: NOT_SAID,
  is_active: true,
  api_key_hint: NOT_SAID,
  created_at: NOT_SAID,
  updated_at: NOT_SAID,
  deactivated_at: null,
};

const NO_USAGE: Omit<WireUsageLine, 'token_id' | 'project_id' | 'model' | 'hour' | 'day'> = {
  requests: NaN,
  hits: NaN,
  refused: NaN,
  errors: NaN,
  upstream_refused: NaN,
  upstream_errors: NaN,
  cut: NaN,
  prompt_tokens: NaN,
  completion_tokens: NaN,
};

const NO_RECORD: WireAuditRecord = {
  id: NOT_SAID,
  time: NOT_SAID,
  action: NO_WORD,
  actor: NO_WORD,
  outcome: NO_WORD,
  project_id: null,
  token_id: null,
  obfuscated: null,
  request_id: null,
  client_ip: null,
  reason: null,
  count: null,
  details: null,
};

const NO_CACHE: WireCache = { backend: NO_WORD, entries: NaN, bytes: NaN, hits: NaN, misses: NaN };

const NO_REQUEST: WireRequestEvent = {
  schema: 1,
  kind: REQUEST_EVENT_KIND,
  id: NOT_SAID,
  time: NOT_SAID,
  instance: NOT_SAID,
  project_id: null,
  token_id: null,
  request_id: NOT_SAID,
  method: NOT_SAID,
  path: NOT_SAID,
  status: NaN,
  code: null,
  upstream_request_id: null,
  outcome: NO_WORD,
  cache: NO_WORD,
  duration_ms: NaN,
  upstream_ms: NaN,
  first_byte_ms: NaN,
  bytes_in: NaN,
  bytes_out: NaN,
  streamed: false,
  model: null,
  usage: { prompt_tokens: null, completion_tokens: null, total_tokens: null, source: 'missing' },
  request_body: null,
  response_body: null,
};

const NO_CHANGE = {
  schema: 1,
  kind: NO_WORD,
  id: NOT_SAID,
  time: NOT_SAID,
  instance: NOT_SAID,
  project_id: null,
  token_id: null,
  request_id: null,
  actor: NOT_SAID,
  count: null,
};

/** Told the name of each field that was missing. */
type Missed = (field: string) => void;

/** The answer with what it lacks of `whole`. What it has is left as it is, also what `whole` does not know. */
function filled<T>(whole: T, answer: unknown, missed: Missed): T {
  if (answer === undefined) return whole;
  if (!isObject(whole) || !isObject(answer)) return answer as T;
  const all: Record<string, unknown> = { ...answer };
  for (const [name, value] of Object.entries(whole)) {
    if (!(name in answer)) missed(name);
    all[name] = filled(value, answer[name], missed);
  }
  return all as T;
}

const isObject = (it: unknown): it is Record<string, unknown> =>
  typeof it === 'object' && it !== null && !Array.isArray(it);

const ignored: Missed = () => undefined;

export function statusOf(answer: WireStatus, missed: Missed = ignored): WireStatus {
  const { tokens, projects, ...status } = filled(NO_STATUS, answer, missed);
  // Null where they could not be counted.
  return {
    ...status,
    tokens: tokens && filled(TOKENS, tokens, missed),
    projects: projects && filled(PROJECTS, projects, missed),
  };
}

export const tokenOf = (answer: WireToken, missed: Missed = ignored): WireToken => filled(NO_TOKEN, answer, missed);
export const projectOf = (answer: WireProject, missed: Missed = ignored): WireProject =>
  filled(NO_PROJECT, answer, missed);
export const usageLineOf = (answer: WireUsageLine, missed: Missed = ignored): WireUsageLine =>
  filled<WireUsageLine>(NO_USAGE, answer, missed);
export const recordOf = (answer: WireAuditRecord, missed: Missed = ignored): WireAuditRecord =>
  filled(NO_RECORD, answer, missed);
export const cacheOf = (answer: WireCache, missed: Missed = ignored): WireCache => filled(NO_CACHE, answer, missed);
export const eventOf = (answer: WireEvent, missed: Missed = ignored): WireEvent =>
  filled<WireEvent>(answer.kind === REQUEST_EVENT_KIND ? NO_REQUEST : (NO_CHANGE as WireEvent), answer, missed);
