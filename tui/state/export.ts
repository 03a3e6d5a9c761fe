/** Exports the current list to a file: its filter, its order and its columns. */
import type { Column } from '../../console/columns/column.js';
import { topColumns } from '../../console/columns/top.js';
import { parseFilter } from '../../console/query/filter.js';
import type { FilteredScreen } from '../../console/query/types.js';
import type { ExportedList } from './exported-list.js';
import { fileNameAt, formatOfName } from '../../console/table-format.js';
import { counted } from '../../daemon/api/formats.js';
import { columnsOf, shownIds } from './columns.js';
import { dialogOf, warning } from './dialog.js';
import { screenOf } from './filtering.js';
import { above, filterOf } from './navigation.js';
import { daemonNow, knownNames, type State, type Transition, withMessage, withResult } from './state.js';
import { filterQuery } from './tokens.js';
import { loadedRows } from './window.js';

/** @returns why it cannot be exported, or the export. @param path as typed; empty: a new file in the current folder. */
export function exportOf(state: State, typed: string): string | Transition {
  const screen = screenOf(state);
  if (screen === undefined) return 'this screen is no list; go to tokens, projects, audit, events or top first';
  const path = typed === '' ? fileNameAt(screen, state.nowMs) : typed;
  const format = formatOfName(path);
  if (format === undefined) return 'the name must end with .csv, .json or .jsonl';
  const source = sourceOf(state, screen);
  if (source === null) return 'the filter of the list is not valid';
  const { by, period } = state.top;
  const list: ExportedList = {
    screen,
    path,
    format,
    replaces: false,
    columns: shownIds(state, screen),
    source,
    filter: filterOf(state) ?? '',
    top: { by, period },
    nowMs: daemonNow(state),
  };
  return [withMessage(state, `Exporting to ${path} …`), { do: 'export', list }];
}

function sourceOf(state: State, screen: FilteredScreen): ExportedList['source'] | null {
  switch (screen) {
    case 'projects':
      return { rows: loadedRows(state.projects.window) };
    case 'top':
      return { rows: loadedRows(state.top.window) };
    case 'tokens': {
      const { order, isDescending } = state.tokens;
      const query = filterQuery(state);
      return query && { query: { ...query, sort: `${isDescending ? '-' : ''}${order}` } };
    }
    case 'audit':
    case 'events': {
      const { query, isComplete } = parseFilter(state[screen].filter, screen, knownNames(state));
      return isComplete ? { query } : null;
    }
  }
}

/** The columns of the file, in their order. */
export function exportedColumns({ screen, columns, top }: ExportedList): readonly Column<never>[] {
  const all = screen === 'top' ? topColumns(top.by, top.period) : columnsOf(screen);
  return columns.flatMap((id) => all.find((column) => column.id === id) ?? []);
}

const ROWS: Readonly<Record<FilteredScreen, string>> = {
  tokens: 'token',
  projects: 'project',
  audit: 'record',
  events: 'event',
  top: 'row',
};

export function exported(state: State, { screen, path }: ExportedList, count: number, isCut: boolean): State {
  const words = `Exported ${isCut ? 'only the first ' : ''}${counted(count, ROWS[screen])} to ${path}`;
  return withResult(state, words, isCut ? 'bad' : 'good');
}

/** Asks whether an existing file is to be replaced, or says what is wrong. @param why null: there is such a file. */
export function notExported(state: State, list: ExportedList, why: string | null): State {
  if (why !== null || state.layers.length > 0)
    return withResult(state, `Not exported to ${list.path}: ${why ?? 'the file already exists'}`, 'bad');
  const dialog = dialogOf(
    {
      purpose: { for: 'export', list },
      title: 'The file already exists',
      action: 'Replace',
      notes: [warning(`${list.path} is replaced by this list.`)],
    },
    'cancel',
  );
  return above({ ...state, message: null }, dialog);
}

export const replaced = (state: State, list: ExportedList): Transition => [
  withMessage(state, `Exporting to ${list.path} …`),
  { do: 'export', list: { ...list, replaces: true } },
];
