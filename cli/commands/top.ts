/** `llmp top`: lists the busiest tokens, projects or models. */
import { integer, oneOf } from '../../config/kinds.js';
import { EXIT, usage } from '../../console/failure.js';
import { topWords } from '../../console/query/top-terms.js';
import { isOfModels, moreRowsOf, PERIODS } from '../../daemon/api/top-words.js';
import { text } from '../../console/columns/column.js';
import { topColumns, topFields } from '../../console/columns/top.js';
import type { View } from '../../console/table.js';
import { tableColumns } from '../../console/views.js';
import type { TopQuery, WireTop, WireTopRow } from '../../daemon/api/contract.js';
import {
  MAX_TOP_ROWS,
  TOP_DIMENSIONS,
  TOP_SORTS,
  TOP_WINDOWS,
  type TopDimension,
  type TopSort,
  type TopWindow,
} from '../../daemon/api/vocabulary.js';
import { command, type Invocation } from '../command.js';
import { idsIn, onlyProject } from '../filters.js';
import { flag, type Options, value } from '../option.js';
import { queryArgument, queryIn, withOptions } from '../query.js';

const DEFAULT_LIMIT = 20;

export const topCommand = command({
  path: ['top'],
  summary: 'list the busiest tokens, projects or models',
  examples: [
    ['top', 'list the tokens with the most failures in the last hour'],
    ['top model --window 24h --sort tokens', 'list the models of each project that used the most model tokens'],
    ['top project --window 24h --sort cost', 'list the projects that cost most today'],
    ['top project --sort p95 --watch', 'refresh every 2 seconds; slow projects come first'],
    ["top token 'project:web ci' -o csv", 'list tokens of a project whose name contains ci, for a spreadsheet'],
  ],
  argument: {
    ...queryArgument('top', "'project:web gpt'"),
    meaning: `${TOP_DIMENSIONS.join(', ')} (default: token); then words, and terms with project: or model:, for example 'project:web gpt'; see llmp help query`,
  },
  options: {
    by: value(
      '--by <WHAT>',
      oneOf(...TOP_DIMENSIONS),
      `list tokens, projects or models: ${TOP_DIMENSIONS.join(', ')}; the first word does the same`,
    ),
    window: value('--window <TIME>', oneOf(...TOP_WINDOWS), `how far back: ${TOP_WINDOWS.join(', ')} (default: 1h)`),
    since: value('--since <TIME>', oneOf(...TOP_WINDOWS), 'the same as --window'),
    sort: value(
      '--sort <FIELD>',
      oneOf(...TOP_SORTS),
      `sort by ${TOP_SORTS.join(', ')}, the largest first; errors are failures, tokens are model tokens (default: errors, for models tokens)`,
    ),
    ...onlyProject,
    limit: value(
      '--limit <COUNT>',
      integer(1, MAX_TOP_ROWS),
      `maximum number of rows, up to ${MAX_TOP_ROWS} (default: ${DEFAULT_LIMIT})`,
    ),
    watch: flag('--watch', 'refresh every 2 seconds until interrupted; when piped, print only new and changed rows'),
  },
  async run(invocation) {
    const { args, options, output, connect } = invocation;
    const words = topWords(args.join(' '));
    const windows = [words.window, options.window, options.since].filter((one) => typeof one === 'string');
    if (windows.length > 1) throw usage('the window is given twice', { advice: 'Use --window only' });
    if (words.by !== null && options.by !== undefined && words.by !== options.by) {
      throw usage(`--by is ${options.by}, but the query names ${words.by}`, { advice: 'Use one of them' });
    }
    const ids = idsIn(options);
    const client = await connect();
    const selected = await ids(client);
    const { query: given, matches } = await queryIn([words.filter.trim()], 'top', client);
    const by = words.by ?? options.by ?? 'token';
    const sort = options.sort ?? (isOfModels(by) ? 'tokens' : 'errors');
    const limit = options.limit ?? DEFAULT_LIMIT;
    const isSelection = words.filter.trim() !== '';
    const [window = '1h'] = windows;
    const view = topView(by, window, sort);
    const query: TopQuery = {
      ...withOptions(given, selected),
      by,
      window,
      sort,
      // Rows are selected here, among as many as the daemon sends.
      limit: String(isSelection ? MAX_TOP_ROWS : limit),
    };
    const read = async (signal?: AbortSignal): Promise<WireTop> => {
      const top = await client.top(query, signal);
      return isSelection ? { ...top, rows: top.rows.filter(matches).slice(0, limit) } : top;
    };
    if (options.watch) return watchTop(read, view, invocation);
    const top = await output.during('waiting for the list', read());
    await output.list(top.rows, isSelection ? view : withTotal(view, top), top);
    // That there are more rows than --limit is no news.
    const more = options.limit === undefined ? moreRowsOf(top) : null;
    if (more !== null) output.warn(more);
    if (top.rows.length === 0)
      output.note(isSelection ? 'No matching rows.' : `No requests in the ${PERIODS[top.window]}.`);
    return EXIT.done;
  },
});

/** A row for people. The label replaces the name of a row that sums up all requests. */
type TopRow = WireTopRow & { label?: string };

/** @param sort what the rows are sorted by, which is always shown. */
function topView(by: TopDimension, window: TopWindow, sort: TopSort): View<TopRow> {
  return {
    // A model belongs to several projects, so its name alone does not identify a row.
    idOf: (row) =>
      by === 'token'
        ? (row.token_id ?? '-')
        : [row.project_id ?? [], isOfModels(by) ? (row.model ?? '-') : []].flat().join(' '),
    fields: topFields(by),
    columns: tableColumns<TopRow>(
      topColumns(by, window).map((column) => ({
        ...column,
        rank: column.sort === sort ? 0 : column.rank,
        cell: (row, nowMs) =>
          row.label === undefined || !NAMES.includes(column.id)
            ? column.cell(row, nowMs)
            : text(column.id === 'name' ? row.label : '', 'dim'),
      })),
    ),
  };
}

/** What the total does not have. */
const NAMES: readonly string[] = ['name', 'project', 'last_use', 'id'];

/** The total is of all requests, also those with an unknown token. */
const withTotal = (view: View<TopRow>, { total, rows }: WireTop): View<TopRow> => ({
  ...view,
  summary: () => (rows.length === 0 ? [] : [{ ...total, last_used_at: '', label: 'total' }]),
});

async function watchTop(
  read: (signal: AbortSignal) => Promise<WireTop>,
  view: View<TopRow>,
  invocation: Pick<Invocation, 'shell' | 'output' | 'server'>,
): Promise<number> {
  const { watch } = await import('../watch.js');
  let known: WireTop | null = null;
  return watch<WireTop | null, Options>(invocation, {
    fetch: async (signal) => ({ item: (known = await read(signal)), failure: null }),
    unreachableItem: () => known,
    show: (top, failure) =>
      invocation.output.refreshList(top?.rows ?? [], view, {
        total: top?.row_count ?? 0,
        failure,
      }),
  });
}
