/** The projects screen. */
import { PROJECT_COLUMNS } from '../../console/columns/projects.js';
import { keyOf } from '../keys/press.js';
import { type Area, key, listFrame, emptyListLines } from '../parts/list.js';
import { strip, type Strip, text } from '../parts/strip.js';
import type { State } from '../state/state.js';
import { shownColumns } from './chosen-columns.js';
import { loadingText } from './tokens.js';

export function projectsScreen(state: State, area: Area): Strip[] {
  const { window, filter, order: by, isDescending } = state.projects;
  const columns = shownColumns(state, 'projects', PROJECT_COLUMNS, { filter, order: { by, isDescending } });
  return listFrame({ window, columns, emptyLines: emptyListLines(window, nothing(state), loadingText(state)) }, area);
}

function nothing(state: State): (string | Strip)[] {
  const { projects } = state;
  if (projects.filter.trim() !== '') {
    return [
      strip('No projects match ', text(projects.filter, 'accent'), '.'),
      strip(key('esc'), ' shows all, ', key(keyOf(state, 'global.filter')), ' changes the filter.'),
    ];
  }
  return [
    'No projects yet.',
    strip(key(keyOf(state, 'projects.new')), ' creates the first one; every token belongs to a project.'),
  ];
}
