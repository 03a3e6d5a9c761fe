import { QueryTypes, type Sequelize, type Transaction } from 'sequelize';
import { MigrationsLocked } from './failures.js';

// Any number that no other program on the server uses.
const LOCK_NUMBER = 5_501_077_220;
const LOCK_NAME = "CONCAT('llmp migrations ', DATABASE())";
// Changing a large table can take long.
const WAIT_S = 3_600;

/**
 * Runs `work` while no other process migrates the same database. The lock belongs to the connection of the transaction and ends
 * with it, so a killed process does not leave it locked. SQLite has only a single process anyway.
 */
export async function whileAlone<T>(
  sequelize: Sequelize,
  transaction: Transaction,
  work: () => Promise<T>,
): Promise<T> {
  const ask = async (sql: string) => {
    const [row] = await sequelize.query<{ done: unknown }>(sql, { type: QueryTypes.SELECT, transaction });
    return row?.done;
  };
  switch (sequelize.getDialect()) {
    case 'postgres':
      for (const name of ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) {
        await sequelize.query(`SET LOCAL ${name} = '${WAIT_S}s'`, { transaction });
      }
      await ask(`SELECT pg_advisory_xact_lock(${LOCK_NUMBER}) AS done`);
      return work();
    case 'mysql':
      if (Number(await ask(`SELECT GET_LOCK(${LOCK_NAME}, ${WAIT_S}) AS done`)) !== 1) {
        throw new MigrationsLocked('another process has been migrating this database for too long');
      }
      try {
        return await work();
      } finally {
        // A closed connection has released the lock.
        await ask(`SELECT RELEASE_LOCK(${LOCK_NAME}) AS done`).catch(() => undefined);
      }
    default:
      return work();
  }
}
