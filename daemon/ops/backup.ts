/** `llmp backup` and `llmp restore`, of a SQLite database. */
import { existsSync } from 'node:fs';
import { link, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Environment } from '../../config/settings.js';
import { readVersion } from '../../config/version.js';
import { SchemaHistory } from '../../migrations/migrator.js';
import { SchemaTooNew } from '../../migrations/failures.js';
import { EXIT } from '../api/vocabulary.js';
import { PathInUse, withoutLinks } from '../store/lock.js';
import { secretBoxFor } from '../store/open.js';
import { shareOwner } from '../store/owner.js';
import type { SecretBox } from '../store/secrets.js';
import {
  type BackupFacts,
  copyUnused,
  copyWhileUsed,
  factsOf,
  label,
  servedSince,
  type ServedSince,
  unlabel,
} from '../store/sql/sqlite-backup.js';
import { lockDatabase } from '../store/sql/sqlite.js';
import { openSqliteReader } from '../store/sql/sqlite-database.js';
import { requireSqlite } from '../store/sqlite-available.js';
import { asOperatorError, refuseMissing } from './migrations.js';
import { fromSettings, OperatorError } from './operator-error.js';

const refused = (message: string, cause?: unknown) => new OperatorError(EXIT.notFound, message, cause);

const FOR_BACKUP = ['databaseDriver', 'database', 'encryptionKey', 'previousEncryptionKey'] as const;

export interface BackupReport {
  file: string;
  bytes: number;
  /** ID of the encryption key, which is not in the backup. */
  keyId: string;
}

/**
 * Backs up the database, also while the daemon runs. The file appears when it is complete.
 *
 * @param onProgress called with the part that is copied, from 0 to 1. @throws {OperatorError}
 */
export async function backUp(
  env: Environment,
  envFile: string | undefined,
  file: string,
  onProgress: (part: number) => void,
): Promise<BackupReport> {
  const { path, box } = sqliteOf(env, envFile, (server) => `Use ${server}, as docs/operate/backup.md describes`);
  if (existsSync(file)) throw refused(`${file} exists already. Name another file`);
  const partial = `${file}.partial`;
  return asOperatorError(
    (async () => {
      try {
        await create(partial);
        const takenAtMs = Date.now();
        await copyWhileUsed(path, partial, (copied, all) => {
          onProgress(all === 0 ? 1 : copied / all);
        });
        await label(partial, { takenAtMs, keyId: box.keyId });
        await toDisk(partial);
        await rename(partial, file);
        await toDisk(dirname(resolve(file)));
        return { file: resolve(file), bytes: (await stat(file)).size, keyId: box.keyId };
      } finally {
        await remove(partial);
      }
    })(),
  );
}

export interface Restoring {
  /** When the backup was made; null if it does not say. */
  takenAtMs: number | null;
  path: string;
  /** What the present database has in addition; null if there is none. */
  since: ServedSince | null;
  /** Why `since` is unknown although there is a database. */
  whyUnknown: string | null;
  /** Replaces the database. @returns the path that the previous one has now; null if there was none. */
  proceed(): Promise<string | null>;
  close(): Promise<void>;
}

/** Checks that a backup can be restored, and what that would lose. Nothing is changed until `proceed`. @throws {OperatorError} */
export async function beginRestore(env: Environment, envFile: string | undefined, file: string): Promise<Restoring> {
  if (!existsSync(file)) throw refused(`${file} does not exist`);
  const { path, box } = sqliteOf(
    env,
    envFile,
    (server) => `Use the counterpart of ${server}, as docs/operate/backup.md describes`,
    true,
  );
  if (resolve(path) === resolve(file)) throw refused('the backup is the database itself. Name the file of a backup');
  const unlock = await asOperatorError(
    lockDatabase(path).catch((error: unknown) => {
      if (error instanceof PathInUse) throw refused(`${path} is in use. Stop the daemon first`, error);
      throw error;
    }),
  );
  try {
    const facts = await asOperatorError(
      factsOf(file).catch((error: unknown) => {
        throw /SQLITE_NOTADB/.test(String(error)) ? refused(`${file} is not a backup of llmp`, error) : error;
      }),
    );
    await asOperatorError(refuseUnusable(file, facts, box));
    const isThere = existsSync(path);
    const compared = isThere
      ? await servedSince(path, file, Date.now()).then(
          (since) => ({ since, whyUnknown: null }),
          (error: unknown) => ({ since: null, whyUnknown: error instanceof Error ? error.message : String(error) }),
        )
      : { since: null, whyUnknown: null };
    return {
      takenAtMs: facts?.takenAtMs ?? null,
      path,
      ...compared,
      proceed: () => asOperatorError(withoutLinks(path).then((place) => replace(place, file))),
      close: unlock,
    };
  } catch (error) {
    await unlock();
    throw error;
  }
}

function sqliteOf(
  env: Environment,
  envFile: string | undefined,
  advice: (tool: string) => string,
  mayBeMissing = false,
): { path: string; box: SecretBox } {
  return fromSettings(env, envFile, FOR_BACKUP, (settings) => {
    const { database } = settings;
    if (database.driver !== 'sqlite') {
      const tool = database.driver === 'postgres' ? 'pg_dump' : 'mariadb-dump or mysqldump';
      throw refused(`the database is on a server, and this command is for SQLite. ${advice(tool)}`);
    }
    requireSqlite();
    if (!mayBeMissing) refuseMissing(database);
    if (settings.encryptionKey === undefined && !existsSync(`${database.path}.key`))
      throw refused(`${database.path}.key is missing. Put the key file there, or set ENCRYPTION_KEY`);
    return { path: database.path, box: secretBoxFor(settings) };
  });
}

/** @throws {OperatorError} for a file that the daemon could not use. */
async function refuseUnusable(file: string, facts: BackupFacts | null, box: SecretBox): Promise<void> {
  const backup = openSqliteReader(file);
  try {
    const history = new SchemaHistory(backup, readVersion());
    const { current } = await history.status();
    if (current === null) throw refused(`${file} is not a backup of llmp`);
    await history.refuseNewerSchema().catch((error: unknown) => {
      throw error instanceof SchemaTooNew ? refused(`${file}: ${error.message}`, error) : error;
    });
    const keys = await backup.select<{ id: string }>('SELECT DISTINCT api_key_id AS id FROM projects');
    const needed = [...new Set([...keys.map(({ id }) => id), ...(facts ? [facts.keyId] : [])])];
    const missing = needed.filter((id) => !box.keyIds.includes(id));
    if (missing.length > 0)
      throw refused(
        `${file} needs the encryption key with the fingerprint ${missing.join(', ')}, and the present one is ${box.keyId}. Restore that key file, or set ENCRYPTION_KEY to that key`,
      );
    const [found] = await backup.select<{ quick_check: string }>('PRAGMA quick_check(1)');
    if (found?.quick_check !== 'ok') throw refused(`${file} is damaged: ${found?.quick_check ?? ''}`);
  } finally {
    await backup.close();
  }
}

/** The path always names a whole database: the old one, then the new one. */
async function replace(path: string, file: string): Promise<string | null> {
  const next = `${path}.restoring`;
  try {
    await create(next);
    await copyUnused(file, next);
    await unlabel(next);
    const isThere = existsSync(path);
    shareOwner(next, isThere ? path : dirname(path));
    await toDisk(next);
    let kept: string | null = null;
    if (isThere) {
      kept = `${path}.before-${new Date().toISOString().replace(/[:.]/g, '-')}`;
      await link(path, kept);
      // Left by a process that was killed. Its content belongs to the old file.
      for (const end of ['-wal', '-shm']) if (existsSync(path + end)) await rename(path + end, kept + end);
    }
    await rename(next, path);
    await toDisk(dirname(path));
    return kept;
  } finally {
    await remove(next);
  }
}

/** With its mode before it has content, and not through a link that somebody has put there. */
async function create(path: string): Promise<void> {
  await remove(path);
  await (await open(path, 'wx', 0o600)).close();
}

/** With what SQLite may have left beside it. */
async function remove(path: string): Promise<void> {
  for (const end of ['', '-journal', '-wal', '-shm']) await rm(path + end, { force: true });
}

async function toDisk(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
