/** The second line: the screens with their numbers, and how many rows are filtered and marked. */
import { keyOf } from '../keys/press.js';
import { exact } from '../../daemon/api/formats.js';
import { between, cut, inRole, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { countOf as viewCountOf, shownView, tabbedViews } from '../state/saved-views.js';
import { filterOf } from '../state/navigation.js';
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

export function tabs(state: State): Strip {
  const right = chosen(state);
  const left = shownTabs(state, right).flatMap(({ line }) => line);
  return between(left, right, state.size.columns);
}

/** The screen or the saved view whose tab is at a column of the line. */
export function tabAt(state: State, column: number): TabEntry['of'] | undefined {
  let end = 0;
  return shownTabs(state, chosen(state)).find(({ line }) => (end += widthOf(line)) > column)?.of;
}

function shownTabs(state: State, right: Strip): readonly TabEntry[] {
  const room = state.size.columns - (right.length === 0 ? 0 : widthOf(right) + 2);
  const fits = (entries: readonly TabEntry[]) => entries.reduce((sum, { line }) => sum + widthOf(line), 0) <= room;
  let last: readonly TabEntry[] = [];
  for (last of layouts(state)) if (fits(last)) break;
  return last;
}

/** The shortest that the name of a view is cut to, in columns. */
const MIN_VIEW_COLUMNS = 6;

/** The line in all its forms, from the longest to the shortest. The names of the views are cut before those of the screens are dropped. */
function* layouts(state: State): Generator<readonly TabEntry[]> {
  const longest = Math.max(0, ...tabbedViews(state).map(({ name }) => text(name).width));
  const whole = viewTabs(state, longest, true);
  yield [...tabsAs(state, 'counted'), ...whole];
  for (const how of ['named', 'numbered'] as const) {
    const tabs = tabsAs(state, how);
    yield [...tabs, ...whole];
    for (let columns = longest; columns >= Math.min(longest, MIN_VIEW_COLUMNS); columns -= 1)
      yield [...tabs, ...viewTabs(state, columns, false)];
  }
}

function tabsAs(state: State, how: 'counted' | 'named' | 'numbered'): TabEntry[] {
  const shown = state.views[0]?.screen;
  const isView = shownView(state) !== undefined;
  return TABS.map((tab, at) => {
    const isShown = tab === shown && !isView;
    const name = how !== 'numbered' || isShown ? ` ${LABELS[tab]}` : '';
    const words = `${at + 1}${name}`;
    const count = how === 'counted' ? countOf(state, tab) : '';
    const line = strip(text(` ${words} `, isShown ? 'current' : 'plain'), count !== '' && text(`${count} `, 'faint'));
    return { of: tab, line };
  });
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

function countOf({ tokens, projects, overview: { status }, audit, events }: State, tab: Tab): string {
  switch (tab) {
    case 'tokens': {
      const counts = status?.tokens;
      const all = tokens.all ?? (counts ? Object.values(counts).reduce((sum, each) => sum + each, 0) : null);
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
function chosen(state: State): Strip {
  const { tokens, projects, top } = state;
  const { screen } = view(state);
  const isFiltered = (filterOf(state) ?? '') !== '';
  const passed = screen === 'tokens' || screen === 'projects' || screen === 'top' ? state[screen].window.total : null;
  const all =
    screen === 'tokens' ? tokens.all : ((screen === 'top' ? top.response?.rows : projects.all)?.length ?? null);
  const filter = isFiltered && passed !== null ? `filter ${exact(passed)}${all === null ? '' : `/${exact(all)}`}` : '';
  const marks = tokens.marks.size > 0 ? `marked ${exact(tokens.marks.size)}` : '';
  const said = [filter, marks].filter((it) => it !== '');
  return said.length === 0 ? [] : strip(text(said.join('   '), 'accent'), ' ');
}
