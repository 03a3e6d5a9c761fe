/** How `llmp usage` shows its report: sorted lines, bars, a line for the others, and the total. */
import { barText } from '../../console/bars.js';
import type { TableColumn, View } from '../../console/table.js';
import { nameOr } from '../../console/views.js';
import type { WireUsageLine } from '../../daemon/api/contract.js';
import { exact } from '../../daemon/api/formats.js';
import type { UsageDimension } from '../../daemon/api/vocabulary.js';

// If the terminal is too narrow, the columns with the highest rank are removed first.
const COUNTS = [
  { field: 'requests', title: 'REQUESTS', rank: 0 },
  { field: 'hits', title: 'HITS', rank: 4 },
  { field: 'refused', title: 'REFUSED', rank: 3 },
  { field: 'errors', title: 'ERRORS', rank: 1 },
  { field: 'prompt_tokens', title: 'PROMPT', rank: 1 },
  { field: 'completion_tokens', title: 'COMPLETION', rank: 1 },
  // New fields come last, because scripts read the others by position.
  { field: 'upstream_refused', title: 'UPSTREAM 4XX', rank: 3 },
  { field: 'upstream_errors', title: 'UPSTREAM 5XX', rank: 5 },
  { field: 'cut', title: 'CUT', rank: 6 },
] as const;
/** Of prompt tokens. Shown if there are some; for scripts after all other fields. */
const PROMPT_CACHE_COUNTS = [
  { field: 'cache_read_tokens', title: 'CACHE READ', rank: 2 },
  { field: 'cache_write_tokens', title: 'CACHE WRITE', rank: 5.5 },
] as const;
const ALL_COUNTS = [...COUNTS, ...PROMPT_CACHE_COUNTS] as const;
// A bar gives way to figures.
const BAR_RANK = 4.5;
const BAR_COLUMNS = 12;

type CountField = (typeof ALL_COUNTS)[number]['field'];

/** `tokens` is the sum of prompt and completion tokens. */
export const SORT_FIELDS = ['requests', 'tokens', ...ALL_COUNTS.slice(1).map(({ field }) => field)] as const;
export type SortField = 'tokens' | CountField;
export const DEFAULT_SORT = 'requests' satisfies SortField;

/** A line for people. The label replaces the dimensions of a line that sums up others. */
type UsageRow = WireUsageLine & { label?: string };

function amountOf(line: WireUsageLine, field: SortField): number {
  const amount = field === 'tokens' ? line.prompt_tokens + line.completion_tokens : line[field];
  return amount || 0; // An older daemon does not report all of them.
}

/** The lines with the largest amounts first. Lines with the same amount keep their order. */
export const sorted = (lines: readonly WireUsageLine[], field: SortField): WireUsageLine[] =>
  [...lines].sort((one, other) => amountOf(other, field) - amountOf(one, field));

function sumOf(lines: readonly WireUsageLine[], label: string): UsageRow {
  const total = (field: CountField) => lines.reduce((sum, line) => sum + line[field], 0);
  const counts = Object.fromEntries(ALL_COUNTS.map(({ field }) => [field, total(field)])) as Record<CountField, number>;
  return { ...counts, label };
}

/** A report, and how it is shown. */
export interface Report {
  by: readonly UsageDimension[];
  lines: readonly WireUsageLine[];
  /** The lines that are not shown; for people, one line has their sum. */
  others: readonly WireUsageLine[];
  /** What the bars show. */
  measured: SortField;
}

export function usageView(report: Report): View<UsageRow> {
  const { by, others } = report;
  return {
    idOf: (line) => by.map((dimension) => line[FIELDS[dimension]] ?? NONE).join(' '),
    fields: [
      ...by.map((dimension) => FIELDS[dimension]),
      ...COUNTS.map(({ field }) => field),
      ...(by.includes('token') ? (['token_name'] as const) : []),
      ...(by.includes('project') ? (['project_name'] as const) : []),
      ...PROMPT_CACHE_COUNTS.map(({ field }) => field),
    ],
    columns: columnsOf(report),
    summary(items) {
      if (items.length + others.length < 2) return [];
      const rest = others.length === 0 ? [] : [sumOf(others, `other (${exact(others.length)})`)];
      return [...rest, sumOf([...items, ...others], 'total')];
    },
    details: {},
  };
}

const NONE = '-';

const FIELDS = {
  token: 'token_id',
  project: 'project_id',
  model: 'model',
  hour: 'hour',
  day: 'day',
} as const satisfies Record<UsageDimension, keyof WireUsageLine>;

const shown = (id: string | null | undefined, name: string | null | undefined) => (id ? nameOr(name, id) : NONE);

const DIMENSIONS: Record<UsageDimension, TableColumn<UsageRow>> = {
  token: { title: 'TOKEN', rank: 0, show: ({ token_id, token_name }) => shown(token_id, token_name), shrinks: true },
  project: {
    title: 'PROJECT',
    rank: 0,
    show: ({ project_id, project_name }) => shown(project_id, project_name),
    shrinks: true,
  },
  model: { title: 'MODEL', rank: 0, show: ({ model }) => model ?? NONE, shrinks: true },
  hour: { title: 'HOUR (UTC)', rank: 0, show: ({ hour }) => (hour ?? '').slice(0, 16).replace('T', ' ') },
  day: { title: 'DAY (UTC)', rank: 0, show: ({ day }) => (day ?? '').slice(0, 10) },
};

function columnsOf({ by, lines, others, measured }: Report): TableColumn<UsageRow>[] {
  const isUsed = ({ field }: (typeof PROMPT_CACHE_COUNTS)[number]) =>
    isMeasured(field, measured) || [...lines, ...others].some((line) => amountOf(line, field) > 0);
  const shownCounts = [...COUNTS, ...PROMPT_CACHE_COUNTS.filter(isUsed)];
  const dimensions = by.map((dimension, at): TableColumn<UsageRow> => {
    const column = DIMENSIONS[dimension];
    return {
      ...column,
      show: (row, render) => (row.label === undefined ? column.show(row, render) : at === 0 ? row.label : ''),
      tint: ({ label }) => (label === undefined ? undefined : 'dim'),
    };
  });
  const counts = shownCounts.map(({ field, title, rank }): TableColumn<UsageRow> => ({
    title,
    // What the report is sorted by is always shown.
    rank: isMeasured(field, measured) ? 0 : rank,
    show: (row) => exact(row[field]),
    alignRight: true,
  }));
  if (by.length === 0) return counts;
  const at = shownCounts.findLastIndex(({ field }) => isMeasured(field, measured)) + 1;
  return [...dimensions, ...counts.slice(0, at), barColumn(lines, measured), ...counts.slice(at)];
}

const isMeasured = (field: CountField, measured: SortField) =>
  measured === 'tokens' ? field === 'prompt_tokens' || field === 'completion_tokens' : field === measured;

/** A bar beside what it measures. Sums of several lines have none: they would make the others too short to compare. */
function barColumn(lines: readonly WireUsageLine[], measured: SortField): TableColumn<UsageRow> {
  const most = Math.max(1, ...lines.map((line) => amountOf(line, measured)));
  const isGood = !['refused', 'errors', 'upstream_refused', 'upstream_errors', 'cut'].includes(measured);
  return {
    title: '',
    rank: BAR_RANK,
    show: (row, { ascii }) =>
      row.label === undefined ? barText(amountOf(row, measured) / most, BAR_COLUMNS, ascii) : '',
    tint: () => (isGood ? 'green' : 'red'),
  };
}
