/** The overview screen. */
import { Box } from 'ink';
import { shortId } from '../../console/columns/cell-text.js';
import { TOKEN_STATES } from '../../daemon/api/vocabulary.js';
import type { WireStatus, WireToken } from '../../daemon/api/contract.js';
import { duration, exact, relativeTime } from '../../daemon/api/formats.js';
import { bar, brailleChart } from '../parts/charts.js';
import { fact } from '../parts/columns.js';
import { count, milliseconds, percent, rate } from '../parts/figures.js';
import { Drawing } from '../parts/drawing.js';
import { selected } from '../parts/list.js';
import { EDGES, EmptyPane, Pane } from '../parts/pane.js';
import { stateMark } from '../parts/cells.js';
import { fitted, type Piece, strip, type Strip, text } from '../parts/strip.js';
import { selection } from '../state/overview.js';
import { projectName } from '../state/projects.js';
import { areaOf } from '../state/rows.js';
import { daemonNow, type State } from '../state/state.js';
import { hourChart, hoursOf, totals } from './hours.js';
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

export function OverviewScreen({ state }: { state: State }) {
  const { status } = state.overview;
  if (!status) return <EmptyPane says={loadingText(state)} />;
  const { columns, rows } = areaOf(state);
  const [health, tokens, traffic, hours, expiring] = [
    healthSection(state, status),
    tokensSection(state, status),
    trafficSection(state, status),
    hoursSection(state),
    expiringSection(state),
  ];
  if (columns < TWO_COLUMNS) {
    return <Stack sections={[{ ...traffic, rank: 0 }, { ...health, rank: 1 }, tokens, hours, expiring]} rows={rows} />;
  }
  // The left half gets the rows that it needs; of the rest, the tokens that expire next get what they can use.
  const needed = healthLines(state, status).length + tokens.minRows + 2 * EDGES;
  const below =
    rows >= 20 || selection(state).token !== null ? Math.max(5, Math.min(expiring.maxRows + EDGES, rows - needed)) : 0;
  return (
    <Box flexGrow={1} flexDirection="column">
      <Box height={rows - below}>
        <Stack sections={[health, tokens]} rows={rows - below} width={Math.floor(columns / 2)} />
        <Stack sections={[traffic, hours]} rows={rows - below} />
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

const FACT_COLUMNS = 9;

function healthSection(state: State, status: WireStatus): Section {
  return {
    title: 'Health',
    minRows: 3,
    maxRows: 9,
    rank: 0,
    lines: () => healthLines(state, status),
  };
}

function healthLines(state: State, status: WireStatus): Strip[] {
  const { database, event_bus: bus, audit, upstream, cache, redis, missing, degraded } = status;
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
      text(`  ${status.instance}`, 'faint'),
    ),
    ...missing.map((it) => strip(text(`! missing: ${it}`, 'bad'))),
    ...degraded.map((it) => strip(text(`! degraded: ${it}`, 'warning'))),
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
        bus.kind !== 'off' && `, ${exact(bus.buffered)} buffered, `,
        bus.kind !== 'off' && text(`${exact(bus.dropped)} dropped`, bus.dropped > 0 ? 'warning' : 'plain'),
        bus.lag !== null && `, lag ${exact(bus.lag)}`,
      ),
      FACT_COLUMNS,
    ),
    fact(
      'audit',
      strip(
        signs[audit.status],
        `${exact(audit.records)} records, `,
        text(`${exact(audit.failures)} failures`, audit.failures > 0 ? 'bad' : 'plain'),
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
  const { state: at } = selection(state);
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

function trafficSection({ overview: { traffic } }: State, { requests }: WireStatus): Section {
  const first = traffic[0]?.atMs;
  const last = traffic.at(-1)?.atMs;
  const most = Math.max(0, ...traffic.map(({ perSecond }) => perSecond));
  return {
    title: 'Traffic',
    minRows: 2,
    maxRows: 8,
    rank: 1,
    lines: (columns, rows) => [
      strip(
        text(rate(requests.per_second), 'strong'),
        ' requests/s  ',
        text(`${rate(requests.errors_per_second)} errors/s`, requests.errors_per_second > 0 ? 'bad' : 'plain'),
        `  ${exact(requests.in_flight)} in flight`,
        columns >= 60 &&
          first !== undefined &&
          last !== undefined &&
          text(`  peak ${rate(most)}/s in ${duration(last - first)}`, 'faint'),
      ),
      ...brailleChart(
        traffic.map(({ perSecond }) => perSecond),
        columns,
        rows - 1,
        'accent',
      ),
    ],
  };
}

function hoursSection(state: State): Section {
  const { usage } = state.overview;
  const nowMs = daemonNow(state);
  return {
    title: 'Last 24 hours',
    minRows: 4,
    maxRows: 9,
    rank: 4,
    lines(columns, rows) {
      if (!usage) return [strip(text('…', 'faint'))];
      const hours = hoursOf(usage, nowMs);
      return [totals(hours), ...hourChart(hours, columns, rows - 1)];
    },
  };
}

function expiringSection(state: State): Section {
  const { expiring } = state.overview;
  const { token: at } = selection(state);
  // The selected token is visible.
  const first = (rows: number) => Math.max(0, (at ?? 0) - rows + 1);
  return {
    title: 'Expiring next',
    minRows: 2,
    maxRows: 8,
    rank: at === null ? 3 : RANK_OF_SELECTED,
    selectedLine: (rows) => at && at - first(rows),
    lines: (_, rows) =>
      expiring.length === 0
        ? [strip(text('No active tokens.', 'faint'))]
        : expiring.slice(first(rows), first(rows) + rows).map((token) => expiringLine(state, token)),
  };
}

const SOON_MS = 3_600_000;

function expiringLine(state: State, { id, name, project_id: projectId, expires_at: at, ...token }: WireToken): Strip {
  const isSoon = Date.parse(at) - daemonNow(state) < SOON_MS;
  const project = projectName(state, projectId) ?? shortId(projectId);
  return strip(
    fitted([text(relativeTime(at, daemonNow(state)), isSoon ? 'warning' : 'plain')], 8),
    ' ',
    text(shortId(id), 'faint'),
    '  ',
    fitted(strip(name ?? ''), 20),
    '  ',
    fitted(strip(project), 12),
    '  ',
    `${count(token.request_count)}/${token.max_requests === 0 ? '∞' : count(token.max_requests)}`,
  );
}
