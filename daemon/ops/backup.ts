/** `llmp backup` and `llmp restore`, of a SQLite database. */
import { existsSync, statSync } from 'node:fs';
import { type FileHandle, link, open, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '../../config/settings.js';
import { readVersion } from '../../config/version.js';
import { SchemaHistory } from '../../migrations/migrator.js';
import { SchemaTooNew } from '../../migrations/failures.js';
import { bytes } from '../api/formats.js';
import { EXIT } from '../api/vocabulary.js';
import { lockInode, PathInUse, withoutLinks } from '../store/lock.js';
import { secretBoxFor } from '../store/open.js';
import { shareOwner } from '../store/owner.js';
import type { SecretBox } from '../store/secrets.js';
import {
  copyUnused,
  copyWhileUsed,
  damageOf,
  factsOf,
  hasLog,
  label,
  servedSince,
  type ServedSince,
  SqliteFile,
} from '../store/sql/sqlite-backup.js';
import { lockDatabase } from '../store/sql/sqlite.js';
import { requireSqlite } from '../store/sqlite-available.js';
import { asOperatorError, fromSettings, OperatorError, refuseMissing } from './operator-error.js';

/** Nothing was changed. */
const refused = (message: string, cause?: unknown) => new OperatorError(EXIT.notFound, message, cause);

const FOR_BACKUP = ['databaseDriver', 'database', 'encryptionKey', 'previousEncryptionKey'] as const;
/** Of 256 KB each. */
const STEPS_PER_SYNC = 64;
/** How much longer than it works the copying rests. */
const REST = 3;
/** What SQLite may have beside a file. */
const BESIDE = ['-journal', '-wal', '-shm'];

export interface BackupRequest {
  env: Environment;
  envFile: string | undefined;
  file: string;
  /** Ends the command, which then leaves no unfinished file. */
  signal: AbortSignal;
}

export interface BackupReport {
  file: string;
  bytes: number;
  /** IDs of the encryption keys that it needs. They are not in it. */
  keyIds: string[];
  /** Those of them that the settings do not contain. */
  missing: string[];
}

/**
 * Backs up the database, also while the daemon runs. The file appears when it is complete.
 *
 * @param onPart called with the part that is copied, from 0 to 1. @throws {OperatorError}
 */
export function backUp(request: BackupRequest, onPart: (part: number) => void): Promise<BackupReport> {
  const { path, box } = sqliteOf(request, (server) => `Use ${server}, as docs/operate/backup.md describes`);
  return asOperatorError(writeBackup(request, path, box, onPart));
}

async function writeBackup(
  { file: given, signal }: BackupRequest,
  path: string,
  box: SecretBox,
  onPart: (part: number) => void,
): Promise<BackupReport> {
  const file = await withoutLinks(resolve(given));
  refuseExisting(file);
  await refuseLackOfRoom(path, dirname(file));
  const partial = await begin(`${file}.partial`, `another backup to ${file} is running`);
  try {
    const takenAtMs = Date.now();
    await copyWhileUsed(path, partial.path, gently(partial.handle, onPart), signal);
    const copy = await SqliteFile.toRead(partial.path, signal);
    let keyIds: string[];
    try {
      await refuseDamaged(path, copy, false);
      keyIds = await keysOf(copy);
    } finally {
      await copy.close();
    }
    if (keyIds.length === 0) keyIds = [box.keyId];
    await label(partial.path, { takenAtMs, keyId: keyIds[0] ?? '' });
    await partial.handle.sync();
    signal.throwIfAborted();
    refuseExisting(file);
    await rename(partial.path, file);
    await folderToDisk(dirname(file));
    const { size } = await partial.handle.stat();
    return { file, bytes: size, keyIds, missing: keyIds.filter((id) => !box.keyIds.includes(id)) };
  } finally {
    await partial.end();
  }
}

/** What is done after each step, so that the copying takes little from the daemon. */
function gently(file: FileHandle, onPart: (part: number) => void): (part: number) => Promise<void> {
  let [beganMs, steps] = [performance.now(), 0];
  return async (part) => {
    // Otherwise a commit of the daemon could wait until the disk has written all of the copy.
    if (++steps % STEPS_PER_SYNC === 0) await file.datasync();
    onPart(part);
    // So it takes a quarter of a core and of the disk at most, and less from others if they make it slow.
    await sleep(REST * (performance.now() - beganMs));
    beganMs = performance.now();
  };
}

/** Also what SQLite would read with the file as if it belonged to it. */
function refuseExisting(file: string): void {
  const found = ['', ...BESIDE].map((end) => file + end).find((path) => existsSync(path));
  if (found !== undefined) throw refused(`${found} exists already. Name another file`);
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
export async function beginRestore(request: BackupRequest): Promise<Restoring> {
  const advice = (server: string) => `Use the counterpart of ${server}, as docs/operate/backup.md describes`;
  const { path: named, box } = sqliteOf(request, advice, true);
  return asOperatorError(
    (async () => {
      const file = await usable(request, named, box);
      const unlock = await lockDatabase(named).catch((error: unknown) => {
        throw error instanceof PathInUse ? refused(`${named} is in use. Stop the daemon first`, error) : error;
      });
      try {
        // Where the files are that SQLite has beside it, and not only a link.
        const path = await withoutLinks(named);
        const compared = existsSync(path)
          ? await servedSince(path, file.path, Date.now(), request.signal).then(
              (since) => ({ since, whyUnknown: null }),
              (error: unknown) => ({ since: null, whyUnknown: error instanceof Error ? error.message : String(error) }),
            )
          : { since: null, whyUnknown: null };
        return {
          takenAtMs: file.takenAtMs,
          path,
          ...compared,
          proceed: () => asOperatorError(replace(path, file.path, request.signal)),
          close: unlock,
        };
      } catch (error) {
        await unlock();
        throw error;
      }
    })(),
  );
}

function sqliteOf(
  { env, envFile }: BackupRequest,
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

/** @throws {OperatorError} for a file that the daemon could not use in place of `path`. */
async function usable(
  { file: given, signal }: BackupRequest,
  path: string,
  box: SecretBox,
): Promise<{ path: string; takenAtMs: number | null }> {
  const file = await withoutLinks(resolve(given));
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found) throw refused(`${file} does not exist`);
  if (!found.isFile()) throw refused(`${file} is not a file`);
  const present = statSync(path, { throwIfNoEntry: false });
  if (present?.ino === found.ino && present.dev === found.dev)
    throw refused('the backup is the database itself. Name the file of a backup');
  if (existsSync(`${file}-journal`))
    throw refused(`${file} is not whole: a change of it was interrupted, and is in ${file}-journal`);
  const backup = await SqliteFile.toRead(file, signal);
  try {
    const history = new SchemaHistory(backup, readVersion());
    if ((await history.status()).current === null) throw refused(`${file} is not a backup of llmp`);
    await history.refuseNewerSchema();
    const facts = await factsOf(backup);
    const needed = [...new Set([...(await keysOf(backup)), ...(facts ? [facts.keyId] : [])])];
    const missing = needed.filter((id) => !box.keyIds.includes(id));
    if (missing.length > 0)
      throw refused(
        `${file} needs the encryption key with the fingerprint ${missing.join(', ')}, and the present one is ${box.keyId}. Restore that key file, or set ENCRYPTION_KEY to that key`,
      );
    await refuseDamaged(file, backup, hasLog(file));
    return { path: file, takenAtMs: facts?.takenAtMs ?? null };
  } catch (error) {
    if (error instanceof SchemaTooNew) throw refused(`${file}: ${error.message}`, error);
    if (/SQLITE_NOTADB/.test(String(error))) throw refused(`${file} is not a backup of llmp`, error);
    if (/SQLITE_CORRUPT/.test(String(error))) throw refused(`${file} is damaged`, error);
    throw error;
  } finally {
    await backup.close();
  }
}

/** @param isThorough for one whose log could be of another file. */
async function refuseDamaged(path: string, file: SqliteFile, isThorough: boolean): Promise<void> {
  const damage = await damageOf(file, isThorough);
  if (damage !== null) throw refused(`${path} is damaged: ${damage}`);
}

/** IDs of the encryption keys that the upstream keys need. */
const keysOf = async (file: SqliteFile): Promise<string[]> =>
  (await file.select<{ id: string }>('SELECT DISTINCT api_key_id AS id FROM projects')).map(({ id }) => id);

/** The path always names a whole database: the old one, then the new one. */
async function replace(path: string, file: string, signal: AbortSignal): Promise<string | null> {
  await refuseLackOfRoom(file, dirname(path));
  const next = await begin(`${path}.restoring`, `another restore to ${path} is running`);
  try {
    await copyUnused(file, next.path, signal);
    const isThere = existsSync(path);
    shareOwner(next.path, isThere ? path : dirname(path));
    await next.handle.sync();
    signal.throwIfAborted();
    const kept = `${path}.before-${new Date().toISOString().replace(/[:.]/g, '-')}`;
    if (isThere) await link(path, kept);
    // Left by a process that was killed. SQLite would read them with the new file.
    for (const end of BESIDE) if (existsSync(path + end)) await rename(path + end, kept + end);
    await rename(next.path, path);
    await folderToDisk(dirname(path));
    return isThere ? kept : null;
  } finally {
    await next.end();
  }
}

/** Otherwise the daemon, on the same disk, would be the first to fail. */
async function refuseLackOfRoom(path: string, folder: string): Promise<void> {
  const sizes = await Promise.all(
    ['', '-wal'].map((end) =>
      stat(path + end).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  const needed = sizes.reduce((sum, size) => sum + size);
  const { bavail, bsize, blocks } = await statfs(folder);
  if (blocks > 0 && bavail * bsize < needed)
    throw new OperatorError(
      EXIT.unavailable,
      `the disk is full: ${folder} has ${bytes(bavail * bsize)} left, and needs ${bytes(needed)}. Make room, or use another disk`,
    );
}

interface Unfinished {
  path: string;
  handle: FileHandle;
  /** Removes it, unless it has its final name. */
  end(): Promise<void>;
}

/**
 * Begins a file that only this process writes, with its mode before it has content. One that a killed process has left is replaced, and a link that
 * somebody has put there is not followed.
 */
async function begin(path: string, inUse: string): Promise<Unfinished> {
  const lock = async (file: FileHandle) => {
    try {
      return await lockInode(path, await file.stat({ bigint: true }));
    } catch (error) {
      throw error instanceof PathInUse ? refused(inUse, error) : error;
    }
  };
  const left = await open(path).catch(() => null);
  try {
    const unlock = left && (await lock(left));
    await remove(path);
    await unlock?.();
  } finally {
    await left?.close();
  }
  const handle = await open(path, 'wx', 0o600);
  const unlock = await lock(handle);
  return {
    path,
    handle,
    async end() {
      await remove(path);
      await unlock();
      await handle.close();
    },
  };
}

/** With what SQLite may have left beside it. */
async function remove(path: string): Promise<void> {
  for (const end of ['', ...BESIDE]) await rm(path + end, { force: true });
}

async function folderToDisk(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
