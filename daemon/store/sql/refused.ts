/** Which errors of a database server last until an operator corrects something, and what that is. */
import { StoreRefused } from '../../core/ports.js';
import { NOT_BOUND } from './channel-binding.js';

const PRIVILEGES = {
  postgres:
    'Give the user of DATABASE_URL what it lacks. Easiest: make it the owner of the database (ALTER DATABASE … OWNER TO …). Since PostgreSQL 15 any other user needs GRANT USAGE, CREATE ON SCHEMA public',
  mysql: 'Give the user of DATABASE_URL all privileges on the database: GRANT ALL ON `NAME`.* TO …',
} as const;
const LOG_IN = 'Check the user and the password of DATABASE_URL, and from where the server lets this user log in';
const NAME = 'Create the database, or correct its name in DATABASE_URL';
const READ_ONLY = 'Use the address of the primary server in DATABASE_URL, or end the read-only mode of this one';
const SCHEMA =
  'The tables are not those of llmp: restore them from a backup, or use another database. Compare with llmp migrate status';
/** What PgBouncer says, which lets through only the parameters that it knows. */
const STARTUP_PARAMETER = /^unsupported startup parameter/;
const PGBOUNCER =
  'Add to pgbouncer.ini: ignore_startup_parameters = statement_timeout, lock_timeout, idle_in_transaction_session_timeout. The timeouts of llmp itself remain';
export const ENCODING_ADVICE =
  "Create another database for llmp with the encoding UTF8 (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0), and name it in DATABASE_URL";

/** SQLSTATEs of PostgreSQL, and codes of MySQL and MariaDB. */
const ADVICE: Readonly<Record<string, string>> = {
  42501: PRIVILEGES.postgres,
  '3F000': PRIVILEGES.postgres, // No schema has been selected to create in: the user may use none.
  28000: LOG_IN,
  '28P01': LOG_IN,
  '3D000': NAME,
  25006: READ_ONLY,
  '42P01': SCHEMA,
  42703: SCHEMA,
  [NOT_BOUND]:
    'Remove channel_binding=require from DATABASE_URL, or let this user log in with scram-sha-256 over TLS, without a proxy that ends TLS',
  ER_ACCESS_DENIED_ERROR: LOG_IN,
  ER_ACCESS_DENIED_NO_PASSWORD_ERROR: LOG_IN,
  ER_HOST_NOT_PRIVILEGED: LOG_IN,
  ER_BAD_DB_ERROR: NAME,
  ER_DBACCESS_DENIED_ERROR: PRIVILEGES.mysql,
  ER_TABLEACCESS_DENIED_ERROR: PRIVILEGES.mysql,
  ER_COLUMNACCESS_DENIED_ERROR: PRIVILEGES.mysql,
  ER_SPECIFIC_ACCESS_DENIED_ERROR: PRIVILEGES.mysql,
  ER_OPTION_PREVENTS_STATEMENT: READ_ONLY,
  ER_READ_ONLY_MODE: READ_ONLY,
  ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION: READ_ONLY,
  ER_NO_SUCH_TABLE: SCHEMA,
  ER_BAD_FIELD_ERROR: SCHEMA,
};

/**
 * @param error of the driver.
 * @param what what failed; default: the message of the error.
 * @returns null for an error that may be over soon, or that is about one value.
 */
export function refusedBy(error: Error & { code?: unknown }, what: string = error.message): StoreRefused | null {
  const advice = STARTUP_PARAMETER.test(error.message) ? PGBOUNCER : ADVICE[String(error.code)];
  // A server becomes writable, for example after a failover, without any change of the settings.
  return advice === undefined ? null : new StoreRefused(what, advice, advice !== READ_ONLY);
}

export const lacking = (kind: keyof typeof PRIVILEGES, what: string): StoreRefused =>
  new StoreRefused(what, PRIVILEGES[kind]);
export const readOnly = (what: string): StoreRefused => new StoreRefused(what, READ_ONLY, false);
