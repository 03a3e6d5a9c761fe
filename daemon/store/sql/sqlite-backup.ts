/** Backups of a SQLite database, also while daemons use it. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import sqlite3 from 'sqlite3';
import { sqlite } from './dialect.js';
import { uriForReading } from './sqlite-database.js';

/** 4 KB each: the daemon waits less than a millisecond for a core that a step uses. */
const PAGES_PER_STEP = 64;

/** In a backup: when it was made, and with which key the upstream keys are encrypted. */
const TABLE = 'backup_of';

export interface BackupFacts {
  takenAtMs: number;
  /** ID of the encryption key. */
  keyId: string;
}

/** The part of the driver that its types do not declare. */
interface Backup {
  completed: boolean;
  failed: boolean;
  remaining: number;
  pageCount: number;
  step(pages: number, done: Done<void>): void;
}
interface BackedUp {
  backup(file: string, begun: (error: Error | null) => void): Backup;
}

/** Codes of the file system for codes of SQLite: PERM, READONLY, IOERR, FULL, CANTOPEN. */
const FILE_CODES: Readonly<Record<number, string>> = {
  3: 'EACCES',
  8: 'EACCES',
  10: 'EIO',
  13: 'ENOSPC',
  14: 'EACCES',
};

type Done<T> = (error: (Error & { errno?: number }) | null, result: T) => void;

/** Calls the driver. Its errors do not say which file they are about: these do, with a code as of the file system. */
function called<T>(path: string, call: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, result) => {
      if (error === null) {
        resolve(result);
        return;
      }
      const code = FILE_CODES[(error.errno ?? 0) & 0xff];
      const text = `${path}: ${error.message.replace(/^[A-Z_]+: /, '')}`;
      reject(code === undefined ? error : Object.assign(new Error(text, { cause: error }), { code, path }));
    });
  });
}

/** A connection to a file that is not changed for it: it sets no journal mode. */
export class SqliteFile {
  readonly dialect = sqlite;
  readonly #connection: sqlite3.Database;
  readonly #path: string;
  readonly #signal: AbortSignal | undefined;
  readonly #interrupt = () => {
    this.#connection.interrupt();
  };

  private constructor(connection: sqlite3.Database, path: string, signal: AbortSignal | undefined) {
    this.#connection = connection;
    this.#path = path;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#interrupt);
  }

  /** @param signal interrupts the statement that runs when it is aborted. */
  static toWrite(path: string, signal?: AbortSignal): Promise<SqliteFile> {
    return this.#open(path, path, sqlite3.OPEN_READWRITE, signal);
  }

  /** For a file that no process uses. With what is in its log; neither is changed. */
  static toRead(path: string, signal?: AbortSignal): Promise<SqliteFile> {
    return this.#open(path, uriOfUnused(path), sqlite3.OPEN_READONLY, signal);
  }

  static async #open(path: string, address: string, mode: number, signal?: AbortSignal): Promise<SqliteFile> {
    signal?.throwIfAborted();
    const connection = await called<sqlite3.Database>(path, (done) => {
      const opened = new sqlite3.Database(address, mode | sqlite3.OPEN_URI, (error) => {
        done(error, opened);
      });
    });
    return new SqliteFile(connection, path, signal);
  }

  execute(sql: string): Promise<void> {
    return called(this.#path, (done) => {
      this.#connection.exec(sql, done);
    });
  }

  select<Row extends object>(sql: string, bind: Record<string, string> = {}): Promise<Row[]> {
    const named = Object.fromEntries(Object.entries(bind).map(([name, value]) => [`$${name}`, value]));
    return called(this.#path, (done) => {
      this.#connection.all<Row>(sql, named, done);
    });
  }

  /** Copies its present state into an empty file: what is written meanwhile is not in it. @param afterStep is given the part that is copied. */
  async copyTo(path: string, afterStep?: (part: number) => Promise<void>): Promise<void> {
    // A reader, which no writer waits for. Without one transaction around all steps, the backup would begin again with every change by another process.
    await this.execute('PRAGMA busy_timeout = 5000; BEGIN; SELECT COUNT(*) FROM sqlite_schema');
    const backup = await called<Backup>(path, (done) => {
      const begun = (this.#connection as unknown as BackedUp).backup(path, (error) => {
        done(error, begun);
      });
    });
    while (!backup.completed) {
      this.#signal?.throwIfAborted();
      await called(path, (done) => {
        backup.step(PAGES_PER_STEP, done);
      });
      if (backup.failed) throw new Error('SQLite could not copy a page');
      await afterStep?.(1 - backup.remaining / backup.pageCount);
    }
  }

  close(): Promise<void> {
    this.#signal?.removeEventListener('abort', this.#interrupt);
    return new Promise((resolve) => {
      this.#connection.close(() => {
        resolve();
      });
    });
  }
}

/** A file that says that it has no write-ahead log, as a backup does, has none: one beside it is of another file. SQLite would read it all the same. */
function uriOfUnused(path: string): string {
  return hasLog(path) ? uriForReading(path).href : `${pathToFileURL(path).href}?mode=ro&immutable=1`;
}

/** Whether a file that no connection of this process has open has a write-ahead log. */
export function hasLog(path: string): boolean {
  if (!existsSync(`${path}-wal`)) return false;
  const header = Buffer.alloc(20);
  const file = openSync(path, 'r');
  try {
    readSync(file, header, 0, header.length, 0);
  } finally {
    closeSync(file);
  }
  return header[18] === 2;
}

/** Copies the present state of a database that daemons may use into an empty file. @param afterStep is given the part that is copied. */
export async function copyWhileUsed(
  path: string,
  to: string,
  afterStep: (part: number) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const source = await SqliteFile.toWrite(path, signal);
  try {
    await source.copyTo(to, afterStep);
  } finally {
    await source.close();
  }
}

/** Copies a backup, or a copy that was made in another way, to where the daemon will use it. */
export async function copyUnused(path: string, to: string, signal: AbortSignal): Promise<void> {
  const source = await SqliteFile.toRead(path, signal);
  try {
    await source.copyTo(to);
  } finally {
    await source.close();
  }
  await change(to, `PRAGMA journal_mode = DELETE; DROP TABLE IF EXISTS ${TABLE}`);
}

/** Makes the copy a single file that says what it is. */
export const label = (file: string, { takenAtMs, keyId }: BackupFacts): Promise<void> =>
  change(
    file,
    `PRAGMA journal_mode = DELETE;
     CREATE TABLE ${TABLE} (taken_at BIGINT NOT NULL, key_id VARCHAR(16) NOT NULL);
     INSERT INTO ${TABLE} VALUES (${Math.trunc(takenAtMs)}, '${keyId.replace(/[^0-9a-f]/g, '')}')`,
  );

async function change(file: string, sql: string): Promise<void> {
  const copy = await SqliteFile.toWrite(file);
  try {
    await copy.execute(`PRAGMA synchronous = FULL; ${sql}`);
  } finally {
    await copy.close();
  }
}

/** @returns null for a copy that was made in another way. */
export async function factsOf(copy: SqliteFile): Promise<BackupFacts | null> {
  const known = await copy.select(sqlite.tableNamed('$table'), { table: TABLE });
  if (known.length === 0) return null;
  const [row] = await copy.select<{ taken_at: number; key_id: string }>(`SELECT taken_at, key_id FROM ${TABLE}`);
  return row ? { takenAtMs: row.taken_at, keyId: row.key_id } : null;
}

/**
 * What is damaged in a copy; null if nothing is. @param isThorough also compares indexes with their tables. It takes several times as long.
 */
export async function damageOf(copy: SqliteFile, isThorough = false): Promise<string | null> {
  const check = isThorough ? 'integrity_check' : 'quick_check';
  const [row] = await copy.select<Record<string, string>>(`PRAGMA ${check}(1)`);
  const found = row?.[check];
  return found === 'ok' ? null : (found ?? 'no result');
}

/** What a database has that an older backup of it lacks. */
export interface ServedSince {
  requests: number;
  costNano: number;
  tokensIssued: number;
  tokensRevoked: number;
  /** Operators whose role, projects, ceilings or end were changed, or who were deactivated. */
  operatorsChanged: number;
  /** Trusts that were changed or deleted. */
  trustsChanged: number;
  projectsDeactivated: number;
  /** Sessions that would not have ended yet. */
  sessionsEnded: number;
  /** JWTs that are still valid and were exchanged for a token. */
  jwtsExchanged: number;
  /** Tokens with a cap that would count fewer requests than they have made. */
  capsLoosened: number;
  records: number;
}

/** Compares a database that no process writes with a backup of it. */
export async function servedSince(
  path: string,
  backup: string,
  nowMs: number,
  signal: AbortSignal,
): Promise<ServedSince> {
  const now = await SqliteFile.toWrite(path, signal);
  try {
    await now.execute(`ATTACH DATABASE '${uriOfUnused(backup).replaceAll("'", "''")}' AS old`);
    const [row] = await now.select<ServedSince>(
      `SELECT
         (SELECT COALESCE(SUM(MAX(t.request_count - COALESCE(o.request_count, 0), 0)), 0)
            FROM main.tokens t LEFT JOIN old.tokens o ON o.id = t.id) AS requests,
         (SELECT TOTAL(MAX(u.life_nano - COALESCE(o.life_nano, 0), 0)) FROM main.purses u
            JOIN main.projects p ON p.id = u.id LEFT JOIN old.purses o ON o.id = u.id) AS costNano,
         (SELECT COUNT(*) FROM main.tokens t WHERE NOT EXISTS (SELECT 1 FROM old.tokens o WHERE o.id = t.id)) AS tokensIssued,
         (SELECT COUNT(*) FROM main.tokens t JOIN old.tokens o ON o.id = t.id WHERE o.is_active AND NOT t.is_active) AS tokensRevoked,
         (SELECT COUNT(*) FROM main.operators t JOIN old.operators o ON o.id = t.id
            WHERE o.is_active AND t.updated_at > o.updated_at) AS operatorsChanged,
         (SELECT COUNT(*) FROM old.trusts o LEFT JOIN main.trusts t ON t.id = o.id
            WHERE o.is_active AND (t.id IS NULL OR t.updated_at > o.updated_at)) AS trustsChanged,
         (SELECT COUNT(*) FROM main.projects t JOIN old.projects o ON o.id = t.id
            WHERE o.is_active AND NOT t.is_active) AS projectsDeactivated,
         (SELECT COUNT(*) FROM old.sessions o LEFT JOIN main.sessions t ON t.id = o.id
            WHERE o.ended_at IS NULL AND o.expires_at > ${Math.trunc(nowMs)} AND (t.id IS NULL OR t.ended_at IS NOT NULL)) AS sessionsEnded,
         (SELECT COUNT(*) FROM main.used_jwts t WHERE t.until_ms > ${Math.trunc(nowMs)}
            AND NOT EXISTS (SELECT 1 FROM old.used_jwts o WHERE o.digest = t.digest)) AS jwtsExchanged,
         (SELECT COUNT(*) FROM main.tokens t JOIN old.tokens o ON o.id = t.id
            WHERE t.max_requests > 0 AND t.request_count > o.request_count) AS capsLoosened,
         (SELECT COUNT(*) FROM main.audit WHERE seq > (SELECT COALESCE(MAX(seq), 0) FROM old.audit)) AS records`,
    );
    if (!row) throw new Error('no figures');
    return row;
  } finally {
    await now.close();
  }
}
