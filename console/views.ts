/** Views of all resources: fields for machines, columns for people. */
import type {
  WireAuditRecord,
  WireBatchUndone,
  WireCache,
  WireCachePurged,
  WireOperator,
  WireOperatorCreated,
  WireProject,
  WireProjectCheck,
  WireToken,
  WireTokenCreated,
  WireTokensRevoked,
  WireTrust,
} from '../daemon/api/contract.js';
import { exact, relativeTime } from '../daemon/api/formats.js';
import { DEFAULT_PROVIDER, providerOf, providerTitle } from '../daemon/api/providers.js';
import {
  ceilingsShown,
  matchShown,
  OPERATOR_COLUMNS,
  OPERATOR_FIELDS,
  TRUST_COLUMNS,
  TRUST_FIELDS,
} from './columns/access.js';
import { AUDIT_COLUMNS, AUDIT_FIELDS } from './columns/audit.js';
import { cellText, cellTint, stateShown } from './columns/cell-text.js';
import { allowShown, budgetInFull, limitsShown, spentShown } from './columns/policies.js';
import { PROJECT_COLUMNS, PROJECT_FIELDS } from './columns/projects.js';
import { TOKEN_COLUMNS, TOKEN_FIELDS } from './columns/tokens.js';
import { type Column, isShownBy, shortTitleOf, widthsOf } from './columns/column.js';
import { spanShown } from './span.js';
import type { RenderOptions, TableColumn, View } from './table.js';

/** The columns of a list that the command line shows. */
export const tableColumns = <T>(columns: readonly Column<T>[]): TableColumn<T>[] =>
  columns.flatMap((column) => {
    if (!isShownBy(column, 'cli')) return [];
    const { rank, alignRight = false, isWhole = false, keepsWidth = false } = column;
    const { min, max } = widthsOf(column);
    return {
      title: shortTitleOf(column),
      rank,
      show: (item: T, render: RenderOptions) => cellText(column.cell(item, render.now), render),
      tint: (item: T, { now }: RenderOptions) => cellTint(column.cell(item, now)),
      alignRight,
      shrinks: max > min && !isWhole,
      minWidth: min,
      keepsWidth,
      width: min,
    };
  });

const tokenColumns = tableColumns(TOKEN_COLUMNS);

const tokenDetails: View<WireToken>['details'] = {
  state: ({ state }, render) => stateShown(state, render),
  expires_at: ({ expires_at }, render) => `${expires_at} (${relativeTime(expires_at, render.now)})`,
  max_requests: ({ max_requests }) => (max_requests === 0 ? 'unlimited' : String(max_requests)),
  last_used_at: ({ last_used_at }) => last_used_at ?? 'never',
  allow: ({ allow }) => allowShown(allow),
  limits: ({ limits }) => limitsShown(limits),
  budget: ({ budget }) => budgetInFull(budget),
  spent: (token) => spentShown(token),
};

export const tokenView: View<WireToken> = {
  idOf: ({ id }) => id,
  fields: TOKEN_FIELDS,
  columns: tokenColumns,
  details: tokenDetails,
};

export const tokenCreatedView: View<WireTokenCreated> = {
  idOf: ({ id }) => id,
  fields: ['id', 'token', 'name', 'project_id', 'expires_at', 'max_requests'],
  columns: tokenColumns,
  details: tokenDetails,
};

/** Of a project after a change: also the result of the check of a new key. */
export const PROJECT_CHANGED_FIELDS: readonly string[] = [...PROJECT_FIELDS, 'key_check'];

export const projectView: View<WireProject> = {
  idOf: ({ id }) => id,
  fields: PROJECT_FIELDS,
  columns: tableColumns(PROJECT_COLUMNS),
  details: {
    api_key_hint: ({ api_key_hint: hint }, { ascii }) => `${ascii ? '...' : '…'}${hint}`,
    last_used_at: ({ last_used_at: at }) => at ?? 'never',
    upstream_base_url: baseUrlShown,
    allow: ({ allow }) => allowShown(allow),
    limits: ({ limits }) => limitsShown(limits),
    budget: ({ budget }) => budgetInFull(budget),
    spent: (project) => spentShown(project),
  },
};

function baseUrlShown(project: WireProject): string {
  const { upstream_base_url: baseUrl } = project;
  if (baseUrl === null) return `${DEFAULT_PROVIDER}: UPSTREAM_BASE_URL of the daemon`;
  return providerOf(project) === null ? baseUrl : `${baseUrl} (${providerTitle(project)})`;
}

const operatorDetails: View<WireOperator>['details'] = {
  projects: ({ projects }) => projects?.join(', ') ?? 'all',
  expires_at: ({ expires_at: at }, render) => (at === null ? 'never' : `${at} (${relativeTime(at, render.now)})`),
  ceilings: ({ ceilings }) => ceilingsShown(ceilings),
  obfuscated: ({ obfuscated }, { ascii }) => (ascii ? obfuscated.replace('…', '...') : obfuscated),
  last_used_at: ({ last_used_at: at }) => at ?? 'never',
};

export const operatorView: View<WireOperator> = {
  idOf: ({ id }) => id,
  fields: OPERATOR_FIELDS,
  columns: tableColumns(OPERATOR_COLUMNS),
  details: operatorDetails,
};

export const operatorCreatedView: View<WireOperatorCreated> = {
  idOf: ({ id }) => id,
  fields: ['id', 'secret', 'name', 'role', 'projects', 'expires_at', 'ceilings'],
  columns: operatorView.columns,
  details: operatorDetails,
};

export const trustView: View<WireTrust> = {
  idOf: ({ id }) => id,
  fields: TRUST_FIELDS,
  columns: tableColumns(TRUST_COLUMNS),
  details: {
    match: ({ match }) => matchShown(match),
    jwks_file: ({ jwks_file: file }) => file ?? 'published by the issuer',
    duration_minutes: ({ duration_minutes: minutes }) => spanShown(minutes * 60_000),
    max_requests: ({ max_requests }) => (max_requests === 0 ? 'unlimited' : String(max_requests)),
    max_active: ({ max_active: most }) => String(most ?? 'unlimited'),
    per_hour: ({ per_hour: most }) => String(most ?? 'unlimited'),
    allow: ({ allow }) => allowShown(allow),
    limits: ({ limits }) => limitsShown(limits),
    budget: ({ budget }) => budgetInFull(budget),
  },
  labels: { duration_minutes: 'lifetime' },
};

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
};

export const TOKENS_REVOKED_FIELDS: readonly string[] = [...tokensRevokedView.fields, 'message'];

export const cachePurgedView: View<WireCachePurged & { purged: string }> = {
  idOf: ({ purged }) => purged,
  fields: ['purged', 'purged_count'],
  columns: [],
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

export const auditView: View<WireAuditRecord> = {
  idOf: ({ id }) => id,
  fields: AUDIT_FIELDS,
  columns: tableColumns(AUDIT_COLUMNS),
};

export const undoneView: View<WireBatchUndone> = {
  idOf: ({ batch }) => batch,
  fields: ['batch', 'undone', 'skipped'],
  columns: [],
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
};

export const backupView: View<{ file: string; bytes: number; key_ids: string[] }> = {
  idOf: ({ file }) => file,
  fields: ['file', 'bytes', 'key_ids'],
  columns: [],
};

interface Restored {
  path: string;
  taken_at: string | null;
  restored: boolean;
  kept: string | null;
  requests: number | null;
  cost_usd: string | null;
  tokens_issued: number | null;
  tokens_revoked: number | null;
  caps_loosened: number | null;
  records: number | null;
  operators_changed: number | null;
  trusts_changed: number | null;
  projects_deactivated: number | null;
  sessions_ended: number | null;
  jwts_exchanged: number | null;
}

export const restoreView: View<Restored> = {
  idOf: ({ path }) => path,
  fields: [
    ...(['path', 'taken_at', 'restored', 'kept', 'requests', 'cost_usd'] as const),
    ...(['tokens_issued', 'tokens_revoked', 'caps_loosened', 'records'] as const),
    ...(['operators_changed', 'trusts_changed', 'projects_deactivated', 'sessions_ended', 'jwts_exchanged'] as const),
  ],
  columns: [],
};

export interface CopiedTable {
  table: string;
  rows: number;
  /** The sum of the SHA-256 of its rows, in hex. */
  digest: string;
  is_equal: boolean;
}

export const copiedTableView: View<CopiedTable> = {
  idOf: ({ table }) => table,
  fields: ['table', 'rows', 'digest', 'is_equal'],
  columns: [
    { title: 'TABLE', rank: 0, show: ({ table }) => table },
    { title: 'ROWS', rank: 0, alignRight: true, show: ({ rows }) => exact(rows) },
    {
      title: 'CHECKED',
      rank: 0,
      show: ({ is_equal }) => (is_equal ? 'equal' : 'differs'),
      tint: ({ is_equal }) => (is_equal ? 'green' : 'red'),
    },
  ],
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
};
