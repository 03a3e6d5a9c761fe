import type { Bind, Connection } from './database.js';

/** Inserts a row of these columns. */
export async function insert(tx: Connection, table: string, columns: Bind): Promise<void> {
  const names = Object.keys(columns);
  const values = names.map((name) => `$${name}`).join(', ');
  await tx.execute(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${values})`, columns);
}
