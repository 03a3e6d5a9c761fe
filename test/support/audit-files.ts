/** Reads audit files. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import type { TestDaemon } from './daemon.js';
import { eventually } from './eventually.js';

export type AuditLine = Record<string, unknown> & {
  line: number;
  prev: string;
  details: Record<string, unknown> | null;
};

/** Its complete lines, without their newlines. */
export function rawLines(path: string): string[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8').split('\n').slice(0, -1);
}

export const linesOf = (path: string): AuditLine[] => rawLines(path).map((line) => JSON.parse(line) as AuditLine);

export const changesFile = ({ dir }: Pick<TestDaemon, 'dir'>) => join(dir, 'audit.log');
export const usesFile = ({ dir }: Pick<TestDaemon, 'dir'>) => join(dir, 'audit-use.log');

/** Waits until the file has a line for each record. */
export async function copied(daemon: TestDaemon, path = changesFile(daemon)): Promise<AuditLine[]> {
  await allCopied(daemon);
  return linesOf(path);
}

export async function allCopied({ daemon }: TestDaemon): Promise<void> {
  // A refusal may be recorded after its response, while this waits.
  await eventually(
    'all records are copied',
    async () => daemon.auditFiles.changes?.seq === (await daemon.stores.records.lastRecord()),
  );
}

/** Lets real-time work, such as a call to the file system, happen while the clock is moved. */
export async function advanceSlowly(daemon: TestDaemon, seconds: number): Promise<void> {
  for (let step = 0; step < seconds * 10; step++) {
    daemon.clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Waits for lines of uses, which are written twice a second. */
export async function useLines(daemon: TestDaemon, count: number, path = usesFile(daemon)): Promise<AuditLine[]> {
  await eventually(`${count} uses are written`, () => {
    daemon.clock.advance(100);
    return linesOf(path).length >= count;
  });
  return linesOf(path);
}

/** Changes the database of a stopped daemon. */
export async function writeInto(databasePath: string, ...statements: string[]): Promise<void> {
  const database = new SqliteDatabase(databasePath);
  for (const sql of statements) await database.transact((tx) => tx.execute(sql, {}));
  await database.close();
}
