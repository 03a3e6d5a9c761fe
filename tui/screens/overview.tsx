/** The overview screen. */
import { Box } from 'ink';
import { shortId } from '../../console/columns/cell-text.js';
import { COSTS_TITLE, type ProjectCost } from '../../console/columns/costs.js';
import type { Problem } from '../../console/problems.js';
import { TOKEN_STATES } from '../../daemon/api/vocabulary.js';
import type { WireStatus, WireToken, WireTopRow } from '../../daemon/api/contract.js';
import { failureKinds, failuresShown } from '../../daemon/api/failure-words.js';
import { duration, exact, rate, relativeTime } from '../../daemon/api/formats.js';
import { costShown, sumOfCosts } from '../../daemon/api/money.js';
import { bar } from '../parts/charts.js';
import { cells, fact, type ListColumn, sizedColumns } from '../parts/columns.js';
import { count, milliseconds, percent } from '../parts/figures.js';
import { Drawing } from '../parts/drawing.js';
import { selected } from '../parts/list.js';
import { EDGES, EmptyPane, Pane } from '../parts/pane.js';
import { stateMark } from '../parts/cells.js';
import { between, cut, fitted, joined, type Piece, strip, type Strip, text, widthOf, wrapped } from '../parts/strip.js';
import { costs, problems, selectionIn, worst } from '../state/overview.js';
import { projectName } from '../state/projects.js';
import { areaOf } from '../state/rows.js';
import { daemonNow, type State } from '../state/state.js';
import { hourChart, hoursOf, stepChart, totals } from './hours.js';
import { signOf } from './problem-line.js';
import { loadingText } from './tokens.js';

/** A framed section of the screen. */
interface Section {
  title: string;
  /** Rows inside the frame. If there is no room for all sections, the one with the highest rank is dropped first. */
  minRows: number;
  maxRows: number;
  rank: number;
  lines: (columns: number, rows: number) => Strip[];
  /** Index of the selected line. */
  selectedLine?: (rows: number) => number | null;
}

/** A section with the selection is not dropped. */
const RANK_OF_SELECTED = 0.5;

/** From this width on there are two columns of sections. */
const TWO_COLUMNS = 90;
/** Rows below the problems that show anything; and those that they leave where there are few. */
const MIN_ROWS = 4;
const TRAFFIC_ROWS = 6;
/** Rows of problems that leave less than half of a low screen to the rest. */
const MANY_ROWS = 14;

export function OverviewScreen({ state }: { state: State }) {
  const { status } = state.overview;
  if (!status) return <EmptyPane says={loadingText(state)} />;
  const { columns, rows } = areaOf(state);
  const wrong = problemsSection(state, columns);
  const most = Math.max(Math.floor(rows / 2), Math.min(rows - TRAFFIC_ROWS, MANY_ROWS));
  const above = wrong ? Math.min(wrong.maxRows + EDGES, Math.max(wrong.minRows + EDGES, most)) : 1;
  const rest = rows - above;
  return (
    <Box flexGrow={1} flexDirection="column">
      {wrong ? (
        <Stack sections={[wrong]} rows={above} />
      ) : (
        <Drawing height={1} draw={() => [strip('  ', nothingWrong(state))]} />
      )}
      {rest >= MIN_ROWS && <Traffic state={state} status={status} columns={columns} rows={rest} />}
    </Box>
  );
}

interface TrafficProps {
  state: State;
  status: WireStatus;
  columns: number;
  rows: number;
}

function Traffic({ state, status, columns, rows }: TrafficProps) {
  const isNarrow = columns < TWO_COLUMNS;
  const [health, tokens, traffic, worst, cost, hours, expiring] = [
    healthSection(state, status),
    tokensSection(state, status),
    trafficSection(state, status, isNarrow ? costliest(state, columns - EDGES - 4) : null),
    worstSection(state),
    costSection(state),
    hoursSection(state),
    expiringSection(state),
  ];
  if (isNarrow) {
    const all = [{ ...traffic, rank: 0 }, { ...health, rank: 1 }, tokens, worst, cost, hours, expiring];
    return <Stack sections={all} rows={rows} />;
  }
  // The right half gets the rows that it needs; of the rest, the tokens that expire next get what they can use.
  const needed = [health, tokens, worst].reduce((sum, { maxRows }) => sum + maxRows + EDGES, 0);
  const hasRoom = rows >= 20 || selectionIn(state, 'expiring') !== null;
  const below = hasRoom ? Math.max(5, Math.min(expiring.maxRows + EDGES, rows - needed)) : 0;
  return (
    <Box flexGrow={1} flexDirection="column">
      <Box height={rows - below}>
        <Stack sections={[traffic, cost, hours]} rows={rows - below} width={Math.floor(columns / 2)} />
        <Stack sections={[health, tokens, worst]} rows={rows - below} />
      </Box>
      {below > 0 && <Stack sections={[expiring]} rows={below} />}
    </Box>
  );
}

/** Sections one below the other, in exactly these rows. */
function Stack({ sections, rows, width }: { sections: readonly Section[]; rows: number; width?: number }) {
  const needed = sections.reduce((sum, { minRows }) => sum + minRows + EDGES, 0);
  if (needed > rows && sections.length > 1) {
    const highest = Math.max(...sections.map(({ rank }) => rank));
    const kept = sections.filter(({ rank }) => rank !== highest);
    return <Stack sections={kept} rows={rows} {...(width !== undefined && { width })} />;
  }
  const shares = shared(sections, Math.max(0, rows - needed));
  return (
    <Box
      flexDirection="column"
      flexGrow={width === undefined ? 1 : 0}
      flexShrink={0}
      {...(width !== undefined && { width })}
    >
      {sections.map((section, at) => (
        <Pane
          key={section.title}
          title={strip(text(section.title, 'title'))}
          height={(shares[at] ?? 0) + EDGES}
          flexGrow={0}
        >
          <Drawing flexGrow={1} draw={(columns, lines) => sectionLines(section, columns, lines)} />
        </Pane>
      ))}
    </Box>
  );
}

function sectionLines({ lines, selectedLine }: Section, columns: number, rows: number): Strip[] {
  const at = selectedLine?.(rows) ?? null;
  return lines(columns - 2, rows).map((line, row) =>
    row === at ? selected(fitted(strip('>', line), columns)) : strip(' ', line),
  );
}

/** Rows of each section. Extra rows go to all in turn, and rows that no section can use go to the last one. */
function shared(parts: readonly Section[], left: number): number[] {
  const rows = parts.map(({ minRows }) => minRows);
  let room = left;
  for (let at = 0, idle = 0; room > 0 && idle < parts.length; at = (at + 1) % parts.length) {
    if ((rows[at] ?? 0) >= (parts[at]?.maxRows ?? 0)) {
      idle++;
      continue;
    }
    rows[at] = (rows[at] ?? 0) + 1;
    room--;
    idle = 0;
  }
  rows[rows.length - 1] = (rows.at(-1) ?? 0) + room;
  return rows;
}

/** From this width on, a problem and its remedy have one line. */
const ONE_LINE = 160;

/** What is wrong, each with its cause and what to do; null if nothing is. */
function problemsSection(state: State, width: number): Section | null {
  const all = problems(state);
  if (all.length === 0) return null;
  const each = width >= ONE_LINE ? 1 : 2;
  const at = selectionIn(state, 'problem');
  // The selected problem is visible, with its remedy.
  const first = (rows: number) => Math.max(0, (at ?? 0) - Math.max(1, Math.floor(rows / each)) + 1);
  return {
    title: `Problems ${exact(all.length)}`,
    minRows: each,
    maxRows: all.length * each,
    rank: 0,
    selectedLine: (rows) => (at === null ? null : (at - first(rows)) * each),
    lines: (columns, rows) => problemLines(all, columns, each).slice(first(rows) * each, first(rows) * each + rows),
  };
}

function problemLines(all: readonly Problem[], columns: number, each: number): Strip[] {
  if (each === 1) {
    const facts = sizedColumns(PROBLEM_COLUMNS, columns - 2, all);
    return all.map((problem) => strip(signOf(problem), cells(facts, problem)));
  }
  return all.flatMap((problem) => {
    const [subject = [], why = [], extent = [], remedy = []] = PROBLEM_COLUMNS.map((column) => column.show(problem));
    // A long name must not push the cause out.
    const first = strip(signOf(problem), cut(subject, columns - SIGN_AND_GAP - widthOf(why)), '  ', why);
    const hasRoom = widthOf(first) + 2 + widthOf(extent) <= columns;
    return [hasRoom ? between(first, extent, columns) : first, strip('  ', remedy)];
  });
}

const SIGN_AND_GAP = 4;

const PROBLEM_COLUMNS: readonly ListColumn<Problem>[] = [
  {
    title: '',
    rank: 0,
    minWidth: 12,
    maxWidth: 60,
    keepsWidth: true,
    show: ({ subject }) => strip(text(subject, 'strong')),
  },
  {
    title: ' ',
    rank: 0,
    minWidth: 8,
    maxWidth: 24,
    isWhole: true,
    show: ({ why, isFailure }) => strip(text(why, isFailure ? 'bad' : 'warning')),
  },
  { title: '  ', rank: 1, minWidth: 8, maxWidth: 40, isWhole: true, show: ({ extent }) => strip(extent) },
  {
    title: '   ',
    rank: 0,
    minWidth: 20,
    maxWidth: 120,
    show: ({ remedy }) => strip(text(remedy ?? 'look at its events', 'faint')),
  },
];

/** Says no more than is known. */
function nothingWrong({ overview: { incidents } }: State): Piece {
  return incidents === null ? text('…', 'faint') : text('● Nothing is wrong', 'good');
}

const FACT_COLUMNS = 9;

function healthSection(state: State, status: WireStatus): Section {
  return {
    title: 'Health',
    minRows: 3,
    maxRows: 8,
    rank: 0,
    lines: () => healthLines(state, status),
  };
}

function healthLines(state: State, status: WireStatus): Strip[] {
  const { database, event_bus: bus, audit, upstream, cache, redis } = status;
  const ready = { ready: text('● ready', 'good'), 'not ready': text('✗ not ready', 'bad') };
  const pending = database.pending_migrations.length;
  const signs: Record<WireStatus['redis'], Piece> = {
    ok: text('● ', 'good'),
    failing: text('✗ ', 'bad'),
    off: text('○ ', 'faint'),
  };
  return [
    strip(
      ready[status.status],
      `  llmp ${status.version}, up ${duration(daemonNow(state) - Date.parse(status.started_at))}`,
    ),
    fact('instance', status.instance, FACT_COLUMNS),
    fact('upstream', `p50 ${milliseconds(upstream.p50_ms)}, p95 ${milliseconds(upstream.p95_ms)}`, FACT_COLUMNS),
    fact(
      'database',
      strip(
        signs[database.status],
        `${database.driver}, schema ${database.schema ?? 'none'}`,
        pending > 0 && text(`, ${pending} pending`, 'warning'),
      ),
      FACT_COLUMNS,
    ),
    fact(
      'events',
      strip(
        signs[bus.status],
        bus.kind,
        bus.buffered !== null && bus.kind !== 'off' && `, ${exact(bus.buffered)} buffered, `,
        bus.dropped !== null &&
          bus.kind !== 'off' &&
          text(`${exact(bus.dropped)} dropped`, bus.dropped > 0 ? 'warning' : 'plain'),
        bus.lag !== null && `, lag ${exact(bus.lag)}`,
      ),
      FACT_COLUMNS,
    ),
    fact(
      'audit',
      strip(
        signs[audit.status],
        audit.records === null ? audit.status : `${exact(audit.records)} records, `,
        audit.failures !== null && text(`${exact(audit.failures)} failures`, audit.failures > 0 ? 'bad' : 'plain'),
      ),
      FACT_COLUMNS,
    ),
    fact('cache', cacheText(cache), FACT_COLUMNS),
    fact('redis', strip(signs[redis], redis), FACT_COLUMNS),
  ];
}

function cacheText({ backend, hit_ratio: ratio }: WireStatus['cache']): Strip {
  if (backend === 'off') return strip(text('○ ', 'faint'), 'off');
  return strip(text('● ', 'good'), `${backend}, ${ratio === null ? 'no requests yet' : `${percent(ratio)} hits`}`);
}

const BAR_COLUMNS = 40;

function tokensSection(state: State, { tokens, projects }: WireStatus): Section {
  const at = selectionIn(state, 'state');
  const all = tokens ? Object.values(tokens).reduce((sum, each) => sum + each, 0) : null;
  const ofProjects = projects ? `, projects ${exact(projects.active)} of ${exact(projects.all)} active` : '';
  return {
    title: all === null ? 'Tokens' : `Tokens ${exact(all)}${ofProjects}`,
    minRows: TOKEN_STATES.length,
    maxRows: TOKEN_STATES.length,
    rank: at === null ? 2 : RANK_OF_SELECTED,
    selectedLine: () => (tokens ? at : null),
    lines(columns) {
      if (!tokens || all === null) return [strip(text('The tokens could not be counted.', 'faint'))];
      const width = Math.max(4, Math.min(BAR_COLUMNS, columns - 24));
      return TOKEN_STATES.map((state) => {
        const mark = stateMark(state);
        const share = all === 0 ? 0 : tokens[state] / all;
        return strip(
          fitted([mark], 14),
          fitted(strip(exact(tokens[state])), 8, 'right'),
          '  ',
          bar(share, width, mark.role),
        );
      });
    },
  };
}

/** @param cost for the title: what costs most, if the section of costs may not fit. */
function trafficSection(state: State, { requests }: WireStatus, cost: string | null): Section {
  const { lastHour } = state.overview;
  return {
    title: cost ?? TRAFFIC_TITLE,
    minRows: 2,
    maxRows: 12,
    rank: 1,
    lines(columns, rows) {
      const now = requests
        ? [
            strip(
              text(rate(requests.per_second), 'strong'),
              ' requests/s  ',
              text(`${rate(requests.errors_per_second)} failures/s`, requests.errors_per_second > 0 ? 'bad' : 'plain'),
              `  ${exact(requests.in_flight)} in flight`,
            ),
          ]
        : [];
      if (!lastHour) return now;
      const { total } = lastHour;
      const done = strip(text(exact(total.requests), 'strong'), ' in the hour');
      const role = total.errors > 0 ? 'bad' : 'plain';
      const failed = failuresShown(total);
      const hasRoom = widthOf(done) + 2 + text(failed).width <= columns;
      const sums = hasRoom
        ? [strip(done, '  ', text(failed, role))]
        : [done, ...wrapped(failed, columns).map((line) => strip(text(line, role)))];
      const steps = total.history.map((count, at) => ({ requests: count, errors: total.error_history[at] ?? 0 }));
      return [...now, ...sums, ...stepChart(steps, ['1 h ago', 'now'], columns, rows - now.length - sums.length)];
    },
  };
}

/** The tokens with the most failures. */
function worstSection(state: State): Section {
  const rows = worst(state);
  const at = selectionIn(state, 'worst');
  return {
    title: 'Most failures, last hour',
    minRows: 2,
    maxRows: Math.max(2, Math.min(12, rows.length)),
    rank: at === null ? 2.5 : RANK_OF_SELECTED,
    ...scrolled(at, rows, 'No failures.', WORST_COLUMNS),
  };
}

const WORST_COLUMNS: readonly ListColumn<WireTopRow>[] = [
  {
    title: '',
    rank: 0,
    minWidth: 8,
    maxWidth: 60,
    keepsWidth: true,
    show: ({ token_id: id = '', token_name: name = null }) =>
      strip(name === null ? text(shortId(id), 'faint') : text(name)),
  },
  {
    title: ' ',
    rank: 4,
    minWidth: 8,
    maxWidth: 40,
    show: ({ project_name: name }) => strip(text(name ?? '', 'faint')),
  },
  {
    title: '  ',
    rank: 0,
    minWidth: 4,
    maxWidth: 10,
    isWhole: true,
    alignRight: true,
    show: ({ errors }) => strip(text(count(errors), 'bad')),
  },
  {
    title: '   ',
    rank: 3,
    minWidth: 22,
    maxWidth: 60,
    show: (row) =>
      joined(
        failureKinds(row).map((kind) => strip(text(`${kind.label} `, 'faint'), count(kind.count))),
        '  ',
      ),
  },
];

/** The lines of a list, of which the selected one is visible. */
function scrolled<T extends object>(
  at: number | null,
  items: readonly T[],
  none: string,
  columns: readonly ListColumn<T>[],
): Pick<Section, 'lines' | 'selectedLine'> {
  const first = (rows: number) => Math.max(0, (at ?? 0) - rows + 1);
  return {
    selectedLine: (rows) => at && at - first(rows),
    lines(width, rows) {
      if (items.length === 0) return [strip(text(none, 'faint'))];
      const sized = sizedColumns(columns, width, items);
      return items.slice(first(rows), first(rows) + rows).map((item) => cells(sized, item));
    },
  };
}

const TRAFFIC_TITLE = 'Traffic, last hour';

/** Such as `Traffic · cost, 7 days $12.35: web $8.21, gpt-5 $6.50`; null without costs. Names are cut, not figures; the sum gives way first. */
function costliest(state: State, columns: number): string | null {
  const all = costs(state);
  const [first] = all;
  if (!first) return null;
  const { model } = first;
  const sum = ` ${costShown(sumOfCosts(all))}`;
  const title = (project: string, name: string, total = sum) =>
    `Traffic · cost, 7 days${total}: ${project} ${costShown(first)}${model === null ? '' : `, ${name} ${costShown(model)}`}`;
  const roomBeside = (total: string) => columns - text(title('', '', total)).width;
  const total = roomBeside(sum) < MIN_NAMES ? '' : sum;
  const room = roomBeside(total);
  const [project, name] = [projectLabel(first), model?.name ?? 'no model'];
  const half = Math.floor(room / 2);
  return title(
    cutText(project, Math.max(half, room - text(name).width)),
    cutText(name, Math.max(half, room - text(project).width)),
    total,
  );
}

/** Columns for the names of a project and a model in a title. */
const MIN_NAMES = 16;

const cutText = (words: string, columns: number): string =>
  cut(strip(words), columns)
    .map((piece) => piece.text)
    .join('');

const projectLabel = ({ name, id }: ProjectCost) => name ?? shortId(id);

/** The projects that cost most, each with its most expensive model. */
function costSection(state: State): Section {
  const rows = costs(state);
  const at = selectionIn(state, 'cost');
  return {
    title: `${COSTS_TITLE}${rows.length === 0 ? '' : `: ${costShown(sumOfCosts(rows))}`}`,
    minRows: 2,
    maxRows: Math.max(2, Math.min(8, rows.length)),
    rank: at === null ? 5 : RANK_OF_SELECTED,
    ...scrolled(at, rows, state.overview.costs === null ? '…' : 'No costs.', COST_COLUMNS),
  };
}

const COST_COLUMNS: readonly ListColumn<ProjectCost>[] = [
  {
    title: '',
    rank: 0,
    minWidth: 8,
    maxWidth: 60,
    keepsWidth: true,
    show: (project) => strip(project.name === null ? text(projectLabel(project), 'faint') : text(project.name)),
  },
  {
    title: ' ',
    rank: 0,
    minWidth: 4,
    maxWidth: 14,
    isWhole: true,
    alignRight: true,
    show: (project) => strip(text(costShown(project), 'strong')),
  },
  {
    title: '  ',
    rank: 1,
    minWidth: 16,
    maxWidth: 60,
    show: ({ model }) =>
      model === null ? [] : strip(text('most ', 'faint'), model.name ?? 'no model', ` ${costShown(model)}`),
  },
];

function hoursSection(state: State): Section {
  const { usage } = state.overview;
  const nowMs = daemonNow(state);
  return {
    title: 'Last 24 hours',
    minRows: 4,
    maxRows: 16,
    rank: 4,
    lines(columns, rows) {
      if (!usage) return [strip(text('…', 'faint'))];
      const hours = hoursOf(usage, nowMs);
      return [totals(hours, columns), ...hourChart(hours, columns, rows - 1)];
    },
  };
}

function expiringSection(state: State): Section {
  const { expiring } = state.overview;
  const at = selectionIn(state, 'expiring');
  return {
    title: 'Expiring next',
    minRows: 2,
    maxRows: Math.max(2, Math.min(12, expiring.length)),
    rank: at === null ? 3 : RANK_OF_SELECTED,
    ...scrolled(at, expiring, 'No active tokens.', expiringColumns(state)),
  };
}

const SOON_MS = 3_600_000;

function expiringColumns(state: State): ListColumn<WireToken>[] {
  const now = daemonNow(state);
  const isSoon = (at: string) => Date.parse(at) - now < SOON_MS;
  return [
    {
      title: '',
      rank: 0,
      minWidth: 8,
      isWhole: true,
      show: ({ expires_at: at }) => strip(text(relativeTime(at, now), isSoon(at) ? 'warning' : 'plain')),
    },
    {
      title: ' ',
      rank: 0,
      minWidth: 8,
      maxWidth: 60,
      keepsWidth: true,
      show: ({ id, name }) => strip(name === null ? text(shortId(id), 'faint') : text(name)),
    },
    {
      title: '  ',
      rank: 1,
      minWidth: 8,
      maxWidth: 40,
      show: ({ project_id: id }) => strip(projectName(state, id) ?? shortId(id)),
    },
    {
      title: '   ',
      rank: 2,
      minWidth: 4,
      maxWidth: 20,
      isWhole: true,
      show: ({ request_count: used, max_requests: cap }) => strip(`${count(used)}/${cap === 0 ? '∞' : count(cap)}`),
    },
    { title: '    ', rank: 3, minWidth: 8, isWhole: true, show: ({ id }) => strip(text(shortId(id), 'faint')) },
  ];
}
