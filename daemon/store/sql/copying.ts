/**
 * Copies all tables to another database, in transactions of some rows each. How far a table has come is committed with its rows, so
 * that a copy that was interrupted, in whichever way, continues after the last row that the other database has.
 */
import { StoreConflict, StoreUnavailable } from '../../core/ports.js';
import { insertWords } from './audit-words.js';
import type { Cell } from './columns.js';
import { indexesOf, removeIndexes, restoreIndexes } from './copied-indexes.js';
import type { Database, Reader, SqlTransaction } from './database.js';
import { type CopiedRow, type CopiedTable, keyOf, Pages, RowsDigest, type Stretch } from './copied-rows.js';
import { ProgressEntry } from './copy-progress.js';
import { insertRows } from './json-rows.js';
import { namesById } from './names.js';
import { Table } from './table.js';
import * as declared from './tables.js';

const TABLES = Object.values(declared).filter((it) => it instanceof Table) as unknown as CopiedTable[];

/** All tables. Projects are first, because others refer to them. The word index of the audit records is made from these. */
export const COPIED_TABLES: readonly CopiedTable[] = [
  declared.PROJECTS,
  ...TABLES.filter(({ name }) => name !== declared.PROJECTS.name),
];
/** These have a row from the beginning, which the copied one replaces. */
export const SINGLE_ROWS: readonly string[] = [declared.CHANGE_SEQ.name, declared.PRICES_IN_FORCE.name];

/** Where a table is copied to, row by row. */
export type Conversion = (row: CopiedRow) => CopiedRow;

const NOTHING: Stretch = { after: null, count: 0, sums: '' };

/** How far a table has come. */
export interface TableProgress {
  copied: Stretch;
  /** What was read again from the other database. */
  checked: Stretch;
  isCopied: boolean;
  /** What makes the indexes again that were removed before the first row; null before that. */
  indexes: readonly string[] | null;
}

/** What the servers say of a value that does not fit its column. */
const UNFIT = /too long|out of range|incorrect .* value|invalid (?:byte|input|JSON)/i;

/** A row cannot be stored in the other database. */
export class RowRefused extends Error {
  override name = 'RowRefused';
}

/** @throws {RowRefused} for a text that PostgreSQL cannot store. */
function refuseNulCharacters(table: CopiedTable, rows: readonly CopiedRow[]): void {
  for (const row of rows) {
    for (const [name, cell] of Object.entries(row)) {
      if (typeof cell === 'string' && cell.includes('\0'))
        throw new RowRefused(
          `${table.name}: the column ${name} of the row ${keyOf(table, row).join(', ')} contains a NUL character, which PostgreSQL cannot store`,
        );
    }
  }
}

export const progressOf = (target: Database, { name }: CopiedTable): Promise<ProgressEntry<TableProgress>> =>
  ProgressEntry.open(target, name, {
    copied: NOTHING,
    checked: NOTHING,
    isCopied: false,
    indexes: null,
  });

// ---- copying and checking

export interface CopyOptions {
  source: Reader;
  target: Database;
  /** For some tables, by their names. */
  conversions: ReadonlyMap<string, Conversion>;
  /** Called with the rows of each page. @throws to end the copy after a page. */
  onRows: (table: CopiedTable, rows: number, isCheck: boolean) => void;
}

/**
 * Copies what is missing of a table.
 *
 * @param before only rows whose first column of the key is below this; the rest is left for another time.
 */
export async function copyTable(
  { source, target, conversions, onRows }: CopyOptions,
  table: CopiedTable,
  progress: ProgressEntry<TableProgress>,
  before?: Cell,
): Promise<void> {
  if (progress.value.isCopied) return;
  const { after, count, sums } = progress.value.copied;
  if (after === null) {
    const indexes = await indexesOf(target, table.name);
    const definitions = progress.value.indexes ?? indexes.map(({ definition }) => definition);
    // Before they are removed: the process may be killed in between. Also if they are known: another process may have made them again since.
    await progress.set({ ...progress.value, indexes: definitions });
    await removeIndexes(target, table.name, indexes);
  }
  const convert = conversions.get(table.name) ?? asItIs;
  const digest = new RowsDigest(count, sums);
  const pages = new Pages(source, table, after, before);
  const prepared = async () => {
    const read = await pages.next();
    const last = read.at(-1);
    if (!last) return null;
    const rows = read.map(convert);
    if (target.dialect.name === 'postgres') refuseNulCharacters(table, rows);
    for (const row of rows) digest.add(row);
    const words = table.name === declared.AUDIT.name ? await wordsOf(source, rows) : null;
    return { rows, words, copied: { after: keyOf(table, last), count: digest.count, sums: digest.sums } };
  };
  let page = await prepared();
  for (let isFirst = after === null; page; isFirst = false) {
    const { rows, words, copied } = page;
    const next = prepared(); // While the database inserts this page.
    next.catch(() => undefined); // Thrown below.
    const isReplaced = isFirst && SINGLE_ROWS.includes(table.name);
    try {
      await progress.change(async (tx) => {
        if (isReplaced) await tx.execute(`DELETE FROM ${table.name}`);
        await insertRows(tx, table.name, Object.values(table.columns), rows);
        await words?.(tx);
        return { ...progress.value, copied };
      });
    } catch (error) {
      throw isRowRefused(error) ? await refusalOf(target, table, rows, error) : error;
    }
    onRows(table, rows.length, false);
    page = await next;
  }
  await restoreIndexes(target, table.name, progress.value.indexes ?? []);
  if (before === undefined) await progress.set({ ...progress.value, isCopied: true });
}

const asItIs: Conversion = (row) => row;

/** Whether the database did not store the values as they are. */
const isRowRefused = (error: unknown): error is Error =>
  error instanceof StoreConflict || (error instanceof StoreUnavailable && UNFIT.test(error.message));

/** What is wrong with the first of some rows that the database does not store. */
async function refusalOf(
  target: Database,
  table: CopiedTable,
  rows: readonly CopiedRow[],
  error: Error,
): Promise<RowRefused> {
  const undone = new Error();
  const isStored = (some: readonly CopiedRow[]) =>
    target
      .transact(async (tx) => {
        await insertRows(tx, table.name, Object.values(table.columns), some);
        throw undone;
      })
      .catch((reason: unknown) => {
        if (reason === undone) return true;
        if (isRowRefused(reason)) return false;
        throw reason;
      });
  let [stored, refused] = [0, rows.length];
  while (refused - stored > 1) {
    const middle = Math.floor((stored + refused) / 2);
    if (await isStored(rows.slice(0, middle))) stored = middle;
    else refused = middle;
  }
  const why =
    error instanceof StoreConflict
      ? 'it is the same as another one there, for example because they differ only in spaces at their ends'
      : error.message;
  const key = keyOf(table, rows[stored] ?? {}).join(', ');
  return new RowRefused(`${table.name}: the new database does not store the row ${key}: ${why}`, { cause: error });
}

/** What makes the word index of audit records, which contains names that the records do not. */
async function wordsOf(source: Reader, rows: readonly CopiedRow[]): Promise<(tx: SqlTransaction) => Promise<void>> {
  const records = rows.map((row) => declared.RECORD.of(row as unknown as declared.RecordColumns));
  const names = await namesById(
    source,
    records.flatMap(({ tokenId }) => tokenId ?? []),
    records.flatMap(({ projectId }) => projectId ?? []),
  );
  const named = records.map((record) => ({
    ...record,
    tokenName: names.tokens.get(record.tokenId ?? '') ?? null,
    projectName: names.projects.get(record.projectId ?? '') ?? null,
  }));
  return (tx) => insertWords(tx, named);
}

/** Reads what was copied of a table again. @returns whether it is what the source had. */
export async function checkTable(
  { target, onRows }: CopyOptions,
  table: CopiedTable,
  progress: ProgressEntry<TableProgress>,
): Promise<boolean> {
  const { checked, copied } = progress.value;
  const digest = new RowsDigest(checked.count, checked.sums);
  let after = checked.after;
  const pages = new Pages(target, table, after);
  for (;;) {
    const rows = await pages.next();
    for (const row of rows) digest.add(row);
    const last = rows.at(-1);
    if (!last) break;
    after = keyOf(table, last);
    onRows(table, rows.length, true);
  }
  await progress.set({ ...progress.value, checked: { after, count: digest.count, sums: digest.sums } });
  return digest.count === copied.count && digest.sums === new RowsDigest(copied.count, copied.sums).sums;
}

/**
 * Replaces the copied rows between two keys by those that the source has now. Only for a table whose key is one text. @param from
 * exclusive. @param before exclusive.
 */
export async function copyAgain(
  { source, conversions }: CopyOptions,
  table: CopiedTable,
  progress: ProgressEntry<TableProgress>,
  { from, before }: { from: string; before: string },
): Promise<void> {
  const [key = ''] = table.key;
  const convert = conversions.get(table.name) ?? asItIs;
  await progress.change(async (tx) => {
    const { copied, checked } = progress.value;
    const digests = [copied, checked].map(({ count, sums }) => new RowsDigest(count, sums)) as [RowsDigest, RowsDigest];
    // Those that were not checked yet are read later.
    const digestsOf = (row: CopiedRow) =>
      checked.after !== null && String(row[key]) <= String(checked.after[0]) ? digests : digests.slice(0, 1);
    for await (const rows of pagesBetween(tx, table, from, before))
      for (const row of rows) for (const digest of digestsOf(row)) digest.remove(row);
    await tx.execute(`DELETE FROM ${table.name} WHERE ${key} > $from AND ${key} < $before`, { from, before }, 'long');
    const [wanted, written] = [new RowsDigest(), new RowsDigest()];
    for await (const read of pagesBetween(source, table, from, before)) {
      const rows = read.map(convert);
      for (const row of rows) for (const digest of [wanted, ...digestsOf(row)]) digest.add(row);
      await insertRows(tx, table.name, Object.values(table.columns), rows);
    }
    for await (const rows of pagesBetween(tx, table, from, before)) for (const row of rows) written.add(row);
    if (written.count !== wanted.count || written.sums !== wanted.sums)
      throw new RowRefused(`${table.name}: rows from ${from} on were not stored as they are`);
    const changed = ({ after }: Stretch, { count, sums }: RowsDigest): Stretch => ({ after, count, sums });
    return { ...progress.value, copied: changed(copied, digests[0]), checked: changed(checked, digests[1]) };
  });
}

async function* pagesBetween(
  on: Reader,
  table: CopiedTable,
  from: string,
  before: string,
): AsyncGenerator<CopiedRow[]> {
  const pages = new Pages(on, table, [from], before);
  for (let rows = await pages.next(); rows.length > 0; rows = await pages.next()) yield rows;
}
