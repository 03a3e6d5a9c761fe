/** The fields and columns of the usage report. */
import type { WireUsageLine } from '../../daemon/api/contract.js';
import { nanoOfCost, sumOfCosts } from '../../daemon/api/money.js';
import { FAILURE_TITLES } from '../../daemon/api/failure-words.js';
import { FAILURE_KINDS, type FailureKind, type UsageDimension } from '../../daemon/api/vocabulary.js';
import { type Cell, type Column, cost, count, text } from './column.js';

type Field = keyof WireUsageLine;

const IDENTITIES = {
  token: ['token_id', 'token_name'],
  project: ['project_id', 'project_name'],
  model: ['model'],
  hour: ['hour'],
  day: ['day'],
} as const satisfies Record<UsageDimension, readonly Field[]>;

/** The parts of the failures. */
const KIND_RANKS: Record<FailureKind, number> = { refused: 3, upstream_refused: 5, failed: 3.2, cut: 6 };
const OF_KINDS = FAILURE_KINDS.map((field) => ({ field, title: FAILURE_TITLES[field], rank: KIND_RANKS[field] }));

/** The counts of a line. If the terminal is too narrow, those with the highest rank are left out first. */
export const USAGE_COUNTS = [
  { field: 'requests', title: 'Requests', rank: 0 },
  { field: 'hits', title: 'Cache hits', shortTitle: 'HITS', rank: 4 },
  { field: 'errors', title: 'Failures', rank: 1 },
  ...OF_KINDS,
  { field: 'prompt_tokens', title: 'Prompt tokens', shortTitle: 'PROMPT', rank: 1 },
  { field: 'completion_tokens', title: 'Completion tokens', shortTitle: 'COMPLETION', rank: 1 },
  // Of prompt tokens. Shown if there are some.
  { field: 'cache_read_tokens', title: 'Prompt cache read', shortTitle: 'CACHE READ', rank: 2, isRare: true },
  { field: 'cache_write_tokens', title: 'Prompt cache written', shortTitle: 'CACHE WRITE', rank: 5.5, isRare: true },
  { field: 'cost_usd', title: 'Cost', rank: 1.5 },
  // Requests whose cost is unknown.
  { field: 'unpriced_requests', title: 'Unpriced', rank: 4.2, isRare: true },
] as const satisfies readonly { field: Field; title: string; shortTitle?: string; rank: number; isRare?: boolean }[];

export type UsageCount = (typeof USAGE_COUNTS)[number]['field'];
export type UsageSums = Pick<WireUsageLine, UsageCount>;

/** For sorting and bars. Costs are in nano-USD; an unknown cost is 0. */
export const amountOf = (line: UsageSums, field: UsageCount): number =>
  field === 'cost_usd' ? nanoOfCost(line) : line[field];

export function sumsOf(lines: readonly UsageSums[]): UsageSums {
  const sums = USAGE_COUNTS.map(({ field }) => [field, lines.reduce((sum, line) => sum + amountOf(line, field), 0)]);
  return { ...(Object.fromEntries(sums) as Omit<UsageSums, 'cost_usd'>), ...sumOfCosts(lines) };
}

/** What the lines are, and their counts, in the order of exports. */
export const usageFields = (by: readonly UsageDimension[]): Field[] => [
  ...by.flatMap((dimension): readonly Field[] => IDENTITIES[dimension]),
  ...USAGE_COUNTS.map(({ field }) => field),
];

const UNKNOWN = text('unknown', 'dim');

const named = (kind: 'token' | 'project', id: string | null | undefined, name: string | null | undefined): Cell =>
  id ? { kind, of: { id, name: name ?? null } } : UNKNOWN;

const CELLS: Record<UsageDimension, { title: string; cell: (line: WireUsageLine) => Cell }> = {
  token: { title: 'Token', cell: ({ token_id: id, token_name: name }) => named('token', id, name) },
  project: { title: 'Project', cell: ({ project_id: id, project_name: name }) => named('project', id, name) },
  model: { title: 'Model', cell: ({ model }) => (model ? text(model) : text('no model', 'dim')) },
  hour: { title: 'Hour (UTC)', cell: ({ hour = '' }) => text(hour.slice(0, 16).replace('T', ' ')) },
  day: { title: 'Day (UTC)', cell: ({ day = '' }) => text(day.slice(0, 10)) },
};

/** @param isShown whether a rare count is shown. */
export function usageColumns(
  by: readonly UsageDimension[],
  isShown: (field: UsageCount) => boolean,
): Column<WireUsageLine>[] {
  const counts = USAGE_COUNTS.filter((it) => !('isRare' in it) || isShown(it.field));
  return [
    ...by.map((id) => ({ id, what: id, rank: 0, width: [16, 32] as const, ...CELLS[id] })),
    ...counts.map(({ field, ...column }) => ({
      ...column,
      id: field,
      what: field,
      width: 1,
      alignRight: true,
      cell: (line: WireUsageLine) => (field === 'cost_usd' ? cost(line) : count(line[field])),
    })),
  ];
}
