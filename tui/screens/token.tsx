/** The detail screen of a token. */
import type { Column } from '../../console/columns/column.js';
import type { WireAuditRecord, WireToken } from '../../daemon/api/contract.js';
import { getCommand } from '../keys/tokens.js';
import { cellStrip, stateMark } from '../parts/cells.js';
import { bar, columnChart } from '../parts/charts.js';
import { fact } from '../parts/columns.js';
import { exact, relativeTime, revocationShown } from '../../daemon/api/formats.js';
import { dateTime, percent } from '../parts/figures.js';
import { EmptyPane, ScrolledPane } from '../parts/pane.js';
import { strip, type Strip, text } from '../parts/strip.js';
import { nameOf } from '../state/changes.js';
import { mayShow } from '../state/permitted.js';
import { areaOf, isLow } from '../state/rows.js';
import { daemonNow, type State, type TokenDetail } from '../state/state.js';
import { problemsOf } from '../state/overview.js';
import { lastMinuteRequests, linesAboveHistory, TOKEN_FACTS } from '../state/token.js';
import { recordLines, useLine } from './record-line.js';
import { detailColumns } from '../state/record-rows.js';
import { hourChart, hoursOf, totals } from './hours.js';
import { problemLine } from './problem-line.js';
import { spendingLines } from './spending.js';
import { loadingText } from './tokens.js';

export function TokenScreen({ state }: { state: State }) {
  const { token: known } = state;
  if (!known?.token) return <EmptyPane says={known?.isGone ? 'This token does not exist.' : loadingText(state)} />;
  const { token } = known;
  return (
    <ScrolledPane
      title={strip(text(nameOf(token), 'title'), known.isGone && text(' · not found', 'bad'))}
      lines={linesOf(state, known, token, detailColumns(state))}
      top={known.top}
      rows={areaOf(state).rows}
    />
  );
}

const CHART_ROWS = 6;
const NAME_COLUMNS = 9;

function linesOf(state: State, known: TokenDetail, token: WireToken, columns: number): Strip[] {
  const above = [
    ...summary(state, known, token, columns),
    ...(isLow(state) ? [] : [[]]),
    ...identity(state, token),
    [],
    ...used(state, known, columns),
    [],
    ...(mayShow(state, 'audit') ? [strip(text('History', 'title'), text('  newest first', 'faint'))] : []),
  ];
  // Exactly the number of lines that scrolling relies on.
  const fixed = Array.from({ length: linesAboveHistory(state) }, (_, row) => above[row] ?? []);
  return [...fixed, ...records(state, known, token, columns)];
}

const BAR_COLUMNS = 32;

function summary(state: State, { isGone }: TokenDetail, token: WireToken, columns: number): Strip[] {
  const { request_count: usageLines, max_requests: most, cache_hit_count: hits } = token;
  const answered = usageLines + hits; // A cache hit does not count towards the cap.
  const width = Math.max(4, Math.min(BAR_COLUMNS, columns - 46));
  const share = most === 0 ? 0 : usageLines / most;
  const role = share >= 1 ? 'bad' : share >= 0.9 ? 'warning' : 'good';
  const expires = relativeTime(token.expires_at, daemonNow(state));
  return [
    strip(
      isGone ? text('✗ no longer exists', 'bad') : stateMark(token.state),
      `  ${revocationShown(token, daemonNow(state)) ?? `${token.state === 'expired' ? 'expired' : 'expires'} ${expires}`}`,
      text(`  in ${token.project_name}`, 'faint'),
    ),
    problemLine(problemsOf(state, { project_id: token.project_id, token_id: token.id }), columns),
    most === 0
      ? fact('requests', strip(text(exact(usageLines), 'strong'), ' (unlimited)'), NAME_COLUMNS)
      : fact(
          'requests',
          strip(
            bar(share, width, role),
            text(`  ${exact(usageLines)}`, 'strong'),
            ` of ${exact(most)} (${percent(share)}), ${exact(Math.max(0, most - usageLines))} left`,
          ),
          NAME_COLUMNS,
        ),
    ...spendingLines(state, token, { columns, nameColumns: NAME_COLUMNS, action: 'tokens.budget' }),
    ...(mayShow(state, 'events') ? [fact('now', lastMinute(state), NAME_COLUMNS)] : []),
    fact(
      'hits',
      answered === 0 ? '–' : `${exact(hits)} served from the cache (${percent(hits / answered)})`,
      NAME_COLUMNS,
    ),
  ];
}

const SLICES = 20;
const MINUTE_MS = 60_000;

/** The requests of the last minute, with a small chart. */
function lastMinute(state: State): Strip {
  const recent = lastMinuteRequests(state);
  // The stored requests come with the stream.
  if (recent.length === 0 && !state.token?.isFollowed) return strip(text('…', 'faint'));
  const slices = Array.from({ length: SLICES }, () => 0);
  for (const ageMs of recent) {
    const at = SLICES - 1 - Math.floor((ageMs * SLICES) / MINUTE_MS);
    slices[at] = (slices[at] ?? 0) + 1;
  }
  const [line = []] = columnChart(slices, 1, 'accent');
  return strip(
    text(exact(recent.length), 'strong'),
    ` request${recent.length === 1 ? '' : 's'} in the last minute  `,
    line,
  );
}

function identity(state: State, token: WireToken): Strip[] {
  return [
    ...TOKEN_FACTS.map((column) => fact(column.title.toLowerCase(), shown(state, token, column), NAME_COLUMNS)),
    fact('command', strip(getCommand(state), text('  Y copies it', 'faint')), NAME_COLUMNS),
  ];
}

function shown(state: State, token: WireToken, column: Column<WireToken>): Strip {
  const nowMs = daemonNow(state);
  const cell = column.cell(token, nowMs);
  if (column.id === 'id') return strip(token.id, text('  secret ', 'faint'), token.obfuscated);
  if (cell.kind === 'project') return strip(token.project_name, '  ', text(token.project_id, 'faint'));
  if (cell.kind === 'distance' && cell.at !== null)
    return strip(dateTime(cell.at), text(`  ${relativeTime(cell.at, nowMs)}`, 'faint'));
  return cellStrip(cell, { nowMs, words: [], isNarrow: false });
}

function used(state: State, { usage }: TokenDetail, columns: number): Strip[] {
  const title = text('Last 24 hours  ', 'title');
  if (!usage) return [strip(title, text('…', 'faint')), ...Array.from({ length: CHART_ROWS + 1 }, () => [])];
  const hours = hoursOf(usage, daemonNow(state));
  return [strip(title, totals(hours, columns - title.width)), ...hourChart(hours, columns, CHART_ROWS + 1)];
}

function records(state: State, { history }: TokenDetail, token: WireToken, columns: number): Strip[] {
  if (!mayShow(state, 'audit')) return [];
  if (!history) return [strip(text('…', 'faint'))];
  const { changes, lastUse, isTruncated } = history;
  if (changes.length === 0 && lastUse === null) return [strip(text('No records.', 'faint'))];
  const now = daemonNow(state);
  const lines = changes.map((record) => recordLines(record, now, columns));
  const cutLine = strip(text(`… more on screen 4 with the filter token:${token.id}`, 'faint'));
  return [
    ...(lastUse ? [useLine(lastUse, token.last_used_at ?? lastUse.time, now, columns, useOf(lastUse, token))] : []),
    ...(isTruncated ? [...lines.slice(0, -1), [cutLine], ...lines.slice(-1)] : lines).flat(),
  ];
}

const useOf = ({ client_ip: ip }: WireAuditRecord, { request_count: used }: WireToken): Strip =>
  strip(`${exact(used)} request${used === 1 ? '' : 's'} in total`, ip !== null && text(`, last from ${ip}`, 'faint'));
