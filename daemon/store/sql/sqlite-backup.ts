/** Backups of a SQLite database, also while daemons use it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { resolve } from 'node:path';
import sqlite3 from 'sqlite3';
import { uriForReading } from './sqlite-database.js';

/** 4 KB each. Between these steps it pauses, so that the disk also serves the daemon. */
const PAGES_PER_STEP = 256;
const PAUSE_MS = 2;

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
  step(pages: number, done: (error: Error | null) => void): void;
}
interface BackedUp {
  backup(file: string, begun: (error: Error | null) => void): Backup;
}

/**
 * Copies a database into a new file, as it is now: what is written meanwhile is not in it. A reader, which no writer waits for: in a write-ahead
 * log, each sees the state of its beginning.
 *
 * @param onPages called with the numbers of copied and of all pages.
 */
export async function copyWhileUsed(
  path: string,
  file: string,
  onPages: (copied: number, all: number) => void,
): Promise<void> {
  const source = await open(path, sqlite3.OPEN_READWRITE);
  try {
    await copyPages(source, file, async (copied, all) => {
      onPages(copied, all);
      await sleep(PAUSE_MS);
    });
  } finally {
    await close(source);
  }
}

/** Copies a database that no process uses, with what is still in its log, into a new file. The database and its log are not changed. */
export async function copyUnused(path: string, file: string): Promise<void> {
  const source = await openForReading(path);
  try {
    await copyPages(source, file, () => undefined);
  } finally {
    await close(source);
  }
}

async function copyPages(
  source: sqlite3.Database,
  file: string,
  afterStep: (copied: number, all: number) => Promise<void> | void,
): Promise<void> {
  // The backup would begin again with every change by another process, unless all of its steps are in one transaction.
  await execute(source, 'PRAGMA busy_timeout = 5000; BEGIN; SELECT COUNT(*) FROM sqlite_schema');
  const backup = await new Promise<Backup>((resolve, reject) => {
    const begun = (source as unknown as BackedUp).backup(file, (error) => {
      if (error) reject(error);
      else resolve(begun);
    });
  });
  while (!backup.completed) {
    await new Promise<void>((resolve, reject) => {
      backup.step(PAGES_PER_STEP, (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
    if (backup.failed) throw new Error('SQLite could not copy a page');
    await afterStep(backup.pageCount - backup.remaining, backup.pageCount);
  }
}

/** Makes the copy a single file that says what it is, and checks it. @throws if it is damaged. */
export async function label(file: string, { takenAtMs, keyId }: BackupFacts): Promise<void> {
  const copy = await open(file, sqlite3.OPEN_READWRITE);
  try {
    await execute(
      copy,
      `PRAGMA journal_mode = DELETE;
       CREATE TABLE ${TABLE} (taken_at BIGINT NOT NULL, key_id VARCHAR(16) NOT NULL);
       INSERT INTO ${TABLE} VALUES (${Math.trunc(takenAtMs)}, '${keyId.replace(/[^0-9a-f]/g, '')}')`,
    );
    const [found] = await all<{ quick_check: string }>(copy, 'PRAGMA quick_check(1)');
    if (found?.quick_check !== 'ok') throw new Error(`the copy is damaged: ${found?.quick_check ?? ''}`);
  } finally {
    await close(copy);
  }
}

/** Removes what only a backup has, and makes the copy a single file. */
export async function unlabel(file: string): Promise<void> {
  const copy = await open(file, sqlite3.OPEN_READWRITE);
  try {
    await execute(copy, `PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; DROP TABLE IF EXISTS ${TABLE}`);
  } finally {
    await close(copy);
  }
}

/** @returns null for a copy that was made in another way. */
export async function factsOf(file: string): Promise<BackupFacts | null> {
  const copy = await openForReading(file);
  try {
    const known = await all(copy, `SELECT name FROM sqlite_schema WHERE name = '${TABLE}'`);
    if (known.length === 0) return null;
    const [row] = await all<{ taken_at: number; key_id: string }>(copy, `SELECT taken_at, key_id FROM ${TABLE}`);
    return row ? { takenAtMs: row.taken_at, keyId: row.key_id } : null;
  } finally {
    await close(copy);
  }
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
export async function servedSince(path: string, backup: string, nowMs: number): Promise<ServedSince> {
  const now = await open(resolve(path), sqlite3.OPEN_READWRITE | sqlite3.OPEN_URI);
  try {
    await execute(now, `ATTACH DATABASE '${uriForReading(backup).href.replaceAll("'", "''")}' AS old`);
    const [row] = await all<ServedSince>(
      now,
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
    await close(now);
  }
}

const openForReading = (path: string) => open(uriForReading(path).href, sqlite3.OPEN_READONLY | sqlite3.OPEN_URI);

function open(path: string, mode: number): Promise<sqlite3.Database> {
  return new Promise((resolve, reject) => {
    const opened = new sqlite3.Database(path, mode, (error) => {
      if (error) reject(error);
      else resolve(opened);
    });
  });
}

function execute(on: sqlite3.Database, sql: string): Promise<void> {
  return new Promise((resolve, reject) => {
    on.exec(sql, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

function all<Row extends object>(on: sqlite3.Database, sql: string): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    on.all<Row>(sql, (error: Error | null, rows: Row[]) => {
      if (error) reject(error);
      else resolve(rows);
    });
  });
}

function close(connection: sqlite3.Database): Promise<void> {
  return new Promise((resolve) => {
    connection.close(() => {
      resolve();
    });
  });
}
