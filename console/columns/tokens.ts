/** The fields and columns of tokens, and the terms of a new one. */
import type { TokenCreateTerms, WireToken } from '../../daemon/api/contract.js';
import { MAX_CAP, MAX_NAME_LENGTH } from '../../daemon/api/vocabulary.js';
import { allowShown, BUDGET_COLUMN, LEFT_COLUMN, limitsShown, SPENT_COLUMN } from './policies.js';
import { columnsOf, distance, count, IN_TERMINALS, ON_REQUEST, text, type Tint } from './column.js';

/** All fields, in the order of exports. New ones come last, because scripts read the others by position. */
export const TOKEN_FIELDS = Object.keys({
  id: true,
  name: true,
  project_id: true,
  state: true,
  is_active: true,
  expires_at: true,
  request_count: true,
  max_requests: true,
  cache_hit_count: true,
  created_at: true,
  last_used_at: true,
  obfuscated: true,
  project_name: true,
  revoked_at: true,
  revoked_by: true,
  revoke_reason: true,
  allow: true,
  limits: true,
  budget: true,
  spent: true,
  issued_by: true,
  issued_by_name: true,
} satisfies Record<keyof WireToken, true>) as (keyof WireToken)[];

export const TOKEN_COLUMNS = columnsOf<WireToken>()({
  id: {
    title: 'ID',
    what: 'beginning of the ID',
    shownBy: IN_TERMINALS,
    rank: 0,
    width: 8,
    cell: ({ id }) => ({ kind: 'id', id }),
  },
  name: {
    title: 'Name',
    what: 'name',
    rank: 1,
    width: [10, 40],
    keepsWidth: true,
    sort: 'name',
    isSearched: true,
    isSummarized: true,
    cell: (of) => ({ kind: 'token', of, isOwn: true }),
  },
  project: {
    title: 'Project',
    what: 'name of its project',
    rank: 4,
    width: [9, 24],
    key: 'project',
    cell: ({ project_id: id, project_name: name }) => ({ kind: 'project', of: { id, name } }),
  },
  state: {
    title: 'State',
    what: 'state',
    rank: 0,
    width: [8, 13],
    isWhole: true,
    key: 'state',
    isSummarized: true,
    cell: ({ state }) => ({ kind: 'state', state }),
  },
  expires: {
    title: 'Expires',
    what: 'time until it expires',
    rank: 2,
    width: 9,
    sort: 'expires_at',
    key: 'expires',
    cell: (token, nowMs) => distance(token.expires_at, expiryTint(token, nowMs)),
  },
  requests: {
    title: 'Requests',
    what: 'forwarded requests, and the cap',
    rank: 3,
    width: [8, 13],
    isWhole: true,
    alignRight: true,
    sort: 'request_count',
    isSummarized: true,
    cell: ({ request_count: used, max_requests: cap }) => ({ kind: 'cap', used, cap }),
  },
  spent: { ...SPENT_COLUMN, rank: 6.5, sort: 'spent', key: 'spent' },
  left: { ...LEFT_COLUMN, rank: 6.7, key: 'left', isSummarized: true },
  hit_ratio: {
    title: 'Hits, %',
    shortTitle: 'HIT%',
    what: 'share of responses from the cache',
    shownBy: ['tui'],
    rank: 6,
    width: 4,
    alignRight: true,
    isSummarized: true,
    cell: ({ cache_hit_count: hits, request_count: forwarded }) => {
      // A cache hit does not count towards the cap, so it is not in request_count.
      const all = hits + forwarded;
      return count(all === 0 ? null : Math.floor((100 * hits) / all));
    },
  },
  hits: {
    title: 'Hits',
    what: 'responses from the cache',
    shownBy: ['cli'],
    rank: 6,
    width: 6,
    alignRight: true,
    isSummarized: true,
    cell: ({ cache_hit_count: hits }) => count(hits),
  },
  last_used: {
    title: 'Last used',
    what: 'time since the last request',
    rank: 5,
    width: 9,
    sort: 'last_used_at',
    key: 'idle',
    cell: ({ last_used_at: at }) => distance(at),
  },
  created: {
    title: 'Created',
    what: 'time since it was issued',
    shownBy: IN_TERMINALS,
    rank: 7,
    width: 9,
    sort: 'created_at',
    key: 'created',
    cell: ({ created_at: at }) => distance(at),
  },
  secret: {
    title: 'Secret',
    what: 'obfuscated secret',
    shownBy: IN_TERMINALS,
    rank: 8,
    width: 16,
    cell: ({ obfuscated }) => ({ kind: 'code', text: obfuscated, tint: 'dim' }),
  },
  used: {
    title: 'Used',
    what: 'used part of the cap',
    shownBy: ON_REQUEST,
    rank: 9,
    width: 4,
    alignRight: true,
    key: 'used',
    isSummarized: true,
    cell: ({ request_count: used, max_requests: cap }) => ({ kind: 'share', share: used / cap }),
  },
  expiry: {
    title: 'Expiry',
    what: 'date and time of the expiry',
    shownBy: ON_REQUEST,
    rank: 9,
    width: 19,
    sort: 'expires_at',
    isSummarized: true,
    cell: ({ expires_at: at }) => ({ kind: 'time', at }),
  },
  issued: {
    title: 'Issued',
    what: 'date and time when it was issued',
    shownBy: ON_REQUEST,
    rank: 9,
    width: 19,
    sort: 'created_at',
    isSummarized: true,
    cell: ({ created_at: at }) => ({ kind: 'time', at }),
  },
  issued_by: {
    title: 'Issued by',
    what: 'who has issued it',
    shownBy: ON_REQUEST,
    rank: 9,
    width: [10, 30],
    cell: (token) => text(issuerShown(token), token.issued_by === null ? 'dim' : undefined),
  },
  revoked: {
    title: 'Revoked',
    what: 'time since it was revoked',
    shownBy: ON_REQUEST,
    rank: 9,
    width: 9,
    isSummarized: true,
    cell: ({ revoked_at: at }) => (at === null ? text(null) : distance(at)),
  },
  revoked_by: {
    title: 'Revoked by',
    what: 'who revoked it',
    shownBy: ON_REQUEST,
    rank: 9,
    width: [10, 30],
    isSummarized: true,
    cell: ({ revoked_by: by }) => text(by),
  },
  reason: {
    title: 'Reason',
    what: 'why it was revoked',
    shownBy: ON_REQUEST,
    rank: 9,
    width: [10, 60],
    isSummarized: true,
    cell: ({ revoke_reason: why }) => text(why),
  },
  allows: {
    title: 'Allows',
    what: 'routes and models that it may use',
    shownBy: ON_REQUEST,
    rank: 9,
    width: [10, 60],
    cell: ({ allow }) => text(allowShown(allow), allow === null ? 'dim' : undefined),
  },
  limits: {
    title: 'Limits',
    what: 'how fast it may be used',
    shownBy: ON_REQUEST,
    rank: 9,
    width: [10, 60],
    cell: ({ limits }) => text(limitsShown(limits), limits === null ? 'dim' : undefined),
  },
  budget: { ...BUDGET_COLUMN, rank: 9 },
});

/** The columns that have a line in the details of a token. */
export const TOKEN_LINES = TOKEN_COLUMNS.filter(({ isSummarized }) => !isSummarized);

/** Such as `operator ana`, `person Ana Lima` or `trust gha acme/web`. */
export function issuerShown({
  issued_by: actor,
  issued_by_name: name,
}: Pick<WireToken, 'issued_by' | 'issued_by_name'>) {
  if (actor === null) return 'management token';
  const [kind = '', ...rest] = actor.split(':');
  return `${kind} ${name ?? rest.join(':')}`;
}

const SOON_MS = 3_600_000;

const expiryTint = ({ state, expires_at }: WireToken, nowMs: number): Tint | undefined =>
  state === 'active' && Date.parse(expires_at) - nowMs < SOON_MS ? 'yellow' : undefined;

export interface TokenTerm {
  /** In forms. */
  label: string;
  hint: string;
  isNumber: boolean;
  /** The largest number, or the maximum length of the text. */
  max: number;
}

/** What a form asks for, besides the project and the lifetime. All are optional. */
export const TOKEN_TERMS = {
  name: { label: 'Name', hint: 'who or what will use it', isNumber: false, max: MAX_NAME_LENGTH },
  max_requests: { label: 'Request cap', hint: 'empty: no cap', isNumber: true, max: MAX_CAP },
} as const satisfies Record<Exclude<keyof TokenCreateTerms, 'project_id'>, TokenTerm>;

export type TermField = keyof typeof TOKEN_TERMS;
export type TermLabel = (typeof TOKEN_TERMS)[TermField]['label'];

/** Numbers or texts, in their order. */
export const termsThat = (areNumbers: boolean) =>
  (Object.keys(TOKEN_TERMS) as TermField[])
    .map((field) => ({ field, ...TOKEN_TERMS[field] }))
    .filter(({ isNumber }) => isNumber === areNumbers);
