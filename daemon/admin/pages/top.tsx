/** The busiest tokens, projects or models of the last minutes or hours: a page and exports. */
import { shortId } from '../../../console/columns/cell-text.js';
import { topColumns, topFields } from '../../../console/columns/top.js';
import type { TopQuery, WireTop, WireTopRow } from '../../api/contract.js';
import { counted, exact } from '../../api/formats.js';
import { isOfModels, moreRowsOf, PERIODS, PLURALS } from '../../api/top-words.js';
import {
  DEFAULT_TOP_ROWS,
  MAX_TOP_ROWS,
  MODEL_PART_PATTERN,
  TOP_DIMENSIONS,
  TOP_WINDOWS,
  type TopDimension,
  type TopSort,
  type TopWindow,
  UUID_PATTERN,
} from '../../api/vocabulary.js';
import { exported } from '../export.js';
import { allProjects, attempt, choiceOf, get, type PageRequest, parametersOf, statusOf } from '../page-request.js';
import { withTokenId } from '../token-filter.js';
import { tableColumns } from '../parts/cells.js';
import { Heading } from '../parts/document.js';
import { filterFields, FilterForm } from '../parts/fields.js';
import { capitalized, escapeBidi, Time } from '../parts/formats.js';
import { Link, useMay } from '../parts/frame.js';
import {
  ChoiceLinks,
  CommandLine,
  ErrorNotice,
  Exports,
  type FilteredListProps,
  sortingOf,
  WideTable,
} from '../parts/common.js';

interface TopProps extends Omit<FilteredListProps, 'next'>, Chosen {
  /** Null if the query is invalid. */
  top: WireTop | null;
}

const ORDERS = [
  ['errors', 'most failures'],
  ['requests', 'most requests'],
  ['tokens', 'most model tokens'],
  ['cost', 'highest cost'],
  ['p95', 'slowest, 95th percentile'],
  ['p50', 'slowest, median'],
  ['last_used', 'last used'],
] as const satisfies readonly (readonly [TopSort, string])[];

const WINDOW_TITLES: Record<TopWindow, string> = { '5m': '5 minutes', '1h': '1 hour', '24h': '24 hours' };

function TopPage(props: TopProps) {
  const { top, by, window, query, refused } = props;
  return (
    <>
      <Heading title="Top" />
      <ErrorNotice why={refused} />
      <TopFilter {...props} />
      {top === null ? null : (
        <section aria-labelledby="rows-title">
          <div className="section-head">
            <h2 id="rows-title">{`${capitalized(PLURALS[by])}, ${PERIODS[window]}`}</h2>
            {top.rows.length === 0 ? null : <Exports to="top/export" query={query} />}
          </div>
          <Coverage top={top} query={query} />
          <TopRows {...props} top={top} />
        </section>
      )}
      {query.get('token_id') ? null : <CommandLine line={commandOf(props)} />}
    </>
  );
}

/** The command has no option for a token. */
function commandOf({ by, window, sort, query }: TopProps): string {
  const project = query.get('project_id') ?? '';
  const only = UUID_PATTERN.test(project) ? ` --project-id ${project}` : '';
  return `llmp top ${by} --window ${window} --sort ${sort}${only}`;
}

/** The page with another choice. */
function linkWith(query: URLSearchParams, name: string, value: string): string {
  const params = new URLSearchParams(query);
  params.set(name, value);
  return `top?${params.toString()}`;
}

function TopFilter({ by, window, sort, query, projects }: TopProps) {
  const { select, project, token } = filterFields(query);
  const links = <T extends string>(name: string, values: readonly T[], current: T, titleOf: (value: T) => string) =>
    values.map((it) => ({ title: titleOf(it), to: linkWith(query, name, it), isCurrent: it === current }));
  return (
    <>
      <div className="section-head">
        <ChoiceLinks label="Rows" links={links('by', TOP_DIMENSIONS, by, (it) => capitalized(PLURALS[it]))} />
        <ChoiceLinks label="Period" links={links('window', TOP_WINDOWS, window, (it) => WINDOW_TITLES[it])} />
      </div>
      <FilterForm to="top" label="Filter the list" verb="Show" query={query}>
        <input type="hidden" name="by" value={by} />
        <input type="hidden" name="window" value={window} />
        {select('sort', 'Sort by', ORDERS, sort)}
        {project(projects)}
        {token()}
      </FilterForm>
    </>
  );
}

/** What the figures are of, and whether there are more rows. */
function Coverage({ top, query }: { top: WireTop; query: URLSearchParams }) {
  const { total, to } = top;
  const more = moreRowsOf(top);
  return (
    <div id="coverage" data-live="">
      <p className="faint">
        {`${counted(total.requests, 'request')}, ${counted(total.errors, 'failure')}. Read `}
        <Time at={to} />.
      </p>
      {more === null ? null : (
        <p className="notice" role="status">
          {`${capitalized(more)}. `}
          {query.get('rows') !== ALL ? <Link to={linkWith(query, 'rows', ALL)}>Show more rows</Link> : null}
        </p>
      )}
    </div>
  );
}

/** The hourly usage has no times. */
const TIMES: readonly string[] = ['median', 'percentile'];

function TopRows({ top, by, sort, query }: TopProps & { top: WireTop }) {
  const may = useMay();
  if (top.rows.length === 0) {
    return (
      <p id="top" data-live="">
        {`No requests in the ${PERIODS[top.window]}.`}
      </p>
    );
  }
  const columns = tableColumns(
    topColumns(by, top.window),
    { trend: (row) => <Trend row={row} stepSeconds={top.step_seconds} /> },
    // The API has no other order: what is most, slowest or latest comes first.
    (field) => (ORDERS.some(([order]) => order === field) ? [{ name: field, direction: 'descending' }] : []),
  );
  return (
    <WideTable
      id="top"
      label={`${capitalized(PLURALS[by])}, ${PERIODS[top.window]}`}
      noun={by}
      sorting={sortingOf('top', query, sort)}
      rows={top.rows}
      keyOf={({ token_id: token, project_id: id, model }) => [token, id, model].join(' ')}
      columns={[
        ...columns.filter(({ id }) => top.window !== '24h' || !TIMES.includes(id)),
        ...(may('read events')
          ? [{ title: 'Live', isWhole: true, show: (row: WireTopRow) => <LiveLink row={row} by={by} /> }]
          : []),
      ]}
    />
  );
}

const IS_MODEL_FILTER = new RegExp(`^${MODEL_PART_PATTERN}$`);

/** A link to the events of the row. There is none for a model whose name the filter of events cannot contain. */
function LiveLink({ row, by }: { row: WireTopRow; by: TopDimension }) {
  const { token_id: token, token_name: tokenName, project_id: project, project_name: projectName, model } = row;
  if (isOfModels(by) && !(model && IS_MODEL_FILTER.test(model))) return null;
  const filter =
    by === 'token'
      ? { token_id: token ?? '' }
      : { ...(project !== undefined && { project_id: project }), ...(isOfModels(by) && model && { model }) };
  const of =
    (by === 'token' ? (tokenName ?? shortId(token ?? '')) : isOfModels(by) ? model : projectName) ??
    shortId(project ?? '');
  return (
    <Link to={`events?${new URLSearchParams(filter).toString()}`}>
      requests<span className="unseen"> of {escapeBidi(of)}</span>
    </Link>
  );
}

// The drawing is stretched to the size of its cell.
const TREND_HEIGHT = 20;

/** A bar for each step, failed requests below. The text says the same. */
function Trend({
  row: { history, error_history: failures, requests, errors },
  stepSeconds,
}: {
  row: WireTopRow;
  stepSeconds: number;
}) {
  const most = Math.max(1, ...history);
  const heightOf = (count: number) => Math.round((count / most) * TREND_HEIGHT * 10) / 10;
  const bar = (at: number, from: number, to: number) =>
    to > from ? `M${at} ${TREND_HEIGHT - from}v${from - to}h.8V${TREND_HEIGHT - from}z` : '';
  const failed = history.map((_, at) => heightOf(failures[at] ?? 0));
  const words = `${counted(requests, 'request')}, ${counted(errors, 'failure')}; up to ${exact(Math.max(0, ...history))} per ${stepShown(stepSeconds)}, now ${exact(history.at(-1) ?? 0)}`;
  return (
    <svg
      className="trend"
      viewBox={`0 0 ${history.length} ${TREND_HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words}
    >
      <title>{words}</title>
      <path className="base" d={`M0 ${TREND_HEIGHT - 1}h${history.length}v1H0z`} />
      <path className="forwarded" d={history.map((count, at) => bar(at, failed[at] ?? 0, heightOf(count))).join('')} />
      <path className="failures" d={failed.map((height, at) => bar(at, 0, height)).join('')} />
    </svg>
  );
}

const stepShown = (seconds: number) =>
  seconds < 60 ? `${seconds} s` : seconds < 3_600 ? `${seconds / 60} min` : `${seconds / 3_600} h`;

// ---- routes

const ALL = 'all';

/** What the page shows: the choices of its query, or the default ones. @throws {ApiError} if one is invalid. */
function choicesOf({ query }: PageRequest) {
  const by = choiceOf(query, 'by', TOP_DIMENSIONS, 'token');
  return {
    by,
    window: choiceOf(query, 'window', TOP_WINDOWS, '1h'),
    // As on the command line: models seldom fail, but they cost.
    sort: choiceOf(
      query,
      'sort',
      ORDERS.map(([order]) => order),
      isOfModels(by) ? 'tokens' : 'errors',
    ),
  };
}

type Chosen = ReturnType<typeof choicesOf>;

async function read({ client, query }: PageRequest, chosen: Chosen, limit: number): Promise<WireTop> {
  const filter: TopQuery = await withTokenId(client, parametersOf(query, ['project_id', 'token_id']));
  return client.top({ ...filter, ...chosen, limit: String(limit) });
}

const limitOf = ({ query }: PageRequest) => (query.get('rows') === ALL ? MAX_TOP_ROWS : DEFAULT_TOP_ROWS);

export const topRoutes = [
  get('/top', 'read usage', async (request) => {
    const projects = await allProjects(request.client);
    let chosen: Chosen = { by: 'token', window: '1h', sort: 'errors' };
    const { value: top, refused } = await attempt<WireTop | null>(async () => {
      chosen = choicesOf(request);
      return read(request, chosen, limitOf(request));
    }, null);
    const body = <TopPage top={top} {...chosen} query={request.query} projects={projects} refused={refused} />;
    return { title: 'Top', section: 'top', isLive: true, body, ...statusOf(refused) };
  }),
  get('/top/export', 'read usage', async (request) => {
    const chosen = choicesOf(request);
    const rows = async function* () {
      yield (await read(request, chosen, MAX_TOP_ROWS)).rows;
    };
    return exported(request, 'top', topFields(chosen.by), rows());
  }),
];
