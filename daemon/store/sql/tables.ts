/**
 * The tables of the database, each column declared once: what our code calls it, what the database calls it, and how it is read and written.
 * What is missing here, or is declared twice, does not compile or fails a test (test/store/tables.ts): a property that the core knows
 * needs a column, a column must be in the schema (migrations/), and the other way round.
 */
import type { CommittedChange, CommittedRecord, UsageCounts, UsageRow } from '../../core/ports.js';
import type { Project, Token } from '../../core/token.js';
import type { Anchor } from '../audit-file/chain.js';
import {
  type ColumnsOf,
  filledIn,
  flag,
  json,
  nullable,
  nullAs,
  number,
  oneOf,
  type RowOf,
  text,
  type ValuesOf,
} from './columns.js';
import { selection, Table } from './table.js';

// ---- projects

const project = {
  id: text('id'),
  name: text('name'),
  isActive: flag('is_active'),
  apiKeyHint: text('api_key_hint'),
  createdAtMs: number('created_at'),
  updatedAtMs: number('updated_at'),
  deactivatedAtMs: nullable(number('deactivated_at')),
} satisfies ColumnsOf<Project>;

/** The upstream key, sealed (daemon/store/secrets.ts). */
const sealedKey = {
  sealedKey: text('api_key'),
  /** The encryption key that it was sealed with. */
  sealedWith: text('api_key_id'),
};

export const PROJECTS = new Table('projects', { ...project, ...sealedKey });
export const PROJECT = selection(project);
export type ProjectColumns = RowOf<typeof project>;

export const SEALED_KEY = selection({ id: project.id, ...sealedKey });
export type SealedKeyColumns = RowOf<typeof sealedKey & Pick<typeof project, 'id'>>;

// ---- tokens

// A new token has not been used: what counts its uses is left to the database.
const token = {
  id: text('id'),
  projectId: text('project_id'),
  name: nullAs('', text('name')),
  isActive: flag('is_active'),
  expiresAtMs: number('expires_at'),
  maxRequests: number('max_requests'),
  requestCount: filledIn(number('request_count')),
  cacheHitCount: filledIn(number('cache_hit_count')),
  createdAtMs: number('created_at'),
  lastUsedAtMs: filledIn(nullAs(0, number('last_used_at'))),
  obfuscated: text('obfuscated'),
} satisfies ColumnsOf<Token>;

export const TOKENS = new Table('tokens', {
  ...token,
  /** SHA-256 of the secret, hex. */
  digest: text('digest'),
  /** The name in lower case, to search in. */
  nameFolded: text('name_folded'),
  /** Of a cap: the requests counted, and what live instances hold in leases. */
  reserved: filledIn(number('reserved')),
});
/** Of `tokens t`. */
export const TOKEN = selection(token, 't');
export type TokenColumns = RowOf<typeof TOKENS.columns>;

// ---- records of changes

const record = {
  seq: number('seq'),
  id: text('id'),
  timeMs: number('recorded_at'),
  action: oneOf('action'),
  actor: oneOf('actor'),
  outcome: oneOf('outcome'),
  projectId: nullable(text('project_id')),
  tokenId: nullable(text('token_id')),
  obfuscated: nullable(text('obfuscated')),
  requestId: nullable(text('request_id')),
  clientIp: nullable(text('client_ip')),
  reason: nullable(text('reason')),
  count: nullable(number('count')),
  details: nullable(json('details')),
} satisfies ColumnsOf<CommittedRecord>;

export const AUDIT = new Table('audit', record);
/** Of `audit a`. */
export const RECORD = selection(record, 'a');
export type RecordColumns = RowOf<typeof record>;

const change = {
  seq: number('seq'),
  kind: oneOf('kind'),
  projectId: nullAs('', text('project_id')),
  tokenId: nullable(text('token_id')),
  timeMs: number('changed_at'),
} satisfies ColumnsOf<CommittedChange>;

export const CHANGES = new Table('changes', change);
export const CHANGE = selection(change);
export type ChangeColumns = RowOf<typeof change>;

const anchor = {
  line: number('line'),
  head: text('head'),
  seq: nullable(number('seq')),
  atMs: number('anchored_at'),
} satisfies ColumnsOf<Anchor>;

export const ANCHORS = new Table('audit_anchors', { chain: text('chain'), ...anchor });
export const ANCHOR = selection(anchor);
export type AnchorColumns = RowOf<typeof anchor>;

// ---- instances, and what they have taken of caps

export const INSTANCES = new Table('instances', {
  id: text('id'),
  /** Of its last tick. */
  seq: number('seq'),
  startedAtMs: number('started_at'),
  heartbeatAtMs: number('heartbeat_at'),
  /** 0 while it lives. */
  buriedAtMs: filledIn(number('buried_at')),
});
export type InstanceColumns = RowOf<typeof INSTANCES.columns>;

export const LEASES = new Table('leases', {
  tokenId: text('token_id'),
  instanceId: text('instance_id'),
  units: number('units'),
  /** When another instance last asked for the units; 0 if none did. */
  wantedAtMs: filledIn(number('wanted_at')),
});
export type LeaseColumns = RowOf<typeof LEASES.columns>;

// ---- usage: '' stands for "none" in texts here, for a key holds no null

const usageCounts = {
  requests: number('requests'),
  hits: number('hits'),
  promptTokens: number('prompt_tokens'),
  completionTokens: number('completion_tokens'),
  upstreamRefused: number('upstream_refused'),
  upstreamErrors: number('upstream_errors'),
  cut: number('cut'),
} satisfies ColumnsOf<UsageCounts>;

const hourCounts = { ...usageCounts, withTokens: number('with_tokens') };
const hour = {
  id: text('id'),
  hourMs: number('hour_ms'),
  tokenId: text('token_id'),
  projectId: text('project_id'),
  outcome: oneOf('outcome'),
  code: text('code'),
  model: text('model'),
  ...hourCounts,
} satisfies ColumnsOf<UsageRow>;

export const USAGE_HOURLY = new Table('usage_hourly', hour);
/** Of `usage_hourly u`. */
export const USAGE_HOUR = selection(hour, 'u');
export const USAGE_HOUR_COUNTS = selection(hourCounts);
export type UsageHourColumns = RowOf<typeof hour>;

/** What one row of usage and one sum have in common. */
export const USAGE_COUNTS = selection(usageCounts);

const sumCounts = { ...usageCounts, refused: number('refused'), errors: number('errors') };

export type SumKind = 'token_day' | 'project_day' | 'project_hour';
const sumKey = {
  kind: oneOf<SumKind, 'kind'>('kind'),
  fromMs: number('from_ms'),
  projectId: text('project_id'),
  tokenId: text('token_id'),
  model: text('model'),
};
export const USAGE_SUMS = new Table('usage_sums', { ...sumKey, ...sumCounts });
export const USAGE_SUM_KEY = selection(sumKey);
export type UsageSumColumns = RowOf<typeof sumKey>;
export type UsageSum = ValuesOf<typeof USAGE_SUMS.columns>;
export const USAGE_SUM_COUNTS = selection(sumCounts);
export type UsageCountColumns = RowOf<typeof sumCounts>;

export const USAGE_FLUSHES = new Table('usage_flushes', {
  instanceId: text('instance_id'),
  /** Of the last flush that was committed. */
  seq: number('seq'),
  flushedAtMs: number('flushed_at'),
});
