/** The screens of operators and trusts: their lists, and the details of one. */
import { ceilingsShown, OPERATOR_COLUMNS, ROLE_TITLES, TRUST_COLUMNS } from '../../console/columns/access.js';
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
import { operator, trust } from '../state/access.js';
import { detailColumns } from '../state/record-rows.js';
import { areaOf, listRows } from '../state/rows.js';
import { projectsShown } from '../state/self.js';
import { daemonNow, type State } from '../state/state.js';
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

/** The title of a list, with the key of the other one. */
const titleOf = (state: State, title: string, [action, words]: readonly [string, string]): Strip =>
  strip(text(title, 'title'), text(' · ', 'faint'), key(keyOf(state, action)), text(` ${words}`, 'faint'));

export const OperatorsScreen = ({ state }: { state: State }) => (
  <List
    window={state.access.windows.operators}
    title={titleOf(state, 'Operators', ['access.trusts', 'trusts'])}
    columns={columnsOf(state, OPERATOR_COLUMNS, {
      projects: ({ projects }) => strip(projectsShown(state, projects)),
    })}
    rows={listRows(state)}
    emptyLines={[
      'No operators yet: only the management token gives access.',
      strip(key(keyOf(state, 'access.new-operator')), ' creates one, with a role and a secret of its own.'),
    ]}
    wait={loadingText(state)}
  />
);

export const TrustsScreen = ({ state }: { state: State }) => (
  <List
    window={state.access.windows.trusts}
    title={titleOf(state, 'Trusts', ['access.operators', 'operators'])}
    columns={columnsOf(state, TRUST_COLUMNS)}
    rows={listRows(state)}
    emptyLines={['No trusts yet.', 'With one, jobs and pods exchange their JWTs for tokens. See `llmp trust create`.']}
    wait={loadingText(state)}
  />
);

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

const isActiveMark = ({ is_active: isActive }: { is_active: boolean }): Strip =>
  strip(stateMark(isActive ? 'active' : 'inactive'));

export function OperatorScreen({ state }: { state: State }) {
  const it = operator(state);
  if (!it) return <EmptyPane says={state.access.operators ? 'This operator does not exist.' : loadingText(state)} />;
  return <Detail state={state} title={it.name} facts={operatorFacts(state, it)} />;
}

const operatorFacts = (state: State, it: WireOperator): Fact[] => [
  ['state', isActiveMark(it)],
  ['role', ROLE_TITLES[it.role]],
  ['projects', projectsShown(state, it.projects)],
  ['ceilings', ceilingsShown(it.ceilings)],
  ['expires', time(state, it.expires_at)],
  ['last used', time(state, it.last_used_at)],
  ['created', time(state, it.created_at)],
  ['changed', time(state, it.updated_at)],
  ['secret', it.obfuscated],
  ['id', it.id],
];

export function TrustScreen({ state }: { state: State }) {
  const it = trust(state);
  if (!it) return <EmptyPane says={state.access.trusts ? 'This trust does not exist.' : loadingText(state)} />;
  return <Detail state={state} title={it.name} facts={trustFacts(state, it)} />;
}

const trustFacts = (state: State, it: WireTrust): Fact[] => [
  ['state', isActiveMark(it)],
  ['issuer', it.issuer],
  ['audience', it.audience],
  ...Object.entries(it.match).map(([claim, value], at): Fact => [at === 0 ? 'match' : '', `${claim}=${value}`]),
  ['keys', it.jwks_file === null ? 'published by the issuer' : `file ${it.jwks_file}`],
  ['project', strip(it.project_name, text(`  ${it.project_id}`, 'faint'))],
  ['lifetime', counted(it.duration_minutes, 'minute')],
  ['cap', it.max_requests === 0 ? 'unlimited requests' : counted(it.max_requests, 'request')],
  ['at most', atMost(it)],
  ['allows', allowShown(it.allow)],
  ['limits', limitsShown(it.limits)],
  ['budget', budgetShown(it.budget)],
  ['created', time(state, it.created_at)],
  ['changed', time(state, it.updated_at)],
  ['id', it.id],
];

function atMost({ max_active: active, per_hour: hourly }: WireTrust): string {
  const parts = [active !== null && `${exact(active)} active`, hourly !== null && `${exact(hourly)} an hour`].filter(
    (part) => part !== false,
  );
  return parts.length === 0 ? 'any number of tokens' : parts.join(', ');
}

const Detail = ({ state, title, facts }: { state: State; title: string; facts: readonly Fact[] }) => (
  <ScrolledPane
    title={strip(text(title, 'title'))}
    lines={factLines(facts, detailColumns(state))}
    top={state.access.top}
    rows={areaOf(state).rows}
  />
);
