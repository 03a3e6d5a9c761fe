/** Opens databases of all kinds. */
import { readFileSync } from 'node:fs';
import { serverAt } from '../../config/database-url.js';
import { type Settings, SettingsError } from '../../config/settings.js';
import type { Clock, StoreRefused } from '../core/ports.js';
import type { Database } from './sql/database.js';
import { ServerDatabase } from './sql/server-database.js';
import { SqliteDatabase } from './sql/sqlite-database.js';
import { DATABASE_TIMEOUTS, type DatabaseTimeouts } from './sql/database.js';

// Tools for the schema, keys and anchors run one statement at a time.
const TOOL_CONNECTIONS = 2;

/** Takes no lock on a file and does not connect to a server. @throws {SettingsError} */
export function openDatabase(
  {
    database,
    databasePoolSize: poolSize = TOOL_CONNECTIONS,
  }: Pick<Settings, 'database'> & Partial<Pick<Settings, 'databasePoolSize'>>,
  clock: Pick<Clock, 'after'>,
  timeouts: Readonly<DatabaseTimeouts> = DATABASE_TIMEOUTS,
  onRefused?: (refused: StoreRefused) => void,
): Database {
  if (database.driver === 'sqlite') return new SqliteDatabase(database.path);
  return new ServerDatabase({
    dialect: database.driver,
    url: database.url,
    poolSize,
    clock,
    timeouts,
    onRefused,
    certificates: certificatesFor(database.url),
  });
}

function certificatesFor(url: string): string | null {
  const path = serverAt(url)?.rootCertificate ?? null;
  try {
    return path === null ? null : readFileSync(path, 'utf8');
  } catch (error) {
    const { code = 'failed' } = error as NodeJS.ErrnoException;
    throw new SettingsError([`DATABASE_URL: cannot read the certificates in ${path}: ${code}`]);
  }
}
