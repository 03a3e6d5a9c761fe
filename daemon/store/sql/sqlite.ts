import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import sqlite3 from 'sqlite3';

/*
 * WAL lets reads go on beside the one writer; FULL makes a COMMIT wait for the disk, so that what was
 * acknowledged survives a power cut. Sequelize opens a connection for each transaction and calls no hook
 * for it on SQLite, hence a driver whose every connection sets itself up before anyone may use it.
 */
const PRAGMAS = `
  PRAGMA busy_timeout = 5000;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA foreign_keys = ON;
`;

class PreparedDatabase extends sqlite3.Database {
  constructor(path: string, mode: number, callback: (error: Error | null) => void) {
    super(path, mode, (error) => {
      if (error) callback(error);
      else this.exec(PRAGMAS, callback);
    });
  }
}

/** sqlite3 for Sequelize's `dialectModule`. */
export const preparedSqlite3 = { ...sqlite3, Database: PreparedDatabase };

/** As much of Sequelize's connection manager for SQLite as it takes to mend it. */
interface Connections {
  connections: Record<string, sqlite3.Database>;
  destroyConnection(connection: sqlite3.Database & { uuid?: string }): Promise<void>;
}

/**
 * When a COMMIT or ROLLBACK fails, Sequelize asks its manager to end the connection, which on SQLite looks for it in a
 * pool it never was in and leaves it open, transaction and all: nobody could write any more. Closing it takes
 * the transaction back.
 */
export function closeBrokenConnections(connectionManager: unknown): void {
  const manager = connectionManager as Connections;
  manager.destroyConnection = (connection) => {
    if (connection.uuid !== undefined) Reflect.deleteProperty(manager.connections, connection.uuid);
    return new Promise((resolve) => {
      connection.close(() => {
        resolve();
      });
    });
  };
}

/** Another process has the database. */
export class DatabaseInUse extends Error {
  override name = 'DatabaseInUse';
}

/**
 * Claims a SQLite database for this process: an exclusive transaction on a small file beside it, held
 * for life. The kernel lets go of it when the process dies, however it dies; a file with a process id in it
 * would not.
 *
 * @returns lets go.
 * @throws {DatabaseInUse}
 */
export async function lockDatabase(databasePath: string): Promise<() => Promise<void>> {
  mkdirSync(dirname(databasePath), { recursive: true, mode: 0o700 });
  const path = `${databasePath}.lock`;
  const connection = await new Promise<sqlite3.Database>((resolve, reject) => {
    const opened = new sqlite3.Database(path, (error) => {
      if (error) reject(error);
      else resolve(opened);
    });
  });
  const close = () =>
    new Promise<void>((resolve) => {
      connection.close(() => {
        resolve();
      });
    });
  try {
    await new Promise<void>((resolve, reject) => {
      connection.exec('BEGIN EXCLUSIVE', (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  } catch (error) {
    await close();
    if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw error;
    throw new DatabaseInUse(`${databasePath} is in use by another llmp process`, { cause: error });
  }
  return close;
}
