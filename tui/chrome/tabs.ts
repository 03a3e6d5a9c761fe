/** The second line: the screens with their numbers, and how many rows are filtered and marked. */
import { keyOf } from '../keys/press.js';
import { exact } from '../../daemon/api/formats.js';
import { between, strip, type Strip, text, widthOf } from '../parts/strip.js';
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
  const room = state.size.columns - widthOf(right) - 2;
  const views = viewTabs(state);
  const tries = (['counted', 'named', 'numbered'] as const).map((how) => [...tabsAs(state, how), ...views]);
  const fits = (entries: readonly TabEntry[]) => entries.reduce((sum, { line }) => sum + widthOf(line), 0) <= room;
  return tries.find(fits) ?? tries.at(-1) ?? [];
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

/** The saved views, after the screens. */
function viewTabs(state: State): TabEntry[] {
  const shown = shownView(state);
  return tabbedViews(state).map((view, at) => {
    const key = keyOfView(state, at);
    const count = viewCountOf(state, view);
    const words = ` ${key === '' ? '' : `${key} `}${view.name} `;
    const name = text(words, view === shown ? 'current' : 'plain');
    return { of: view, line: strip(name, count !== null && text(`${exact(count)} `, 'faint')) };
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
