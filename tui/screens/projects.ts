/** The list of projects. */
import { relativeTime, shortId } from '../../console/views.js';
import type { WireProject } from '../../daemon/api/contract.js';
import type { Column } from '../parts/columns.js';
import { withFound } from '../parts/found.js';
import { type Area, key, listed, saidInside } from '../parts/list.js';
import { stateMark } from '../parts/state-mark.js';
import { strip, type Strip, text } from '../parts/strip.js';
import { parsed } from '../state/filtering.js';
import { daemonNow, type State } from '../state/state.js';
import { arrow, waiting } from './tokens.js';

export function projectsScreen(state: State, area: Area): Strip[] {
  const { window } = state.projects;
  return listed(
    { window, columns: columnsOf(state), nothing: saidInside(window, nothing(state), waiting(state)) },
    area,
  );
}

function columnsOf(state: State): Column<WireProject>[] {
  const { projects } = state;
  const now = daemonNow(state);
  const words = parsed(state, projects.filter)?.words ?? [];
  const titled = (title: string, order: State['projects']['order']) =>
    projects.order === order ? `${title} ${arrow(state, projects)}` : title;
  const ago = (timestamp: string | null) => strip(timestamp === null ? '' : relativeTime(timestamp, { now }));
  return [
    { title: 'ID', rank: 0, least: 8, show: ({ id }) => strip(text(shortId(id), 'faint')) },
    { title: titled('NAME', 'name'), rank: 0, least: 14, most: 48, show: ({ name }) => withFound(name, words) },
    {
      title: 'STATE',
      rank: 0,
      least: 13,
      show: ({ is_active: isActive }) => strip(stateMark(isActive ? 'active' : 'project_inactive')),
    },
    { title: 'KEY', rank: 2, least: 6, show: ({ api_key_hint: hint }) => strip(text(`…${hint}`, 'faint')) },
    { title: titled('CREATED', 'created_at'), rank: 1, least: 9, show: ({ created_at: at }) => ago(at) },
    { title: 'CHANGED', rank: 3, least: 9, show: ({ updated_at: at }) => ago(at) },
    { title: 'SWITCHED OFF', rank: 4, least: 12, show: ({ deactivated_at: at }) => ago(at) },
  ];
}

function nothing({ projects }: State): (string | Strip)[] {
  if (projects.filter.trim() !== '') {
    return [
      strip('No project fits ', text(projects.filter, 'accent'), '.'),
      strip(key('esc'), ' shows all again, ', key('/'), ' changes the filter.'),
    ];
  }
  return ['There are no projects yet.', strip(key('n'), ' makes the first one; tokens belong to projects.')];
}
