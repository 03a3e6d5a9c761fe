/**
 * The indexes of a table that rows are copied into. They are removed before its first row and made at the end. That takes a fraction of
 * the time, because the rows of a page are all over an index. Those that keep rows unique, or that a foreign key needs, stay.
 */
import type { Database, Reader } from './database.js';
import { withStoreErrors } from './failures.js';

export interface CopiedIndex {
  name: string;
  /** What makes it: a statement; on MySQL a part of ALTER TABLE. */
  definition: string;
}

/** The indexes that can be removed. */
export async function indexesOf(on: Reader, table: string): Promise<CopiedIndex[]> {
  switch (on.dialect.name) {
    case 'sqlite':
      return on.select(
        `SELECT name, sql AS definition FROM sqlite_master
         WHERE type = 'index' AND tbl_name = $table AND sql IS NOT NULL AND sql NOT LIKE 'CREATE UNIQUE %'`,
        { table },
      );
    case 'postgres':
      return on.select(
        `SELECT CAST(indexrelid AS regclass) AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index
         WHERE indrelid = to_regclass($table) AND NOT indisunique`,
        { table },
      );
    case 'mysql': {
      const [row] = await on.select<{ 'Create Table': string }>(`SHOW CREATE TABLE ${table}`);
      const made = row?.['Create Table'] ?? '';
      const inForeignKeys = Array.from(made.matchAll(/FOREIGN KEY \((`\w+`)/g), ([, column = '']) => column);
      return Array.from(made.matchAll(/^ *KEY `(\w+)` \((`\w+`).*\)/gm), ([key, name = '', column = '']) => ({
        name,
        definition: `ADD ${key.trim()}`,
        column,
      })).filter(({ column }) => !inForeignKeys.includes(column));
    }
  }
}

export const removeIndexes = (target: Database, table: string, indexes: readonly CopiedIndex[]): Promise<void> =>
  changeTable(
    target,
    table,
    indexes.map(({ name }) => `DROP INDEX ${name}`),
  );

/** Makes those that do not exist. */
export async function restoreIndexes(target: Database, table: string, definitions: readonly string[]): Promise<void> {
  const existing = (await indexesOf(target, table)).map(({ definition }) => definition);
  await changeTable(
    target,
    table,
    definitions.filter((definition) => !existing.includes(definition)),
  );
}

async function changeTable(target: Database, table: string, changes: readonly string[]): Promise<void> {
  if (changes.length === 0) return;
  if (target.dialect.name === 'sqlite') {
    await target.transact(async (tx) => {
      for (const change of changes) await tx.execute(change);
    });
    return;
  }
  // MySQL makes all indexes while it reads the table once.
  const statements = target.dialect.name === 'mysql' ? [`ALTER TABLE ${table} ${changes.join(', ')}`] : changes;
  const sequelize = await target.loadSequelize();
  await withStoreErrors(
    target.inTransaction(async (transaction) => {
      for (const sql of statements) await sequelize.query(sql, { transaction });
    }),
  );
}
