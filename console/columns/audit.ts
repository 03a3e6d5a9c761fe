/** The fields and columns of audit records. */
import type { WireAuditRecord } from '../../daemon/api/contract.js';
import { actorShown } from '../../daemon/api/formats.js';
import type { Allow, Budget, Limits } from '../../daemon/api/vocabulary.js';
import { columnsOf, count, IN_TERMINALS, ON_REQUEST, subjectsOf, text, type Tint } from './column.js';
import { allowShown, budgetShown, limitsShown } from './policies.js';

/** All fields, in the order of exports. New ones come last, because scripts read the others by position. */
export const AUDIT_FIELDS = Object.keys({
  time: true,
  action: true,
  actor: true,
  outcome: true,
  project_id: true,
  token_id: true,
  obfuscated: true,
  request_id: true,
  client_ip: true,
  reason: true,
  count: true,
  details: true,
  id: true,
  user: true,
  token_name: true,
  project_name: true,
  batch: true,
  undo_of: true,
} satisfies Record<keyof WireAuditRecord, true>) as (keyof WireAuditRecord)[];

/** `name: web -> shop, is_active: true -> false`. Null if the action says it, or nothing was changed. */
export function changesShown({ action, details, undo_of: undoOf }: WireAuditRecord): string | null {
  if (undoOf !== null) return `undo of ${undoOf.slice(0, 8)}`;
  if (action !== 'project.update' && action !== 'token.update') return null;
  const changed = Object.entries(details ?? {}).filter(([, value]) => Array.isArray(value));
  return changed.length === 0
    ? null
    : changed.map(([name, value]) => `${name}: ${detailShown(name, value)}`).join(', ');
}

/** A value of the details; the values before and after a change with an arrow. */
export function detailShown(name: string, value: unknown): string {
  const values: unknown[] = Array.isArray(value) && value.length === 2 ? value : [value];
  return values.map((one) => oneShown(name, one)).join(' -> ');
}

function oneShown(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (name === 'allow') return allowShown(value as Allow | null);
  if (name === 'limits') return limitsShown(value as Limits | null);
  return name === 'budget' ? budgetShown(value as Budget | null) : JSON.stringify(value);
}

const OUTCOME_TINTS: Partial<Record<string, Tint>> = { denied: 'yellow', error: 'red' };

// Action, subject, reason and actor are the most useful columns: the others are left out first.
export const AUDIT_COLUMNS = columnsOf<WireAuditRecord>()({
  time: {
    title: 'Time',
    what: 'time',
    rank: 0,
    width: 19,
    key: 'since',
    // Uses are recorded by the hour: a time of day would look like that of a single request.
    cell: ({ time: at, action }) => ({ kind: 'time', at, isHour: action === 'token.use' }),
  },
  action: {
    title: 'Action',
    what: 'what was done',
    rank: 0,
    width: 17,
    key: 'action',
    cell: ({ action }) => text(action),
  },
  outcome: {
    title: 'Outcome',
    what: 'whether it was done',
    rank: 1,
    width: 7,
    key: 'outcome',
    cell: ({ outcome }) => text(outcome, OUTCOME_TINTS[outcome]),
  },
  actor: {
    title: 'Actor',
    what: 'who did it',
    rank: 4,
    width: [9, 30],
    key: 'actor',
    cell: (record) => text(actorShown(record)),
  },
  // The ID is older than the title.
  target: {
    title: 'Subject',
    what: 'the token or project that it concerns',
    rank: 2,
    width: [9, 28],
    key: 'token',
    cell: (record) => ({ kind: 'subject', ...subjectsOf(record), text: record.client_ip }),
  },
  from: {
    title: 'From',
    what: "the caller's address",
    shownBy: IN_TERMINALS,
    rank: 6,
    width: 15,
    cell: ({ client_ip: ip }) => text(ip),
  },
  count: {
    title: 'Count',
    what: 'how many tokens, responses or requests it concerns',
    shownBy: ['cli'],
    rank: 6,
    width: 5,
    alignRight: true,
    cell: ({ count: many }) => (many === null ? text(null) : count(many)),
  },
  reason: {
    title: 'Reason',
    what: 'the reason that was given',
    rank: 3,
    width: [9, 80],
    isSearched: true,
    cell: ({ reason }) => text(reason),
  },
  changes: {
    title: 'Changes',
    what: 'the changed fields, before and after',
    rank: 5,
    width: [9, 60],
    isSearched: true,
    cell: (record) => text(changesShown(record)),
  },
  project: {
    title: 'Project',
    what: 'name of the project',
    shownBy: ON_REQUEST,
    rank: 7,
    width: [9, 24],
    key: 'project',
    cell: ({ project_name: name }) => text(name),
  },
  request: {
    title: 'Request ID',
    what: 'ID of the request',
    shownBy: ON_REQUEST,
    rank: 7,
    width: [10, 36],
    cell: ({ request_id: id }) => ({ kind: 'code', text: id }),
  },
});
