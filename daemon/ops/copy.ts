/** `llmp migrate copy` copies everything to an empty database of the same or another kind. */
import { existsSync } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { DatabaseAddress } from '../../config/database-url.js';
import { readVersion } from '../../config/version.js';
import { Migrator, MIGRATIONS, SchemaHistory, UNFINISHED_COPY } from '../../migrations/migrator.js';
import { Schema } from '../../migrations/schema.js';
import { SchemaTooNew } from '../../migrations/failures.js';
import { bytes } from '../api/formats.js';
import { EXIT } from '../api/vocabulary.js';
import { firstIdOf, HOUR_MS } from '../core/usage.js';
import { StoreConflict } from '../core/ports.js';
import { ResourceStack } from '../store/resource-stack.js';
import type { SecretBox } from '../store/secrets.js';
import type { CopiedTable } from '../store/sql/copied-rows.js';
import { CopiedByAnother, PROGRESS_COLUMNS, PROGRESS_TABLE, ProgressEntry } from '../store/sql/copy-progress.js';
import {
  checkTable,
  type Conversion,
  COPIED_TABLES,
  type CopyOptions,
  copyAgain,
  copyTable,
  progressOf,
  RowRefused,
  SINGLE_ROWS,
} from '../store/sql/copying.js';
import type { Database, Reader } from '../store/sql/database.js';
import { withStoreErrors } from '../store/sql/failures.js';
import { upstreamKeyContext } from '../store/sql/projects.js';
import { SqliteDatabase } from '../store/sql/sqlite-database.js';
import { checkEncoding } from '../store/sql/server-check.js';
import { ANCHORS, AUDIT, PROJECTS, USAGE_HOURLY, USAGE_MINUTES, USAGE_SUMS } from '../store/sql/tables.js';
import { existingFolder } from './doctor-files.js';
import {
  type Boxes,
  nameOf,
  openSource,
  openTarget,
  placesOf,
  type PlacesRequest,
  refused,
  type Source,
} from './copy-places.js';
import { asOperatorError, OperatorError } from './operator-error.js';

export interface CopyRequest extends PlacesRequest {
  /** Continues a copy that was interrupted. */
  isResume: boolean;
  /** Copies what never changes again, while the daemon runs. */
  isPrepare: boolean;
  /** Called for each page of rows. */
  onProgress: (progress: CopyProgress) => void;
  isInterrupted: () => boolean;
}

export interface CopyProgress {
  table: string;
  /** Rows of the table that are copied, or read again. */
  rows: number;
  /** Rows that the table has in the source; null if that is unknown. */
  all: number | null;
  isCheck: boolean;
}

export interface CopyReport {
  tables: { table: string; rows: number; digest: string }[];
  /** Tables that differ. */
  differing: string[];
  isComplete: boolean;
  from: string;
  to: string;
}

/** After so long without a heartbeat, other instances count one as dead. */
const DEAD_AFTER_MS = 30_000;
/** Usage of earlier hours does not change any more, unless the database was unreachable for longer. */
const OLD_AFTER_MS = 26 * HOUR_MS;
/**
 * For a SQLite database that is copied into: a cache for the unique index of digests, and no wait for the disk after each page of rows. A
 * power failure loses the last pages, and then the progress does not count them either.
 */
const SQLITE_PRAGMAS = ['cache_size = -65536', 'synchronous = NORMAL', 'wal_autocheckpoint = 16384'];

/** The state of the whole copy, in the target. */
interface CopyState {
  /** Equal as long as no daemon uses the source. */
  source: string;
  /** ID of the encryption key of the target. */
  keyId: string;
  /** The release that began it. */
  release: string;
  phase: 'prepared' | 'copying' | 'complete';
}
const STATE = 'copy';

/** @throws {OperatorError} */
export async function copyDatabase(request: CopyRequest): Promise<CopyReport> {
  const opened = new ResourceStack();
  try {
    return await asOperatorError(copyBetween(request, opened));
  } catch (error) {
    if (error instanceof RowRefused) throw new OperatorError(EXIT.checkFailed, error.message, error);
    if (error instanceof CopiedByAnother) throw new OperatorError(EXIT.conflict, error.message, error);
    throw error;
  } finally {
    await opened.close();
  }
}

async function copyBetween(request: CopyRequest, opened: ResourceStack): Promise<CopyReport> {
  const { from, to, boxes, writeKey } = placesOf(request);
  const { isPrepare } = request;
  const source = opened.add(await openSource(from, isPrepare, opened));
  await checkSource(source, boxes.source, isPrepare);
  await refuseLackOfRoom(source, from, to);
  const target = opened.add(await openTarget(to, opened));
  const fingerprint = await fingerprintOf(source);
  const state = await begin(request, { source, target, fingerprint, keyId: boxes.target.keyId });
  writeKey();
  if (target instanceof SqliteDatabase)
    for (const pragma of SQLITE_PRAGMAS) await target.writer.run(`PRAGMA ${pragma}`);

  const rowsOf = new Map<string, number>();
  const expected = await countsOf(source);
  const options: CopyOptions = {
    source,
    target,
    conversions: conversionsFor(source, target, boxes),
    onRows: ({ name }, rows, isCheck) => {
      const key = `${name} ${isCheck}`;
      rowsOf.set(key, (rowsOf.get(key) ?? 0) + rows);
      request.onProgress({ table: name, rows: rowsOf.get(key) ?? 0, all: expected.get(name) ?? null, isCheck });
      if (request.isInterrupted())
        throw new OperatorError(EXIT.interrupted, 'interrupted. Continue with the same command and --resume');
    },
  };
  const report = { from: nameOf(from), to: nameOf(to) };
  if (isPrepare) return { ...report, ...(await prepare(options)), isComplete: false };
  if (state.value.phase === 'complete') {
    await finish(target);
    return { ...report, tables: [], differing: [], isComplete: true };
  }
  await copyChangedPast(options);
  const tables: CopyReport['tables'] = [];
  const differing: string[] = [];
  for (const table of COPIED_TABLES) await copyTable(options, table, await progressOf(target, table));
  for (const table of COPIED_TABLES) {
    const progress = await progressOf(target, table);
    const isEqual = await checkTable(options, table, progress);
    const { count: rows, sums: digest } = progress.value.checked;
    tables.push({ table: table.name, rows, digest });
    if (!isEqual || rows !== (await countOf(source, table))) differing.push(table.name);
  }
  if (differing.length > 0) return { ...report, tables, differing, isComplete: false };
  if ((await fingerprintOf(source)) !== fingerprint)
    throw new OperatorError(
      EXIT.checkFailed,
      'the old database was used while it was copied. Stop all daemons, empty the new database, and copy again',
    );
  await state.set({ ...state.value, phase: 'complete' });
  await finish(target);
  return { ...report, tables, differing, isComplete: true };
}

// ---- refusals

async function checkSource(source: Source, box: SecretBox, isPrepare: boolean): Promise<void> {
  await refuseOtherSchema(source, 'the old database', 'llmp migrate up --direct');
  const rows = await source.select<{ id: string }>('SELECT DISTINCT api_key_id AS id FROM projects');
  if (rows.some(({ id }) => !box.keyIds.includes(id)))
    throw refused(
      'the upstream keys in the old database are encrypted with another key. Set ENCRYPTION_KEY to that key, or to ENCRYPTION_KEY_PREVIOUS',
    );
  if (isPrepare || source.dialect.name === 'sqlite') return;
  const [live] = await source.select<{ count: number; age: number }>(
    `SELECT COUNT(*) AS count, COALESCE(MIN(${source.dialect.now('0')} - heartbeat_at), 0) AS age FROM instances
     WHERE expired_at = 0 AND heartbeat_at > ${source.dialect.now('0')} - ${DEAD_AFTER_MS}`,
  );
  if (live && live.count > 0)
    throw refused(
      `a daemon used the old database ${Math.round(live.age / 1000)} s ago. Stop all daemons; one that was killed counts as running for ${DEAD_AFTER_MS / 1000} s. Or first copy what never changes again while they run: llmp migrate copy --prepare`,
    );
}

/** @param migrate the command that applies what is missing. */
async function refuseOtherSchema(on: Reader, which: string, migrate: string): Promise<void> {
  const history = new SchemaHistory(on, readVersion());
  try {
    await withStoreErrors(history.refuseNewerSchema());
  } catch (error) {
    throw error instanceof SchemaTooNew ? refused(`${which}: ${error.message}`, error) : error;
  }
  const { pending } = await withStoreErrors(history.status());
  if (pending.length > 0)
    throw refused(
      `the schema of ${which} is older than this release: ${pending.join(', ')} is missing. Apply it with: ${migrate}`,
    );
  const newer = await withStoreErrors(history.newer());
  if (newer.length > 0)
    throw refused(
      `the schema of ${which} is newer than this release: it has ${newer.join(', ')}. Copy with the release that made it`,
    );
}

const hasTable = async (on: Reader, table: string) =>
  (await on.select(on.dialect.tableNamed('$table'), { table })).length > 0;

interface Beginning {
  source: Reader;
  target: Database;
  fingerprint: string;
  keyId: string;
}

/** Prepares the target, or finds the copy that it continues. */
async function begin(request: CopyRequest, beginning: Beginning): Promise<ProgressEntry<CopyState>> {
  const { target, fingerprint, keyId } = beginning;
  const { isResume, isPrepare } = request;
  await reachTarget(target);
  const release = readVersion();
  const first: CopyState = { source: fingerprint, keyId, release, phase: isPrepare ? 'prepared' : 'copying' };
  if (!(await hasTable(target, PROGRESS_TABLE))) {
    if (isResume) throw refused('there is no interrupted copy in the new database. Begin one without --resume');
    await refuseContent(target);
    await inSchema(target, (schema) => schema.createTableAs(PROGRESS_TABLE, PROGRESS_COLUMNS)).catch(
      (error: unknown) => {
        throw error instanceof StoreConflict ? new CopiedByAnother() : error;
      },
    );
  }
  const state = await ProgressEntry.open(target, STATE, first);
  const { phase, source, keyId: knownKeyId } = state.value;
  if (phase === 'copying' && !state.isNew && !isResume)
    throw refused('a copy into the new database was interrupted. Continue it with --resume, or empty that database');
  if (state.value.release !== release)
    throw refused(
      `the copy was begun with llmp ${state.value.release}. Continue it with that release, or empty the new database`,
    );
  if (knownKeyId !== keyId)
    throw refused(
      'the copy was begun with another ENCRYPTION_KEY for the new database. Use that key, or empty that database',
    );
  if (phase !== 'prepared' && isPrepare)
    throw refused('a whole copy was begun already. Continue it with --resume, without --prepare');
  if (phase !== 'prepared' && source !== fingerprint)
    throw refused('the old database was used since the copy was interrupted. Empty the new database, and copy again');
  if (phase === 'complete') return state;
  if (phase === 'prepared' && !state.isNew) await refuseOtherRecords(beginning);
  if (state.isNew || phase !== first.phase) await state.set(first);
  await makeSchema(target);
  return state;
}

/** @throws {OperatorError} if the source does not have the last record that `--prepare` has copied. */
async function refuseOtherRecords({ source, target }: Beginning): Promise<void> {
  const { after } = (await progressOf(target, RECORDS)).value.copied;
  if (after === null) return;
  const [inSource, inTarget] = await Promise.all(
    [source, target].map(async (on) => {
      const [row] = await on.select<{ id: string }>('SELECT id FROM audit WHERE seq = $seq', { seq: after[0] ?? 0 });
      return row?.id;
    }),
  );
  if (inSource !== inTarget)
    throw refused(
      'the new database has audit records that the old one does not have: another database was prepared, or the old one was restored since. Empty the new database, and copy again',
    );
}

/** @throws {OperatorError} with words that do not confuse it with the old one. */
async function reachTarget(target: Database): Promise<void> {
  try {
    await asOperatorError(checkEncoding(target).then(() => hasTable(target, PROGRESS_TABLE)));
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    const message = error.message.replaceAll('DATABASE_URL', 'its URL');
    throw new OperatorError(error.exitCode, `the new database: ${message}`, error);
  }
}

/** The mark that no daemon may use the database is written before anything else. */
async function makeSchema(target: Database): Promise<void> {
  const migrator = new Migrator(target, readVersion(), Date.now, [UNFINISHED_COPY, ...MIGRATIONS]);
  const { pending } = await withStoreErrors(migrator.status());
  // A daemon may have begun to use it since.
  if (pending.includes(UNFINISHED_COPY.name)) await refuseContent(target);
  if (pending.length > 0) await withStoreErrors(migrator.up());
}

/** Removes all that only the copy needs. It may have been interrupted here. */
async function finish(target: Database): Promise<void> {
  // PostgreSQL would plan its first queries for tables without rows. It does the same by itself later, so the copy is no worse without it.
  if (target.dialect.name === 'postgres') await (await target.loadSequelize()).query('ANALYZE').catch(() => undefined);
  await target.transact((tx) =>
    tx.execute('DELETE FROM schema_migrations WHERE name = $name', { name: UNFINISHED_COPY.name }),
  );
  await inSchema(target, (schema) => schema.run(`DROP TABLE ${PROGRESS_TABLE}`));
}

async function inSchema(target: Database, work: (schema: Schema) => Promise<void>): Promise<void> {
  const sequelize = await target.loadSequelize();
  await withStoreErrors(
    target.inTransaction((transaction) => work(new Schema(sequelize.getQueryInterface(), transaction))),
  );
}

async function refuseContent(target: Database): Promise<void> {
  const { applied } = await withStoreErrors(new SchemaHistory(target, readVersion()).status());
  if (applied.length === 0) {
    const names = COPIED_TABLES.map(({ name }) => name);
    const found = await Promise.all(names.map((name) => hasTable(target, name)));
    const table = names.find((_, at) => found[at]);
    // On MySQL, a process that was killed may have made only the table of migrations.
    if (table === undefined) return;
    if (!(await hasTable(target, 'schema_migrations')))
      throw refused(
        `the new database is not empty: it has a table ${table}, which is not of llmp. Name an empty database`,
      );
  }
  await refuseOtherSchema(target, 'the new database', 'llmp migrate up --direct');
  for (const { name } of COPIED_TABLES) {
    if (SINGLE_ROWS.includes(name)) continue;
    const found = await target.select(`SELECT 1 AS found FROM ${name} LIMIT 1`);
    if (found.length > 0)
      throw refused(
        `the new database is not empty: the table ${name} has rows. Name an empty database, or empty this one`,
      );
  }
}

/** For a new file. Of a server nobody knows how much room it has. */
async function refuseLackOfRoom(source: Reader, from: DatabaseAddress, to: DatabaseAddress): Promise<void> {
  if (to.driver !== 'sqlite' || existsSync(to.path)) return;
  const folder = await existingFolder(to.path);
  const { bavail, bsize } = await statfs(folder);
  const needed = await sizeOf(source, from);
  if (bavail * bsize < needed)
    throw refused(
      `${folder} has ${bytes(bavail * bsize)} left, and the old database has ${bytes(needed)}. Make room, or name a path on another disk`,
    );
}

/** In bytes. */
async function sizeOf(source: Reader, address: DatabaseAddress): Promise<number> {
  if (address.driver === 'sqlite') {
    const sizes = await Promise.all(
      ['', '-wal'].map((end) =>
        stat(address.path + end).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
    );
    return sizes.reduce((sum, size) => sum + size, 0);
  }
  const sql =
    address.driver === 'postgres'
      ? 'SELECT pg_database_size(current_database()) AS size'
      : 'SELECT SUM(data_length + index_length) AS size FROM information_schema.tables WHERE table_schema = DATABASE()';
  const [row] = await source.select<{ size: number | null }>(sql);
  return row?.size ?? 0;
}

/** Changes whenever a daemon uses the database. */
async function fingerprintOf(source: Reader): Promise<string> {
  const parts = await Promise.all([
    source.select('SELECT seq FROM change_seq'),
    source.select('SELECT id, seq, expired_at FROM instances ORDER BY id'),
    source.select('SELECT COUNT(*) AS flushes, SUM(seq) AS seq, MAX(flushed_at) AS at FROM usage_flushes'),
  ]);
  return JSON.stringify(parts);
}

async function countOf(on: Reader, { name }: CopiedTable): Promise<number> {
  const [row] = await on.select<{ count: number }>(`SELECT COUNT(*) AS count FROM ${name}`);
  return row?.count ?? 0;
}

async function countsOf(source: Reader): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const table of COPIED_TABLES) counts.set(table.name, await countOf(source, table));
  return counts;
}

// ---- what differs between databases

function conversionsFor(source: Reader, target: Reader, boxes: Boxes): ReadonlyMap<string, Conversion> {
  const prefix = `${hostname()}:`;
  const isServer = { source: source.dialect.name !== 'sqlite', target: target.dialect.name !== 'sqlite' };
  // For MySQL, texts that differ only in spaces at their ends are the same. Earlier releases did not remove these of models.
  const ofModels: [string, Conversion][] =
    target.dialect.name === 'mysql'
      ? [USAGE_HOURLY, USAGE_MINUTES, USAGE_SUMS].map(({ name }) => [name, withVisibleEnd])
      : [];
  return new Map<string, Conversion>([
    ...ofModels,
    [
      // In a shared database, a chain begins with the name of its machine.
      ANCHORS.name,
      (row) => {
        const chain = String(row.chain);
        if (isServer.source === isServer.target) return row;
        if (isServer.target) return { ...row, chain: `${prefix}${chain}` };
        return { ...row, chain: chain.startsWith(prefix) ? chain.slice(prefix.length) : chain };
      },
    ],
    [
      PROJECTS.name,
      (row) => {
        if (row.api_key_id === boxes.target.keyId) return row;
        const place = upstreamKeyContext(String(row.id));
        const secret = boxes.source.open({ text: String(row.api_key), keyId: String(row.api_key_id) }, place);
        const { text, keyId } = boxes.target.seal(secret, place);
        return { ...row, api_key: text, api_key_id: keyId };
      },
    ],
  ]);
}

/** With no-break spaces at the end of the model. */
const withVisibleEnd: Conversion = (row) => {
  const model = String(row.model);
  return model.endsWith(' ') ? { ...row, model: model.replace(/ +$/, (end) => '\u00a0'.repeat(end.length)) } : row;
};

// ---- what never changes again

/** Records are only added. */
const RECORDS = AUDIT as unknown as CopiedTable;
const HOURS = USAGE_HOURLY as unknown as CopiedTable;
const DAY_MS = 24 * HOUR_MS;

async function prepare(options: CopyOptions): Promise<Pick<CopyReport, 'tables' | 'differing'>> {
  await copyChangedPast(options);
  const oldUntil = firstIdOf(Math.floor((Date.now() - OLD_AFTER_MS) / HOUR_MS) * HOUR_MS);
  const tables: CopyReport['tables'] = [];
  const differing: string[] = [];
  for (const [table, before] of [[RECORDS, Number.MAX_SAFE_INTEGER] as const, [HOURS, oldUntil] as const]) {
    const progress = await progressOf(options.target, table);
    await copyTable(options, table, progress, before);
    if (!(await checkTable(options, table, progress))) differing.push(table.name);
    tables.push({ table: table.name, rows: progress.value.checked.count, digest: progress.value.checked.sums });
  }
  return { tables, differing };
}

/** Copies the days again of which an earlier `--prepare` has other usage: it was removed because it is old, or arrived late. */
async function copyChangedPast(options: CopyOptions): Promise<void> {
  const { source, target } = options;
  const progress = await progressOf(target, HOURS);
  const { after } = progress.value.copied;
  if (after === null || progress.value.isCopied) return;
  const last = String(after[0]);
  const firsts = await Promise.all([source, target].map(firstHourIn));
  for (let dayMs = Math.min(...firsts); dayMs <= hourOf(last); dayMs += DAY_MS) {
    const end = firstIdOf(dayMs + DAY_MS);
    // All IDs have the same length.
    const span = { from: firstIdOf(dayMs), before: end > last ? `${last}0` : end };
    const [now, then] = await Promise.all([usageIn(source, span), usageIn(target, span)]);
    if (now !== then) await copyAgain(options, HOURS, progress, span);
  }
}

/** IDs of usage rows begin with their hour. */
const hourOf = (id: string) => parseInt(id.slice(0, 13).replace('-', ''), 16);

async function firstHourIn(on: Reader): Promise<number> {
  const [row] = await on.select<{ id: string | null }>('SELECT MIN(id) AS id FROM usage_hourly');
  return row?.id == null ? Infinity : hourOf(row.id);
}

/** Whatever is added to a row adds requests. */
async function usageIn(on: Reader, { from, before }: { from: string; before: string }): Promise<string> {
  const rows = await on.select(
    `SELECT COUNT(*) AS hours, ${on.dialect.limitedSum('requests', Number.MAX_SAFE_INTEGER)} AS requests
     FROM usage_hourly WHERE id > $from AND id < $before`,
    { from, before },
  );
  return JSON.stringify(rows);
}
