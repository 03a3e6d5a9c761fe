/** The projects screen. */
import { PROJECT_COLUMNS } from '../../console/columns/projects.js';
import { keyOf, offers } from '../keys/press.js';
import { key, List } from '../parts/list.js';
import { strip, type Strip, text } from '../parts/strip.js';
import { listRows } from '../state/rows.js';
import type { State } from '../state/state.js';
import { shownColumns } from './chosen-columns.js';
import { loadingText } from './tokens.js';

export function ProjectsScreen({ state }: { state: State }) {
  const { window, filter, order: by, isDescending } = state.projects;
  return (
    <List
      window={window}
      columns={shownColumns(state, 'projects', PROJECT_COLUMNS, { filter, order: { by, isDescending } })}
      rows={listRows(state)}
      emptyLines={nothing(state)}
      wait={loadingText(state)}
    />
  );
}

function nothing(state: State): (string | Strip)[] {
  const { projects } = state;
  if (projects.filter.trim() !== '') {
    return [
      strip('No projects match ', text(projects.filter, 'accent'), '.'),
      strip(key('esc'), ' shows all, ', key(keyOf(state, 'global.filter')), ' changes the filter.'),
    ];
  }
  const first = strip(key(keyOf(state, 'projects.new')), ' creates the first one; every token belongs to a project.');
  return ['No projects yet.', ...(offers(state, 'projects.new') ? [first] : [])];
}
