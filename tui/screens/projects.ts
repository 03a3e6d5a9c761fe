/** The projects screen. */
import { relativeTime } from '../../daemon/api/formats.js';
import { providerTitle } from '../../daemon/api/providers.js';
import { shortId } from '../../console/views.js';
import type { WireProject } from '../../daemon/api/contract.js';
import { keyOf } from '../keys/press.js';
import type { ListColumn } from '../parts/columns.js';
import { count } from '../parts/figures.js';
import { withFound } from '../parts/found.js';
import { type Area, key, listFrame, emptyListLines } from '../parts/list.js';
import { stateMark } from '../parts/state-mark.js';
import { strip, type Strip, text } from '../parts/strip.js';
import { parsed } from '../state/filtering.js';
import { daemonNow, type State } from '../state/state.js';
import { type ChoosableColumn, chosenOf } from './chosen-columns.js';
import { arrow, loadingText } from './tokens.js';

export function projectsScreen(state: State, area: Area): Strip[] {
  const { window } = state.projects;
  return listFrame(
    { window, columns: columnsOf(state), emptyLines: emptyListLines(window, nothing(state), loadingText(state)) },
    area,
  );
}

function columnsOf(state: State): readonly ListColumn<WireProject>[] {
  const { projects } = state;
  const now = daemonNow(state);
  const words = parsed(state, projects.filter)?.words ?? [];
  const titled = (title: string, order: State['projects']['order']) =>
    projects.order === order ? `${title} ${arrow(state, projects)}` : title;
  const ago = (timestamp: string | null) => strip(timestamp === null ? '' : relativeTime(timestamp, now));
  const all: ChoosableColumn<WireProject, 'projects'>[] = [
    { id: 'id', title: 'ID', rank: 7, minWidth: 8, show: ({ id }) => strip(text(shortId(id), 'faint')) },
    {
      id: 'name',
      title: titled('NAME', 'name'),
      rank: 0,
      minWidth: 12,
      maxWidth: 48,
      show: ({ name }) => withFound(name, words),
    },
    {
      id: 'state',
      title: 'STATE',
      rank: 0,
      minWidth: 13,
      show: ({ is_active: isActive }) => strip(stateMark(isActive ? 'active' : 'project_inactive')),
    },
    { id: 'tokens', title: 'TOKENS', rank: 1, minWidth: 8, alignRight: true, show: tokensOf },
    {
      id: 'requests',
      title: titled('REQ 24H', 'requests_24h'),
      rank: 2,
      minWidth: 9,
      alignRight: true,
      show: ({ requests_24h: requests }) => strip(count(requests)),
    },
    {
      id: 'errors',
      title: titled('ERR 24H', 'errors_24h'),
      rank: 3,
      minWidth: 9,
      alignRight: true,
      show: ({ errors_24h: errors }) => strip(text(count(errors), errors > 0 ? 'bad' : 'faint')),
    },
    {
      id: 'last_used',
      title: titled('LAST USED', 'last_used_at'),
      rank: 4,
      minWidth: 11,
      show: ({ last_used_at: at }) => strip(text(relativeTime(at, now), at === null ? 'faint' : 'plain')),
    },
    {
      id: 'provider',
      title: 'PROVIDER',
      rank: 5,
      minWidth: 10,
      maxWidth: 28,
      show: (project) => strip(text(providerTitle(project), project.upstream_base_url === null ? 'faint' : 'plain')),
    },
    {
      id: 'key',
      title: 'KEY',
      rank: 6,
      minWidth: 6,
      show: ({ api_key_hint: hint }) => strip(text(`…${hint}`, 'faint')),
    },
    {
      id: 'created',
      title: titled('CREATED', 'created_at'),
      rank: 8,
      minWidth: 9,
      show: ({ created_at: at }) => ago(at),
    },
    { id: 'changed', title: 'CHANGED', rank: 9, minWidth: 9, show: ({ updated_at: at }) => ago(at) },
    { id: 'deactivated', title: 'DEACTIVATED', rank: 10, minWidth: 12, show: ({ deactivated_at: at }) => ago(at) },
  ];
  return chosenOf(state, 'projects', all);
}

/** Active tokens, and all. */
const tokensOf = ({ active_token_count: active, token_count: all }: WireProject): Strip =>
  strip(count(active), text(`/${count(all)}`, 'faint'));

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
