import { QueryTypes, type Sequelize, type Transaction } from 'sequelize';

// Any number will do that nobody else on the server uses for something.
const LOCK_NUMBER = 5_501_077_220;
const LOCK_NAME = "CONCAT('llmp migrations ', DATABASE())";
// To change a large table may take long.
const WAIT_S = 3_600;

/** Another process was at it for too long. */
export class MigrationsLocked extends Error {
  override name = 'MigrationsLocked';
}

/**
 * Runs `work` while no other process migrates the same database. The lock belongs to the connection that the transaction holds on to,
 * and ends with it: nobody who is killed leaves it behind. SQLite has a single process as it is.
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
        throw new MigrationsLocked('another process migrates this database');
      }
      try {
        return await work();
      } finally {
        // A connection that is gone has let go of it.
        await ask(`SELECT RELEASE_LOCK(${LOCK_NAME}) AS done`).catch(() => undefined);
      }
    default:
      return work();
  }
}
