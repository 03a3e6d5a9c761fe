/** The second line: the screens with their numbers, and how many rows are filtered and marked. */
import { keyOf } from '../keys/press.js';
import { exact } from '../../daemon/api/formats.js';
import { cut, inRole, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { problems } from '../state/overview.js';
import { countOf as viewCountOf, shownView, tabbedViews } from '../state/saved-views.js';
import { filterOf, tabsOf } from '../state/navigation.js';
import type { SavedView } from '../state/saved.js';
import { type State, TABS, type Tab, view } from '../state/state.js';

const LABELS: Record<Tab, string> = {
  overview: 'Overview',
  tokens: 'Tokens',
  projects: 'Projects',
  audit: 'Audit',
  cache: 'Cache',
  events: 'Events',
  top: 'Top',
};

export const labelOf = (tab: Tab) => LABELS[tab];

/** A tab on the line: of a screen, or of a saved view. */
export interface TabEntry {
  of: Tab | SavedView;
  line: Strip;
}

/** The screen or the saved view whose tab is at a column of the line. */
export function tabAt(state: State, column: number): TabEntry['of'] | undefined {
  let end = 0;
  return tabLayout(state).entries.find(({ line }) => (end += widthOf(line)) > column)?.of;
}

interface Layout {
  entries: readonly TabEntry[];
  right: Strip;
}

/** The first layout that fits. What is filtered and marked is shortened before the names of the screens are dropped. */
export function tabLayout(state: State): Layout {
  const fits = ({ entries, right }: Layout) =>
    entries.reduce((sum, { line }) => sum + widthOf(line), 0) <=
    state.size.columns - (right.length === 0 ? 0 : widthOf(right) + 2);
  let last: Layout = { entries: [], right: [] };
  for (last of layouts(state)) if (fits(last)) break;
  return last;
}

/** All layouts, the best first. */
function* layouts(state: State): Generator<Layout> {
  const rights = [chosen(state, false), chosen(state, true)];
  for (const right of rights) for (const entries of wholeTabs(state)) yield { entries, right };
  for (const entries of shortenedTabs(state)) for (const right of rights) yield { entries, right };
}

/** The shortest that the name of a view is cut to, in columns. */
const MIN_VIEW_COLUMNS = 6;

const longestName = (state: State) => Math.max(0, ...tabbedViews(state).map(({ name }) => text(name).width));

function* wholeTabs(state: State): Generator<readonly TabEntry[]> {
  const views = viewTabs(state, longestName(state), true);
  for (const how of ['counted', 'named'] as const) yield [...tabsAs(state, how), ...views];
}

/** The names of the views are cut before those of the screens are dropped. */
function* shortenedTabs(state: State): Generator<readonly TabEntry[]> {
  const longest = longestName(state);
  for (const how of ['named', 'numbered'] as const) {
    const tabs = tabsAs(state, how);
    yield [...tabs, ...viewTabs(state, longest, true)];
    for (let columns = longest; columns >= Math.min(longest, MIN_VIEW_COLUMNS); columns -= 1)
      yield [...tabs, ...viewTabs(state, columns, false)];
  }
}

function tabsAs(state: State, how: 'counted' | 'named' | 'numbered'): TabEntry[] {
  const shown = state.views[0]?.screen;
  const isView = shownView(state) !== undefined;
  return tabsOf(state).map((tab) => {
    const isShown = tab === shown && !isView;
    const name = how !== 'numbered' || isShown ? ` ${LABELS[tab]}` : '';
    const words = `${TABS.indexOf(tab) + 1}${name}`;
    const count = how === 'counted' ? countOf(state, tab) : '';
    const line = strip(
      text(` ${words} `, isShown ? 'current' : 'plain'),
      tab === 'overview' && problemsSign(state),
      count !== '' && text(`${count} `, 'faint'),
    );
    return { of: tab, line };
  });
}

/** How much is wrong, which every screen shows. */
function problemsSign(state: State): Strip {
  const all = problems(state);
  if (all.length === 0) return [];
  const failing = all.some(({ isFailure }) => isFailure);
  return strip(text(`${failing ? '✗' : '▲'}${exact(all.length)} `, failing ? 'bad' : 'warning'));
}

/** The saved views, after the screens. @param columns the most for a name. */
function viewTabs(state: State, columns: number, isCounted: boolean): TabEntry[] {
  const shown = shownView(state);
  return tabbedViews(state).map((view, at) => {
    const key = keyOfView(state, at);
    const count = isCounted ? viewCountOf(state, view) : null;
    const role = view === shown ? 'current' : 'plain';
    const name = inRole(cut(strip(view.name), columns), role);
    const before = text(` ${key === '' ? '' : `${key} `}`, role);
    return {
      of: view,
      line: strip(before, name, text(' ', role), count !== null && text(`${exact(count)} `, 'faint')),
    };
  });
}

/** Only the first views have a key of their own. */
function keyOfView(state: State, at: number): string {
  const name = VIEW_ACTIONS[at];
  const key = name === undefined ? '' : keyOf(state, name);
  // An action without a key is only on the command line.
  return key.startsWith(': ') ? '' : key;
}
const VIEW_ACTIONS = ['views.first', 'views.second', 'views.third'];

function countOf(state: State, tab: Tab): string {
  const { projects, audit, events } = state;
  switch (tab) {
    case 'tokens': {
      const all = allTokens(state);
      return all === null ? '' : exact(all);
    }
    case 'projects':
      return projects.all ? exact(projects.all.length) : '';
    case 'audit':
      return audit.unseen > 0 ? `+${exact(audit.unseen)}` : '';
    case 'events':
      return events.unseen > 0 ? `+${exact(events.unseen)}` : '';
    default:
      return '';
  }
}

/** Number of rows that match the filter, and of marked tokens. */
function chosen(state: State, isShort: boolean): Strip {
  const { tokens, projects, top } = state;
  const { screen } = view(state);
  const isFiltered = (filterOf(state) ?? '') !== '';
  const passed = screen === 'tokens' || screen === 'projects' || screen === 'top' ? state[screen].window.total : null;
  const all =
    screen === 'tokens' ? allTokens(state) : ((screen === 'top' ? top.response?.rows : projects.all)?.length ?? null);
  const share = passed === null ? '' : `${exact(passed)}${all === null ? '' : `/${exact(all)}`}`;
  const filter = isFiltered && share !== '' ? `${isShort ? '' : 'filter '}${share}` : '';
  const marks =
    tokens.marks.size > 0
      ? isShort
        ? `${exact(tokens.marks.size)} marked`
        : `marked ${exact(tokens.marks.size)}`
      : '';
  const said = [filter, marks].filter((it) => it !== '');
  return said.length === 0 ? [] : strip(text(said.join(isShort ? ' ' : '   '), 'accent'), ' ');
}

/** The list knows it best, but only while all of it is shown; the status of the daemon is requested on every screen. */
function allTokens(state: State): number | null {
  const {
    tokens: { all, filter },
    overview: { status },
  } = state;
  const counts = status?.tokens ? Object.values(status.tokens).reduce((sum, each) => sum + each, 0) : null;
  return view(state).screen === 'tokens' && filter === '' ? (all ?? counts) : (counts ?? all);
}
