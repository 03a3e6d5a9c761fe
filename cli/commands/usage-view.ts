/** How `llmp usage` shows its report: sorted lines, bars, a line for the others, and the total. */
import { barText } from '../../console/bars.js';
import { type Column, text } from '../../console/columns/column.js';
import {
  amountOf,
  sumsOf,
  USAGE_COUNTS,
  usageColumns,
  type UsageCount,
  usageFields,
} from '../../console/columns/usage.js';
import type { TableColumn, View } from '../../console/table.js';
import { tableColumns } from '../../console/views.js';
import type { WireUsageLine } from '../../daemon/api/contract.js';
import { exact } from '../../daemon/api/formats.js';
import { FAILURE_KINDS, type UsageDimension } from '../../daemon/api/vocabulary.js';

// A bar gives way to figures.
const BAR_RANK = 4.5;
const BAR_COLUMNS = 12;

const COUNTS = USAGE_COUNTS.map(({ field }) => field);

/** `tokens` is the sum of prompt and completion tokens. */
export const SORT_FIELDS = [
  'requests',
  'tokens',
  'cost',
  ...COUNTS.filter((field) => field !== 'requests' && field !== 'cost_usd'),
] as const;
export type SortField = (typeof SORT_FIELDS)[number];
export const DEFAULT_SORT = 'requests' satisfies SortField;

/** A line for people. The label replaces the dimensions of a line that sums up others. */
type UsageRow = WireUsageLine & { label?: string };

/** The counts whose sum a field sorts by. */
const countsOf = (field: SortField): readonly UsageCount[] =>
  field === 'tokens' ? ['prompt_tokens', 'completion_tokens'] : [field === 'cost' ? 'cost_usd' : field];

const measuredIn = (line: WireUsageLine, field: SortField): number =>
  countsOf(field).reduce((sum, count) => sum + amountOf(line, count), 0);

/** The lines with the largest amounts first. Lines with the same amount keep their order. */
export const sorted = (lines: readonly WireUsageLine[], field: SortField): WireUsageLine[] =>
  [...lines].sort((one, other) => measuredIn(other, field) - measuredIn(one, field));

/** The lines in groups with the same first dimension of `by`, in descending order of their sums. */
export function grouped(
  lines: readonly WireUsageLine[],
  [first]: readonly UsageDimension[],
  field: SortField,
): WireUsageLine[][] {
  const groups = new Map<string, WireUsageLine[]>();
  for (const line of lines) {
    const key = first === undefined ? '' : (line[FIELDS[first]] ?? '');
    groups.set(key, [...(groups.get(key) ?? []), line]);
  }
  const amount = (group: readonly WireUsageLine[]) => group.reduce((sum, line) => sum + measuredIn(line, field), 0);
  return [...groups.values()].sort((one, other) => amount(other) - amount(one));
}

const sumOf = (lines: readonly WireUsageLine[], label: string): UsageRow => ({ ...sumsOf(lines), label });

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
    fields: usageFields(by),
    columns: columnsOf(report),
    summary(items) {
      if (items.length + others.length < 2) return [];
      const rest = others.length === 0 ? [] : [sumOf(others, `other (${exact(others.length)})`)];
      return [...rest, sumOf([...items, ...others], 'total')];
    },
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

function columnsOf({ by, lines, others, measured }: Report): TableColumn<UsageRow>[] {
  const isUsed = (field: UsageCount) =>
    isMeasured(field, measured) || [...lines, ...others].some((line) => amountOf(line, field) > 0);
  const columns = usageColumns(by, isUsed).map((column): Column<UsageRow> => {
    const at = by.findIndex((dimension) => dimension === column.id);
    if (at === -1) return isMeasured(column.id, measured) ? { ...column, rank: 0 } : column;
    const labelled = (label: string) => text(at === 0 ? label : '', 'dim');
    return {
      ...column,
      cell: (row, nowMs) => (row.label === undefined ? column.cell(row, nowMs) : labelled(row.label)),
    };
  });
  const shown = tableColumns(columns);
  if (by.length === 0) return shown;
  const at = columns.findLastIndex(({ id }) => isMeasured(id, measured)) + 1;
  return [...shown.slice(0, at), barColumn(lines, measured), ...shown.slice(at)];
}

/** What the report is sorted by is always shown. */
const isMeasured = (field: string, measured: SortField) => countsOf(measured).some((count) => count === field);

/** A bar beside what it measures. Sums of several lines have none: they would make the others too short to compare. */
function barColumn(lines: readonly WireUsageLine[], measured: SortField): TableColumn<UsageRow> {
  const most = Math.max(1, ...lines.map((line) => measuredIn(line, measured)));
  const isGood = !['errors', ...FAILURE_KINDS].some((one) => one === measured);
  return {
    title: '',
    rank: BAR_RANK,
    show: (row, { ascii }) =>
      row.label === undefined ? barText(measuredIn(row, measured) / most, BAR_COLUMNS, ascii) : '',
    tint: () => (isGood ? 'green' : 'red'),
  };
}
