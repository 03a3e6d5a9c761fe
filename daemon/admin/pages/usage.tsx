import { usageColumns, type UsageCount } from '../../../console/columns/usage.js';
import { counted } from '../../api/formats.js';
import type { WireUsageLine } from '../../api/contract.js';
import type { UsageDimension } from '../../api/vocabulary.js';
import { tableColumns } from './cells.js';
import { Heading } from './document.js';
import { type Choices, FilterForm, filterFields } from './fields.js';
import { EmptyState, Exports, type FilteredListProps, Paging, ErrorNotice, WideTable } from './parts.js';
import { REQUEST_CHART, TimeCharts, TOKEN_CHART } from './time-chart.js';
import type { Bucket, Timeline } from './timeline.js';

export interface UsagePageProps extends FilteredListProps {
  /** The lines of this page. */
  lines: readonly WireUsageLine[];
  /** Requests over time. */
  buckets: readonly Bucket[];
  /** Null if the query is invalid. */
  timeline: Timeline | null;
  /** What the lines are. */
  by: readonly UsageDimension[];
  /** Sums over all pages. */
  sums: Readonly<Record<UsageCount, number>>;
  /** Number of lines on all pages. */
  total: number;
}

export const GROUPINGS: Choices = [
  ['model', 'model'],
  ['token', 'token'],
  ['project', 'project'],
  ['day', 'day'],
  ['hour', 'hour'],
  ['token,model', 'token and model'],
  ['project,model', 'project and model'],
  ['day,model', 'day and model'],
  ['day,token', 'day and token'],
  ['day,project', 'day and project'],
];

export const PERIODS: Choices = [
  ['24', 'last 24 h'],
  ['168', 'last 7 days'],
  ['720', 'last 30 days'],
  ['2160', 'last 90 days'],
  ['8760', 'last year'],
];

export const USAGE_SORTS: Choices = [
  ['requests', 'most requests'],
  ['errors', 'most errors'],
  ['prompt_tokens', 'most prompt tokens'],
  ['completion_tokens', 'most completion tokens'],
  ['cache_read_tokens', 'most prompt cache reads'],
  ['time', 'newest first'],
];

export function usagePage(props: UsagePageProps) {
  const { lines, by, total, next, query, refused, timeline, buckets, sums } = props;
  return (
    <>
      <Heading title="Usage" />
      <ErrorNotice why={refused} />
      <UsageFilter {...props} />
      {lines.length > 0 && timeline !== null ? (
        <>
          <section aria-labelledby="charts-title">
            <h2 id="charts-title">Over time</h2>
            <TimeCharts
              id="usage-over-time"
              timeline={timeline}
              buckets={buckets}
              charts={[REQUEST_CHART, TOKEN_CHART]}
            />
          </section>
          <section aria-labelledby="lines-title">
            <div className="section-head">
              <h2 id="lines-title">By {GROUPINGS.find(([value]) => value === by.join())?.[1]}</h2>
              <p className="faint">
                {counted(total, 'row')}, {counted(sums.requests, 'request')}
              </p>
              <Exports to="usage/export" query={query} />
            </div>
            <UsageTable {...props} />
          </section>
        </>
      ) : (
        refused === null && (
          <EmptyState title="No requests in this period">
            <p>Choose a longer period or another project.</p>
          </EmptyState>
        )
      )}
      <Paging to="usage" query={query} next={next} />
    </>
  );
}

function UsageFilter({ query, projects }: UsagePageProps) {
  const { input, select, project, token } = filterFields(query);
  return (
    <FilterForm to="usage" label="Filter usage" verb="Show" query={query}>
      {select('by', 'Group by', GROUPINGS, 'model')}
      {select('since_hours', 'Period', PERIODS, '168')}
      {input('from', 'Or from', { type: 'date' })}
      {input('to', 'To (UTC)', { type: 'date' })}
      {project(projects)}
      {token()}
      {select('sort', 'Sort by', USAGE_SORTS, 'requests')}
    </FilterForm>
  );
}

function UsageTable({ lines, sums, by }: UsagePageProps) {
  return (
    <WideTable
      id="usage-lines"
      label="Usage"
      rows={lines}
      keyOf={(line) => [line.day, line.hour, line.token_id, line.project_id, line.model].join(' ')}
      columns={tableColumns(usageColumns(by, (count) => sums[count] > 0))}
    />
  );
}
