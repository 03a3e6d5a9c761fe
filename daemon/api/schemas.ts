/**
 * The wire shapes of the management API, declared once: what a request may carry and what an answer
 * does carry. Types (contract.ts), validation (daemon/http) and error messages come from here; a
 * field's description is the sentence a refusal uses to say what would have been accepted.
 */
import * as z from 'zod';

const wholeNumber = (from: number, to: number) =>
  z.int().min(from).max(to).describe(`a whole number from ${from} to ${to}`);

// Counted in characters, not in UTF-16 units. Control characters would let a name forge log lines or drive an
// operator's terminal; half a surrogate pair has no UTF-8.
const NAME = /^(?=.*\S)[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,100}$/u;
const name = z.string().regex(NAME).describe('1 to 100 characters, not only spaces, without control characters');

const id = z.string().min(1).max(64).describe('an id');
const timestamp = z.iso.datetime().describe('an RFC 3339 timestamp in UTC, such as 2030-01-31T12:00:00Z');

// It becomes part of a header line, so nothing but visible ASCII.
const upstreamKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,512}$/)
  .describe('the upstream key: 1 to 512 visible ASCII characters');

const flag = z.boolean().describe('true or false');

export const projectCreate = z.strictObject({ name, api_key: upstreamKey });

export const projectPatch = z
  .strictObject({ name: name.optional(), api_key: upstreamKey.optional(), is_active: flag.optional() })
  .meta({ minProperties: 1 });

export const MAX_DURATION_HOURS = 8760;

export const tokenCreate = z
  .strictObject({
    project_id: id,
    duration_hours: wholeNumber(1, MAX_DURATION_HOURS).optional(),
    duration_minutes: wholeNumber(1, MAX_DURATION_HOURS * 60).optional(),
    max_requests: wholeNumber(0, 2_147_483_647).optional(),
    name: name.optional(),
  })
  .meta({ not: { required: ['duration_hours', 'duration_minutes'] } });

export const tokenPatch = z.strictObject({ is_active: flag });

export const tokenLookup = z.strictObject({ token: z.string().min(1).max(200).describe('a secret, sk-wt-…') });

// As long as a target of /v1 may be. The daemon looks at it as it looks at those (daemon/http/shape.ts).
export const cachedUrl = z
  .string()
  .max(8192)
  .regex(/^\/v1(?:[/?]|$)/)
  .describe('a path under /v1 in its plain form, with its query if it has one, at most 8 KiB');

export const cachePurge = z
  .strictObject({
    method: z.enum(['GET', 'POST']).describe('GET or POST, the methods whose answers are kept').optional(),
    url: cachedUrl.optional(),
    project_id: id.optional(),
    all: z.literal(true).describe('true').optional(),
    dry_run: flag.optional(),
  })
  .meta({
    oneOf: [{ required: ['method'] }, { required: ['project_id'] }, { required: ['all'] }],
    dependentRequired: { method: ['url'], url: ['method'] },
  });

export const TOKEN_STATES = ['active', 'expired', 'revoked', 'rate_limited', 'project_inactive'] as const;
const SORT_FIELDS = ['created_at', 'expires_at', 'last_used_at', 'request_count', 'name'] as const;
export const TOKEN_SORTS = SORT_FIELDS.flatMap((field) => [field, `-${field}`] as const);

const oneOf = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values).describe(`one of ${values.join(', ')}`);
const queryFlag = z
  .enum(['true', 'false'])
  .transform((text) => text === 'true')
  .describe('true or false');
const queryNumber = (from: number, to: number) =>
  z
    .string()
    .regex(/^\d{1,10}$/)
    .transform(Number)
    .pipe(z.int().min(from).max(to))
    .describe(`a whole number from ${from} to ${to}`)
    .meta({ type: 'integer', minimum: from, maximum: to, pattern: undefined }); // Described as what it is, not as its text.

const paging = {
  limit: queryNumber(1, 1000).default(100),
  cursor: z.string().min(1).max(1000).describe('the cursor of a Link header').optional(),
};

/** Or a span by the daemon's clock, whenever it is asked: so the query stays the same, and its cursors hold, while time goes on. */
const timeAhead = z
  .union([timestamp, z.string().regex(/^-?\d{1,6}[smhd]$/)])
  .describe('an RFC 3339 timestamp in UTC, such as 2030-01-31T12:00:00Z, or a time from now such as 2h, 7d or -30m');
const timeAgo = z
  .union([timestamp, z.string().regex(/^\d{1,6}[smhd]$/)])
  .describe('an RFC 3339 timestamp in UTC, such as 2030-01-31T12:00:00Z, or a time ago such as 30m, 2h or 7d');

const STATE = `(?:${TOKEN_STATES.join('|')})`;
const PROJECT = '[^,!]{1,64}';
/** One of these, or with `!` in front none of them. */
const selection = (one: string, most: number, what: string) =>
  z
    .string()
    .regex(new RegExp(`^!?${one}(?:,${one}){0,${most - 1}}$`))
    .describe(`${what}, with commas between if several, and with ! in front for all others`);

const WORD = '!?(?:"[^"\\p{Cc}]{1,100}"|[^\\s"!\\p{Cc}][^\\s"\\p{Cc}]{0,99})';

export const projectQuery = z.strictObject({ ...paging, is_active: queryFlag.optional() });

export const tokenQuery = z.strictObject({
  ...paging,
  project_id: selection(PROJECT, 20, 'an id').optional(),
  active_only: queryFlag.optional(),
  state: selection(STATE, TOKEN_STATES.length, `one of ${TOKEN_STATES.join(', ')}`).optional(),
  expires_after: timeAhead.optional(),
  expires_before: timeAhead.optional(),
  used_over: queryNumber(0, 100).describe('a percentage from 0 to 100').optional(),
  used_under: queryNumber(0, 100).describe('a percentage from 0 to 100').optional(),
  // SQLite ends a pattern at a NUL, and an empty pattern matches every name.
  q: z
    .string()
    .regex(/^\P{Cc}{1,100}$/u)
    .describe('1 to 100 characters, without control characters')
    .optional(),
  words: z
    .string()
    .regex(new RegExp(`^${WORD}(?: ${WORD}){0,9}$`, 'u'))
    .describe(
      '1 to 10 words with a space between, in double quotes where they hold spaces, with ! in front if not wanted',
    )
    .optional(),
  sort: oneOf(TOKEN_SORTS as unknown as readonly [string, ...string[]]).default('-created_at'),
});

/** Such as `429` or `4xx,5xx`. */
const statuses = z
  .string()
  .regex(/^[1-5](?:xx|\d\d)(?:,[1-5](?:xx|\d\d)){0,19}$/)
  .describe('statuses or classes of them, separated by commas, such as 429 or 4xx,5xx');

export const EVENT_KINDS = [
  'request.completed',
  'token.created',
  'token.revoked',
  'token.reactivated',
  'project.changed',
  'cache.purged',
] as const;

/** A filter on statuses lets requests through only: nothing else has one. */
export const eventQuery = z.strictObject({
  project_id: id.optional(),
  token_id: id.optional(),
  status: statuses.optional(),
  kind: oneOf(EVENT_KINDS).optional(),
});

const DIMENSION = '(?:token|project|model|hour|day)';

export const usageQuery = z.strictObject({
  by: z
    .string()
    .regex(new RegExp(`^${DIMENSION}(?:,${DIMENSION}){0,4}$`))
    .describe('any of token, project, model, hour and day, with commas between')
    .optional(),
  since: timestamp.optional(),
  until: timestamp.optional(),
  project_id: id.optional(),
  token_id: id.optional(),
});

export const sessionCreate = z.strictObject({
  token: z.string().min(1).max(1000).describe('the management token, as it was typed'),
});

const count = z.int().min(0);

export const session = z.strictObject({ id: z.string(), begun_at: timestamp, ended_at: timestamp.nullable() });

export const project = z.strictObject({
  id: z.string(),
  name: z.string(),
  is_active: z.boolean(),
  api_key_hint: z.string(),
  created_at: timestamp,
  updated_at: timestamp,
  deactivated_at: timestamp.nullable(),
});

export const token = z.strictObject({
  id: z.string(),
  project_id: z.string(),
  name: z.string().nullable(),
  is_active: z.boolean(),
  state: z.enum(TOKEN_STATES),
  expires_at: timestamp,
  max_requests: count,
  request_count: count,
  cache_hit_count: count,
  created_at: timestamp,
  last_used_at: timestamp.nullable(),
  obfuscated: z.string(),
});

export const tokenCreated = token.extend({ token: z.string() });
export const message = z.strictObject({ message: z.string() });
export const tokensRevoked = message.extend({ revoked_count: count });

export const cachePurged = message.extend({ purged_count: count });

export const cache = z.strictObject({
  backend: z.enum(['memory', 'redis', 'off']),
  entries: count,
  bytes: count,
  hits: count,
  misses: count,
});

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
export const AUDIT_ACTORS = ['management', 'admin', 'cli', 'tui', 'token', 'system'] as const;
export const AUDIT_OUTCOMES = ['success', 'denied', 'error'] as const;

const auditFilters = {
  action: oneOf(AUDIT_ACTIONS).optional(),
  actor: oneOf(AUDIT_ACTORS).optional(),
  project_id: id.optional(),
  token_id: id.optional(),
  outcome: oneOf(AUDIT_OUTCOMES).optional(),
};

export const auditQuery = z.strictObject({
  ...paging,
  ...auditFilters,
  since: timeAgo.optional(),
  until: timeAgo.optional(),
  q: z
    .string()
    .regex(/^(?=.*[\p{L}\p{N}])\P{Cc}{1,100}$/u)
    .describe('1 to 100 characters, a letter or a digit among them, without control characters')
    .optional(),
});

export const auditStreamQuery = z.strictObject(auditFilters);

export const auditRecord = z.strictObject({
  id: z.string(),
  time: timestamp,
  action: z.enum(AUDIT_ACTIONS),
  actor: z.enum(AUDIT_ACTORS),
  outcome: z.enum(AUDIT_OUTCOMES),
  project_id: z.string().nullable(),
  token_id: z.string().nullable(),
  obfuscated: z.string().nullable(),
  request_id: z.string().nullable(),
  client_ip: z.string().nullable(),
  reason: z.string().nullable(),
  count: count.nullable(),
  details: z.record(z.string(), z.unknown()).nullable(),
});

// What was asked for by is there, the rest is not.
export const usageLine = z.strictObject({
  token_id: z.string().nullable().optional(),
  project_id: z.string().nullable().optional(),
  model: z.string().nullable().optional(),
  hour: timestamp.optional(),
  day: timestamp.optional(),
  requests: count,
  hits: count,
  refused: count,
  errors: count,
  prompt_tokens: count,
  completion_tokens: count,
});

export const migrations = z.strictObject({
  current: z.string().nullable(),
  pending: z.array(z.string()),
  applied: z.array(z.strictObject({ name: z.string(), applied_at: timestamp })),
});

const milliseconds = z.number().min(0);

const eventBase = {
  schema: z.literal(1),
  id: z.uuidv7(),
  time: timestamp,
  instance: z.string(),
  project_id: z.string().nullable(),
  token_id: z.string().nullable(),
};

export const requestEvent = z.strictObject({
  ...eventBase,
  kind: z.literal('request.completed'),
  request_id: z.string(),
  method: z.string(),
  path: z.string(),
  status: z.int().min(100).max(999),
  code: z.string().nullable(),
  upstream_request_id: z.string().nullable(),
  outcome: z.enum(['ok', 'refused', 'upstream_error', 'client_closed', 'timeout', 'truncated', 'revoked', 'drained']),
  cache: z.enum(['hit', 'miss']),
  duration_ms: milliseconds,
  upstream_ms: milliseconds.nullable(),
  first_byte_ms: milliseconds.nullable(),
  bytes_in: count,
  bytes_out: count,
  streamed: z.boolean(),
  model: z.string().nullable(),
  usage: z.strictObject({
    prompt_tokens: count.nullable(),
    completion_tokens: count.nullable(),
    total_tokens: count.nullable(),
    source: z.enum(['provider', 'missing']),
  }),
  request_body: z.string().nullable(),
  response_body: z.string().nullable(),
});

export const changeEvent = z.strictObject({
  ...eventBase,
  kind: z.enum(EVENT_KINDS).exclude(['request.completed']),
  request_id: z.string().nullable(),
  actor: z.string(),
  count: count.nullable(),
});

export const event = z.discriminatedUnion('kind', [requestEvent, changeEvent]);

const rate = z.number().min(0);
const partStatus = z.enum(['ok', 'failing', 'off']);
/** Of something that may not have been at all; null then. */
const measured = z.number().min(0).nullable();

export const status = z.strictObject({
  status: z.enum(['ready', 'not ready']),
  missing: z.array(z.string()),
  degraded: z.array(z.string()),
  version: z.string(),
  instance: z.string(),
  started_at: timestamp,
  uptime_s: count,
  database: z.strictObject({
    driver: z.string(),
    status: z.enum(['ok', 'failing']),
    schema: z.string().nullable(),
    pending_migrations: z.array(z.string()),
  }),
  redis: partStatus,
  event_bus: z.strictObject({
    kind: z.enum(['redis-streams', 'in-memory', 'off']),
    status: partStatus,
    buffered: count,
    published: count,
    dropped: count,
    lag: count.nullable(),
  }),
  audit: z.strictObject({ status: partStatus, records: count, failures: count }),
  projects: z.strictObject({ active: count, all: count }).nullable(),
  tokens: z.record(z.enum(TOKEN_STATES), count).nullable(),
  counted_at: timestamp.nullable(),
  requests: z.strictObject({ in_flight: count, per_second: rate, errors_per_second: rate }),
  cache: z.strictObject({
    backend: z.enum(['memory', 'redis', 'off']),
    hit_ratio: z.number().min(0).max(1).nullable(),
  }),
  upstream: z.strictObject({ p50_ms: measured, p95_ms: measured }),
});

export const problem = z.strictObject({ error: z.string(), code: z.string(), request_id: z.string() });
