/** The usage report: a page and exports. */
import { USAGE_COUNTS, usageColumns, type UsageCount, usageFields } from '../../../console/columns/usage.js';
import { counted } from '../../api/formats.js';
import type { UsageQuery, WireUsageLine } from '../../api/contract.js';
import type { UsageDimension } from '../../api/vocabulary.js';
import { exported } from '../export.js';
import {
  allProjects,
  attempt,
  choiceOf,
  get,
  invalidRequest,
  type PageRequest,
  parametersOf,
  statusOf,
} from '../page-request.js';
import { withTokenId } from '../token-filter.js';
import { tableColumns } from '../parts/cells.js';
import { Heading } from '../parts/document.js';
import { type Choices, filterFields, FilterForm } from '../parts/fields.js';
import { EmptyState, ErrorNotice, Exports, type FilteredListProps, Paging, WideTable } from '../parts/common.js';
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
  sums: Readonly<Record<UsageCount, number>>;
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

const SORTS: Choices = [
  ['requests', 'most requests'],
  ['errors', 'most errors'],
  ['prompt_tokens', 'most prompt tokens'],
  ['completion_tokens', 'most completion tokens'],
  ['cache_read_tokens', 'most prompt cache reads'],
  ['time', 'newest first'],
];

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

function UsageFilter({ query, projects }: UsageProps) {
  const { input, select, project, token } = filterFields(query);
  return (
    <FilterForm to="usage" label="Filter usage" verb="Show" query={query}>
      {select('by', 'Group by', GROUPINGS, 'model')}
      {select('since_hours', 'Period', PERIODS, '168')}
      {input('from', 'Or from', { type: 'date' })}
      {input('to', 'To (UTC)', { type: 'date' })}
      {project(projects)}
      {token()}
      {select('sort', 'Sort by', SORTS, 'requests')}
    </FilterForm>
  );
}

function UsageTable({ lines, sums, by }: UsageProps) {
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

// ---- routes

const LINES_SHOWN = 50;

const dimensionsOf = ({ by }: Pick<Report, 'by'>) => by.split(',') as UsageDimension[];
const valuesOf = (choices: Choices) => choices.map(([value]) => value);

interface Report {
  /** Dimensions, separated by commas. */
  by: string;
  sort: string;
  timeline: Timeline;
  /** The filter of the API requests. */
  filter: UsageQuery;
}

/** @throws {ApiError} if the query of the page is invalid. */
async function reportOf(request: PageRequest): Promise<Report> {
  const { client, query } = request;
  return {
    by: choiceOf(query, 'by', valuesOf(GROUPINGS), 'model'),
    sort: choiceOf(query, 'sort', valuesOf(SORTS), 'requests'),
    timeline: periodOf(request),
    filter: await withTokenId(client, parametersOf(query, ['project_id', 'token_id'])),
  };
}

const within = (fromMs: number, toMs: number): UsageQuery => ({
  since: new Date(fromMs).toISOString(),
  until: new Date(toMs).toISOString(),
});

/** The rest of the current hour or day has no usage yet. */
const endOf = ({ toMs }: Timeline, nowMs: number) => Math.min(toMs, nowMs);

function sorted(lines: WireUsageLine[], sort: string): WireUsageLine[] {
  const timeOf = ({ hour, day }: WireUsageLine) => hour ?? day ?? '';
  if (sort === 'time') return lines.sort((one, other) => timeOf(other).localeCompare(timeOf(one)));
  const figure = (line: WireUsageLine) => Number(line[sort as keyof WireUsageLine] ?? 0);
  return lines.sort((one, other) => figure(other) - figure(one));
}

const sumsOf = (lines: readonly WireUsageLine[]) =>
  Object.fromEntries(
    USAGE_COUNTS.map(({ field }) => [field, lines.reduce((sum, line) => sum + line[field], 0)]),
  ) as Record<UsageCount, number>;

/** The cursor of this list is the page number. */
const pageOf = (query: URLSearchParams) => {
  const given = query.get('cursor') ?? '';
  return /^[1-9]\d{0,5}$/.test(given) ? Number(given) : 1;
};

/** Loads the lines of an export, day by day if it has days or hours, so that a long period does not need more memory than a short one. */
async function* exportLines(
  { client, nowMs }: PageRequest,
  { by, timeline, filter }: Report,
): AsyncGenerator<readonly WireUsageLine[]> {
  const endMs = endOf(timeline, nowMs);
  if (!/\b(?:day|hour)\b/.test(by)) {
    yield client.usage({ ...filter, by, ...within(timeline.fromMs, endMs) });
    return;
  }
  for (let fromMs = timeline.fromMs; fromMs < endMs;) {
    const toMs = Math.min(endMs, (Math.floor(fromMs / STEP_MS.day) + 1) * STEP_MS.day);
    yield client.usage({ ...filter, by, ...within(fromMs, toMs) });
    fromMs = toMs;
  }
}

const NOTHING: Loaded = { lines: [], by: [], buckets: [], timeline: null };

async function load(request: PageRequest): Promise<Loaded> {
  const { client, nowMs } = request;
  const report = await reportOf(request);
  const { by, sort, timeline, filter } = report;
  const asked = { ...filter, ...within(timeline.fromMs, endOf(timeline, nowMs)) };
  const overTime = client.usage({ ...asked, by: timeline.step });
  const lines = by === timeline.step ? overTime : client.usage({ ...asked, by });
  const [ofTable, ofCharts] = await Promise.all([lines, overTime]);
  const buckets = bucketsOf(ofCharts, timeline);
  return { lines: sorted([...ofTable], sort), by: dimensionsOf(report), buckets, timeline };
}

export const usageRoutes = [
  get('/usage', async (request) => {
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
  get('/usage/export', async (request) => {
    const report = await reportOf(request);
    return exported(request, 'usage', usageFields(dimensionsOf(report)), exportLines(request, report));
  }),
];

// ---- the period: one of a list, or two dates

// Up to this length a chart has a bar for each hour.
const MAX_HOURLY_MS = 7 * STEP_MS.day;
const MAX_DAYS = 366;

/** @throws {ApiError} if the query is invalid, or the period is too long. */
function periodOf({ query, nowMs }: PageRequest): Timeline {
  const hours = choiceOf(query, 'since_hours', valuesOf(PERIODS), '168');
  const from = dateIn(query, 'from');
  const to = dateIn(query, 'to');
  if (from === null && to === null) {
    const lengthMs = Number(hours) * STEP_MS.hour;
    return lengthMs <= MAX_HOURLY_MS
      ? lastSteps(lengthMs / STEP_MS.hour, 'hour', nowMs)
      : lastSteps(Math.ceil(lengthMs / STEP_MS.day), 'day', nowMs);
  }
  if (from === null) throw invalidRequest('choose the first day as well');
  if (from > nowMs) throw invalidRequest('the first day must not be in the future');
  const today = Math.floor(nowMs / STEP_MS.day) * STEP_MS.day;
  // The last day is included.
  const toMs = Math.min(to ?? today, today) + STEP_MS.day;
  if (toMs <= from) throw invalidRequest('the last day must not be before the first');
  if (toMs - from > MAX_DAYS * STEP_MS.day) throw invalidRequest(`choose a period of up to ${MAX_DAYS} days`);
  return { fromMs: from, toMs, step: toMs - from <= MAX_HOURLY_MS ? 'hour' : 'day' };
}

/** @returns the start of the day in UTC; null if the field is empty. */
function dateIn(query: URLSearchParams, name: string): number | null {
  const given = query.get(name)?.trim() ?? '';
  if (given === '') return null;
  const ms = Date.parse(`${given}T00:00:00Z`);
  // 30 February would be read as a day in March.
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== `${given}T00:00:00.000Z`)
    throw invalidRequest('a day must be written like 2030-01-31');
  return ms;
}
