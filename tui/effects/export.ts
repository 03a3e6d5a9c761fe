/** Writes a list to a file: all pages of it, whatever the screen has loaded. */
import { cellValue } from '../../console/columns/cell-value.js';
import { parseFilter } from '../../console/query/filter.js';
import { TableFile } from '../../console/table-file.js';
import type { ManagementClient, Page } from '../../daemon/api/client.js';
import { MAX_PAGE_SIZE } from '../../daemon/api/vocabulary.js';
import { exportedColumns } from '../state/export.js';
import { type ExportedList, MAX_EXPORTED } from '../state/exported-list.js';
import { wholePath } from './files.js';

/** A page of events can have none that match: it covers as many as the daemon looks through at once. */
const MAX_PAGES = 1_000;

interface ExportOptions {
  client: ManagementClient;
  signal: AbortSignal;
}

interface Exported {
  count: number;
  /** Whether the list is longer than a file can be. */
  isCut: boolean;
}

/** @throws the error of the client or of the file system: `EEXIST` if there is a file that is not to be replaced. Nothing is left behind. */
export async function exportList(list: ExportedList, options: ExportOptions): Promise<Exported> {
  const { path, format, replaces, nowMs } = list;
  const columns = exportedColumns(list);
  const isText = format === 'csv';
  const fields = columns.map(({ id }) => id);
  const file = await TableFile.create(wholePath(path), { format, fields, replaces });
  const exported: Exported = { count: 0, isCut: false };
  try {
    for await (const page of pagesOf(list, options, exported)) {
      const rows = page.slice(0, MAX_EXPORTED - exported.count);
      exported.isCut ||= rows.length < page.length;
      exported.count += rows.length;
      await file.add(
        rows.map((row) =>
          Object.fromEntries(columns.map((column) => [column.id, cellValue(column.cell(row as never, nowMs), isText)])),
        ),
      );
      if (exported.isCut) break;
    }
  } catch (error) {
    await file.discard();
    throw error;
  }
  await file.close();
  return exported;
}

async function* pagesOf(
  list: ExportedList,
  { client, signal }: ExportOptions,
  exported: Exported,
): AsyncGenerator<readonly object[]> {
  if ('rows' in list.source) {
    yield list.source.rows;
    return;
  }
  const { query } = list.source;
  const { matches } = parseFilter(list.filter, 'events', { projects: [] });
  let cursor: string | null = null;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const wanted = { ...query, limit: String(MAX_PAGE_SIZE), ...(cursor !== null && { cursor }) };
    const page: Page<object> = await PAGES[list.screen as keyof typeof PAGES](client, wanted, signal);
    yield list.screen === 'events' ? page.items.filter((item) => matches(item as never)) : page.items;
    cursor = page.next;
    if (cursor === null) return;
  }
  exported.isCut = true;
}

type Query = Readonly<Record<string, string | undefined>>;

const PAGES = {
  tokens: (client: ManagementClient, query: Query, signal: AbortSignal) => client.tokens(query, signal),
  audit: (client: ManagementClient, query: Query, signal: AbortSignal) => client.auditRecords(query, signal),
  events: (client: ManagementClient, query: Query, signal: AbortSignal) => client.storedEvents(query, signal),
};
