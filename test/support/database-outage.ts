import { ConnectionError } from 'sequelize';
import type { TestDaemon } from './daemon.js';
import type { Bind } from '../../daemon/store/sql/database.js';
import type { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';

export interface DatabaseOutage {
  /** The number of attempts to reach the database. */
  attempts: number;
  end(): void;
}

const refused = () => Promise.reject(new ConnectionError(new Error('the database is away')));

/**
 * Makes the database unreachable, with the error that its driver would report.
 * @param connecting what happens at each attempt; `reach` is what would have happened.
 */
export function makeDatabaseUnreachable(
  { daemon }: TestDaemon,
  connecting: (reach: () => Promise<unknown>) => Promise<unknown> = refused,
): DatabaseOutage {
  const { readers, writer } = daemon.stores.database as SqliteDatabase;
  const run = writer.run.bind(writer);
  const outage: DatabaseOutage = {
    attempts: 0,
    end: () => {
      writer.run = run;
      for (const reader of Object.values(readers)) Reflect.deleteProperty(reader, 'all');
    },
  };
  for (const reader of Object.values(readers)) {
    const all = reader.all.bind(reader);
    reader.all = <Row extends object>(sql: string, bind?: Bind) => {
      outage.attempts += 1;
      return connecting(() => all(sql, bind)) as Promise<Row[]>;
    };
  }
  writer.run = (sql, bind) => {
    if (sql !== 'BEGIN IMMEDIATE') return run(sql, bind);
    outage.attempts += 1;
    return connecting(() => run(sql, bind)) as Promise<number>;
  };
  return outage;
}
