/** Views of all resources: fields for machines, columns for people. */
import type {
  WireAuditRecord,
  WireCache,
  WireCachePurged,
  WireProject,
  WireProjectCheck,
  WireToken,
  WireTokenCreated,
  WireTokensRevoked,
  WireTokenState,
} from '../daemon/api/contract.js';
import { actorShown, exact, relativeTime } from '../daemon/api/formats.js';
import { DEFAULT_PROVIDER, providerOf, providerTitle } from '../daemon/api/providers.js';
import { UNKNOWN_TOKEN } from '../daemon/api/older-responses.js';
import type { TableColumn, RenderOptions, Tint, View } from './table.js';

interface StateMark {
  glyph: string;
  ascii: string;
  word: string;
  tint: Tint;
}

// A state is always shown with its word, never by color or glyph alone.
const STATES: Record<WireTokenState, StateMark> = {
  active: { glyph: '●', ascii: '*', word: 'active', tint: 'green' },
  expired: { glyph: '○', ascii: '-', word: 'expired', tint: 'dim' },
  revoked: { glyph: '✗', ascii: 'x', word: 'revoked', tint: 'red' },
  rate_limited: { glyph: '▲', ascii: '!', word: 'limited', tint: 'yellow' },
  project_inactive: { glyph: '◌', ascii: '=', word: 'project off', tint: 'dim' },
};

/** @param state as sent by the daemon. A newer daemon may have states that this release does not know. */
export function stateShown(state: string, { ascii }: Pick<RenderOptions, 'ascii'>): string {
  const mark = (STATES as Partial<Record<string, StateMark>>)[state];
  return mark ? `${ascii ? mark.ascii : mark.glyph} ${mark.word}` : state;
}

export function stateTint(state: string): Tint | undefined {
  return (STATES as Partial<Record<string, StateMark>>)[state]?.tint;
}

const SHORT_ID_LENGTH = 8;
export const shortId = (id: string) => id.slice(0, SHORT_ID_LENGTH);

/** The name, or the beginning of the ID of something without a name. An older daemon does not report names. */
export const nameOr = (name: string | null | undefined, id: string): string => name ?? shortId(id);

function requestsShown({ request_count, max_requests }: WireToken, { ascii }: RenderOptions): string {
  const most = max_requests === 0 ? (ascii ? '-' : '∞') : String(max_requests);
  return `${request_count}/${most}`;
}

const tokenFields = Object.keys(UNKNOWN_TOKEN) as (keyof WireToken)[];

/** Names of the fields that the terminal UI shows in a token's detail, one line each, in this order. */
const LINE_NAMES = {
  id: 'id',
  obfuscated: 'secret',
  project_id: 'project',
  expires_at: 'expires',
  created_at: 'created',
  last_used_at: 'last used',
} satisfies Partial<Record<keyof WireToken, string>>;

/** Fields that the terminal UI shows elsewhere on that screen. */
const WITHOUT_LINE: readonly (keyof WireToken)[] = [
  'name',
  'state',
  'is_active',
  'request_count',
  'max_requests',
  'cache_hit_count',
  'project_name',
  'revoked_at',
  'revoked_by',
  'revoke_reason',
];

type Line = readonly [field: keyof WireToken, name: string];

/** The fields with a line, and their names. Fields that are not listed above come last, under their own names. */
export const TOKEN_LINES: readonly Line[] = [
  ...(Object.entries(LINE_NAMES) as [keyof WireToken, string][]),
  ...tokenFields
    .filter((field) => !(field in LINE_NAMES) && !WITHOUT_LINE.includes(field))
    .map((field): Line => [field, field.replaceAll('_', ' ')]),
];

const tokenColumns: readonly TableColumn<WireToken>[] = [
  { title: 'ID', rank: 0, show: ({ id }) => shortId(id) },
  { title: 'NAME', rank: 1, show: ({ name }) => name ?? '', shrinks: true },
  {
    title: 'PROJECT',
    rank: 4,
    show: ({ project_name, project_id }) => nameOr(project_name, project_id),
    shrinks: true,
  },
  {
    title: 'STATE',
    rank: 0,
    show: ({ state }, render) => stateShown(state, render),
    tint: ({ state }) => stateTint(state),
  },
  { title: 'EXPIRES', rank: 2, show: ({ expires_at }, render) => relativeTime(expires_at, render.now) },
  { title: 'REQUESTS', rank: 3, show: requestsShown, alignRight: true },
  { title: 'HITS', rank: 6, show: ({ cache_hit_count }) => String(cache_hit_count), alignRight: true },
  { title: 'LAST USED', rank: 5, show: ({ last_used_at }, render) => relativeTime(last_used_at, render.now) },
  { title: 'CREATED', rank: 7, show: ({ created_at }, render) => relativeTime(created_at, render.now) },
  { title: 'SECRET', rank: 8, show: ({ obfuscated }) => obfuscated },
];

const tokenDetails: View<WireToken>['details'] = {
  state: ({ state }, render) => stateShown(state, render),
  expires_at: ({ expires_at }, render) => `${expires_at} (${relativeTime(expires_at, render.now)})`,
  max_requests: ({ max_requests }) => (max_requests === 0 ? 'unlimited' : String(max_requests)),
  last_used_at: ({ last_used_at }) => last_used_at ?? 'never',
};

export const tokenView: View<WireToken> = {
  idOf: ({ id }) => id,
  fields: tokenFields,
  columns: tokenColumns,
  details: tokenDetails,
};

export const tokenCreatedView: View<WireTokenCreated> = {
  idOf: ({ id }) => id,
  fields: ['id', 'token', 'name', 'project_id', 'expires_at', 'max_requests'],
  columns: tokenColumns,
  details: tokenDetails,
};

export const projectView: View<WireProject> = {
  idOf: ({ id }) => id,
  fields: [
    'id',
    'name',
    'is_active',
    'api_key_hint',
    'created_at',
    'updated_at',
    'deactivated_at',
    'token_count',
    'active_token_count',
    'last_used_at',
    'requests_24h',
    'errors_24h',
    // New fields come last, because scripts read the others by position.
    'upstream_base_url',
    'upstream_auth',
    'missing_usage',
  ],
  columns: [
    { title: 'ID', rank: 0, show: ({ id }) => shortId(id) },
    { title: 'NAME', rank: 1, show: ({ name }) => name, shrinks: true },
    {
      title: 'STATE',
      rank: 0,
      show: ({ is_active }, render) => stateShown(is_active ? 'active' : 'project_inactive', render),
      tint: ({ is_active }) => stateTint(is_active ? 'active' : 'project_inactive'),
    },
    {
      title: 'TOKENS',
      rank: 2,
      show: ({ active_token_count: active, token_count: all }) => `${exact(active)}/${exact(all)}`,
      alignRight: true,
    },
    { title: 'REQ 24H', rank: 3, show: ({ requests_24h: requests }) => exact(requests), alignRight: true },
    { title: 'ERR 24H', rank: 4, show: ({ errors_24h: errors }) => exact(errors), alignRight: true },
    { title: 'LAST USED', rank: 5, show: ({ last_used_at: at }, render) => relativeTime(at, render.now) },
    { title: 'PROVIDER', rank: 6, show: providerTitle, shrinks: true },
    { title: 'KEY', rank: 7, show: keyShown },
    { title: 'CREATED', rank: 8, show: ({ created_at }, render) => relativeTime(created_at, render.now) },
    { title: 'UPDATED', rank: 9, show: ({ updated_at }, render) => relativeTime(updated_at, render.now) },
  ],
  details: {
    api_key_hint: keyShown,
    last_used_at: ({ last_used_at: at }) => at ?? 'never',
    upstream_base_url: baseUrlShown,
  },
};

function baseUrlShown(project: WireProject): string {
  const { upstream_base_url: baseUrl } = project;
  if (baseUrl === null) return `${DEFAULT_PROVIDER}: UPSTREAM_BASE_URL of the daemon`;
  return providerOf(project) === null ? baseUrl : `${baseUrl} (${providerTitle(project)})`;
}

function keyShown({ api_key_hint }: WireProject, { ascii }: RenderOptions): string {
  return `${ascii ? '...' : '…'}${api_key_hint}`;
}

export const projectCheckView: View<WireProjectCheck & { project_id: string }> = {
  idOf: ({ project_id }) => project_id,
  fields: ['project_id', 'result', 'status', 'latency_ms', 'reason'],
  columns: [],
  labels: { latency_ms: 'latency' },
  details: {
    result: ({ result }) => result.replaceAll('_', ' '),
    latency_ms: ({ latency_ms: ms }) => (ms === null ? '' : `${exact(ms)} ms`),
  },
};

export const tokensRevokedView: View<WireTokensRevoked & { project_id: string }> = {
  idOf: ({ project_id }) => project_id,
  fields: ['project_id', 'revoked_count'],
  columns: [],
  details: {},
};

export const cachePurgedView: View<WireCachePurged & { purged: string }> = {
  idOf: ({ purged }) => purged,
  fields: ['purged', 'purged_count'],
  columns: [],
  details: {},
};

export const cacheView: View<WireCache> = {
  idOf: ({ backend }) => backend,
  fields: ['backend', 'entries', 'bytes', 'hits', 'misses'],
  columns: [],
  details: { hits: hitsShown },
};

function hitsShown({ hits, misses }: WireCache): string {
  return hits === 0 ? '0' : `${hits} (${Math.round((100 * hits) / (hits + misses))} %)`;
}

/** The subject of an audit record: a token, a project or an address. */
function subjectOf({ token_id, token_name, project_id, project_name, client_ip }: WireAuditRecord): string {
  if (token_id !== null) return nameOr(token_name, token_id);
  return project_id === null ? (client_ip ?? '') : nameOr(project_name, project_id);
}

/** Uses are recorded by the hour: a time of day would look like that of a single request. */
const recordTime = ({ time, action }: WireAuditRecord): string =>
  action === 'token.use' ? time.replace(/:\d\d:\d\d.*$/, 'h') : time.replace(/\.\d+Z$/, 'Z');

const OUTCOME_TINTS: Partial<Record<string, Tint>> = { denied: 'yellow', error: 'red' };

export const auditView: View<WireAuditRecord> = {
  idOf: ({ id }) => id,
  fields: [
    'time',
    'action',
    'actor',
    'outcome',
    'project_id',
    'token_id',
    'obfuscated',
    'request_id',
    'client_ip',
    'reason',
    'count',
    'details',
    'id',
    // New fields come last, because scripts read the others by position.
    'user',
    'token_name',
    'project_name',
  ],
  columns: [
    { title: 'TIME', rank: 0, show: recordTime },
    { title: 'ACTION', rank: 0, show: ({ action }) => action },
    { title: 'OUTCOME', rank: 1, show: ({ outcome }) => outcome, tint: ({ outcome }) => OUTCOME_TINTS[outcome] },
    { title: 'ACTOR', rank: 2, show: actorShown, shrinks: true, minWidth: 9 },
    { title: 'ABOUT', rank: 3, show: subjectOf, shrinks: true, minWidth: 9 },
    { title: 'FROM', rank: 5, show: ({ client_ip }) => client_ip ?? '' },
    { title: 'COUNT', rank: 6, show: ({ count }) => (count === null ? '' : String(count)), alignRight: true },
    { title: 'REASON', rank: 4, show: ({ reason }) => reason ?? '', shrinks: true, minWidth: 9 },
  ],
  details: {},
};

export interface VerifiedAudit {
  verdict: string;
  line: number | null;
  file: string | null;
  at: number | null;
  first: number | null;
  last: number | null;
  torn: number;
  anchors: 'anchored' | 'unanchored';
  /** Whether the lines were compared with the audit records in the database. */
  records: 'compared' | 'not_compared';
}

export const verifiedView: View<VerifiedAudit> = {
  idOf: ({ verdict }) => verdict,
  fields: ['verdict', 'line', 'file', 'at', 'first', 'last', 'torn', 'anchors', 'records'],
  columns: [],
  details: {},
};

export interface Migration {
  name: string;
  state: 'applied' | 'pending';
  applied_at: string | null;
}

interface Rekeyed {
  resealed: number;
  unreadable: number;
}

export const rekeyedView: View<Rekeyed> = {
  idOf: ({ resealed }) => String(resealed),
  fields: ['resealed', 'unreadable'],
  columns: [],
  details: {},
};

export const migrationView: View<Migration> = {
  idOf: ({ name }) => name,
  fields: ['name', 'state', 'applied_at'],
  columns: [
    { title: 'MIGRATION', rank: 0, show: ({ name }) => name },
    {
      title: 'STATE',
      rank: 0,
      show: ({ state }) => state,
      tint: ({ state }) => (state === 'pending' ? 'yellow' : 'green'),
    },
    {
      title: 'APPLIED',
      rank: 1,
      show: ({ applied_at }, render) => (applied_at === null ? '' : relativeTime(applied_at, render.now)),
    },
  ],
  details: {},
};
