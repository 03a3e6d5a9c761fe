/** Keys of the Top screen. */
import { listCommand } from '../../console/query/command.js';
import { quotedValue } from '../../console/query/terms.js';
import { isOfModels } from '../../daemon/api/top-words.js';
import { MODEL_PART_PATTERN, type TopDimension } from '../../daemon/api/vocabulary.js';
import { filterOfProject } from '../state/filtering.js';
import * as project from '../state/project.js';
import { refreshed } from '../state/refreshing.js';
import type { State, TopItem, Transition } from '../state/state.js';
import * as token from '../state/token.js';
import * as tops from '../state/top.js';
import { type Binding, named, step } from './binding.js';
import { showEvents, whyNoEvents } from './feeds.js';

function noRow(state: State): string | null {
  if (tops.underCursor(state)) return null;
  return state.top.response ? 'No row here' : 'Not loaded yet';
}

/** Whether a key for the first row can wait for it. */
const isLoading = ({ top }: State) => top.response === null && !top.isOpening;

const onRow =
  (act: (state: State, row: TopItem) => Transition) =>
  (state: State): Transition => {
    const row = tops.underCursor(state);
    return row ? act(state, row) : [state];
  };

const rowsBy = (by: TopDimension, key: string, label: string, meaning: string, footer: number): Binding => ({
  keys: [key],
  on: ['top'],
  label,
  meaning,
  footer,
  whyDisabled: ({ top }) => (top.by === by ? `The rows are already ${label}` : null),
  run: (state) => refreshed(tops.asked(state, { by })),
});

export const TOP_BINDINGS = named('top', [
  {
    keys: ['enter', 'l', 'right'],
    on: ['top'],
    label: 'open',
    meaning: 'show the token, the project, or the events of the model',
    footer: 1,
    whyDisabled: (state) =>
      (isOfModels(state.top.by) ? whyNoEvents(state) : null) ?? (isLoading(state) ? null : noRow(state)),
    run: (state) => (isLoading(state) ? [{ ...state, top: { ...state.top, isOpening: true } }] : onRow(opened)(state)),
  },
  rowsBy('token', 't', 'tokens', 'show tokens', 2),
  rowsBy('project', 'o', 'projects', 'show projects', 3),
  rowsBy('model', 'm', 'models', 'show models, by project', 4),
  rowsBy('model_total', 'M', 'all models', 'show models, over all projects', 8.5),
  {
    name: 'next-window',
    keys: ['w'],
    on: ['top'],
    label: 'time',
    meaning: 'show the last 5 minutes, hour or 24 hours',
    footer: 5,
    run: (state) => refreshed(tops.asked(state, { period: tops.nextPeriod(state) })),
  },
  {
    keys: ['$'],
    on: ['top'],
    label: 'by cost',
    meaning: 'sort by cost, the highest first',
    footer: 8.7,
    run: (state) => refreshed(tops.sorted(state, 'cost')),
  },
  {
    keys: ['f'],
    on: ['top'],
    label: 'live events',
    meaning: 'show the requests of the row as they occur',
    needs: 'listEvents',
    whyDisabled: noRow,
    run: onRow((state, row) => showEvents(state, eventsOf(state, row))),
  },
  {
    keys: ['y'],
    on: ['top'],
    label: 'copy id',
    meaning: "copy the ID of the token or project, or the name of the model, to the terminal's clipboard",
    whyDisabled: noRow,
    run: onRow((state, row) => [state, { do: 'copy', ...copied(row) }]),
  },
  {
    name: 'copy-top-command',
    keys: ['Y'],
    on: ['top'],
    label: 'copy command',
    meaning: "copy the command that lists the same to the terminal's clipboard",
    run: (state) => [state, { do: 'copy', text: commandOf(state), what: 'The command' }],
  },
  {
    keys: ['s'],
    on: ['top'],
    label: 'sort',
    meaning: 'sort by the next column',
    footer: 8,
    run: (state) => refreshed(tops.orderedByNext(state)),
  },
  { keys: ['S'], on: ['top'], label: 'reverse', meaning: 'reverse the sort order', run: step(tops.reversed) },
]);

function opened(state: State, row: TopItem): Transition {
  switch (state.top.by) {
    case 'token':
      return row.token_id === undefined ? [state] : token.open(state, row.token_id, null);
    case 'project':
      return row.project_id === undefined ? [state] : project.open(state, row.project_id);
    case 'model':
    case 'model_total':
      return showEvents(state, eventsOf(state, row));
  }
}

function copied({ token_id: token, project_id: project, model }: TopItem): { text: string; what: string } {
  if (token !== undefined) return { text: token, what: 'The ID' };
  return project === undefined
    ? { text: model ?? '', what: 'The name of the model' }
    : { text: project, what: 'The ID of the project' };
}

const projectTerm = (state: State, { project_id: id, project_name: name }: TopItem): string =>
  id === undefined ? '' : filterOfProject(state, { id, name: name ?? id });

const WHOLE_MODEL = new RegExp(`^${MODEL_PART_PATTERN}$`);

/** The filter for the events of a row. The filter for events cannot express every name of a model. */
function eventsOf(state: State, row: TopItem): string {
  if (row.token_id !== undefined) return `token:${row.token_id}`;
  const { model } = row;
  const term = typeof model === 'string' && WHOLE_MODEL.test(model) ? `model:${quotedValue(model)}` : '';
  return `${projectTerm(state, row)} ${term}`.trim();
}

function commandOf({ top, target }: State): string {
  const sort = tops.sortField(top);
  const { by, period: window, filter } = top;
  return listCommand({ screen: 'top', filter, sort, top: { by, window }, context: target.context });
}
