/** The screens of operators and trusts: their lists, and the details of one. */
import {
  ceilingsShown,
  matchShown,
  OPERATOR_COLUMNS,
  ROLE_TITLES,
  TRUST_COLUMNS,
} from '../../console/columns/access.js';
import { type Column, isShownBy, shortTitleOf, widthsOf } from '../../console/columns/column.js';
import { allowShown, budgetShown, limitsShown } from '../../console/columns/policies.js';
import type { WireOperator, WireTrust } from '../../daemon/api/contract.js';
import { counted, exact, relativeTime } from '../../daemon/api/formats.js';
import { keyOf } from '../keys/press.js';
import { cellStrip, stateMark } from '../parts/cells.js';
import { fact, type ListColumn } from '../parts/columns.js';
import { dateTime } from '../parts/figures.js';
import { key, List } from '../parts/list.js';
import { EmptyPane, ScrolledPane } from '../parts/pane.js';
import { strip, type Strip, text, wrapped } from '../parts/strip.js';
import { DETAILS, operator, trust } from '../state/access.js';
import { detailColumns } from '../state/record-rows.js';
import { areaOf, listRows } from '../state/rows.js';
import { projectsShown } from '../state/self.js';
import { type AccessList, daemonNow, type State } from '../state/state.js';
import type { Window } from '../state/window.js';
import { loadingText } from './tokens.js';

function columnsOf<T, Id extends string>(
  state: State,
  columns: readonly Column<T, Id>[],
  own: { [K in Id]?: (item: T) => Strip } = {},
): readonly ListColumn<T>[] {
  const options = { nowMs: daemonNow(state), words: [], isNarrow: false };
  return columns
    .filter((column) => isShownBy(column, 'tui'))
    .map((column) => {
      const { rank, alignRight = false, isWhole = false, keepsWidth = false } = column;
      const { min, max } = widthsOf(column);
      const show = own[column.id] ?? ((item: T) => cellStrip(column.cell(item, options.nowMs), options));
      return { title: shortTitleOf(column), rank, minWidth: min, maxWidth: max, isWhole, keepsWidth, alignRight, show };
    });
}

const NAME_COLUMNS = 10;

type Fact = readonly [name: string, value: Strip | string];

/** What does not fit goes on in the next line. */
function factLines(facts: readonly Fact[], columns: number): Strip[] {
  return facts.flatMap(([name, value]) =>
    typeof value === 'string'
      ? wrapped(value, columns - NAME_COLUMNS - 1).map((line, at) => fact(at === 0 ? name : '', line, NAME_COLUMNS))
      : [fact(name, value, NAME_COLUMNS)],
  );
}

function time(state: State, at: string | null): Strip {
  if (at === null) return strip(text('never', 'faint'));
  return strip(dateTime(at), text(`  ${relativeTime(at, daemonNow(state))}`, 'faint'));
}

interface Kind<T extends WireOperator | WireTrust> {
  list: AccessList;
  window: (state: State) => Window<T>;
  columns: (state: State) => readonly ListColumn<T>[];
  /** The action that shows the other list, whose name stands in the title too. */
  other: readonly [action: string, words: AccessList];
  emptyLines: (state: State) => (string | Strip)[];
  target: (state: State) => T | undefined;
  titleOf: (item: T) => string;
  /** What is between the state and the dates of one. */
  facts: (state: State, item: T) => readonly Fact[];
}

/** The screens of a list, and of one of its items. */
function screensOf<T extends WireOperator | WireTrust>(kind: Kind<T>) {
  const { list, other, target } = kind;
  const [action, words] = other;
  const title = `${list.charAt(0).toUpperCase()}${list.slice(1)}`;
  const ListScreen = ({ state }: { state: State }) => (
    <List
      window={kind.window(state)}
      title={strip(text(title, 'title'), text(' · ', 'faint'), key(keyOf(state, action)), text(` ${words}`, 'faint'))}
      columns={kind.columns(state)}
      rows={listRows(state)}
      emptyLines={kind.emptyLines(state)}
      wait={loadingText(state)}
    />
  );
  function DetailScreen({ state }: { state: State }) {
    const it = target(state);
    if (!it)
      return <EmptyPane says={state.access[list] ? `This ${DETAILS[list]} does not exist.` : loadingText(state)} />;
    const all: Fact[] = [
      ['state', strip(stateMark(it.is_active ? 'active' : 'inactive'))],
      ...kind.facts(state, it),
      ['created', time(state, it.created_at)],
      ['changed', time(state, it.updated_at)],
      ['id', it.id],
    ];
    return (
      <ScrolledPane
        title={strip(text(kind.titleOf(it), 'title'))}
        lines={factLines(all, detailColumns(state))}
        top={state.access.top}
        rows={areaOf(state).rows}
      />
    );
  }
  return [ListScreen, DetailScreen] as const;
}

function atMost({ max_active: active, per_hour: hourly }: WireTrust): string {
  const parts = [active !== null && `${exact(active)} active`, hourly !== null && `${exact(hourly)} an hour`].filter(
    (part) => part !== false,
  );
  return parts.length === 0 ? 'any number of tokens' : parts.join(', ');
}

export const [OperatorsScreen, OperatorScreen] = screensOf<WireOperator>({
  list: 'operators',
  window: ({ access }) => access.windows.operators,
  columns: (state) =>
    columnsOf(state, OPERATOR_COLUMNS, { projects: ({ projects }) => strip(projectsShown(state, projects)) }),
  other: ['access.trusts', 'trusts'],
  emptyLines: (state) => [
    'No operators yet: only the management token gives access.',
    strip(key(keyOf(state, 'access.new-operator')), ' creates one, with a role and a secret of its own.'),
  ],
  target: operator,
  titleOf: ({ name }) => name,
  facts: (state, it) => [
    ['role', ROLE_TITLES[it.role]],
    ['projects', projectsShown(state, it.projects)],
    ['ceilings', ceilingsShown(it.ceilings)],
    ['expires', time(state, it.expires_at)],
    ['last used', time(state, it.last_used_at)],
    ['secret', it.obfuscated],
  ],
});

export const [TrustsScreen, TrustScreen] = screensOf<WireTrust>({
  list: 'trusts',
  window: ({ access }) => access.windows.trusts,
  columns: (state) => columnsOf(state, TRUST_COLUMNS),
  other: ['access.operators', 'operators'],
  emptyLines: () => [
    'No trusts yet.',
    'With one, jobs and pods exchange their JWTs for tokens. See `llmp trust create`.',
  ],
  target: trust,
  titleOf: ({ match }) => matchShown(match),
  facts: (_, it) => [
    ['issuer', it.issuer],
    ['audience', it.audience],
    ...Object.entries(it.match).map(([claim, value], at): Fact => [at === 0 ? 'match' : '', `${claim}=${value}`]),
    ['keys', it.jwks_file === null ? 'published by the issuer' : `file ${it.jwks_file}`],
    ['project', it.project_name],
    ['', strip(text(it.project_id, 'faint'))],
    ['tokens', it.name],
    ['lifetime', counted(it.duration_minutes, 'minute')],
    ['cap', it.max_requests === 0 ? 'unlimited requests' : counted(it.max_requests, 'request')],
    ['at most', atMost(it)],
    ['allows', allowShown(it.allow)],
    ['limits', limitsShown(it.limits)],
    ['budget', budgetShown(it.budget)],
  ],
});
