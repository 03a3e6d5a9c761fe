/** The usage report: a page and exports. */
import {
  amountOf,
  sumsOf,
  USAGE_COUNTS,
  usageColumns,
  usageFields,
  type UsageSums,
} from '../../../console/columns/usage.js';
import { counted } from '../../api/formats.js';
import { costShown } from '../../api/money.js';
import type { UsageQuery, WireUsageLine } from '../../api/contract.js';
import { spanMs, type UsageDimension } from '../../api/vocabulary.js';
import { exported } from '../export.js';
import {
  allProjects,
  attempt,
  choiceOf,
  get,
  invalidRequest,
  type PageRequest,
  parametersOf,
  periodOf,
  statusOf,
} from '../page-request.js';
import { withTokenId } from '../token-filter.js';
import { tableColumns } from '../parts/cells.js';
import { Heading } from '../parts/document.js';
import { type Choices, filterFields, FilterForm } from '../parts/fields.js';
import {
  EmptyState,
  ErrorNotice,
  Exports,
  type FilteredListProps,
  type Order,
  Paging,
  sortingOf,
  WideTable,
} from '../parts/common.js';
import { REQUEST_CHART, TimeCharts, TOKEN_CHART } from '../parts/time-chart.js';
import { type Bucket, bucketsOf, lastSteps, STEP_MS, type Timeline } from '../parts/timeline.js';

/** What the page shows. Without a valid query that is nothing. */
interface Loaded {
  /** The lines of this page. */
  lines: WireUsageLine[];
  /** What the lines are. */
  by: readonly UsageDimension[];
  /** Requests over time. */
  buckets: readonly Bucket[];
  /** Null if the query is invalid. */
  timeline: Timeline | null;
}

interface UsageProps extends FilteredListProps, Loaded {
  /** Sums over all pages. */
  sums: UsageSums;
  /** Number of lines on all pages. */
  total: number;
}

const GROUPINGS: Choices = [
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

const PERIODS: Choices = [
  ['24', 'last 24 h'],
  ['168', 'last 7 days'],
  ['720', 'last 30 days'],
  ['2160', 'last 90 days'],
  ['8760', 'last year'],
];

const DEFAULT_HOURS = '168';
const DEFAULT_SORT = 'requests';

/** For windows that are too narrow for the headers of the columns. */
const SORTS: Choices = [
  ['requests', 'most requests'],
  ['cost_usd', 'highest cost'],
  ['errors', 'most failures'],
  ['prompt_tokens', 'most prompt tokens'],
  ['completion_tokens', 'most completion tokens'],
  ['cache_read_tokens', 'most prompt cache reads'],
  ['time', 'newest first'],
];

const SORTABLE: readonly string[] = ['time', ...USAGE_COUNTS.map(({ field }) => field)];

function UsagePage(props: UsageProps) {
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
                {counted(total, 'row')}, {counted(sums.requests, 'request')}, cost {costShown(sums)}
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

function UsageFilter({ query, projects }: UsageProps) {
  const { select, project, token, since, until, times } = filterFields(query);
  return (
    <FilterForm to="usage" label="Filter usage" verb="Show" query={query}>
      {select('by', 'Group by', GROUPINGS, 'model')}
      {select('since_hours', 'Period', PERIODS, DEFAULT_HOURS)}
      {since('Or since')}
      {until()}
      {times()}
      {project(projects)}
      {token()}
      <div className="narrow-only">{select('sort', 'Sort by', SORTS, DEFAULT_SORT)}</div>
    </FilterForm>
  );
}

const ordersOf = (field: string): Order[] =>
  SORTABLE.includes(field) ? [{ name: field, direction: 'descending' }] : [];

function UsageTable({ lines, sums, by, query }: UsageProps) {
  const counts = usageColumns(by, (count) => amountOf(sums, count) > 0);
  // The first column is the time of a report by the day or hour.
  const columns = counts.map((column) => ({
    ...column,
    sort: ['day', 'hour'].includes(column.id) ? 'time' : column.id,
  }));
  return (
    <WideTable
      id="usage-lines"
      label="Usage"
      sorting={sortingOf('usage', query, query.get('sort') || DEFAULT_SORT)}
      rows={lines}
      keyOf={(line) => [line.day, line.hour, line.token_id, line.project_id, line.model].join(' ')}
      columns={tableColumns(columns, {}, ordersOf)}
    />
  );
}

// ---- routes

const LINES_SHOWN = 50;

const dimensionsOf = ({ by }: Pick<Report, 'by'>) => by.split(',') as UsageDimension[];
const valuesOf = (choices: Choices) => choices.map(([value]) => value);

interface Report extends Period {
  /** Dimensions, separated by commas. */
  by: string;
  sort: string;
  /** The filter of the API requests. */
  filter: UsageQuery;
}

/** @throws {ApiError} if the query of the page is invalid. */
async function reportOf(request: PageRequest): Promise<Report> {
  const { client, query } = request;
  return {
    by: choiceOf(query, 'by', valuesOf(GROUPINGS), 'model'),
    sort: choiceOf(query, 'sort', SORTABLE, DEFAULT_SORT),
    ...reportedPeriod(request),
    filter: await withTokenId(client, parametersOf(query, ['project_id', 'token_id'])),
  };
}

const within = (fromMs: number, toMs: number): UsageQuery => ({
  since: new Date(fromMs).toISOString(),
  until: new Date(toMs).toISOString(),
});

function sorted(lines: WireUsageLine[], sort: string): WireUsageLine[] {
  const timeOf = ({ hour, day }: WireUsageLine) => hour ?? day ?? '';
  if (sort === 'time') return lines.sort((one, other) => timeOf(other).localeCompare(timeOf(one)));
  const field = USAGE_COUNTS.find((it) => it.field === sort)?.field ?? DEFAULT_SORT;
  return lines.sort((one, other) => amountOf(other, field) - amountOf(one, field));
}

/** The cursor of this list is the page number. */
const pageOf = (query: URLSearchParams) => {
  const given = query.get('cursor') ?? '';
  return /^[1-9]\d{0,5}$/.test(given) ? Number(given) : 1;
};

/** Loads the lines of an export, day by day if it has days or hours, so that a long period does not need more memory than a short one. */
async function* exportLines(
  { client }: PageRequest,
  { by, sinceMs, untilMs: endMs, filter }: Report,
): AsyncGenerator<readonly WireUsageLine[]> {
  if (!/\b(?:day|hour)\b/.test(by)) {
    yield client.usage({ ...filter, by, ...within(sinceMs, endMs) });
    return;
  }
  for (let fromMs = sinceMs; fromMs < endMs;) {
    const toMs = Math.min(endMs, (Math.floor(fromMs / STEP_MS.day) + 1) * STEP_MS.day);
    yield client.usage({ ...filter, by, ...within(fromMs, toMs) });
    fromMs = toMs;
  }
}

const NOTHING: Loaded = { lines: [], by: [], buckets: [], timeline: null };

async function load(request: PageRequest): Promise<Loaded> {
  const { client } = request;
  const report = await reportOf(request);
  const { by, sort, timeline, sinceMs, untilMs, filter } = report;
  const asked = { ...filter, ...within(sinceMs, untilMs) };
  const overTime = client.usage({ ...asked, by: timeline.step });
  const lines = by === timeline.step ? overTime : client.usage({ ...asked, by });
  const [ofTable, ofCharts] = await Promise.all([lines, overTime]);
  const buckets = bucketsOf(ofCharts, timeline);
  return { lines: sorted([...ofTable], sort), by: dimensionsOf(report), buckets, timeline };
}

export const usageRoutes = [
  get('/usage', 'read usage', async (request) => {
    const { client, query } = request;
    const projects = await allProjects(client);
    const { value, refused } = await attempt<Loaded>(() => load(request), NOTHING);
    const { lines, ...charts } = value;
    const page = pageOf(query);
    const shown = lines.slice((page - 1) * LINES_SHOWN, page * LINES_SHOWN);
    const body = (
      <UsagePage
        lines={shown}
        {...charts}
        sums={sumsOf(lines)}
        total={lines.length}
        next={lines.length > page * LINES_SHOWN ? String(page + 1) : null}
        query={query}
        projects={projects}
        refused={refused}
      />
    );
    return { title: 'Usage', section: 'usage', body, ...statusOf(refused) };
  }),
  get('/usage/export', 'read usage', async (request) => {
    const report = await reportOf(request);
    return exported(request, 'usage', usageFields(dimensionsOf(report)), exportLines(request, report));
  }),
];

// ---- the period: one of a list, or any other

// Up to this length a chart has a bar for each hour.
const MAX_HOURLY_MS = 7 * STEP_MS.day;
const MAX_DAYS = 366;

interface Period {
  sinceMs: number;
  untilMs: number;
  /** Whole hours or days around it. */
  timeline: Timeline;
}

/** The API counts whole hours. @throws {ApiError} if the query is invalid, or the period is too long. */
function reportedPeriod({ query, nowMs }: PageRequest): Period {
  const { since, until } = periodOf(query);
  const msOf = (written: string) => nowMs - (spanMs(written) ?? nowMs - Date.parse(written));
  const untilMs = Math.min(nowMs, until === undefined ? nowMs : msOf(until));
  if (query.get('since')) return periodFrom(floored(msOf(since ?? ''), STEP_MS.hour), untilMs);
  const hours = choiceOf(query, 'since_hours', valuesOf(PERIODS), DEFAULT_HOURS);
  const lengthMs = Number(hours) * STEP_MS.hour;
  const { fromMs } =
    lengthMs <= MAX_HOURLY_MS
      ? lastSteps(lengthMs / STEP_MS.hour, 'hour', untilMs)
      : lastSteps(Math.ceil(lengthMs / STEP_MS.day), 'day', untilMs);
  return periodFrom(fromMs, untilMs);
}

function periodFrom(sinceMs: number, untilMs: number): Period {
  if (sinceMs >= untilMs) throw invalidRequest('the period must begin before its end, and not in the future');
  if (untilMs - sinceMs > MAX_DAYS * STEP_MS.day) throw invalidRequest(`choose a period of up to ${MAX_DAYS} days`);
  // The first hour is a whole one.
  const step = untilMs - sinceMs < MAX_HOURLY_MS + STEP_MS.hour ? 'hour' : 'day';
  const fromMs = floored(sinceMs, STEP_MS[step]);
  const toMs = -floored(-untilMs, STEP_MS[step]);
  return { sinceMs, untilMs, timeline: { fromMs, toMs, step } };
}

const floored = (ms: number, stepMs: number) => Math.floor(ms / stepMs) * stepMs;
