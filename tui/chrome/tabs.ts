/** The second line: the screens with their numbers, and how many rows are filtered and marked. */
import { exact } from '../../daemon/api/formats.js';
import { between, joined, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { filterOf } from '../state/navigation.js';
import { type State, TABS, type Tab, view } from '../state/state.js';

const LABELS: Record<Tab, string> = {
  overview: 'Overview',
  tokens: 'Tokens',
  projects: 'Projects',
  audit: 'Audit',
  cache: 'Cache',
  events: 'Events',
};

export const labelOf = (tab: Tab) => LABELS[tab];

export function tabs(state: State): Strip {
  const { columns } = state.size;
  const right = chosen(state);
  const room = columns - widthOf(right) - 2;
  const tries = (['counted', 'named', 'numbered'] as const).map((how) => tabsAs(state, how));
  const left = tries.find((line) => widthOf(line) <= room) ?? tries.at(-1) ?? [];
  return between(left, right, columns);
}

function tabsAs(state: State, how: 'counted' | 'named' | 'numbered'): Strip {
  const shown = state.views[0]?.screen;
  return joined(
    TABS.map((tab, at): Strip => {
      const isShown = tab === shown;
      const name = how !== 'numbered' || isShown ? ` ${LABELS[tab]}` : '';
      const words = `${at + 1}${name}`;
      const count = how === 'counted' ? countOf(state, tab) : '';
      return strip(text(` ${words} `, isShown ? 'current' : 'plain'), count !== '' && text(`${count} `, 'faint'));
    }),
    '',
  );
}

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
  const { tokens, projects } = state;
  const { screen } = view(state);
  const isFiltered = (filterOf(state) ?? '') !== '';
  const passed = screen === 'tokens' ? tokens.window.total : screen === 'projects' ? projects.window.total : null;
  const all = screen === 'tokens' ? tokens.all : (projects.all?.length ?? null);
  const filter = isFiltered && passed !== null ? `filter ${exact(passed)}${all === null ? '' : `/${exact(all)}`}` : '';
  const marks = tokens.marks.size > 0 ? `marked ${exact(tokens.marks.size)}` : '';
  const said = [filter, marks].filter((it) => it !== '');
  return said.length === 0 ? [] : strip(text(said.join('   '), 'accent'), ' ');
}
