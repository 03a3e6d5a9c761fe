/**
 * The database tables, with each column declared once: its name in our code, its name in the database, and how it is read and
 * written. A missing or duplicate declaration does not compile or fails a test (test/store/sql-stores.ts): a property of the core
 * needs a column, a column must be in the schema (migrations/), and vice versa.
 */
import type { AuditActor, BudgetPeriod, Ceilings, Role } from '../../api/vocabulary.js';
import type {
  CommittedChange,
  NumberedRecord,
  Operator,
  Session,
  Trust,
  UsageCounts,
  UsageHour,
} from '../../core/ports.js';
import type { PurseCounts } from '../../core/budget/counts.js';
import type { Allow, Budget, Limits, Policies, Project, Token } from '../../core/token.js';
import type { FailureCounts } from '../../core/failure-kind.js';
import { TIME_BOUNDS_MS } from '../../core/usage.js';
import type { Anchor } from '../audit-file/anchors.js';
import {
  type ColumnsOf,
  filledIn,
  flag,
  json,
  nullable,
  nullAs,
  number,
  enumText,
  type RowOf,
  text,
  type ValuesOf,
} from './columns.js';
import { columnList, Table } from './table.js';

/** Of tokens and of projects. */
const policies = {
  allow: nullable(json<Allow, 'allow'>('allow')),
  limits: nullable(json<Limits, 'limits'>('limits')),
  budget: nullable(json<Budget, 'budget'>('budget')),
} satisfies ColumnsOf<Policies>;
export const POLICIES = columnList(policies);

// ---- projects

const project = {
  id: text('id'),
  name: text('name'),
  isActive: flag('is_active'),
  apiKeyHint: text('api_key_hint'),
  upstreamBaseUrl: nullable(text('upstream_base_url')),
  upstreamAuth: enumText('upstream_auth'),
  missingUsage: enumText('missing_usage'),
  ...policies,
  createdAtMs: number('created_at'),
  updatedAtMs: number('updated_at'),
  deactivatedAtMs: nullable(number('deactivated_at')),
} satisfies ColumnsOf<Project>;

/** The upstream key, encrypted (daemon/store/secrets.ts). */
const sealedKey = {
  sealedKey: text('api_key'),
  /** ID of the encryption key. */
  sealedWith: text('api_key_id'),
};

/** Equal for equal lists of models, and '' without one (policies.ts). */
const modelsKey = text('models_key');

export const PROJECTS = new Table('projects', { ...project, ...sealedKey, modelsKey });
export const PROJECT = columnList(project);
export type ProjectColumns = RowOf<typeof project>;

export const SEALED_KEY = columnList({ id: project.id, ...sealedKey });
export type SealedKeyColumns = RowOf<typeof sealedKey & Pick<typeof project, 'id'>>;

// ---- tokens

// A new token is unused and not revoked, so these columns keep the database's default.
const token = {
  id: text('id'),
  projectId: text('project_id'),
  name: nullAs('', text('name')),
  isActive: flag('is_active'),
  expiresAtMs: number('expires_at'),
  maxRequests: number('max_requests'),
  ...policies,
  requestCount: filledIn(number('request_count')),
  cacheHitCount: filledIn(number('cache_hit_count')),
  createdAtMs: number('created_at'),
  lastUsedAtMs: filledIn(nullAs(0, number('last_used_at'))),
  issuedBy: nullAs<AuditActor, string, 'issued_by'>('', { ...text('issued_by'), read: (actor) => actor as AuditActor }),
  issuedByName: nullable(text('issued_by_name')),
  obfuscated: text('obfuscated'),
  revokedAtMs: filledIn(nullable(number('revoked_at'))),
  revokedBy: filledIn(nullable(text('revoked_by'))),
  revokeReason: filledIn(nullable(text('revoke_reason'))),
} satisfies ColumnsOf<Token>;

export const TOKENS = new Table('tokens', {
  ...token,
  /** SHA-256 of the secret, in hex. */
  digest: text('digest'),
  /** The name in lower case, for searching. */
  nameFolded: text('name_folded'),
  modelsKey,
  /** Units of the cap that are used or leased by live instances. */
  reserved: filledIn(number('reserved')),
});
/** For `tokens t`. */
export const TOKEN = columnList(token, 't');
export type TokenColumns = RowOf<typeof TOKENS.columns>;

// ---- operators and sessions

const operator = {
  id: text('id'),
  name: text('name'),
  obfuscated: text('obfuscated'),
  role: enumText<Role, 'role'>('role'),
  projects: nullable(json<string[], 'projects'>('projects')),
  ceilings: nullable(json<Ceilings, 'ceilings'>('ceilings')),
  isActive: flag('is_active'),
  expiresAtMs: nullable(number('expires_at')),
  createdAtMs: number('created_at'),
  updatedAtMs: number('updated_at'),
  lastUsedAtMs: nullable(number('last_used_at')),
} satisfies ColumnsOf<Operator>;

/** SHA-256 of the secret, in hex. */
export const OPERATORS = new Table('operators', { ...operator, digest: text('digest') });
export const OPERATOR = columnList(operator);
export type OperatorColumns = RowOf<typeof operator>;

const session = {
  id: text('id'),
  frontEnd: enumText('front_end'),
  actor: enumText('actor'),
  name: nullAs('', text('name')),
  operatorId: nullable(text('operator_id')),
  role: nullable(enumText<Role, 'role'>('role')),
  projects: nullable(json<string[], 'projects'>('projects')),
  ceilings: nullable(json<Ceilings, 'ceilings'>('ceilings')),
  mapping: nullable(text('mapping')),
  begunAtMs: number('begun_at'),
  expiresAtMs: number('expires_at'),
  endedAtMs: nullable(number('ended_at')),
} satisfies ColumnsOf<Session>;

/** SHA-256 of the secret, in hex; null for a session without one. */
export const SESSIONS = new Table('sessions', { ...session, digest: nullable(text('digest')) });
export const SESSION = columnList(session);
export type SessionColumns = RowOf<typeof session>;

// ---- trusts, and the JWTs that were exchanged

const trust = {
  id: text('id'),
  issuer: text('issuer'),
  audience: text('audience'),
  match: json<Trust['match'], 'match_claims'>('match_claims'),
  jwksFile: nullable(text('jwks_file')),
  projectId: text('project_id'),
  name: text('name'),
  durationMinutes: number('duration_minutes'),
  maxRequests: number('max_requests'),
  ...policies,
  maxActive: nullable(number('max_active')),
  perHour: nullable(number('per_hour')),
  isActive: flag('is_active'),
  createdAtMs: number('created_at'),
  updatedAtMs: number('updated_at'),
} satisfies ColumnsOf<Trust>;

export const TRUSTS = new Table('trusts', trust);
/** For `trusts t`. */
export const TRUST = columnList(trust, 't');
export type TrustColumns = RowOf<typeof trust>;

export const USED_JWTS = new Table('used_jwts', { digest: text('digest'), untilMs: number('until_ms') }, ['digest']);

// ---- records of changes

const record = {
  seq: number('seq'),
  id: text('id'),
  timeMs: number('recorded_at'),
  action: enumText('action'),
  actor: enumText('actor'),
  outcome: enumText('outcome'),
  projectId: nullable(text('project_id')),
  tokenId: nullable(text('token_id')),
  obfuscated: nullable(text('obfuscated')),
  requestId: nullable(text('request_id')),
  clientIp: nullable(text('client_ip')),
  reason: nullable(text('reason')),
  count: nullable(number('count')),
  details: nullable(json<Record<string, unknown>, 'details'>('details')),
  user: nullable(text('reported_user')),
  batch: nullable(text('batch')),
  undoOf: nullable(text('undo_of')),
} satisfies ColumnsOf<NumberedRecord>;

/** In the order in which they were committed. */
export const AUDIT = new Table('audit', record, ['seq']);
/** For `audit a`. */
export const RECORD = columnList(record, 'a');
export type RecordColumns = RowOf<typeof record>;

const change = {
  seq: number('seq'),
  kind: enumText('kind'),
  projectId: nullAs('', text('project_id')),
  tokenId: nullable(text('token_id')),
  timeMs: number('changed_at'),
} satisfies ColumnsOf<CommittedChange>;

export const CHANGES = new Table('changes', change, ['seq']);
export const CHANGE = columnList(change);
export type ChangeColumns = RowOf<typeof change>;

const anchor = {
  line: number('line'),
  head: text('head'),
  seq: nullable(number('seq')),
  atMs: number('anchored_at'),
} satisfies ColumnsOf<Anchor>;

export const ANCHORS = new Table('audit_anchors', { chain: text('chain'), ...anchor }, ['chain', 'line']);
export const ANCHOR = columnList(anchor);
export type AnchorColumns = RowOf<typeof anchor>;

/** A single row: the number of the last record. */
export const CHANGE_SEQ = new Table('change_seq', { id: number('id'), seq: number('seq') });

/** A single row: the price lists of the last change. */
export const PRICES_IN_FORCE = new Table('prices_in_force', {
  id: number('id'),
  shipped: text('shipped'),
  file: text('file'),
});

// ---- instances, and their leases of caps

export const INSTANCES = new Table('instances', {
  id: text('id'),
  /** Number of its last tick. */
  seq: number('seq'),
  startedAtMs: number('started_at'),
  heartbeatAtMs: number('heartbeat_at'),
  /** 0 while the instance is alive. */
  expiredAtMs: filledIn(number('expired_at')),
  /** 1 for a worker of another instance. */
  isWorker: number('is_worker'),
  /** 1 if it counts the limits of tokens and projects apart from Redis. */
  isApart: number('is_apart'),
});
export type InstanceColumns = RowOf<typeof INSTANCES.columns>;

export const LEASES = new Table(
  'leases',
  {
    tokenId: text('token_id'),
    instanceId: text('instance_id'),
    units: number('units'),
    /** When another instance last asked for the units; 0 if none did. */
    wantedAtMs: filledIn(number('wanted_at')),
  },
  ['token_id', 'instance_id'],
);
export type LeaseColumns = RowOf<typeof LEASES.columns>;

const spending = (period: 'life' | 'month' | 'day') =>
  ({
    nano: filledIn(number(`${period}_nano`)),
    tokens: filledIn(number(`${period}_tokens`)),
    unpriced: filledIn(number(`${period}_unpriced`)),
  }) as const;
const [life, month, day] = [spending('life'), spending('month'), spending('day')];

const purse = {
  /** The limits of the budget, which the statements that lease compare with; null without a limit. */
  period: enumText<BudgetPeriod, 'period'>('period'),
  limitNano: nullable(number('limit_nano')),
  limitTokens: nullable(number('limit_tokens')),
  lifeNano: life.nano,
  lifeTokens: life.tokens,
  lifeUnpriced: life.unpriced,
  /** Start of the month that its counts belong to; `day_from` likewise. */
  monthFromMs: filledIn(number('month_from')),
  monthNano: month.nano,
  monthTokens: month.tokens,
  monthUnpriced: month.unpriced,
  dayFromMs: filledIn(number('day_from')),
  dayNano: day.nano,
  dayTokens: day.tokens,
  dayUnpriced: day.unpriced,
  /** Start of the period of the leases, and what instances have leased in it and not settled. */
  leasedFromMs: filledIn(number('leased_from')),
  leasedNano: filledIn(number('leased_nano')),
  leasedTokens: filledIn(number('leased_tokens')),
} satisfies ColumnsOf<PurseCounts>;
export const PURSE = columnList(purse);

/** What a token or project has spent, with or without a budget. Its ID is that of the token or project. */
export const PURSES = new Table('purses', { id: text('id'), ...purse });
export type PurseColumns = RowOf<typeof PURSES.columns>;

export const PURSE_LEASES = new Table(
  'purse_leases',
  {
    purseId: text('purse_id'),
    instanceId: text('instance_id'),
    /** Start of the period that it belongs to. */
    fromMs: number('from_ms'),
    nano: number('nano'),
    tokens: number('tokens'),
    /** When another instance last asked for its return; 0: never. */
    wantedAtMs: filledIn(number('wanted_at')),
  },
  ['purse_id', 'instance_id', 'from_ms'],
);
export type PurseLeaseColumns = RowOf<typeof PURSE_LEASES.columns>;

// ---- usage: in text columns '' means "none", because a key cannot contain NULL

const usageCounts = {
  requests: number('requests'),
  hits: number('hits'),
  promptTokens: number('prompt_tokens'),
  completionTokens: number('completion_tokens'),
  upstreamRefused: number('upstream_refused'),
  cut: number('cut'),
  cacheReadTokens: number('cache_read_tokens'),
  cacheWriteTokens: number('cache_write_tokens'),
  costNano: number('cost_nano'),
  unpriced: number('unpriced'),
} satisfies ColumnsOf<UsageCounts>;

const hourCounts = { ...usageCounts, withTokens: number('with_tokens') };
const hour = {
  id: text('id'),
  hourMs: number('hour_ms'),
  tokenId: text('token_id'),
  projectId: text('project_id'),
  outcome: enumText('outcome'),
  code: text('code'),
  model: text('model'),
  ...hourCounts,
} satisfies ColumnsOf<UsageHour>;

export const USAGE_HOURLY = new Table('usage_hourly', hour);
/** For `usage_hourly u`. */
export const USAGE_HOUR = columnList(hour, 'u');
export const USAGE_HOUR_COUNTS = columnList(hourCounts);
export type UsageHourColumns = RowOf<typeof hour>;

/** Columns that usage rows and sums have in common. */
export const USAGE_COUNTS = columnList(usageCounts);

const sumCounts = { ...usageCounts, refused: number('refused'), failed: number('failed') };
const { refused, upstreamRefused, failed, cut } = sumCounts;
const failureCounts = { refused, upstreamRefused, failed, cut } satisfies ColumnsOf<FailureCounts>;
/** SQL for the failures in a row of `usage_sums u`. */
export const FAILURES_IN_SUM = Object.values(failureCounts)
  .map(({ name }) => `u.${name}`)
  .join(' + ');

export type SumKind = 'token_day' | 'project_day' | 'project_hour';
const sumKey = {
  kind: enumText<SumKind, 'kind'>('kind'),
  fromMs: number('from_ms'),
  projectId: text('project_id'),
  tokenId: text('token_id'),
  model: text('model'),
};
export const USAGE_SUM_KEY = columnList(sumKey);
export const USAGE_SUMS = new Table('usage_sums', { ...sumKey, ...sumCounts }, USAGE_SUM_KEY.names);
export type UsageSumColumns = RowOf<typeof sumKey>;
export type UsageSum = ValuesOf<typeof USAGE_SUMS.columns>;
export const USAGE_SUM_COUNTS = columnList(sumCounts);
export type UsageCountColumns = RowOf<typeof sumCounts>;

const { requests, hits, promptTokens, completionTokens, costNano, unpriced } = usageCounts;
/** Counts of response times: `t0`, `t1` …, one for each of `TIME_BOUNDS_MS`. */
const times = Object.fromEntries(
  TIME_BOUNDS_MS.map((_, bucket) => [`t${bucket}`, number(`t${bucket}`)] as const),
) as Readonly<Record<`t${number}`, ReturnType<typeof number>>>;
export const USAGE_TIMES = Object.keys(times);
const minuteCounts = {
  ...{ requests, hits, promptTokens, completionTokens, costNano, unpriced },
  ...failureCounts,
  ...times,
};
const minuteKey = {
  fromMs: number('from_ms'),
  /** '': the sums of all requests of the project, or, if that is '' too, of those without a known token. */
  tokenId: text('token_id'),
  projectId: text('project_id'),
  model: text('model'),
};
export const USAGE_MINUTE_KEY = columnList(minuteKey);
export const USAGE_MINUTES = new Table('usage_minutes', { ...minuteKey, ...minuteCounts }, USAGE_MINUTE_KEY.names);
export const USAGE_MINUTE_COUNTS = columnList(minuteCounts);
export type UsageMinute = ValuesOf<typeof USAGE_MINUTES.columns>;

const causeKey = {
  projectId: text('project_id'),
  cause: text('cause'),
  tokenId: text('token_id'),
  fromMs: number('from_ms'),
};
/** Failures by minute and cause. */
export const USAGE_CAUSES = new Table('usage_causes', { ...causeKey, requests: usageCounts.requests }, [
  'project_id',
  'cause',
  'token_id',
  'from_ms',
]);
export const USAGE_CAUSE_KEY = columnList(causeKey);
export type UsageCause = ValuesOf<typeof USAGE_CAUSES.columns>;

export const USAGE_FLUSHES = new Table(
  'usage_flushes',
  {
    instanceId: text('instance_id'),
    /** Number of the last committed flush. */
    seq: number('seq'),
    flushedAtMs: number('flushed_at'),
  },
  ['instance_id'],
);
