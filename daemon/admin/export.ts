/** Exports of lists: CSV for spreadsheets, JSON for programs. They are streamed page by page. */
import type { Page } from '../api/client.js';
import { csvCell } from '../api/escape.js';
import { visible } from '../api/escape.js';
import { MAX_PAGE_SIZE } from '../api/vocabulary.js';
import { invalidRequest, type PageRequest, type PageResponse } from './page-request.js';

type Row = Readonly<Record<string, unknown>>;

/**
 * @param name file name without the extension.
 * @param pages pages of rows. The first is loaded before anything is sent, so that an error can be shown as a page.
 * @throws {ApiError} if the format in the query is neither csv nor json.
 */
export async function exported<T extends Row>(
  { query }: PageRequest,
  name: string,
  columns: readonly (keyof T & string)[],
  pages: AsyncGenerator<readonly T[]>,
): Promise<PageResponse> {
  const format = query.get('format');
  if (format !== 'csv' && format !== 'json') throw invalidRequest('the format must be csv or json');
  const first = await pages.next();
  const all = async function* () {
    if (!first.done) yield first.value;
    yield* pages;
  };
  const download =
    format === 'csv'
      ? { name: `${name}.csv`, type: 'text/csv', pieces: csvOf(columns, all()) }
      : { name: `${name}.json`, type: 'application/json', pieces: jsonOf(all()) };
  return { download };
}

/** The pages of a list, one after the other. @param list loads the page at a cursor; null is the first one. */
export async function* pagesOf<T>(
  list: (paging: { limit: string; cursor?: string }) => Promise<Page<T>>,
  first: string | null = null,
): AsyncGenerator<readonly T[]> {
  let cursor = first;
  do {
    const page: Page<T> = await list({ limit: String(MAX_PAGE_SIZE), ...(cursor !== null && { cursor }) });
    yield page.items;
    cursor = page.next;
  } while (cursor !== null);
}

async function* csvOf<T extends Row>(columns: readonly string[], pages: AsyncIterable<readonly T[]>) {
  yield `${columns.join(',')}\r\n`;
  for await (const rows of pages) {
    yield rows.map((row) => `${columns.map((column) => cell(row[column])).join(',')}\r\n`).join('');
  }
}

async function* jsonOf(pages: AsyncIterable<readonly Row[]>) {
  let before = '[';
  for await (const rows of pages) {
    let piece = '';
    for (const row of rows) {
      piece += `${before}\n${JSON.stringify(row)}`;
      before = ',';
    }
    yield piece;
  }
  yield before === '[' ? '[]\n' : '\n]\n';
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  return csvCell(visible(typeof value === 'string' ? value : JSON.stringify(value)));
}
