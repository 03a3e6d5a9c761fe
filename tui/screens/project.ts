/** The detail screen of a project. */
import { shortId } from '../../console/views.js';
import type { WireAuditRecord, WireProject } from '../../daemon/api/contract.js';
import { exact, relativeTime } from '../../daemon/api/formats.js';
import { bar } from '../parts/charts.js';
import { fact } from '../parts/facts.js';
import { dateTime, percent } from '../parts/figures.js';
import { framed } from '../parts/frame.js';
import type { Area } from '../parts/list.js';
import { stateMark } from '../parts/state-mark.js';
import { cut, strip, type Strip, text } from '../parts/strip.js';
import { LINES_ABOVE_CHANGES, target } from '../state/project.js';
import { daemonNow, type ProjectDetail, type State } from '../state/state.js';
import { hourChart, hoursOf, totals } from './hours.js';
import { recordLine } from './record-line.js';
import { loadingText } from './tokens.js';

const CHART_ROWS = 4;
const NAME_COLUMNS = 9;
const BAR_COLUMNS = 32;

export function projectScreen(state: State, area: Area): Strip[] {
  const project = target(state);
  if (!project || !state.project) {
    const words = state.projects.all ? 'This project does not exist.' : loadingText(state);
    return framed([[], strip(`   ${words}`)], area.columns, area.rows);
  }
  const lines = linesOf(state, state.project, project, area.columns - 4);
  const shown = Math.max(1, area.rows - 2);
  const top = Math.max(0, Math.min(state.project.top, lines.length - shown));
  return framed(
    lines.slice(top, top + shown).map((line) => strip(' ', cut(line, area.columns - 3))),
    area.columns,
    area.rows,
    { title: strip(text(project.name, 'title')), scroll: { top, shown, of: lines.length } },
  );
}

function linesOf(state: State, detail: ProjectDetail, project: WireProject, columns: number): Strip[] {
  const above = [
    ...facts(state, project, columns),
    [],
    ...used(state, detail, columns),
    [],
    strip(text('Changes', 'title'), text('  newest first', 'faint')),
  ];
  // Exactly the number of lines that scrolling relies on.
  const fixed = Array.from({ length: LINES_ABOVE_CHANGES }, (_, row) => above[row] ?? []);
  return [...fixed, ...changes(state, detail)];
}

function facts(state: State, project: WireProject, columns: number): Strip[] {
  const { active_token_count: active, token_count: all, deactivated_at: deactivatedAt } = project;
  const now = daemonNow(state);
  const time = (at: string | null) =>
    at === null ? strip(text('never', 'faint')) : strip(dateTime(at), text(`  ${relativeTime(at, now)}`, 'faint'));
  const { requests_24h: requests, errors_24h: errors } = project;
  return [
    strip(
      stateMark(project.is_active ? 'active' : 'project_inactive'),
      deactivatedAt !== null && `  deactivated ${relativeTime(deactivatedAt, now)}`,
      text(`  provider's key …${project.api_key_hint}`, 'faint'),
      errors > 0 && text(`  ${percent(errors / requests)} of the requests in 24 h failed`, 'warning'),
    ),
    fact(
      'tokens',
      strip(
        bar(all > 0 ? active / all : 0, Math.max(4, Math.min(BAR_COLUMNS, columns - 46)), 'good'),
        text(`  ${exact(active)}`, 'strong'),
        ` of ${exact(all)} active`,
      ),
      NAME_COLUMNS,
    ),
    fact('last used', time(project.last_used_at), NAME_COLUMNS),
    fact('created', time(project.created_at), NAME_COLUMNS),
    fact('id', project.id, NAME_COLUMNS),
  ];
}

function used(state: State, { usage }: ProjectDetail, columns: number): Strip[] {
  const title = text('Last 24 hours  ', 'title');
  if (!usage) return [strip(title, text('…', 'faint')), ...Array.from({ length: CHART_ROWS + 1 }, () => [])];
  const hours = hoursOf(usage, daemonNow(state));
  return [strip(title, totals(hours)), ...hourChart(hours, columns, CHART_ROWS + 1)];
}

function changes(state: State, { changes: records }: ProjectDetail): Strip[] {
  if (!records) return [strip(text('…', 'faint'))];
  if (records.length === 0) return [strip(text('No records.', 'faint'))];
  return records.map((record) => recordLine(record, daemonNow(state), subjectOf(record)));
}

/** The token that a record is about; the project itself needs no name. */
const subjectOf = ({ token_id: id, token_name: name }: WireAuditRecord): string =>
  id === null ? '' : (name ?? shortId(id));
