/** What makes a database on a server unfit for llmp, as far as its catalogs show it. Nothing is changed or locked. */
import { StoreRefused } from '../../core/ports.js';
import type { Database } from './database.js';
import { ENCODING_ADVICE, lacking, readOnly } from './refused.js';
import { Table } from './table.js';
import * as declared from './tables.js';

type Readable = Pick<Database, 'dialect' | 'select'>;

const TABLES = Object.values(declared).flatMap((it) => (it instanceof Table ? [it.name] : []));
/** What llmp does with its tables, and what a migration does in addition. */
const USED = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];
const MIGRATED = ['CREATE', 'ALTER', 'DROP', 'INDEX'];

/**
 * The tables of llmp contain text of all languages, and lengths in characters. On MySQL each of them names its character set; on
 * PostgreSQL it is that of the database. @throws {StoreRefused} if it is not UTF8. @throws {StoreUnavailable}
 */
export async function checkEncoding(database: Readable): Promise<void> {
  if (database.dialect.name !== 'postgres') return;
  const [row] = await database.select<{ encoding: string }>("SELECT current_setting('server_encoding') AS encoding");
  if (row && row.encoding !== 'UTF8')
    throw new StoreRefused(`the encoding of the database is ${row.encoding}, and must be UTF8`, ENCODING_ADVICE);
}

/**
 * @param isMigrated whether all migrations are applied, so that no table is created or changed.
 * @returns what the user of DATABASE_URL may not do; null if nothing is known to be missing. @throws {StoreUnavailable}
 */
export function missingPrivileges(database: Readable, isMigrated: boolean): Promise<StoreRefused | null> {
  return database.dialect.name === 'postgres'
    ? missingOnPostgres(database, isMigrated)
    : missingOnMysql(database, isMigrated);
}

async function missingOnPostgres(database: Readable, isMigrated: boolean): Promise<StoreRefused | null> {
  const [row] = await database.select<{ readonly: string; create: boolean | null; user: string }>(
    `SELECT current_setting('transaction_read_only') AS "readonly", current_user AS "user",
            has_schema_privilege('public', 'CREATE') AND has_schema_privilege('public', 'USAGE') AS "create"`,
  );
  if (!row) return null;
  if (row.readonly === 'on') return readOnly('the database is read-only');
  if (!isMigrated && row.create !== true)
    return lacking('postgres', `the user ${row.user} may not create tables in the schema public`);
  const denied = await database.select<{ name: string }>(
    `SELECT relname AS name FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
     WHERE nspname = 'public' AND relkind = 'r' AND relname IN (${TABLES.map((name) => `'${name}'`).join(', ')})
       AND NOT (${USED.map((privilege) => `has_table_privilege(pg_class.oid, '${privilege}')`).join(' AND ')})
     ORDER BY relname`,
  );
  const names = denied.map(({ name }) => name).join(', ');
  return names === '' ? null : lacking('postgres', `the user ${row.user} may not read and change the tables ${names}`);
}

async function missingOnMysql(database: Readable, isMigrated: boolean): Promise<StoreRefused | null> {
  const [row] = await database.select<{ readonly: number; user: string; role: string | null }>(
    'SELECT @@global.read_only AS "readonly", CURRENT_USER() AS "user", CURRENT_ROLE() AS "role"',
  );
  if (!row) return null;
  const grantee = `CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')`;
  const granted = await database.select<{ privilege: string; what: string }>(
    `SELECT PRIVILEGE_TYPE AS privilege, 'all' AS what FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = ${grantee}
     UNION SELECT PRIVILEGE_TYPE, 'database' FROM information_schema.SCHEMA_PRIVILEGES
       WHERE GRANTEE = ${grantee} AND DATABASE() LIKE TABLE_SCHEMA
     UNION SELECT PRIVILEGE_TYPE, 'table' FROM information_schema.TABLE_PRIVILEGES
       WHERE GRANTEE = ${grantee} AND TABLE_SCHEMA = DATABASE()`,
  );
  const has = (privilege: string) => granted.some((it) => it.privilege === privilege);
  const isExempt = granted.some(
    ({ privilege, what }) => what === 'all' && /SUPER|READ.ONLY|CONNECTION.ADMIN/.test(privilege),
  );
  if (row.readonly === 1 && !isExempt) return readOnly('the server is read-only');
  // What comes from a role or is granted for single tables is not listed here in full.
  if ((row.role !== null && row.role !== 'NONE') || granted.some(({ what }) => what === 'table')) return null;
  const denied = [...USED, ...(isMigrated ? [] : MIGRATED)].filter((privilege) => !has(privilege));
  return denied.length === 0
    ? null
    : lacking('mysql', `the user ${row.user} lacks ${denied.join(', ')} on the database`);
}
