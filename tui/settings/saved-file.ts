/**
 * The file with the saved views and columns, `views.toml` beside the contexts file. It is a file of its own, so that the terminal UI never
 * writes the contexts file.
 *
 *     [[contexts.prod.views]]
 *     name = "leaks"
 *     screen = "tokens"
 *     filter = "project:web errors:>10"
 *     sort = "-last_used_at"
 *
 *     [contexts.prod.columns]
 *     tokens = ["name", "state", "hits"]
 */
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sentenceOf, usage } from '../../console/failure.js';
import { readOwnFile, replaceFile } from '../../console/own-file.js';
import type { Target } from '../state/exchange.js';
import {
  isViewName,
  MAX_COLUMNS,
  MAX_VIEW_FILTER,
  MAX_VIEWS,
  NOTHING_SAVED,
  type Saved,
  SAVED_SCREENS,
  type SavedChange,
  type SavedView,
} from '../state/saved.js';
import { isTable, type Table } from './toml.js';

const VIEWS_FILE = 'views.toml';

const TRUST = { risk: 'its owner could change what your views show', advice: 'Use a file that you own' };

/** What is stored for a context; for a daemon without one, by its address. */
type Owner = Pick<Target, 'context' | 'server'>;

/** What is stored, as far as the file can be read; and what is wrong with it. */
export async function readSaved(
  folder: string | undefined,
  owner: Owner,
): Promise<{ saved: Saved; problems: readonly string[] }> {
  if (folder === undefined) return { saved: NOTHING_SAVED, problems: [] };
  try {
    const document = await documentIn(join(folder, VIEWS_FILE));
    return { saved: savedIn(tableOf(document, owner)), problems: [] };
  } catch (error) {
    return { saved: NOTHING_SAVED, problems: [sentenceOf(error)] };
  }
}

/**
 * Applies a change to what is in the file now, and replaces the file atomically. Unknown tables and properties stay in it.
 *
 * @returns what is stored for the context now. @throws {Failure} if the file cannot be read or written.
 */
export async function changeSaved(folder: string | undefined, owner: Owner, change: SavedChange): Promise<Saved> {
  if (folder === undefined) {
    throw usage(`no path for ${VIEWS_FILE}`, { why: 'LLMP_CONFIG, XDG_CONFIG_HOME and HOME are not set' });
  }
  const path = join(folder, VIEWS_FILE);
  const document = await documentIn(path);
  const table = changed(tableOf(document, owner), change);
  const [group, name] = keyOf(owner);
  const groups = isTable(document[group]) ? document[group] : {};
  const { stringify } = await import('smol-toml');
  const text = stringify({ ...document, [group]: { ...groups, [name]: table } });
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    replaceFile(path, `${text}\n`, 0o600, null);
  } catch (error) {
    throw usage(`cannot write ${path}`, { why: (error as NodeJS.ErrnoException).code ?? 'failed', cause: error });
  }
  return savedIn(table);
}

const keyOf = ({ context, server }: Owner): [group: 'contexts' | 'servers', name: string] =>
  context === null ? ['servers', server] : ['contexts', context];

async function documentIn(path: string): Promise<Table> {
  const text = await readOwnFile(path, TRUST);
  if (text === undefined) return {};
  // Loaded only if there is a file.
  const { isProblem, readToml } = await import('./toml.js');
  const read = readToml(text);
  if (!isProblem(read)) return read.table;
  const where = read.line === null ? '' : ` (line ${read.line})`;
  throw usage(`${path} is not valid${where}`, { why: read.message, advice: 'Correct it, or delete it' });
}

function tableOf(document: Table, owner: Owner): Table {
  const [group, name] = keyOf(owner);
  const tables = document[group];
  const table = isTable(tables) && Object.hasOwn(tables, name) ? tables[name] : {};
  return isTable(table) ? table : {};
}

const viewsIn = ({ views }: Table): Table[] => (Array.isArray(views) ? views.filter(isTable) : []);

function savedIn(table: Table): Saved {
  const views = viewsIn(table).flatMap((view) => viewOf(view) ?? []);
  const unique = views.filter(({ name }, at) => views.findIndex((other) => other.name === name) === at);
  return { views: unique.slice(0, MAX_VIEWS), columns: columnsIn(table) };
}

function columnsIn({ columns }: Table): Saved['columns'] {
  if (!isTable(columns)) return {};
  const lists = SAVED_SCREENS.flatMap((screen) => {
    const ids = idsOf(columns[screen]);
    return ids === null ? [] : [[screen, ids] as const];
  });
  return Object.fromEntries(lists);
}

/** A later release may have more columns: names are checked where they are shown. */
function idsOf(value: unknown): string[] | null {
  if (!Array.isArray(value)) return null;
  const ids = value.filter((id): id is string => typeof id === 'string').slice(0, MAX_COLUMNS);
  return ids.length === 0 ? null : [...new Set(ids)];
}

/** @returns undefined for a view that this release cannot show. */
function viewOf({ name, screen, filter = '', sort = null, columns }: Table): SavedView | undefined {
  const known = SAVED_SCREENS.find((one) => one === screen);
  if (typeof name !== 'string' || !isViewName(name) || known === undefined) return undefined;
  if (typeof filter !== 'string' || filter.length > MAX_VIEW_FILTER) return undefined;
  return { name, screen: known, filter, sort: typeof sort === 'string' ? sort : null, columns: idsOf(columns) };
}

function changed(table: Table, change: SavedChange): Table {
  const views = viewsIn(table);
  if (change.what === 'delete-view') return { ...table, views: views.filter(({ name }) => name !== change.name) };
  if (change.what === 'columns') {
    const lists = Object.entries(isTable(table.columns) ? table.columns : {});
    const others = lists.filter(([screen]) => screen !== change.screen);
    const own = change.columns === null ? [] : [[change.screen, change.columns] as const];
    return { ...table, columns: Object.fromEntries([...others, ...own]) };
  }
  const { sort, columns, ...view } = change.view;
  const written = { ...view, ...(sort !== null && { sort }), ...(columns !== null && { columns }) };
  const at = views.findIndex(({ name }) => name === view.name);
  return { ...table, views: at === -1 ? [...views, written] : views.toSpliced(at, 1, written) };
}
