/** The detail screen of a project. */
import { shortId } from '../../console/columns/cell-text.js';
import { allowShown, limitsShown } from '../../console/columns/policies.js';
import type { WireAuditRecord, WireProject, WireTop, WireTopRow } from '../../daemon/api/contract.js';
import { authTitle, missingUsageTitle, providerTitle } from '../../daemon/api/providers.js';
import { counted, exact, relativeTime } from '../../daemon/api/formats.js';
import { bar } from '../parts/charts.js';
import { stateMark, trend } from '../parts/cells.js';
import { fact } from '../parts/columns.js';
import { count, dateTime, percent } from '../parts/figures.js';
import { EmptyPane, ScrolledPane } from '../parts/pane.js';
import { fitted, strip, type Strip, text } from '../parts/strip.js';
import { problemsOf } from '../state/overview.js';
import { busiestRows, linesAboveChanges, target } from '../state/project.js';
import { detailColumns } from '../state/record-rows.js';
import { mayShow } from '../state/permitted.js';
import { areaOf, isLow } from '../state/rows.js';
import { daemonNow, type ProjectDetail, type State } from '../state/state.js';
import { hourChart, hoursOf, totals } from './hours.js';
import { recordLines } from './record-line.js';
import { problemLine } from './problem-line.js';
import { spendingLines } from './spending.js';
import { loadingText } from './tokens.js';

const CHART_ROWS = 4;
const NAME_COLUMNS = 13;
const BAR_COLUMNS = 32;

export function ProjectScreen({ state }: { state: State }) {
  const project = target(state);
  if (!project || !state.project) {
    return <EmptyPane says={state.projects.all ? 'This project does not exist.' : loadingText(state)} />;
  }
  return (
    <ScrolledPane
      title={strip(text(project.name, 'title'))}
      lines={linesOf(state, state.project, project, detailColumns(state))}
      top={state.project.top}
      rows={areaOf(state).rows}
    />
  );
}

function linesOf(state: State, detail: ProjectDetail, project: WireProject, columns: number): Strip[] {
  const above = [
    ...facts(state, detail, project, columns),
    ...(isLow(state) ? [] : [[]]),
    ...busiest(state, detail, columns),
    [],
    ...used(state, detail, columns),
    [],
    ...(mayShow(state, 'audit') ? [strip(text('Changes', 'title'), text('  newest first', 'faint'))] : []),
  ];
  // Exactly the number of lines that scrolling relies on.
  const fixed = Array.from({ length: linesAboveChanges(state) }, (_, row) => above[row] ?? []);
  return [...fixed, ...changes(state, detail, columns)];
}

function facts(state: State, detail: ProjectDetail, project: WireProject, columns: number): Strip[] {
  const { active_token_count: active, token_count: all, deactivated_at: deactivatedAt } = project;
  const now = daemonNow(state);
  const time = (at: string | null) =>
    at === null ? strip(text('never', 'faint')) : strip(dateTime(at), text(`  ${relativeTime(at, now)}`, 'faint'));
  const { requests_24h: requests, errors_24h: errors } = project;
  return [
    strip(
      stateMark(project.is_active ? 'active' : 'project_inactive'),
      deactivatedAt !== null && `  deactivated ${relativeTime(deactivatedAt, now)}`,
      errors > 0 && text(`  ${percent(errors / requests)} of the requests in 24 h failed`, 'warning'),
    ),
    problemLine(problemsOf(state, { project_id: project.id, token_id: null }), columns),
    fact(
      'tokens',
      strip(
        bar(all > 0 ? active / all : 0, Math.max(4, Math.min(BAR_COLUMNS, columns - 50)), 'good'),
        text(`  ${exact(active)}`, 'strong'),
        ` of ${exact(all)} active`,
      ),
      NAME_COLUMNS,
    ),
    ...spendingLines(state, project, { columns, nameColumns: NAME_COLUMNS, action: 'projects.budget' }),
    fact('now', lastMinutes(detail), NAME_COLUMNS),
    fact('provider', provider(project), NAME_COLUMNS),
    fact('missing usage', missingUsageTitle(project.missing_usage), NAME_COLUMNS),
    fact('allows', allowShown(project.allow), NAME_COLUMNS),
    fact('limits', limitsShown(project.limits), NAME_COLUMNS),
    fact('last used', time(project.last_used_at), NAME_COLUMNS),
    fact(
      'id',
      strip(project.id, text('  created ', 'faint'), dateTime(project.created_at).slice(0, 'yyyy-mm-dd'.length)),
      NAME_COLUMNS,
    ),
  ];
}

function provider(project: WireProject): Strip {
  const { upstream_base_url: baseUrl, upstream_auth: auth, api_key_hint: hint } = project;
  const key = text(`  key …${hint} in ${authTitle(auth)}`, 'faint');
  if (baseUrl === null) return strip('default of the daemon', key);
  return strip(providerTitle(project), text(`  ${baseUrl}`, 'faint'), key);
}

/** The requests of the last five minutes, with a small chart. */
function lastMinutes({ now }: ProjectDetail): Strip {
  if (!now) return strip(text('…', 'faint'));
  const { requests, errors } = now.total;
  const [row] = now.rows;
  return strip(
    text(exact(requests), 'strong'),
    ` request${requests === 1 ? '' : 's'} in the last 5 minutes  `,
    row && trend({ history: row.history, errors: row.error_history }, row.history.length),
    errors > 0 && text(`  ${counted(errors, 'failure')}`, 'bad'),
  );
}

/** From this width on there is room for tokens and models side by side. */
const BOTH_COLUMNS = 60;
const GAP = 3;
const FIGURE_COLUMNS = 9;

/** The tokens and models with the most requests in the last hour. On a narrow screen only the tokens. */
function busiest(state: State, { busiest: { token, model } }: ProjectDetail, columns: number): Strip[] {
  const hasBoth = columns >= BOTH_COLUMNS;
  const width = hasBoth ? Math.min(60, Math.floor((columns - GAP) / 2)) : columns;
  const tokens = busiestRowsOf(state, token, 'Tokens', (row) => row.token_name ?? shortId(row.token_id ?? ''), width);
  const models = busiestRowsOf(state, model, 'Models', (row) => row.model ?? 'no model', width);
  return tokens.map((line, at) => (hasBoth ? strip(fitted(line, width + GAP), models[at] ?? []) : line));
}

/** A title and a fixed number of rows. */
function busiestRowsOf(
  state: State,
  top: WireTop | null,
  title: string,
  nameOf: (row: WireTopRow) => string,
  columns: number,
): Strip[] {
  const name = columns - 2 * FIGURE_COLUMNS;
  const line = (first: Strip, ...figures: Strip[]) =>
    strip(fitted(first, name), ...figures.flatMap((figure) => fitted(figure, FIGURE_COLUMNS, 'right')));
  const head = line(
    strip(text(title, 'title'), text(', last hour', 'faint')),
    [text('requests', 'faint')],
    [text('failures', 'faint')],
  );
  const rows = (top?.rows ?? [])
    .filter(({ requests }) => requests > 0)
    .map((row) =>
      line(
        strip(nameOf(row)),
        strip(count(row.requests)),
        strip(text(count(row.errors), row.errors > 0 ? 'bad' : 'plain')),
      ),
    );
  const none = top ? 'No requests.' : '…';
  const said = rows.length > 0 ? rows : [strip(text(none, 'faint'))];
  return [head, ...Array.from({ length: busiestRows(state) }, (_, at) => said[at] ?? [])];
}

function used(state: State, { usage }: ProjectDetail, columns: number): Strip[] {
  const title = text('Last 24 hours  ', 'title');
  if (!usage) return [strip(title, text('…', 'faint')), ...Array.from({ length: CHART_ROWS + 1 }, () => [])];
  const hours = hoursOf(usage, daemonNow(state));
  return [strip(title, totals(hours, columns - title.width)), ...hourChart(hours, columns, CHART_ROWS + 1)];
}

function changes(state: State, { changes: records }: ProjectDetail, columns: number): Strip[] {
  if (!mayShow(state, 'audit')) return [];
  if (!records) return [strip(text('…', 'faint'))];
  if (records.length === 0) return [strip(text('No records.', 'faint'))];
  return records.flatMap((record) => recordLines(record, daemonNow(state), columns, subjectOf(record)));
}

/** The token that a record is about; the project itself needs no name. */
const subjectOf = ({ token_id: id, token_name: name }: WireAuditRecord): string =>
  id === null ? '' : (name ?? shortId(id));
